"""Typed values of a graph under construction, for the importer of ATen operators."""

from __future__ import annotations

import math

import torch

from ..graph import Graph

NAMES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


class Unsupported(Exception):
    """The reason why a node is left to torch."""


def dtype_name(dtype: torch.dtype) -> str:
    if dtype not in NAMES:
        raise Unsupported(f"dtype {str(dtype).removeprefix('torch.')}")
    return NAMES[dtype]


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type in which torch computes on elements of a type: f32 for f16 and bf16."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


class TensorValue:
    """A value of the graph with its dtype and sizes; operators are those of elements of one dtype."""

    __slots__ = ("emitter", "handle", "dtype", "shape")

    def __init__(self, emitter: Emitter, handle, dtype: torch.dtype, shape: tuple):
        self.emitter, self.handle, self.dtype, self.shape = emitter, handle, dtype, shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def _with(self, op: str, other, reverse=False):
        if not isinstance(other, TensorValue):
            other = self.emitter.number(other, self.dtype)
        return self.emitter.op(op, *((other, self) if reverse else (self, other)))

    def __add__(self, other):
        return self._with("add", other)

    __radd__ = __add__

    def __sub__(self, other):
        return self._with("sub", other)

    def __rsub__(self, other):
        return self._with("sub", other, reverse=True)

    def __mul__(self, other):
        return self._with("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._with("div", other)

    def __rtruediv__(self, other):
        return self._with("div", other, reverse=True)

    def __neg__(self):
        return self.emitter.op("neg", self)

    def __matmul__(self, other):
        return self.emitter.op("matmul", self, other)

    def equals(self, other):
        return self._with("equal", other)

    def less(self, other):
        return self._with("less", other)

    def greater(self, other):
        return self._with("greater", other)


class Emitter:
    """Adds operators of the catalog to a graph."""

    def __init__(self):
        self.graph = Graph()
        self._numbers = {}

    def _value(self, handle) -> TensorValue:
        dtype, _, sizes = handle.type.partition("[")
        try:
            shape = tuple(int(size) for size in sizes.rstrip("]").split(",") if size)
        except ValueError:
            raise Unsupported(f"a value of type {handle.type}") from None
        if dtype not in DTYPES:
            raise Unsupported(f"a value of type {handle.type}")
        return TensorValue(self, handle, DTYPES[dtype], shape)

    def input(self, name: str, dtype: torch.dtype, shape) -> TensorValue:
        return self._value(self.graph.input(name, dtype_name(dtype), list(shape)))

    def op(self, op: str, *inputs, outputs: int = 0, **attributes):
        handles = [None if value is None else value.handle for value in inputs]
        results = self.graph.op(op, *handles, outputs=outputs, **attributes)
        if isinstance(results, tuple):
            return tuple(self._value(result) for result in results)
        return self._value(results)

    def constant(self, tensor: torch.Tensor, name: str = "") -> TensorValue:
        dtype_name(tensor.dtype)
        tensor = tensor.detach().resolve_neg().resolve_conj().cpu().contiguous()
        return self._value(self.graph.constant(tensor, name))

    def number(self, number, dtype: torch.dtype) -> TensorValue:
        """A constant without axes; as in torch, integers wrap around in narrower types, and large floats are infinite."""
        if isinstance(number, complex) or not isinstance(number, (bool, int, float)):
            raise Unsupported(f"a number of type {type(number).__name__}")
        key = (repr(number), dtype)
        if key not in self._numbers:
            # The content counts, not the mode that traces.
            with torch.utils._python_dispatch._disable_current_modes():
                widest = torch.float64 if isinstance(number, float) else torch.int64
                self._numbers[key] = self.constant(torch.tensor(number, dtype=widest).to(dtype))
        return self._numbers[key]

    def ints(self, numbers) -> TensorValue:
        with torch.utils._python_dispatch._disable_current_modes():
            return self.constant(torch.tensor(list(numbers), dtype=torch.int64))

    def cast(self, x: TensorValue, dtype: torch.dtype) -> TensorValue:
        return x if x.dtype == dtype else self.op("cast", x, to=dtype_name(dtype))

    def full(self, shape, number, dtype: torch.dtype) -> TensorValue:
        return self.expand(self.number(number, dtype), shape)

    def expand(self, x: TensorValue, shape) -> TensorValue:
        shape = tuple(shape)
        return x if x.shape == shape else self.op("expand", x, self.ints(shape))

    def reshape(self, x: TensorValue, shape) -> TensorValue:
        shape = tuple(shape)
        return x if x.shape == shape else self.op("reshape", x, self.ints(shape), allowzero=1)

    def permute(self, x: TensorValue, order) -> TensorValue:
        order = [axis % max(x.rank, 1) for axis in order]
        return x if order == list(range(x.rank)) else self.op("transpose", x, perm=order)

    def where(self, condition: TensorValue, x, y) -> TensorValue:
        """x where the condition holds, else y; one of both may be a number."""
        dtype = (x if isinstance(x, TensorValue) else y).dtype
        x, y = (v if isinstance(v, TensorValue) else self.number(v, dtype) for v in (x, y))
        return self.op("where", condition, x, y)

    def reduce(self, op: str, x: TensorValue, axes, keepdims: bool) -> TensorValue:
        axes = [axis % max(x.rank, 1) for axis in axes]
        if x.rank == 0:
            axes = []
        return self.op(op, x, self.ints(axes), keepdims=int(keepdims), noop_with_empty_axes=1)

    def arange(self, count: int, dtype: torch.dtype = torch.int64) -> TensorValue:
        with torch.utils._python_dispatch._disable_current_modes():
            return self.constant(torch.arange(count, dtype=dtype))

    def slice(self, x: TensorValue, axis: int, start: int, end: int, step: int = 1) -> TensorValue:
        return self.op("slice", x, self.ints([start]), self.ints([end]), self.ints([axis]), self.ints([step]))
