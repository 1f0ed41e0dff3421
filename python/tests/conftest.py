import pathlib

import pytest

import tessera as ts

ADD = "graph g(x: f32[4], y: f32[4]) { z = add(x, y) return z }"
OPEN = "graph g(x: f32[n, 3]) { y = relu(x) s = reduce_sum(y, [1]) {keepdims=0} return y, s }"


@pytest.fixture
def add():
    return ts.parse(ADD)


@pytest.fixture
def open_sizes():
    return ts.parse(OPEN)


@pytest.fixture
def fixtures():
    return pathlib.Path(__file__).resolve().parents[2] / "tests"
