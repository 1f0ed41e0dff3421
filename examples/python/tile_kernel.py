"""A tile kernel in its text form, compiled and launched on numpy arrays.

usage: python examples/python/tile_kernel.py
"""

import numpy as np

import tessera as ts

# %% z = max(x, 0) on 64 elements per program.
relu = ts.kernel(
    """kernel relu(x: *f32, z: *f32, n: i64) {
         program: i64 = pid() {axis = 0}
         size: i64 = 64
         first: i64 = mul(program, size)
         lane: i64[64] = iota()
         start: i64[64] = broadcast(first)
         at: i64[64] = add(start, lane)
         end: i64[64] = broadcast(n)
         mask: bool[64] = lt(at, end)
         from: *f32[64] = broadcast(x)
         source: *f32[64] = offset(from, at)
         value: f32[64] = load(source, mask)
         zero: f32[64] = 0.0
         result: f32[64] = max(value, zero)
         to: *f32[64] = broadcast(z)
         target: *f32[64] = offset(to, at)
         store(target, result, mask)
       }"""
)
x = np.linspace(-1, 1, 1000, dtype=np.float32)
z = np.empty_like(x)
relu[(16,)](x, z, len(x))
np.testing.assert_array_equal(z, np.maximum(x, 0))
print(f"{relu.name} on {len(x)} elements")
