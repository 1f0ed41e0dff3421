#!/usr/bin/env python3
"""Makes damaged copies of models, shows the damage with the interpreter, and asks `tessera prove`.

    damage.py TESSERA MODEL.onnx... --count 20 [--seed 1] [--time-limit 60s] [--work DIR]

Each copy has one edit: an element of a weight, an attribute, or an edge (an operand replaced by
another value of the same type). An input is built from the edit: the rows of an edited table are
looked up, and floats are tried at several scales. Copies whose outputs are not further apart than
1e-2 of the root mean square on such an input do not count. Needs onnx and numpy.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

SHOWN = 1e-2


def types_of(model):
    """Element type and shape of every value, as far as they can be told."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    types = {}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        types[value.name] = (tensor.elem_type, tuple(d.dim_value or d.dim_param for d in tensor.shape.dim))
    return types


def array_of(tensor, folder):
    """The elements of a float weight, wherever they lie."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor).copy()
    where = {entry.key: entry.value for entry in tensor.external_data}
    count = int(np.prod(tensor.dims))
    flat = np.fromfile(folder / where["location"], np.float32, count, offset=int(where.get("offset", 0)))
    return flat.reshape(tensor.dims)


def edit_weight(model, path, rng):
    floats = [t for t in model.graph.initializer if t.data_type == 1 and np.prod(t.dims) >= 8]
    tensor = rng.choice(floats)
    array = array_of(tensor, path.parent)
    flat = array.reshape(-1)
    at = rng.randrange(flat.size)
    old = float(flat[at])
    spread = float(np.std(flat)) or 1.0
    flat[at] = rng.choice([-old - spread, old + 8 * spread, old + 100 * spread])
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    row = int(at // max(1, array.size // array.shape[0]))
    return f"weight {tensor.name}[{at}]: {old:.4g} -> {float(flat[at]):.4g}", row


def edit_attribute(model, path, rng):
    places = []
    for node in model.graph.node:
        for attr in node.attribute:
            if attr.type in (onnx.AttributeProto.INT, onnx.AttributeProto.INTS, onnx.AttributeProto.FLOAT):
                if not attr.name.startswith(("keepdims", "to", "allowzero", "count_include", "ceil_mode")):
                    places.append((node, attr))
    node, attr = rng.choice(places)
    before = onnx.helper.get_attribute_value(attr)
    if attr.type == onnx.AttributeProto.FLOAT:
        attr.f = rng.choice([attr.f * 2, attr.f * 0.5, attr.f + 0.1])
    elif attr.type == onnx.AttributeProto.INT:
        attr.i = attr.i + rng.choice([-1, 1])
    elif len(attr.ints) > 1 and len(set(attr.ints)) > 1:
        values = list(attr.ints)
        i, j = rng.sample(range(len(values)), 2)
        values[i], values[j] = values[j], values[i]
        attr.ints[:] = values
    elif attr.name == "pads" and len(attr.ints) == 4:  # shifts the image
        attr.ints[:] = [attr.ints[0] + 1, attr.ints[1], max(attr.ints[2] - 1, 0), attr.ints[3]]
    else:
        attr.ints[:] = [v + 1 for v in attr.ints]
    return f"{node.op_type} {node.name}: {attr.name} {before} -> {onnx.helper.get_attribute_value(attr)}", None


def edit_edge(model, path, rng):
    types = types_of(model)
    made = [i.name for i in model.graph.input]
    places = []
    for node in model.graph.node:
        for k, name in enumerate(node.input):
            others = [m for m in made if m != name and name in types and types.get(m) == types[name]]
            if others and name in made:
                places.append((node, k, others))
        made.extend(node.output)
    if not places:
        return None
    node, k, others = rng.choice(places)
    before = node.input[k]
    node.input[k] = rng.choice(others)
    return f"{node.op_type} {node.name}: operand {k} {before} -> {node.input[k]}", None


def inputs_for(model, path, row, rng):
    """Several sets of inputs, each a dict of arrays."""
    golden = path.with_suffix(".golden.json")
    sizes = json.loads(golden.read_text()).get("dims", {}) if golden.exists() else {}
    for scale in (1.0, 10.0, 0.1, 0.01, 100.0):
        arrays = {}
        state = np.random.default_rng(rng.randrange(1 << 30))
        for value in model.graph.input:
            tensor = value.type.tensor_type
            shape = [d.dim_value or sizes.get(d.dim_param, 3) for d in tensor.shape.dim]
            if tensor.elem_type == 1:
                array = (scale * state.standard_normal(shape)).astype(np.float32)
            else:
                array = state.integers(0, 2 if "mask" in value.name else 1000, shape)
                if row is not None and "mask" not in value.name and array.size:
                    array.reshape(-1)[0] = row
                array = array.astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            arrays[value.name] = array
        yield arrays


def outputs(tessera, model, arrays, folder):
    """What the interpreter answers; None where it does not run."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [str(tessera), "run", str(model), "--save", str(folder / "out"), "--quiet"]
    for name, array in arrays.items():
        file = folder / (name.replace("/", "_") + ".npy")
        np.save(file, array)
        command += ["--input", f"{name}={file}"]
    if subprocess.run(command, capture_output=True).returncode != 0:
        return None
    return {f.stem: np.load(f).astype(np.float64) for f in (folder / "out").glob("*.npy")}


def apart(ours, theirs):
    worst = 0.0
    for name, a in ours.items():
        b = theirs.get(name)
        if b is None or a.shape != b.shape:
            return float("inf")
        rms = float(np.sqrt(np.mean(np.square(a[np.isfinite(a)])))) or 1.0
        gap = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
        worst = max(worst, float(np.nan_to_num(gap, nan=np.inf).max(initial=0)) / rms)
    return worst


def damaged(given, path, index, rng, folder):
    """One damaged copy that shows, with its edit; None where it does not."""
    model = onnx.load(path, load_external_data=False)
    edit = [edit_weight, edit_attribute, edit_edge][index % 3](model, path, rng)
    if edit is None:
        return None
    what, row = edit
    copy = folder / f"{path.stem}_{index}.onnx"
    onnx.save(model, copy)
    for arrays in inputs_for(model, path, row, rng):
        theirs = outputs(given.tessera, copy, arrays, folder / "theirs")
        if theirs is None:
            continue
        ours = outputs(given.tessera, path, arrays, folder / "ours")
        if ours is not None and apart(ours, theirs) > SHOWN:
            return copy, what
    copy.unlink()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tessera", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--count", type=int, default=10, help="damaged copies of each model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time-limit", default="60s")
    parser.add_argument("--work", type=pathlib.Path, help="where the copies are kept")
    given = parser.parse_args()

    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.work or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for path in given.models:
            weights = path.with_suffix(".weights")
            if weights.exists() and not (folder / weights.name).exists():
                os.link(weights, folder / weights.name)
            rng = random.Random(f"{given.seed} {path.stem}")
            made = 0
            for index in range(10 * given.count):
                if made == given.count:
                    break
                case = damaged(given, path, index, rng, folder)
                if case is None:
                    continue
                made += 1
                copy, what = case
                command = [given.tessera, "prove", path, copy, "--json", "--time-limit", given.time_limit]
                ran = subprocess.run(command, capture_output=True, text=True)
                answer = json.loads(ran.stdout or "{}")
                verdict = answer.get("verdict", "failed")
                counts[verdict] += 1
                print(f"{copy.stem:28} {verdict:8} {answer.get('seconds', 0):6.1f} s  {what}", flush=True)
                if not given.work:
                    copy.unlink()
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if counts["proved"] else 0


if __name__ == "__main__":
    sys.exit(main())
