#!/usr/bin/env python3
"""Proves models equal to what ONNX Runtime's optimizer makes of them, and prints a table.

    prove_models.py TESSERA MODEL.onnx... [--level basic|extended] [--time-limit 60s] [--work DIR]

An oracle for people: it needs onnx and onnxruntime, which tessera does not.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import onnxruntime as ort


def reexport(model, folder, level):
    """Writes the optimized model beside a link to the weights that it still refers to."""
    out = folder / model.name
    if out.exists():
        return out
    weights = model.with_suffix(".weights")
    options = ort.SessionOptions()
    options.graph_optimization_level = {
        "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    }[level]
    options.optimized_model_filepath = str(out)
    options.log_severity_level = 3
    large = weights.exists() and weights.stat().st_size > 5e8
    if large:  # beyond what one protobuf message holds
        prefix = "session.optimized_model_external_initializers_"
        options.add_session_config_entry(prefix + "file_name", weights.name)
        options.add_session_config_entry(prefix + "min_size_in_bytes", "1024")
    ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    if weights.exists() and not large:
        os.link(weights, folder / weights.name)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tessera", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--level", choices=["basic", "extended"], default="basic")
    parser.add_argument("--time-limit", default="60s")
    parser.add_argument("--work", type=pathlib.Path, help="where re-exports are kept")
    given = parser.parse_args()
    ort.set_default_logger_severity(3)

    counts = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.work or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for model in given.models:
            other = reexport(model, folder, given.level)
            command = [given.tessera, "prove", model, other, "--json", "--time-limit", given.time_limit]
            ran = subprocess.run(command, capture_output=True, text=True)
            try:
                answer = json.loads(ran.stdout)
            except ValueError:
                answer = {"verdict": "failed", "why": ran.stderr.strip()}
            if "error" in answer:
                answer = {"verdict": "failed", "why": answer["error"]["message"]}
            counts[answer["verdict"]] = counts.get(answer["verdict"], 0) + 1
            print(
                f"{model.stem:24} {answer['verdict']:8} {answer.get('seconds', 0):6.1f} s "
                f"{answer.get('values', 0):5} values, {answer.get('congruent', 0):5} congruent, "
                f"{answer.get('proved_pairs', 0):4} proved  {answer.get('why', '')}",
                *(f"assuming that {a['text']}" for a in answer.get("assumptions", [])),
                sep="\n      ",
                flush=True,
            )
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 0 if set(counts) == {"proved"} else 1


if __name__ == "__main__":
    sys.exit(main())
