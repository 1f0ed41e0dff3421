"""The driver half of the Triton backend: loads and launches kernels on the cores of this computer."""

from __future__ import annotations

import functools
import os
import sys
import time

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from tessera import _tessera

from .compiler import load


@functools.lru_cache
def _thread_count():
    """Gives the threads of a launch: as many as torch uses, or one for each core."""
    torch = sys.modules.get("torch")
    return torch.get_num_threads if torch is not None else lambda: len(os.sched_getaffinity(0))


class Event:
    """A point in time, for ``triton.testing.do_bench``; kernels are done when a launch returns."""

    def __init__(self, enable_timing: bool = True):
        self._time = 0.0

    def record(self, stream=None) -> None:
        self._time = time.perf_counter()

    def elapsed_time(self, end: "Event") -> float:
        return (end._time - self._time) * 1e3

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True


class DeviceInterface:
    """The part of ``torch.cuda`` that Triton's benchmarks use."""

    Event = Event

    @staticmethod
    def synchronize(device=None) -> None:
        pass

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def set_device(device) -> None:
        pass

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_stream(device=None):
        return None


class Utils:
    """Loads what the compiler has made."""

    @staticmethod
    def load_binary(name, binary, shared, device):
        kernel = load(binary.decode())
        return kernel, kernel, 1, 0, 1 << 30  # one register: programs divide by it

    @staticmethod
    def unload_module(module) -> None:
        pass

    @staticmethod
    def get_device_properties(device) -> dict:
        cores = len(os.sched_getaffinity(0))
        return {"max_shared_mem": 1 << 30, "max_num_regs": 1 << 20, "multiprocessor_count": cores,
                "warpSize": 1, "sm_clock_rate": 1, "mem_clock_rate": 1, "mem_bus_width": 64}


def _flattened(value, kind, into: list) -> None:
    """Appends the arguments that the kernel has of one parameter, which may be a tuple."""
    if kind == "constexpr":
        return
    if isinstance(kind, tuple):
        for part, part_kind in zip(value, kind):
            _flattened(part, part_kind, into)
    elif isinstance(kind, str) and kind.startswith("tensordesc"):
        # Triton's pass makes a pointer, the sizes and strides of the descriptor and its flags of a descriptor;
        # the sizes and strides follow once more, as arguments of their own.
        into.append(value.base)
        into.extend(value.shape)
        into.extend(value.strides)
        into.append(getattr(value, "padding", "zero") == "nan")
        if hasattr(value, "round_f32_to_tf32"):  # of newer releases
            into.append(False)
        into.extend(value.shape)
        into.extend(value.strides)
    else:
        into.append(value)


class Launcher:
    """Launches a kernel some of whose arguments are tuples or descriptors."""

    def __init__(self, kinds):
        self._kinds = kinds

    def __call__(self, x, y, z, stream, function, packed, launch_metadata, enter, leave, *args):
        if enter is not None:
            enter(launch_metadata)
        values: list = []
        for value, kind in zip(args, self._kinds):
            _flattened(value, kind, values)
        function.launch(x, y, z, _thread_count()(), *values)
        if leave is not None:
            leave(launch_metadata)


def _launcher(src, metadata):
    """The launcher of a kernel: one in C++ unless arguments are tuples or descriptors."""
    signature = src.signature
    kinds = list(signature.values()) if isinstance(signature, dict) else list(signature)
    if all(isinstance(kind, str) and not kind.startswith("tensordesc") for kind in kinds):
        kept = [i for i, kind in enumerate(kinds) if kind != "constexpr"]
        return _tessera.TritonLauncher(kept, _thread_count())
    return Launcher(kinds)


class CpuDriver(DriverBase):
    launcher_cls = staticmethod(_launcher)

    def __init__(self):
        self.utils = Utils()
        super().__init__()

    @classmethod
    def is_active(cls) -> bool:
        """Where no GPU driver is: two active drivers are an error of Triton."""
        if os.environ.get("TRITON_CPU_BACKEND") == "1":
            return True
        from triton.backends import backends

        return not any(name != "cpu" and backend.driver.is_active() for name, backend in backends.items())

    def map_python_to_cpp_type(self, ty: str) -> str:
        return {"i1": "int8_t", "fp32": "float", "fp64": "double"}.get(ty, "void*" if ty[0] == "*" else ty)

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cpu", os.uname().machine, 1)

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device) -> None:
        pass

    def get_current_stream(self, device) -> int:
        return 0

    def get_device_capability(self, device=None):
        return (0, 0)

    def get_device_interface(self):
        return DeviceInterface

    def get_benchmarker(self):
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self):
        import torch

        return torch.empty(64 << 20, dtype=torch.int8)

    def clear_cache(self, cache) -> None:
        cache.zero_()

    def assemble_tensormap_to_arg(self, tensormaps_info, args):
        return args
