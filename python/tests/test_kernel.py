import numpy as np
import pytest

import tessera as ts

ADD = """kernel add(x: *f32, y: *f32, z: *f32, n: i64) {
  pid: i64 = pid() {axis = 0}
  size: i64 = 64
  first: i64 = mul(pid, size)
  lane: i64[64] = iota()
  start: i64[64] = broadcast(first)
  at: i64[64] = add(start, lane)
  end: i64[64] = broadcast(n)
  mask: bool[64] = lt(at, end)
  xs: *f32[64] = broadcast(x)
  xp: *f32[64] = offset(xs, at)
  a: f32[64] = load(xp, mask)
  ys: *f32[64] = broadcast(y)
  yp: *f32[64] = offset(ys, at)
  b: f32[64] = load(yp, mask)
  c: f32[64] = add(a, b)
  zs: *f32[64] = broadcast(z)
  zp: *f32[64] = offset(zs, at)
  store(zp, c, mask)
}
"""


@pytest.mark.parametrize("checked", [False, True])
def test_a_kernel_runs_on_arrays(checked):
    k = ts.kernel(ADD, checked=checked, cache=None)
    n = 1000
    x, y, z = (np.random.default_rng(i).standard_normal(n).astype(np.float32) for i in range(3))
    k[(16,)](x, y, z, n)
    np.testing.assert_array_equal(z, x + y)
    assert k.name == "add" and "offset" in str(k)


def test_constants_have_defaults_and_other_values():
    text = """kernel fill(out: view i64[?], BLOCK: const = 4) {
      v: i64[BLOCK] = BLOCK
      vstore(out, mul(pid(), BLOCK), v)
    }"""
    for constants, block in [(None, 4), ({"BLOCK": 16}, 16)]:
        out = np.zeros(64, np.int64)
        ts.kernel(text, cache=None, constants=constants)[64 // block](out)
        assert (out == block).all()
    with pytest.raises(ts.Error, match="fill has no constant BLOK"):
        ts.kernel(text, cache=None, constants={"BLOK": 8})
    with pytest.raises(ts.Error, match="constant BLOCK is 0"):
        ts.kernel(text, cache=None, constants={"BLOCK": 0})


def test_mistakes_are_diagnostics():
    k = ts.kernel(ADD, checked=True, cache=None)
    x = np.ones(64, np.float32)
    with pytest.raises(ts.Error, match="3 arguments"):
        k[(1,)](x, x, x)
    with pytest.raises(ts.Error):
        k[(1,)](x.astype(np.float64), x, x, 64)
    with pytest.raises(ts.Error):
        k[(2,)](x, x, x, 128)  # out of bounds, in debug mode
    with pytest.raises(ts.Error, match="neither an array nor a number"):
        k[(1,)]("x", x, x, 64)
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(ts.Error, match="read-only"):
        k[(1,)](x, x, frozen, 64)
    with pytest.raises(ValueError):
        k[(1, 1, 1, 1)]
    with pytest.raises(ts.Error):
        ts.kernel("kernel broken(", cache=None)
