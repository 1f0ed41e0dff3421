import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import tessera.onnx_backend as backend


def test_a_model_and_a_node_run():
    node = onnx.helper.make_node("Add", ["x", "y"], ["z"])
    x = np.arange(3, dtype=np.float32)
    outputs = backend.run_node(node, [x, x])
    np.testing.assert_array_equal(outputs.z, 2 * x)
    assert backend.supports_device("CPU") and not backend.supports_device("TPU")
