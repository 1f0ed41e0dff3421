import numpy as np
import pytest

import tessera as ts


def test_a_graph_is_built_and_run():
    g = ts.Graph()
    x = g.input("x", "f32", ["n", 3])
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    y = g.op("relu", x @ g.constant(w) - 1.0)
    assert y.type == "f32[n, 2]"
    p = g.finish(y=y).compile(cache=None)
    a = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    np.testing.assert_allclose(p(a), np.maximum(a @ w - 1, 0), rtol=1e-5, atol=1e-6)


def test_operators_with_attributes_and_several_results():
    g = ts.Graph()
    x = g.input("x", "f32", [4, 6])
    left, right = g.op("split", x, axis=0, num_outputs=2, outputs=2)
    top = g.op("softmax", left, axis=1)
    s = g.op("reduce_sum", right, g.constant(np.array([1])), keepdims=0)
    p = g.finish(top=top, s=2 * s).compile(cache=None)
    a = np.ones((4, 6), np.float32)
    top, s = p(a)
    np.testing.assert_allclose(top, a[:2] / 6, rtol=1e-6)
    np.testing.assert_allclose(s, [12] * 2)


def test_constants_are_copied():
    g = ts.Graph()
    c = np.ones(2, np.float32)
    y = g.input("x", "f32", [2]) + g.constant(c)
    c[:] = 100
    np.testing.assert_array_equal(g.finish(y=y).compile(cache=None)(np.zeros(2, np.float32)), [1, 1])


def test_mistakes_are_raised_where_they_are_made():
    g = ts.Graph()
    x = g.input("x", "f32", [2, 3])
    with pytest.raises(ts.Error):
        g.op("no_such_operator", x)
    with pytest.raises(ts.Error):
        g.op("matmul", x, x)
    other = ts.Graph().input("x", "f32", [2, 3])
    with pytest.raises(ts.Error, match="another graph"):
        ts.Graph().op("add", other, other)
    with pytest.raises(ts.Error, match="dtype"):
        ts.Graph().input("x", "float", [1])
