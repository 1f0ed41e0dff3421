"""Tessera's PTX in place of Triton's, through Triton's hook on the stages of its compiler.

Front end, caches, ptxas, launcher and autotuner stay Triton's own.
"""

from __future__ import annotations

import hashlib

from triton import knobs

from tessera import _tessera

from .compiler import CpuBackend, _build_id


def _make_ptx(module, metadata, options, capability: int) -> str:
    made = _tessera.triton_ptx(str(module), capability, max(2, options.num_stages), 32 * options.num_warps)
    metadata["name"] = made["name"]
    metadata["shared"] = made["shared"]
    metadata["num_warps"] = made["threads"] // 32
    metadata["tmem_size"] = 0
    metadata["tensordesc_meta"] = []
    for scratch in ("global_scratch", "profile_scratch"):
        metadata[f"{scratch}_size"] = 0
        metadata[f"{scratch}_align"] = 1
    return made["ptx"]


def _replace_stages(backend=None, stages=None, options=None, language=None, capability=None):
    """Triton's hook. Without arguments (from 3.9 on) it names itself, for the keys of caches."""
    if backend is None:
        key = f"tessera-{_build_id()}"
        return key, hashlib.sha256(key.encode()).hexdigest()
    if capability is None or "cubin" not in stages:
        return None
    cubin = stages["cubin"]
    stages.clear()
    stages["ttir"] = lambda module, metadata: CpuBackend.make_ttir(module, metadata, options)
    stages["ptx"] = lambda module, metadata: _make_ptx(module, metadata, options, capability)
    stages["cubin"] = cubin
    return None


def install() -> None:
    """Installs the hook, with a cache of its own: that of 3.6 to 3.8 does not know of the hook."""
    knobs.runtime.add_stages_inspection_hook = _replace_stages
    if not knobs.cache.dir.endswith("-tessera"):
        knobs.cache.dir = f"{knobs.cache.dir}-tessera"


def remove() -> None:
    """Gives the stages back to Triton."""
    knobs.runtime.add_stages_inspection_hook = None
    knobs.cache.dir = knobs.cache.dir.removesuffix("-tessera")
