"""Sends a run's numbers to Weights & Biases: python3 examples/wandb_log.py runs/toy_translation"""
import json, pathlib, sys
import wandb

run = pathlib.Path(sys.argv[1])
wandb.init(project="tilewave", name=run.resolve().name)
for line in (run / "metrics.jsonl").open(encoding="utf-8"):
    row = json.loads(line)
    wandb.log(row, step=row.pop("step"))
wandb.finish()
