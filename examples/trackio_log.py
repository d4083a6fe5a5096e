"""Puts a run's numbers on a trackio board: python3 examples/trackio_log.py runs/toy_translation"""
import json, pathlib, sys
import trackio

run = pathlib.Path(sys.argv[1])
trackio.init(project="tilewave", name=run.resolve().name)
for line in (run / "metrics.jsonl").open(encoding="utf-8"):
    row = json.loads(line)
    trackio.log(row, step=row.pop("step"))
trackio.finish()
