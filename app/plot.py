"""Reads a run folder's metrics.jsonl; writes loss.csv (step, loss and validation_loss where there is one) and loss.png beside it.

Without matplotlib loss.png is left out with a sentence. A step that was run again after a resume counts as it went last;
a last line that was cut off is ignored. Exit code 0, or 2 where metrics.jsonl cannot be read.
"""

import csv
import json
import os
import pathlib
import sys

SYSTEM_PYTHON = "/usr/bin/python3"  # where Debian's python3-matplotlib is, whatever python3 comes first on the PATH


def read_metrics(path):
    """step -> {"loss": ..., "validation_loss": ...}, in order of steps."""
    losses = {}
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            break
        try:
            row = json.loads(line)
            step = int(row["step"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}:{number} is no JSON object with a step ({error}).") from error
        losses[step] = {name: row[name] for name in ("loss", "validation_loss") if row.get(name) is not None}
    return dict(sorted(losses.items()))


def write_csv(losses, path):
    columns = ["loss"] + ["validation_loss"] * any("validation_loss" in row for row in losses.values())
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step"] + columns)
        for step, row in losses.items():
            writer.writerow([step] + [row.get(name, "") for name in columns])


def draw(losses, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, label, style in (("loss", "training", "-"), ("validation_loss", "validation", "o-")):
        points = [(step, row[name]) for step, row in losses.items() if name in row]
        if points:
            axes.plot(*zip(*points), style, label=label, linewidth=1, markersize=3)
    axes.set_xlabel("step")
    axes.set_ylabel("loss (nats a target token)")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main(arguments):
    if len(arguments) != 1:
        print("usage: plot.py RUN, the folder that holds metrics.jsonl", file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    try:
        losses = read_metrics(folder / "metrics.jsonl")
    except (OSError, ValueError) as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 2
    write_csv(losses, folder / "loss.csv")
    try:
        draw(losses, folder / "loss.png")
    except ImportError:
        if os.path.exists(SYSTEM_PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, __file__, *arguments])
        print(f"plot.py: matplotlib is not installed, so {folder / 'loss.csv'} stands without loss.png "
              "(apt-get install python3-matplotlib).", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
