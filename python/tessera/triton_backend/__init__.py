"""Tessera as a backend of Triton: unmodified ``@triton.jit`` kernels, compiled by Tessera.

With Triton installed, kernels on CPU tensors just run: the package is registered under Triton's entry
point ``triton.backends`` as ``cpu``. It is active where no GPU driver is.

>>> import torch, triton                                        # doctest: +SKIP
>>> add_kernel[(4,)](x, y, out, n, BLOCK_SIZE=1024)             # doctest: +SKIP
"""

from __future__ import annotations

__all__ = ["use"]


def use(target: str) -> None:
    """Selects what compiles Triton's kernels from here on: ``"cpu"`` for tensors in host memory.

    Needed where a GPU driver is active, or where another CPU backend is installed.
    """
    if target != "cpu":
        raise ValueError(f"triton_backend.use: {target!r} is not a target; 'cpu' is")
    from triton.runtime import driver

    from .driver import CpuDriver

    driver.set_active(CpuDriver())
