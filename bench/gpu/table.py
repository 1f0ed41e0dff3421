#!/usr/bin/env python3
"""Prints what a run on a GPU has found as one table: kernels, models, and the bar that each was to reach.

usage: table.py FOLDER    of gpu_check.log, gpu_bars.json, gpu_models.json and gpu_model_times.json, as far as they are there

A kernel has one line for each peer; its rate is in GB/s or TFLOP/s. Exits with 1 where a bar is missed; what ought to
be there and is not is missed too.
"""
import json
import pathlib
import re
import sys

# Times of PyTorch that a model may take; no model has a bar for others.
MOST_OF_TORCH = {1: 1.0, 32: 1.3}
TIMED = [(model, "f16", batch) for batch in MOST_OF_TORCH for model in ("bert_base", "resnet50")]
PRECISIONS = ("f32", "f16", "bf16")
ABSENT = "absent"  # for False: it was not there to be compared


def read(folder, name):
    path = folder / name
    return json.loads(path.read_text()) if path.exists() else []


def checks(folder):
    """The kernels that agree with the interpreter, and what failed in all of gpu_check."""
    log = folder / "gpu_check.log"
    lines = log.read_text().splitlines() if log.exists() else []
    found = [re.match(r"checked .*: (\d+) agree, (\d+) do not", line) for line in lines]
    found = [tuple(map(int, match.groups())) for match in found if match]
    if not found:
        yield "kernels that agree", "", "", "", "all", ABSENT
    for agree, differ in found:
        yield "kernels that agree", f"{agree} of {agree + differ}", "", "", "all", differ == 0 and agree > 0
    for line in lines:
        if line.startswith("FAILED"):
            yield line[:100], "", "", "", "", False


def kernels(folder):
    """What, ours, peer, ratio, bar, and whether it is reached; None: there is no bar."""
    rows = read(folder, "gpu_bars.json")
    if not rows:
        yield "kernels' times", "", "", "", "all", ABSENT
    for row in rows:
        ours = "" if row["ours"] is None else f"{row['ours']:.1f}"
        if "most" in row:
            most = row["most"]
            reached = None if most is None else row["ours"] <= most if ours else ABSENT
            yield row["what"], ours, "", "", f"<= {most}" if most else "", reached
        else:
            bar, ratio = row["bar"], row["ratio"]
            reached = None if not bar else ABSENT if ratio is None else ratio >= bar
            yield (row["what"], ours, f"{row['of']} {row['peer']:.1f}" if row["peer"] else row["of"],
                   "" if ratio is None else f"{ratio:.3f}", f">= {bar}" if bar else "", reached)


def models(folder):
    worst = {}
    for row in read(folder, "gpu_models.json"):
        if "agrees" in row:
            of = worst.setdefault(row["precision"], [0, 0, 0.0])
            of[0] += row["agrees"]
            of[1] += 1
            of[2] = max(of[2], row.get("error", float("inf")))
    for precision in dict.fromkeys((*PRECISIONS, *worst)):
        if precision not in worst:
            yield f"models that agree, {precision}", "", "", "", "all", ABSENT
            continue
        agree, count, error = worst[precision]
        yield f"models that agree, {precision}", f"{agree} of {count}", f"worst {error:.1e}", "", "all", agree == count
    timed = {(row["model"], row["precision"], row["batch"]): row for row in read(folder, "gpu_model_times.json")
             if "ms" in row}
    for key in dict.fromkeys((*TIMED, *timed)):
        yield model_time(key, timed.get(key, {}))


def model_time(key, row):
    """A model whose batch gives something else than it should has missed its bar, however fast it is."""
    model, precision, batch = key
    ours, torch, most = row.get("ms"), row.get("torch_ms"), MOST_OF_TORCH.get(batch)
    ratio = ours / torch if ours and torch else None
    reached = None if not most else ABSENT if ratio is None else ratio <= most
    if row.get("agrees") is False:
        reached = False
    elif row and "agrees" not in row and most:
        reached = ABSENT
    return (f"{model} {precision} batch {batch}, ms", f"{ours:.3f}" if ours else "",
            f"torch.compile {torch:.3f}" if torch else "torch.compile", f"{ratio:.3f}" if ratio else "",
            f"<= {most}" if most else "", reached)


def main(folder):
    folder = pathlib.Path(folder)
    rows = [("", "ours", "peer", "ratio", "bar", None), *checks(folder), *kernels(folder), *models(folder)]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    for row in rows:
        verdict = {None: "", True: "ok", False: "MISSED", ABSENT: "MISSED (absent)"}[row[5]]
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:5], widths[1:])]
        print("  ".join(cells + [verdict]).rstrip())
    bars = [row[5] is True for row in rows if row[5] is not None]
    print(f"{sum(bars)} of {len(bars)} bars are reached")
    return 0 if all(bars) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    sys.exit(main(sys.argv[1]))
