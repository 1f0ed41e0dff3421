"""Graphs built in Python."""

from __future__ import annotations

from typing import Optional, Sequence, Union

from . import _tessera
from .model import Model


class Value:
    """A value of a graph under construction; + - * / and @ are add, sub, mul, div and matmul."""

    def __init__(self, graph: Graph, handle: _tessera.Value):
        self._graph, self._handle = graph, handle

    @property
    def type(self) -> str:
        """dtype and shape, such as f32[n, 64]."""
        return self._handle.type

    def __repr__(self) -> str:
        return f"<tessera.Value {self.type}>"

    def _binary(self, op: str, other, reverse: bool = False):
        if not isinstance(other, Value):
            other = self._graph._number(other, self)
        return self._graph.op(op, other, self) if reverse else self._graph.op(op, self, other)

    def __add__(self, other):
        return self._binary("add", other)

    def __radd__(self, other):
        return self._binary("add", other, reverse=True)

    def __sub__(self, other):
        return self._binary("sub", other)

    def __rsub__(self, other):
        return self._binary("sub", other, reverse=True)

    def __mul__(self, other):
        return self._binary("mul", other)

    def __rmul__(self, other):
        return self._binary("mul", other, reverse=True)

    def __truediv__(self, other):
        return self._binary("div", other)

    def __rtruediv__(self, other):
        return self._binary("div", other, reverse=True)

    def __matmul__(self, other):
        return self._binary("matmul", other)

    def __neg__(self):
        return self._graph.op("neg", self)


class Graph:
    """Builds a model out of operators; types are inferred, and mistakes raised, at every call.

    >>> g = ts.Graph()
    >>> x = g.input("x", "f32", ["n", 2])
    >>> y = g.op("relu", x @ g.constant(np.eye(2, dtype="float32")) - 1.0)
    >>> y
    <tessera.Value f32[n, 2]>
    >>> g.finish(y=y).compile()(np.array([[3, -4]], "float32"))
    array([[2., 0.]], dtype=float32)
    """

    def __init__(self):
        self._builder = _tessera.graph_builder()

    def input(self, name: str, dtype: str, shape: Sequence[Union[int, str]]) -> Value:
        """An input; sizes that are text are symbols."""
        return Value(self, _tessera.graph_input(self._builder, name, dtype, list(shape)))

    def constant(self, array, name: str = "") -> Value:
        """A constant with the content of an array."""
        return Value(self, _tessera.graph_constant(self._builder, array, name))

    def op(self, op: str, *inputs: Optional[Value], outputs: int = 0, **attributes):
        """The result of an operator (`tessera operators` lists them), or a tuple where it has several.

        An input of None is left out; outputs: number of results, where the operator leaves it open.
        """
        handles = [None if value is None else value._handle for value in inputs]
        results = [
            Value(self, handle)
            for handle in _tessera.graph_call(self._builder, op, handles, attributes, outputs)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def finish(self, **outputs: Value) -> Model:
        """The model with these outputs, by name."""
        pairs = [(name, value._handle) for name, value in outputs.items()]
        return Model(_tessera.graph_finish(self._builder, pairs))

    def _number(self, number, like: Value) -> Value:
        import numpy

        dtype = like.type.split("[")[0]
        names = {"f": "float", "i": "int", "u": "uint"}
        if dtype[0] not in names or not dtype[1:].isdigit():
            raise TypeError(f"a number with a value of {dtype} needs a constant of that type")
        return self.constant(numpy.asarray(number, names[dtype[0]] + dtype[1:]))
