"""Tile kernels from their text form (docs/tile.md)."""

from __future__ import annotations

import os
from typing import Mapping, Optional, Union

from . import _cache, _tessera


class Kernel:
    """A compiled kernel: kernel[grid](*arguments) runs every program of the grid.

    Arrays are read and written where they are; numbers are given as int and float.
    """

    def __init__(self, handle: _tessera.Kernel, threads: int):
        self._handle = handle
        self._threads = threads

    @property
    def name(self) -> str:
        return self._handle.name

    def __getitem__(self, grid: Union[int, tuple]):
        sizes = (grid,) if isinstance(grid, int) else tuple(grid)
        if not 1 <= len(sizes) <= 3:
            raise ValueError(f"a grid has one to three sizes, not {grid!r}")
        sizes += (1,) * (3 - len(sizes))
        launch, threads = self._handle.launch, self._threads
        return lambda *arguments: launch(sizes, threads, *arguments)

    def __str__(self) -> str:
        return self._handle.text()


def kernel(
    text: str,
    *,
    threads: int = 1,
    checked: bool = False,
    precision: str = "exact",
    cache: Union[str, os.PathLike, None] = "default",
    constants: Optional[Mapping[str, int]] = None,
) -> Kernel:
    """Compiles a kernel for this computer.

    checked: debug mode, in which every access is checked against the memory of its argument
    precision: of exp and the like, "exact" or "fast"
    constants: values of the kernel's constants (BLOCK: const = 1024) in place of their defaults

    >>> negate = ts.kernel('''kernel negate(x: *f32) {
    ...   lane: i64[4] = iota()
    ...   xs: *f32[4] = broadcast(x)
    ...   at: *f32[4] = offset(xs, lane)
    ...   a: f32[4] = load(at)
    ...   b: f32[4] = neg(a)
    ...   store(at, b)
    ... }''')
    >>> x = np.array([1, 2, 3, 4], "float32")
    >>> negate[(1,)](x)
    >>> x
    array([-1., -2., -3., -4.], dtype=float32)
    """
    if precision not in ("exact", "fast"):
        raise ValueError(f"precision is 'exact' or 'fast', not {precision!r}")
    handle = _tessera.kernel(text, checked, precision, _cache.folder(cache), dict(constants or {}))
    return Kernel(handle, threads or _tessera.cores())
