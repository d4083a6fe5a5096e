"""What a step will cost on a GPU that need not be here, as a table: python3 python/examples/plan_table.py recipes/transformer_big.toml h200"""
import sys

import tilewave

recipe, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "h200"
plan = tilewave.plan(recipe, device)
print(f"{plan.recipe} on {plan.device}: a step is predicted to take {plan.predicted_us / 1e3:.2f} ms")
for layer in sorted(plan.layers, key=lambda layer: -layer.predicted_us)[:10]:
    print(f"{layer.layer:32} {layer.role:8} {layer.m:6} x {layer.n:6} x {layer.k:6} {layer.predicted_us:9.1f} us  {layer.kernel}")
for advice in plan.advice:
    if advice.advised:
        print(f"{advice.quantity}: {advice.to} instead of {advice.from_} makes a step {advice.step_gain_fraction:.1%} faster; {advice.set}")
try:
    import pandas
except ImportError:
    sys.exit()
print(pandas.DataFrame(plan.rows_of("layers")).groupby("role")["predicted_us"].sum())
