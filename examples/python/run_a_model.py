"""A model from ONNX to a saved program: load, compile, run, look at where the time goes, save, open.

usage: python examples/python/run_a_model.py [MODEL.onnx]
"""

import pathlib
import sys
import tempfile

import numpy as np

import tessera as ts

# %% A model: an ONNX file, or a graph in text form.
if len(sys.argv) > 1:
    model = ts.load(sys.argv[1])
else:
    g = ts.Graph()
    image = g.input("image", "f32", ["n", 64])
    weights = g.constant(np.random.default_rng(1).standard_normal((64, 10)).astype(np.float32))
    model = g.finish(probabilities=g.op("softmax", image @ weights, axis=1))
print(model.inputs)

# %% Compile it. Sizes that are open are those of the arrays of each call.
program = model.compile(threads=2)

# %% Run it: numpy in, numpy out; torch in, torch out.
rng = np.random.default_rng(0)
inputs = [
    rng.standard_normal([size if isinstance(size, int) else 2 for size in value.shape]).astype(np.float32)
    for value in model.inputs
]
outputs = program(*inputs)
print([output.shape for output in (outputs if isinstance(outputs, tuple) else [outputs])])

# %% Where the time goes.
print(program.profile(*inputs, runs=5))

# %% One file of machine code, which runs without the compiler.
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "model.tsr")
    program.save(path)
    again = ts.open(path)(*inputs)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(outputs))
print("the saved program gives the same bits")
