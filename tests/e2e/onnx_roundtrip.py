#!/usr/bin/env python3
"""Reads real models, writes them again and compares what ONNX Runtime answers to both.

usage: onnx_roundtrip.py MODELS TESSERA [NAME ...]

MODELS is a folder with NAME.onnx, NAME.golden.json, materialize.py and perhaps variants/; TESSERA is
the binary. Without names all models are tried. The optimizations of ONNX Runtime are off, so that
equal operators give equal bits; where a model had to be written with other operators (an opset
below 17), the answers agree within 1e-5 of their root mean square. Needs numpy and onnxruntime; exits
with 77, and says so, where they are missing.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnxruntime as ort
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed for {sys.executable}")
    sys.exit(77)

TOLERANCE = 1e-5
OLDEST_KEPT = 17  # the oldest opset that is written
DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def filled(argument, dims):
    """sin(i) for floating-point inputs, i % 1000 for integers."""
    shape = [dims.get(size, size) for size in argument.shape]
    shape = [size if isinstance(size, int) else 1 for size in shape]
    i = np.arange(int(np.prod(shape)))
    dtype = DTYPES[argument.type]
    values = np.sin(i) if np.issubdtype(dtype, np.floating) else i % 1000
    return values.astype(dtype).reshape(shape)


def answers(path, feeds):
    runner = session(path)
    return dict(zip((o.name for o in runner.get_outputs()), runner.run(None, feeds)))


def error_of(actual, expected):
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    if actual.tobytes() == expected.tobytes():
        return 0.0
    difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
    return float(difference / max(np.sqrt(np.mean(np.square(expected.astype(np.float64)))), 1e-30))


def roundtrip(models, tessera, golden, folder):
    """The largest error over all outputs; 0 stands for equal bits."""
    name = golden.name.removesuffix(".golden.json")
    subprocess.run([sys.executable, models / "materialize.py", folder, name], check=True)
    before, after = folder / f"{name}.onnx", folder / "again.onnx"
    convert = subprocess.run([tessera, "convert", before, after], capture_output=True, text=True)
    if convert.returncode != 0:
        raise RuntimeError(convert.stderr.strip() or f"exit code {convert.returncode}")
    dims = json.loads(golden.read_text()).get("dims", {})
    feeds = {a.name: filled(a, dims) for a in session(before).get_inputs()}
    expected = answers(before, feeds)
    actual = answers(after, feeds)
    if list(actual) != list(expected):
        raise RuntimeError(f"outputs are {', '.join(actual)}")
    return max(error_of(actual[name], expected[name]) for name in expected)


def allowed(name):
    exported = re.search(r"_ts(\d+)", name)
    return TOLERANCE if exported and int(exported[1]) < OLDEST_KEPT else 0.0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    models, tessera = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    goldens = sorted(models.glob("*.golden.json")) + sorted(models.glob("variants/*.golden.json"))
    wanted = set(sys.argv[3:])
    failures = 0
    for golden in goldens:
        name = golden.name.removesuffix(".golden.json")
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                error = roundtrip(models, tessera, golden, pathlib.Path(folder))
                good = error <= allowed(name)
                verdict = "equal bits" if error == 0 else f"error {error:.1e}"
            except Exception as why:  # a model that fails must not hide the others
                good, verdict = False, str(why).splitlines()[0]
        failures += not good
        print(f"{'ok  ' if good else 'FAIL'}  {name:24} {verdict}", flush=True)
    print(f"{failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
