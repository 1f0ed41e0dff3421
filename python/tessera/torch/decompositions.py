"""Decompositions of ATen operators: those of core ATen, but for operators that stay whole."""

from __future__ import annotations

import functools

from torch._decomp import core_aten_decompositions

from .aten import ROWS
from .partition import packet_name


@functools.lru_cache(maxsize=None)
def decompositions() -> dict:
    """Decompositions by operator. What has a row of its own is not decomposed."""
    return {
        op: function
        for op, function in core_aten_decompositions().items()
        if packet_name(op) not in ROWS
    }
