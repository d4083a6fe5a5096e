"""Reads a run folder's metrics.jsonl; writes loss.csv (step, loss, and of validation_loss, learning_rate and gradient_norm those that there
are) and loss.png beside it: the losses, and below them learning rate and gradient norm.
Or reads the ablation.json of a folder and draws ablation.png beside it.
Or reads the charts.json that `tilewave figures` writes, and draws a .png for each of its charts beside it.
Or reads the file NAME.json that `tilewave guidelines` takes, with the ablations that it names, and draws NAME.png.

Without matplotlib loss.png is left out with a sentence; so is a picture that was asked for by itself, with exit code 1. A step that was run again after a resume counts as it went last;
a last line that was cut off is ignored. Exit code 0, 2 where the file cannot be read, 1 where nothing can be written.
"""

import csv
import io
import json
import os
import pathlib
import re
import sys

COLUMNS = ("loss", "validation_loss", "learning_rate", "gradient_norm")
SYSTEM_PYTHON = "/usr/bin/python3"  # where Debian's python3-matplotlib is, whatever python3 comes first on the PATH


def read_metrics(path):
    """step -> {"loss": ..., "validation_loss": ..., "learning_rate": ..., "gradient_norm": ...}, in order of steps."""
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
        losses[step] = {name: row[name] for name in COLUMNS if row.get(name) is not None}
    return dict(sorted(losses.items()))


def add_last_validation(losses, path):
    """The validation behind the last step is in the summary of a run that has ended."""
    if path.exists():
        summary = json.loads(path.read_text(encoding="utf-8"))
        if summary.get("steps") in losses and summary.get("validation_loss") is not None:
            losses[summary["steps"]]["validation_loss"] = summary["validation_loss"]


def replace(path, content):
    """Whole or not at all: beside the path, to the disk, then under its name."""
    beside = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def save(figure, path, dpi):
    picture = io.BytesIO()
    figure.savefig(picture, dpi=dpi, format="png")
    replace(path, picture.getvalue())


def write_csv(losses, path):
    columns = ["loss"] + [name for name in COLUMNS[1:] if any(name in row for row in losses.values())]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step"] + columns)
    for step, row in losses.items():
        writer.writerow([step] + [row.get(name, "") for name in columns])
    replace(path, text.getvalue().encode("utf-8"))


def new_pyplot():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def training_label(folder):
    """What the training loss has and the validation loss has not, from the run's recipe: "training loss (smoothed, with dropout)"."""
    try:
        recipe = (folder / "recipe.toml").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return "training loss"
    on = {key for key, value in re.findall(r"^(label_smoothing|dropout|attention_dropout) *= *([0-9.eE+-]+)", recipe, re.MULTILINE)
          if float(value) > 0}
    terms = ["smoothed"] * ("label_smoothing" in on) + ["with dropout"] * bool(on - {"label_smoothing"})
    return "training loss" + f" ({', '.join(terms)})" * bool(terms)


def draw(losses, path):
    pyplot = new_pyplot()

    def points_of(name):
        return [(step, row[name]) for step, row in losses.items() if name in row]

    below = [(name, label) for name, label in (("learning_rate", "learning rate"), ("gradient_norm", "gradient norm")) if points_of(name)]
    figure, rows = pyplot.subplots(1 + len(below), 1, figsize=(7, 4 + 1.4 * len(below)), layout="constrained", sharex=True, squeeze=False,
                                   height_ratios=[3] + [1] * len(below))
    axes, others = rows[0][0], [row[0] for row in rows[1:]]
    for name, label, style in (("loss", training_label(path.parent), "-"), ("validation_loss", "validation loss", "o-")):
        if points_of(name):
            axes.plot(*zip(*points_of(name)), style, label=label, linewidth=1, markersize=3)
    axes.set_ylabel("nats per target token")
    if axes.lines:
        axes.legend()
    for (name, label), lower in zip(below, others):
        lower.plot(*zip(*points_of(name)), linewidth=1, color="#5a7a80")
        lower.set_ylabel(label)
        values = [value for _, value in points_of(name)]
        if name == "gradient_norm" and max(values) > 10 * min(values) > 0:
            lower.set_yscale("log")
    for one in (axes, *others):
        one.grid(alpha=0.3)
    rows[-1][0].set_xlabel("step")
    figure.suptitle(f"{path.parent.resolve().name}, step {max(losses, default=0)}", fontsize=11)
    save(figure, path, 150)


def read_ablation(path):
    """The picture's title; (name, predicted and measured gain in percent) of the variants that were compared, where a library's gain is
    not predicted; and the layer that the guide would show with its GEMMs' TFLOP/s by role in every variant: the vocabulary projection
    where the vocabulary alone differs, else the decoder's ffn.up."""
    ablation = json.loads(path.read_text(encoding="utf-8"))
    ran = [variant for variant in ablation["variants"] if variant["ran"]]
    gains = [(variant["name"], 100 * (variant["predicted_gain_fraction"] or 0), 100 * variant["measured_gain_fraction"])
             for variant in ran if variant["name"] != variant["baseline"] and variant["measured_gain_fraction"] is not None]
    changed = {gemm["layer"] for variant in ran for gemm in variant["gemms"] if gemm["concerned"]}
    layer = "decoder.projection" if changed <= {"decoder.projection"} else "decoder.*.ffn.up"
    rates = [(variant["name"], {gemm["role"]: gemm["tflops"] for gemm in variant["gemms"] if gemm["layer"] == layer}) for variant in ran]
    return f"{ablation['recipe']} on {ablation['device']}", gains, layer, rates


def draw_bars(axes, names, series):
    height = 0.8 / len(series)
    for place, (label, color, values) in enumerate(series):
        axes.barh([row + height * (place - (len(series) - 1) / 2) for row in range(len(names))], values, 0.9 * height, label=label,
                  color=color)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.grid(alpha=0.3, axis="x")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncol=len(series), frameon=False, fontsize=8)


def draw_ablation(title, gains, layer, rates, path):
    pyplot = new_pyplot()
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 2 + 0.36 * (len(gains) + len(rates))), layout="constrained",
                                             height_ratios=(len(gains) + 1, len(rates) + 1))
    draw_bars(above, [gain[0] for gain in gains], [("predicted", "#c8a048", [gain[1] for gain in gains]),
                                                   ("measured", "#4878a8", [gain[2] for gain in gains])])
    above.set_xlabel("gain per real target token, percent")
    draw_bars(below, [rate[0] for rate in rates], [(role, color, [rate[1].get(role, 0) for rate in rates]) for role, color in
                                                   (("forward", "#4878a8"), ("dgrad", "#6aa84f"), ("wgrad", "#a85048"))])
    below.set_xlabel(f"TFLOP/s of {layer}")
    figure.suptitle(title, fontsize=10)
    save(figure, path, 80)


def plot_ablation(path):
    try:
        title, gains, layer, rates = read_ablation(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"plot.py: {path} is not what `tilewave ablate` writes ({error!r}).", file=sys.stderr)
        return 2
    picture = path.with_suffix(".png")
    return draw_where_possible(lambda: draw_ablation(title, gains, layer, rates, picture), f"{picture} is not drawn")


def read_guidelines(path):
    """The picture's title; per row its label, and how many times as fast a real target token's step became: predicted, measured, and by
    cuBLASLt where that was measured; and by role of a GEMM (measured, predicted) us of each one's launches, every launch once."""
    file = json.loads(path.read_text(encoding="utf-8"))
    ablations = {name: json.loads((path.parent / name).read_text(encoding="utf-8"))
                 for name in dict.fromkeys(row["ablation"] for row in file["rows"])}

    def ratio(row, engine, field):
        if engine not in row:
            return None
        variants = {variant["name"]: variant for variant in ablations[row["ablation"]]["variants"]}
        before, after = (variants[row[engine][end]] for end in ("from", "to"))
        return before[field] / before["target_tokens"] * after["target_tokens"] / after[field]

    gains = [(f"{row['guideline']}\n{row['change']}", ratio(row, "in_house", "step_predicted_us"), ratio(row, "in_house", "step_us"),
              ratio(row, "cublaslt", "step_us")) for row in file["rows"]]
    launches = {}
    for ablation in ablations.values():
        for gemm in (gemm for variant in ablation["variants"] if variant["ran"] for gemm in variant["gemms"]):
            if gemm["predicted_us"] is not None:
                points = launches.setdefault(gemm["role"], set())
                points.add((gemm["time_us"] / gemm["count"], gemm["predicted_us"] / gemm["count"]))
    if not gains or not launches:
        raise ValueError("no rows, or no GEMM with a predicted time")
    title = f"{file['device']}, commit {file['commit']}: predicted from plans, and measured"
    return title, gains, {role: sorted(points) for role, points in sorted(launches.items())}


def times_text(ratio):
    return f"{ratio:.1f} times" if ratio >= 2 else f"{100 * (ratio - 1):+.1f} %"


def draw_guidelines(title, gains, launches, path):
    pyplot = new_pyplot()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 0.9 + 0.62 * len(gains)), layout="constrained", width_ratios=(1.35, 1))
    series = (("predicted", "#c8a048", 1), ("measured", "#4878a8", 2), ("measured with cuBLASLt", "#a0a0a0", 3))
    for place, (label, color, column) in enumerate(series):
        bars = [(row + 0.27 * (place - 1), gain[column]) for row, gain in enumerate(gains) if gain[column] is not None]
        left.barh([bar[0] for bar in bars], [bar[1] - 1 for bar in bars], 0.24, left=1, color=color, label=label)
        for at, ratio in bars:
            left.annotate(times_text(ratio), (max(ratio, 1), at), (3, 0), textcoords="offset points", va="center", fontsize=7)
    left.set_xscale("log")
    left.set_xlim(0.95, 1.35 * max(value for gain in gains for value in gain[1:] if value is not None))
    ticks = [tick for tick in (1, 1.2, 1.5, 2, 3, 4, 6, 10, 30, 100) if tick < left.get_xlim()[1]]
    left.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    left.axvline(1, color="black", linewidth=0.8)
    left.set_yticks(range(len(gains)), [gain[0] for gain in gains], fontsize=8)
    left.invert_yaxis()
    left.set_xlabel("a step's real target tokens per second, times as many as before")
    left.legend(loc="lower right", frameon=False, fontsize=8)

    for (role, points), color in zip(launches.items(), ("#6aa84f", "#4878a8", "#a85048")):
        right.plot(*zip(*points), ".", color=color, label=role, markersize=5, alpha=0.7)
    ends = [edge(value for points in launches.values() for point in points for value in point) for edge in (min, max)]
    right.plot(ends, ends, color="black", linewidth=0.8, label="predicted = measured")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("measured time of a GEMM (us)")
    right.set_ylabel("predicted time (us)")
    right.grid(alpha=0.3)
    right.legend(loc="upper left", frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=10)
    save(figure, path, 90)


def plot_guidelines(path):
    try:
        title, gains, launches = read_guidelines(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"plot.py: {path} is not what `tilewave guidelines` reads ({error!r}).", file=sys.stderr)
        return 2
    picture = path.with_suffix(".png")
    return draw_where_possible(lambda: draw_guidelines(title, gains, launches, picture), f"{picture} is not drawn", otherwise=1)


PALETTE = ("#2f6da8", "#c47a1c", "#3f8f4f", "#a8433f", "#7a5aa8", "#5a7a80", "#b0578a", "#7d7d2a")


def draw_curve(axes, curve):
    color, points = PALETTE[curve["color"] % len(PALETTE)], curve["points"]
    style = {"predicted": "--", "measured": ".-", "library": "s-", "plain": "-"}[curve["kind"]]
    axes.plot([point[0] for point in points], [point[1] for point in points], style, color=color, label=curve["label"], linewidth=1.2,
              markersize=3)


def draw_grouped_bars(axes, curves, categories):
    width = 0.84 / len(curves)
    for place, curve in enumerate(curves):
        color, points = PALETTE[curve["color"] % len(PALETTE)], curve["points"]
        axes.bar([point[0] + width * (place - (len(curves) - 1) / 2) for point in points], [point[1] for point in points], 0.9 * width,
                 color=color, alpha=0.4 if curve["kind"] == "predicted" else 1.0, label=curve["label"])
    axes.set_xticks(range(len(categories)), categories, fontsize=7)


def draw_chart(chart, path):
    pyplot = new_pyplot()
    panels = chart["panels"]
    figure, rows = pyplot.subplots(len(panels), 1, figsize=(8, 3 * len(panels) + 0.6), layout="constrained", squeeze=False)
    for axes, panel in zip((row[0] for row in rows), panels):
        if panel["x_scale"] == "categories":
            draw_grouped_bars(axes, panel["curves"], chart["categories"])
        else:
            for curve in panel["curves"]:
                draw_curve(axes, curve)
            axes.set_xscale("log" if panel["x_scale"] == "log" else "linear")
        axes.set_yscale(panel["y_scale"])
        for mark in panel["marks"]:
            axes.axvline(mark["at"], color="gray", linestyle=":", linewidth=0.8)
        for level in panel["levels"]:
            axes.axhline(level["at"], color="#a8433f", linewidth=0.6)
            axes.annotate(level["label"], (1, level["at"]), xycoords=("axes fraction", "data"), fontsize=6, ha="right", va="bottom")
        axes.set_title(panel["title"], fontsize=9, loc="left")
        axes.set_xlabel(panel["x_label"])
        axes.set_ylabel(panel["y_label"])
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.suptitle(chart["title"], fontsize=10)
    save(figure, path, 90)
    pyplot.close(figure)


def plot_charts(path):
    try:
        charts = json.loads(path.read_text(encoding="utf-8"))["charts"]
        pictures = [(chart, path.with_name(chart["name"] + ".png")) for chart in charts]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"plot.py: {path} is not what `tilewave figures` writes ({error!r}).", file=sys.stderr)
        return 2

    def draw_all():
        for chart, picture in pictures:
            draw_chart(chart, picture)

    return draw_where_possible(draw_all, "no .png is drawn beside the .svg of each figure")


def draw_where_possible(draw_it, without, otherwise=0):
    try:
        draw_it()
    except ImportError:
        if os.path.exists(SYSTEM_PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, __file__, *sys.argv[1:]])
        print(f"plot.py: matplotlib is not installed, so {without} (apt-get install python3-matplotlib).", file=sys.stderr)
        return otherwise
    return 0


def main(arguments):
    if len(arguments) != 1:
        print("usage: plot.py FOLDER, which holds metrics.jsonl or ablation.json; plot.py charts.json; or plot.py GUIDELINES.json",
              file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    if folder.name == "charts.json" and folder.is_file():
        return plot_charts(folder)
    if folder.is_file():
        return plot_guidelines(folder)
    if (folder / "ablation.json").exists():
        return plot_ablation(folder / "ablation.json")
    try:
        losses = read_metrics(folder / "metrics.jsonl")
    except (OSError, ValueError) as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 2
    add_last_validation(losses, folder / "summary.json")
    write_csv(losses, folder / "loss.csv")
    return draw_where_possible(lambda: draw(losses, folder / "loss.png"), f"{folder / 'loss.csv'} stands without loss.png")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        sys.exit(f"plot.py: {error}.")
