"""The compiler half of the Triton backend: TTIR, which Triton's front end makes, to tile IR."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import pathlib
from types import ModuleType
from typing import Any

from triton import knobs
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

from tessera import _tessera


@dataclasses.dataclass(frozen=True)
class CpuOptions:
    """Options of a launch. Those that are about GPUs are accepted and mean nothing here."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    warp_size: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4nv", "fp8e4b15", "fp8e4b8", "fp8e5b16")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    allow_fp8e4nv: bool = True
    extern_libs: Any = None
    debug: bool = False
    sanitize_overflow: bool = True
    backend_name: str = "cpu"
    arch: str | None = None
    instrumentation_mode: str = ""
    ir_override: str | None = None

    def __post_init__(self):
        if self.num_warps <= 0 or self.num_warps & (self.num_warps - 1):
            raise ValueError(f"num_warps is {self.num_warps}; it must be a power of 2")

    def hash(self) -> str:
        # Of the options without a meaning here, those that Triton reads back from a kernel.
        relevant = {"debug": self.debug, "sanitize_overflow": self.sanitize_overflow,
                    "num_warps": self.num_warps, "num_ctas": self.num_ctas, "num_stages": self.num_stages}
        return hashlib.sha256(repr(sorted(relevant.items())).encode()).hexdigest()


@functools.lru_cache
def cache_folder() -> pathlib.Path:
    """Where object code is kept: beside Triton's own cache."""
    root = knobs.cache.dir or pathlib.Path.home() / ".triton" / "cache"
    return pathlib.Path(root) / "tessera"


CHECKED = "// checked"  # the first line of the text of a kernel for debug mode


def load(text: str):
    """The kernel of a tile text, compiled for this computer."""
    return _tessera.triton_kernel(text, text.startswith(CHECKED), cache_folder())


@functools.lru_cache
def _build_id() -> str:
    """Changes with the compiler: Triton's cache keeps what it has made."""
    status = pathlib.Path(_tessera.__file__).stat()
    return f"{status.st_size}-{status.st_mtime_ns}"


@functools.lru_cache
def _foreign_options() -> frozenset[str]:
    """Keywords of the back ends that come with Triton; kernels are launched with them everywhere."""
    names = {"waves_per_eu", "matrix_instr_nonkdim", "kpack"}
    for module, options in (("nvidia", "CUDAOptions"), ("amd", "HIPOptions")):
        try:
            compiler = importlib.import_module(f"triton.backends.{module}.compiler")
            names.update(field.name for field in dataclasses.fields(getattr(compiler, options)))
        except (ImportError, AttributeError, TypeError):
            continue
    return frozenset(names)


class CpuBackend(BaseBackend):
    """Compiles kernels for the cores of this computer; the binary of one is its tile IR."""

    binary_ext = "tile"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cpu"

    def hash(self) -> str:
        return f"tessera-{_tessera.__version__}-{_build_id()}-{self.target.arch}"

    def parse_options(self, options: dict) -> CpuOptions:
        known = {field.name for field in dataclasses.fields(CpuOptions)}
        made = CpuOptions(**{k: v for k, v in options.items() if k in known and v is not None})
        for name, value in options.items():  # of other back ends and of Triton itself, which would refuse them
            if name not in known and (name in _foreign_options() or hasattr(knobs.compilation, name)):
                object.__setattr__(made, name, value)
        return made

    def pack_metadata(self, metadata):
        return metadata

    def get_codegen_implementation(self, options):
        return {"convert_custom_types": _convert_custom_types, "min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        from triton.language.extra.cuda import libdevice  # the names; the functions are our own

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context) -> None:
        pass

    def add_stages(self, stages: dict, options: CpuOptions, language=None) -> None:
        stages["ttir"] = lambda module, metadata: self.make_ttir(module, metadata, options)
        stages["tile"] = lambda module, metadata: self.make_tile(module, metadata, options)

    @staticmethod
    def make_ttir(module, metadata, options):
        manager = ir.pass_manager(module.context)
        manager.enable_debug()
        passes.common.add_inliner(manager)
        for name in ("add_rewrite_tensor_pointer", "add_rewrite_tensor_descriptor_to_pointer"):
            if hasattr(passes.ttir, name):  # block pointers are gone since 3.8
                getattr(passes.ttir, name)(manager)
        passes.common.add_canonicalizer(manager)
        passes.ttir.add_combine(manager)
        passes.ttir.add_reorder_broadcast(manager)
        passes.common.add_cse(manager)
        passes.common.add_symbol_dce(manager)
        passes.ttir.add_loop_unroll(manager)
        try:
            manager.run(module, "make_ttir")
        except TypeError:  # before 3.6
            manager.run(module)
        return module

    @staticmethod
    def make_tile(module, metadata, options) -> bytes:
        text = _tessera.triton_tile_text(str(module), "ttir")
        if options.debug and options.sanitize_overflow:  # Inductor's kernels want their assertions alone
            text = f"{CHECKED}\n{text}"
        kernel = load(text)
        metadata["name"] = kernel.name
        metadata["shared"] = 1  # byte of shared memory: programs divide by it
        metadata["tmem_size"] = 0
        for scratch in ("global_scratch", "profile_scratch"):
            metadata[f"{scratch}_size"] = 0
            metadata[f"{scratch}_align"] = 1
        return text.encode()


def _convert_custom_types(arg, dst_ty, fp_downcast_rounding=None, _semantic=None):
    """Casts of fp8e4b15, which Triton carries as bytes: the upper bits of an f16 below 2."""
    import triton.language as tl

    semantic = _semantic

    def bits(value):
        return semantic.to_tensor(tl.full([], value, tl.uint16, _semantic=semantic))

    def placed(x, mask, shift, left):
        part = semantic.and_(x, bits(mask))
        return semantic.shl(part, bits(shift)) if left else semantic.lshr(part, bits(shift))

    if arg.dtype.is_fp8e4b15():
        byte = semantic.cast(semantic.bitcast(arg, tl.uint8), tl.uint16)
        half = semantic.or_(placed(byte, 0x80, 8, True), placed(byte, 0x7F, 7, True))
        return semantic.cast(semantic.bitcast(half, tl.float16), dst_ty, fp_downcast_rounding)
    half = semantic.bitcast(semantic.cast(arg, tl.float16), tl.uint16)
    nan = tl.PropagateNan.NONE
    magnitude = semantic.minimum(semantic.and_(half, bits(0x7FFF)), bits(0x3F80), nan)
    rounded = placed(semantic.add(magnitude, bits(0x40), False), 0xFFFF, 7, False)
    byte = semantic.or_(rounded, placed(half, 0x8000, 8, False))
    return semantic.bitcast(semantic.cast(byte, tl.uint8), dst_ty)
