"""Trains until a loss is reached, then stops with the step saved: python3 python/examples/train_until.py recipes/tiny.toml 4.0 RUN"""
import sys

import tilewave

recipe, enough, folder = sys.argv[1], float(sys.argv[2]), sys.argv[3]


def on_step(step):
    if step.step % 5 == 0:
        print(f"step {step.step}: loss {step.loss:.3f}, {step.target_tokens_per_s:.0f} tokens/s")
    return step.loss > enough  # False stops the run


run = tilewave.train(recipe, run=folder, device="cpu", on_step=on_step)
loss = run.metrics["loss"]  # a numpy array, where numpy is
print(f"{len(loss)} steps, the least loss {min(loss):.3f}; the run " + ("has ended" if run.ended else "goes on with resume=True"))
