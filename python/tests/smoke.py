"""A model, a kernel, a proof and a saved program, in one process without pytest: what tools/wheel runs under an emulator.

    python python/tests/smoke.py
"""

import pathlib
import platform
import sys
import tempfile

import numpy as np

import tessera as ts

KERNEL = """kernel twice(x: *f32, n: i64) {
  lane: i64[64] = iota()
  end: i64[64] = broadcast(n)
  mask: bool[64] = lt(lane, end)
  xs: *f32[64] = broadcast(x)
  at: *f32[64] = offset(xs, lane)
  a: f32[64] = load(at, mask)
  b: f32[64] = add(a, a)
  store(at, b, mask)
}
"""


def main():
    print(f"tessera {ts.__version__}, Python {sys.version.split()[0]}, {platform.machine()}, numpy {np.__version__}")
    model = ts.parse("graph g(x: f32[n, 8], w: f32[8, 4]) { a = matmul(x, w) y = softmax(a) {axis=1} return y }")
    program = model.compile(cache=None)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5, 8)).astype(np.float32), rng.standard_normal((8, 4)).astype(np.float32)
    e = np.exp(x @ w - (x @ w).max(1, keepdims=True))
    np.testing.assert_allclose(program(x, w), e / e.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.tsr")
        program.save(path)
        np.testing.assert_array_equal(ts.open(path)(x, w), program(x, w))
    print("model: ok")

    y = np.arange(64, dtype=np.float32)
    ts.kernel(KERNEL, cache=None)[(1,)](y, 40)
    np.testing.assert_array_equal(y, np.where(np.arange(64) < 40, 2, 1) * np.arange(64))
    print("kernel: ok")

    a = ts.parse("graph g(x: f32[n]) { y = add(x, x) z = sub(y, x) return z }")
    b = ts.parse("graph g(x: f32[n]) { z = identity(x) return z }")
    c = ts.parse("graph g(x: f32[n]) { z = neg(x) return z }")
    assert ts.prove(a, b).verdict == "proved"
    assert ts.prove(a, c).verdict == "refuted"
    print("proof: ok")


if __name__ == "__main__":
    main()
