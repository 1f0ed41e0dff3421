"""Models: ONNX files and graphs in text form."""

from __future__ import annotations

import os
import pathlib
from typing import Mapping, NamedTuple, Optional, Sequence, Union

from . import _cache, _tessera
from .program import Program

PathLike = Union[str, os.PathLike]


class ValueInfo(NamedTuple):
    """An input or output: its name, dtype and shape, whose symbolic sizes are text. The shape is None if it is unknown."""

    name: str
    dtype: str
    shape: Optional[tuple]


class Pass(NamedTuple):
    """A pass of the optimizer, as `tessera passes` lists it."""

    name: str
    stage: str
    numerics: str
    target: str
    summary: str


class Model:
    """A model. It never changes; optimize() gives another.

    >>> model = ts.parse("graph g(x: f32[n, 3]) { y = relu(x) return y }")
    >>> model.inputs
    [ValueInfo(name='x', dtype='f32', shape=('n', 3))]
    >>> model.inspect()["operators"]
    {'relu': 1}
    """

    def __init__(self, handle: _tessera.Model):
        self._handle = handle

    @property
    def inputs(self) -> list[ValueInfo]:
        """Inputs in the order in which a program takes them."""
        return [ValueInfo(*value) for value in self._handle.inputs]

    @property
    def outputs(self) -> list[ValueInfo]:
        """Outputs in the order in which a program gives them."""
        return [ValueInfo(*value) for value in self._handle.outputs]

    def compile(
        self,
        *,
        threads: int = 1,
        target: str = "cpu",
        precision: str = "f32",
        numerics: str = "reals",
        max_error: float = 1e-2,
        sizes: Optional[Mapping[str, int]] = None,
        shapes: Optional[Mapping[str, Sequence[int]]] = None,
        disable: Sequence[str] = (),
        cache: Union[str, os.PathLike, None] = "default",
    ) -> Program:
        """Compiles the model to machine code.

        threads:   number of threads that the program runs on; 0 is one per core
        target:    "cpu", "cuda" (the GPU of this computer), "cuda:sm_80", "cuda:sm_90a"
        precision: of matmul and conv operands: "f32", "bf16" or "auto"; on a GPU also "tf32", "f16"
        numerics:  "reals" lets results round differently, "exact" keeps every bit
        max_error: largest error of precision "auto", relative to the RMS of an output
        sizes:     sizes of symbolic dimensions; shapes: shapes of inputs by name. What is left open is
                   decided by the arrays of each call, and compiled when it first comes
        disable:   names of passes to skip (tessera.passes())
        cache:     folder of the cache of object code and programs, or None

        >>> model = ts.parse("graph g(x: f32[2]) { y = add(x, x) return y }")
        >>> model.compile(threads=2, numerics="exact")(np.array([1, 2], "float32"))
        array([2., 4.], dtype=float32)
        """
        _check_pass_options(numerics, disable)
        if not isinstance(threads, int) or not 0 <= threads <= 1024:
            raise ValueError(f"threads is a number from 0 to 1024, not {threads!r}")
        return Program(
            _tessera.compile(
                self._handle,
                threads=threads or _tessera.cores(),
                target=target,
                precision=precision,
                numerics=numerics,
                max_error=max_error,
                sizes=dict(sizes or {}),
                shapes={name: list(shape) for name, shape in (shapes or {}).items()},
                disable=set(disable),
                cache=_cache.folder(cache),
            )
        )

    def optimize(self, *, numerics: str = "reals", disable: Sequence[str] = ()) -> Model:
        """The model after the graph passes that help on every machine, as `tessera optimize` writes it.

        >>> model = ts.parse("graph g(x: f32[4]) { a = neg(x) b = neg(a) c = add(b, b) return c }")
        >>> model.inspect()["nodes"], model.optimize().inspect()["nodes"]
        (3, 1)
        """
        _check_pass_options(numerics, disable)
        return Model(self._handle.optimize(numerics, set(disable)))

    def save(self, path: PathLike) -> None:
        """Writes the model: text form if the name ends in .tessera or .txt, else ONNX."""
        self._handle.save(pathlib.Path(path))

    def inspect(self) -> dict:
        """Counts of operators, parameters and multiply-adds."""
        return self._handle.inspect()

    def __str__(self) -> str:
        return self._handle.text()

    def __repr__(self) -> str:
        names = ", ".join(value.name for value in self.inputs)
        return f"<tessera.Model of {self.inspect()['nodes']} nodes, inputs {names}>"


def _check_pass_options(numerics, disable):
    if numerics not in ("reals", "exact"):
        raise ValueError(f"numerics is 'reals' or 'exact', not {numerics!r}")
    known = {info.name for info in passes()}
    for name in disable:
        if name not in known:
            raise ValueError(f"{name!r} is not a pass; tessera.passes() lists them")


def load(path: PathLike) -> Model:
    """Reads an ONNX file, or a graph in text form (.tessera, .txt).

    >>> ts.parse("graph g(x: f32[2]) { y = neg(x) return y }").save("neg.onnx")
    >>> ts.load("neg.onnx")
    <tessera.Model of 1 nodes, inputs x>
    >>> ts.load("missing.onnx")
    Traceback (most recent call last):
    tessera.Error: missing.onnx: error[...
    """
    return Model(_tessera.load(pathlib.Path(path)))


def parse(text: str) -> Model:
    """A model from the text form of a graph (docs/ir.md).

    >>> print(ts.parse("graph g(x: f32[2]) { y = neg(x) return y }"))
    graph g(x: f32[2]) {
      y: f32[2] = neg(x)
      return y
    }
    """
    return Model(_tessera.parse(text))


def open(path: PathLike, *, threads: int = 1, cache: Union[str, os.PathLike, None] = "default") -> Program:
    """A saved program (.tsr), ready to run. It is code: open only what you trust."""
    return Program(_tessera.open(pathlib.Path(path), threads=threads or _tessera.cores(), cache=_cache.folder(cache)))


def optimize(model: Union[Model, PathLike], *, numerics: str = "reals", disable: Sequence[str] = ()) -> Model:
    """Model.optimize, for a model or the path of one."""
    return (model if isinstance(model, Model) else load(model)).optimize(numerics=numerics, disable=disable)


def passes() -> list[Pass]:
    """Every graph pass, in the order in which they run.

    >>> "cse" in [info.name for info in ts.passes()]
    True
    """
    return [Pass(*entry) for entry in _tessera.passes()]
