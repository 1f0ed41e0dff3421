"""Tessera as a backend of Triton: unmodified ``@triton.jit`` kernels, compiled by Tessera.

With Triton installed, kernels on CPU tensors just run: the package is registered under Triton's entry
point ``triton.backends`` as ``cpu``. It is active where no GPU driver is.

>>> import torch, triton                                        # doctest: +SKIP
>>> add_kernel[(4,)](x, y, out, n, BLOCK_SIZE=1024)             # doctest: +SKIP
"""

from __future__ import annotations

__all__ = ["autotune", "use"]


def use(target: str) -> None:
    """Selects what compiles Triton's kernels from here on; call it before the first launch.

    * ``"cpu"``: kernels run on tensors in host memory. Needed where a GPU driver is active.
    * ``"cuda"``: kernels for NVIDIA GPUs are compiled to PTX by Tessera; all else stays Triton's.
    * ``"triton"``: Triton's own compiler again.
    """
    from triton.runtime import driver

    from . import gpu

    if target not in ("cpu", "cuda", "triton"):
        raise ValueError(f"triton_backend.use: {target!r} is not a target; 'cpu', 'cuda' and 'triton' are")
    if target == "cpu":
        from .driver import CpuDriver

        driver.set_active(CpuDriver())
    elif target == "cuda":
        gpu.install()
    else:
        gpu.remove()


def __getattr__(name: str):
    if name == "autotune":  # imports torch and Triton
        from .autotuner import autotune

        return autotune
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
