"""Options of torch.compile(backend="tessera", options={...})."""

from __future__ import annotations

import dataclasses
from typing import Optional, Union

import torch

from .memory import parse_bytes


@dataclasses.dataclass
class Options:
    """Options of the backend; unknown ones are refused."""

    freeze: bool = False  # weights never change: they are packed once, and not compared at each call
    check: int = 0  # number of first calls whose results are compared with eager's
    memory_limit: Union[int, str, None] = None  # of activations kept for the backward pass: bytes, or text such as "64MB"
    threads: Optional[int] = None  # by default torch.get_num_threads()
    numerics: str = "reals"
    precision: Optional[str] = None  # by default f32; on a GPU that of the model's matmuls: f16, bf16, tf32 if torch allows it
    disable: tuple = ()
    cudagraphs: bool = True  # programs on a GPU are submitted as CUDA graphs; there is no other way
    programs: int = 16  # most programs of one graph that are kept, one for each tuple of sizes
    cache: Optional[str] = "default"

    @classmethod
    def of(cls, options) -> Options:
        options = dict(options or {})
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(options) - known)
        if unknown:
            raise ValueError(f"tessera has no option {unknown[0]!r}; options are {', '.join(sorted(known))}")
        made = cls(**options)
        if made.cudagraphs is not True:
            raise ValueError("cudagraphs=False is not supported: programs on a GPU are submitted as CUDA graphs")
        if made.memory_limit is not None:
            made.memory_limit = parse_bytes(made.memory_limit)
        return made

    def _precision(self, device, products):
        if self.precision is not None:
            return self.precision
        if device.type != "cuda" or self.numerics == "exact":
            return "f32"
        for dtype, precision in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
            if products and all(product == dtype for product in products):
                return precision
        return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "f32"

    def compile(self, model, device, products=()):
        """The program of a model for tensors on a device. products: dtypes of the results of its matmuls."""
        return model.compile(
            threads=torch.get_num_threads() if self.threads is None else self.threads,
            target="cpu" if device.type == "cpu" else device.type,
            precision=self._precision(device, products),
            numerics=self.numerics,
            disable=self.disable,
            cache=self.cache,
        )
