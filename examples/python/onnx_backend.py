"""Tessera behind ONNX's backend interface, for tools that know onnx.backend.base.

usage: python examples/python/onnx_backend.py
"""

import sys

import numpy as np

try:
    import onnx
except ImportError:
    print("onnx is not installed: this example needs it (pip install onnx)")
    sys.exit(0)

import tessera.onnx_backend as backend

# %% One operator.
node = onnx.helper.make_node("Softmax", ["x"], ["y"], axis=1)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
print(backend.run_node(node, [x]).y)

# %% A model, prepared once and run often; options are those of Model.compile.
info = onnx.helper.make_tensor_value_info
graph = onnx.helper.make_graph([node], "g", [info("x", onnx.TensorProto.FLOAT, ["n", 3])],
                               [info("y", onnx.TensorProto.FLOAT, ["n", 3])])
model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
prepared = backend.prepare(model, threads=2)
for rows in (1, 4):
    print(prepared.run([np.ones((rows, 3), np.float32)]).y.shape)
