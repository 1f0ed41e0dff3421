#!/usr/bin/env python3
"""Optimizes ONNX models with tessera and lets ONNX Runtime run both: do they agree, and how long
does the optimized one take relative to the original?

usage: optimized_onnx.py TESSERA MODEL.onnx ... [--rounds N] [--size NAME=N ...]

The best of alternating runs counts, one thread each. Needs numpy and onnxruntime; exits with 77, and
says so, where they are missing; with 1 where a model does not agree or takes more than 1.05 of the
time.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import onnxruntime as ort
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed for {sys.executable}")
    sys.exit(77)

TOLERANCE = 1e-4  # of the root mean square
SLOWEST = 1.05
DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def filled(argument, sizes):
    """sin(i) for floating-point inputs, i % 1000 for integers."""
    shape = [sizes.get(size, 1) if not isinstance(size, int) else size for size in argument.shape]
    i = np.arange(int(np.prod(shape)))
    dtype = DTYPES[argument.type]
    values = np.sin(i) if np.issubdtype(dtype, np.floating) else i % 1000
    return values.astype(dtype).reshape(shape)


def error_of(actual, expected):
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isfinite(actual), np.isfinite(expected)):
        return float("inf")
    finite = np.isfinite(expected)
    if not finite.any():
        return 0.0
    scale = np.sqrt(np.mean(expected[finite]**2)) or 1.0
    return float(np.abs(actual[finite] - expected[finite]).max() / scale)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("tessera")
    arguments.add_argument("models", nargs="+", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--size", action="append", default=[])
    given = arguments.parse_args()
    sizes = {name: int(size) for name, size in (text.split("=") for text in given.size)}
    failures, ratios = 0, []
    print(f"{'model':<26}{'error':>10}{'original':>12}{'optimized':>12}{'ratio':>8}")
    for path in given.models:
        with tempfile.TemporaryDirectory() as folder:
            optimized = pathlib.Path(folder) / "optimized.onnx"
            done = subprocess.run([given.tessera, "optimize", path, optimized, "-q"],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{path.stem:<26}{done.stderr.strip()}")
                failures += 1
                continue
            runners = [session(path), session(optimized)]
            feeds = {a.name: filled(a, sizes) for a in runners[0].get_inputs()}
            answers = [runner.run(None, feeds) for runner in runners]
            error = max(error_of(b, a) for a, b in zip(*answers))
            best = [float("inf")] * 2
            for _ in range(given.rounds):
                for which, runner in enumerate(runners):
                    start = time.perf_counter()
                    runner.run(None, feeds)
                    best[which] = min(best[which], time.perf_counter() - start)
            ratio = best[1] / best[0]
            ratios.append(ratio)
            wrong = error > TOLERANCE or ratio > SLOWEST
            failures += wrong
            print(f"{path.stem:<26}{error:>10.1e}{best[0] * 1e3:>9.2f} ms{best[1] * 1e3:>9.2f} ms"
                  f"{ratio:>8.2f}{' !' if wrong else ''}", flush=True)
    if ratios:
        print(f"geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.3f}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
