#!/usr/bin/env python3
"""Prints what a run on a GPU has found as one table: kernels, models, and the bar that each was to reach.

usage: table.py FOLDER    of gpu_check.log, gpu_bars.json, gpu_models.json and gpu_model_times.json, as far as they are there

A kernel has one line for each peer; its rate is in GB/s or TFLOP/s. Exits with 1 where a bar is missed.
"""
import json
import pathlib
import sys

# Times of PyTorch that a model may take; no model has a bar for others.
MOST_OF_TORCH = {1: 1.0, 32: 1.3}


def read(folder, name):
    path = folder / name
    return json.loads(path.read_text()) if path.exists() else []


def kernels(folder):
    """What, ours, peer, ratio, bar, and whether it is reached; None: there is no bar."""
    for row in read(folder, "gpu_bars.json"):
        if "most" in row:
            yield row["what"], f"{row['ours']:.1f}", "", "", f"<= {row['most']}", row["ours"] <= row["most"]
        else:
            bar = row["bar"]
            yield (row["what"], f"{row['ours']:.1f}", f"{row['of']} {row['peer']:.1f}", f"{row['ratio']:.3f}",
                   f">= {bar}" if bar else "", row["ratio"] >= bar if bar else None)


def models(folder):
    worst = {}
    for row in read(folder, "gpu_models.json"):
        if "agrees" in row:
            of = worst.setdefault(row["precision"], [0, 0, 0.0])
            of[0] += row["agrees"]
            of[1] += 1
            of[2] = max(of[2], row.get("error", float("inf")))
    for precision, (agree, count, error) in worst.items():
        yield f"models that agree, {precision}", f"{agree} of {count}", f"worst {error:.1e}", "", "all", agree == count
    for row in read(folder, "gpu_model_times.json"):
        if row.get("torch_ms"):
            ratio, most = row["ms"] / row["torch_ms"], MOST_OF_TORCH.get(row["batch"])
            yield (f"{row['model']} {row['precision']} batch {row['batch']}, ms", f"{row['ms']:.3f}",
                   f"torch.compile {row['torch_ms']:.3f}", f"{ratio:.3f}", f"<= {most}" if most else "",
                   ratio <= most if most else None)


def main(folder):
    folder = pathlib.Path(folder)
    log = folder / "gpu_check.log"
    if log.exists():
        print(log.read_text().strip().splitlines()[-1])
    rows = [("", "ours", "peer", "ratio", "bar", None), *kernels(folder), *models(folder)]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    for row in rows:
        verdict = {None: "", True: "ok", False: "MISSED"}[row[5]]
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:5], widths[1:])]
        print("  ".join(cells + [verdict]).rstrip())
    bars = [row[5] for row in rows if row[5] is not None]
    print(f"{sum(bars)} of {len(bars)} bars are reached")
    return 0 if all(bars) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    sys.exit(main(sys.argv[1]))
