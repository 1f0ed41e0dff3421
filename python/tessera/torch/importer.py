"""FX graphs of ATen operators to models of Tessera."""

from __future__ import annotations

import dataclasses
import operator
from typing import Optional

import torch

from .. import _tessera
from ..model import Model
from .aten import ROWS
from .aten.nn import LazyValue
from .emitter import Emitter, TensorValue, Unsupported
from .partition import Segment, is_size, is_size_function, packet_name, views_of


class ImportFailure(Exception):
    """Nodes that cannot be imported, and why."""

    def __init__(self, nodes: list, why: str):
        super().__init__(why)
        self.nodes, self.why = nodes, why


def dense_order(tensor) -> Optional[list[int]]:
    """Axes from the largest stride to the smallest, if the tensor is dense in that order; else None."""
    sizes, strides = list(tensor.shape), list(tensor.stride())
    axes = sorted(range(len(sizes)), key=lambda axis: (-strides[axis], axis) if sizes[axis] != 1 else (-strides[axis], axis))
    expected = 1
    for axis in reversed(axes):
        if sizes[axis] != 1 and strides[axis] != expected:
            return None
        expected *= sizes[axis]
    return axes


def is_contiguous(tensor) -> bool:
    return tensor.numel() == 0 or tensor.is_contiguous()


@dataclasses.dataclass
class InputLayout:
    """How a tensor is handed to a program: `order` permutes its axes to dense memory; None if it is so already."""

    order: Optional[list[int]] = None
    is_copied: bool = False  # its elements are not dense in any order


@dataclasses.dataclass
class OutputLayout:
    """How a result of a program becomes a tensor with the strides that were traced."""

    order: Optional[list[int]] = None  # axes of the tensor among those of the result
    strides: Optional[tuple] = None  # where the order does not tell them: of axes of size 1
    is_copied: bool = False  # it is dense in no order


def input_layout(tensor) -> InputLayout:
    if is_contiguous(tensor):
        return InputLayout()
    order = dense_order(tensor)
    return InputLayout(is_copied=True) if order is None else InputLayout(order)


def output_layout(tensor) -> OutputLayout:
    strides = tuple(tensor.stride())
    if is_contiguous(tensor):
        order = None
    else:
        order = dense_order(tensor)
        if order is None:
            return OutputLayout(strides=strides, is_copied=True)
    natural, step = [0] * tensor.dim(), 1
    for axis in reversed(order if order is not None else range(tensor.dim())):
        natural[axis] = step
        step *= max(tensor.shape[axis], 1)
    return OutputLayout(order, None if tuple(natural) == strides else strides)


def inverse(order):
    return [order.index(axis) for axis in range(len(order))]


class Importer:
    """Imports one segment. Values of nodes are traced tensors with known sizes, or numbers."""

    def __init__(self, segment: Segment, values: dict, constants: dict, keeps_strides: bool = True, memory=None):
        """memory: tensors that have the strides of nodes, where those are not the traced ones."""
        self.values, self._memory = values, memory or {}
        self.emitter = Emitter()
        self.environment = {}
        self.input_layouts, self.output_layouts = [], []
        self._constants, self._keeps_strides = constants, keeps_strides
        self._segment = segment

    def model(self) -> Model:
        for node in self._segment.inputs:
            self._input(node)
        if not self._segment.inputs:
            self.emitter.input("unused", torch.uint8, [0])
        for node in self._segment.nodes:
            self._node(node)
        outputs = [(f"{node.name}_{i}", self._output(node)) for i, node in enumerate(self._segment.outputs)]
        return Model(_tessera.graph_finish(self.emitter.graph._builder, [(n, v.handle._handle) for n, v in outputs]))

    def _input(self, node):
        tensor = self._memory.get(node, self.values[node])
        layout = input_layout(tensor) if self._keeps_strides else InputLayout()
        self.input_layouts.append(layout)
        try:
            if layout.order is None:
                value = self.emitter.input(node.name, tensor.dtype, tensor.shape)
            else:
                value = self.emitter.input(node.name, tensor.dtype, [tensor.shape[axis] for axis in layout.order])
                value = self.emitter.permute(value, inverse(layout.order))
        except Unsupported as failure:
            users = [user for user in self._segment.nodes if node in user.all_input_nodes]
            raise ImportFailure(users, str(failure)) from None
        self.environment[node] = value

    def _output(self, node):
        value, tensor = self._get(node), self._memory.get(node, self.values[node])
        layout = output_layout(tensor) if self._keeps_strides else OutputLayout()
        self.output_layouts.append(layout)
        if layout.order is not None:
            value = self.emitter.permute(value, layout.order)
        # Inputs, constants and repeated values are no results of operators of their own.
        return self.emitter.op("identity", value)

    def _get(self, node):
        if node in self.environment:
            return self.environment[node]
        if node in self._constants:
            self.environment[node] = self.emitter.constant(self._constants[node], node.name)
            return self.environment[node]
        return self.values[node]  # a number

    def _node(self, node):
        if is_size(self.values[node]) and is_size_function(node):
            return
        if node.target is operator.getitem:
            self._item(node)
            return
        row, traced = ROWS[packet_name(node.target)], self.values[node]
        reads_memory = getattr(row, "reads_memory", False)
        try:
            if isinstance(traced, torch.Tensor) and traced.numel() == 0:
                result = self.emitter.full(traced.shape, 0, traced.dtype)
            else:
                arguments = torch.fx.map_arg(node.args, self._get)
                keywords = torch.fx.map_arg(node.kwargs, self._get)
                if reads_memory:
                    keywords = {**keywords, "memory": self.values[node.args[0]]}
                result = row(self.emitter, traced, *arguments, **keywords)
            self._check(result, self.values[node])
        except Unsupported as failure:
            # torch then has to read the memory itself: views that lead there are its views, not results of programs.
            views = [view for view in views_of(node.args[0]) if view in self._segment.nodes] if reads_memory else []
            raise ImportFailure([node, *views], str(failure)) from None
        except _tessera.Error as failure:
            raise ImportFailure([node], str(failure).splitlines()[0]) from None
        except TypeError as failure:  # an overload whose arguments the row does not take
            raise ImportFailure([node], f"its arguments: {failure}") from failure
        self.environment[node] = result

    def _item(self, node):
        source, index = node.args
        try:
            item = self._get(source)[index]
            if isinstance(item, LazyValue):
                item = item.emit()
            if item is None:
                raise Unsupported(f"result {index} is not computed")
            self._check(item, self.values[node])
        except (Unsupported, _tessera.Error) as failure:
            raise ImportFailure([source], str(failure).splitlines()[0]) from None
        self.environment[node] = item

    def _check(self, result, traced):
        """A result of another type than the traced one would be wrong: the node is declined."""
        if isinstance(traced, (tuple, list)):
            if not isinstance(result, tuple) or len(result) < len(traced):
                raise Unsupported("results that are not computed")
            for part, expected in zip(result, traced):
                if isinstance(part, TensorValue) and expected is not None:
                    self._check(part, expected)
            return
        if not isinstance(result, TensorValue) or not isinstance(traced, torch.Tensor):
            raise Unsupported("a result that is no tensor")
        if result.dtype != traced.dtype or result.shape != tuple(traced.shape):
            raise Unsupported(f"a result of {result.dtype} {result.shape} for {traced.dtype} {tuple(traced.shape)}")
