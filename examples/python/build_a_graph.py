"""A graph built in Python, compiled, and written as ONNX.

usage: python examples/python/build_a_graph.py
"""

import pathlib
import tempfile

import numpy as np

import tessera as ts

rng = np.random.default_rng(0)
w1 = rng.standard_normal((16, 32)).astype(np.float32)
w2 = rng.standard_normal((32, 4)).astype(np.float32)

# %% Operators by name; types are inferred, and mistakes raised, at every call.
g = ts.Graph()
x = g.input("x", "f32", ["batch", 16])
hidden = g.op("gelu", x @ g.constant(w1))
y = g.op("softmax", hidden @ g.constant(w2), axis=1)
print(y.type)
model = g.finish(y=y)

# %% Run it.
rows = rng.standard_normal((3, 16)).astype(np.float32)
result = model.compile()(rows)
np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-5)

# %% Any other runtime reads it as ONNX.
with tempfile.TemporaryDirectory() as folder:
    model.save(pathlib.Path(folder, "mlp.onnx"))
print(result)
