"""Memory layouts of the activations that a forward graph keeps for the backward one.

torch traces them with the strides that eager execution would give them. Nobody but the backward graph reads them, so that
they stay as programs compute them: images of convolutions are channels last, and what is computed of them elementwise.
"""

from __future__ import annotations

import operator

import torch

from .partition import BATCHED_MATMULS, MATMULS, packet_name, viewed

# Operators whose results lie as their definition says, and not as their operands do.
CONTRACTIONS = {*MATMULS, *BATCHED_MATMULS, "matmul"}
# Views that torch makes of any strides.
STRIDED_VIEWS = {"permute", "transpose", "t", "expand", "slice", "select", "unsqueeze", "squeeze", "detach", "alias"}


def channels_last(rank: int) -> list[int]:
    """Axes in the order of memory: batch, spatial axes, channels."""
    return [0, *range(2, rank), 1]


def kept_nodes(graph, returned: int) -> set:
    """Values that are kept for the backward graph alone: results after the first `returned` ones.

    What torch views as `view` does, which depends on strides, is none of them.
    """
    results = [r for r in next(node for node in graph.nodes if node.op == "output").args[0]]
    kept = {r for r in results[returned:] if isinstance(r, torch.fx.Node) and r.op == "call_function"}
    for result in results:
        node = result
        while isinstance(node, torch.fx.Node):
            base = viewed(node)
            if result in results[:returned] or (base is not None and packet_name(node.target) not in STRIDED_VIEWS):
                kept -= {node, base}
            node = base
    return kept


def memory_orders(graph, values: dict) -> dict:
    """Order of the axes in memory of values that are computed of convolutions, where programs compute them so."""
    orders = {}
    for node in graph.nodes:
        order = _order_of_result(node, values, orders) if node.op == "call_function" else None
        if order is None and is_cast_filter(node):
            order = channels_last(_rank(values.get(node)))
        if order is not None:
            orders[node] = order
    return orders


def is_cast_filter(node) -> bool:
    """Whether a node is a parameter in another dtype, as autocast makes them, that convolutions alone read."""
    reads = [user for user in node.users if user.op == "call_function"]
    return (
        node.op == "call_function" and packet_name(node.target) == "_to_copy" and node.args[0].op == "placeholder" and bool(reads)
        and all(packet_name(user.target) == "convolution" and user.args[1] is node for user in reads)
    )


def kept_tensors(graph, values: dict, returned: int) -> dict:
    """Tensors on the device `meta` that have the strides of the values that are kept, where those are not the traced ones."""
    orders = memory_orders(graph, values)
    tensors = {}
    for node in kept_nodes(graph, returned):
        value = values.get(node)
        if node in orders and isinstance(value, torch.Tensor) and value.dim() == len(orders[node]):
            order = orders[node]
            dense = torch.empty([value.shape[axis] for axis in order], dtype=value.dtype, device="meta")
            tensors[node] = dense.permute([order.index(axis) for axis in range(len(order))])
    return tensors


def has_strides_of(other, tensor) -> bool:
    """Whether a tensor lies as another one of its shape does: strides of axes of size 1 do not matter."""
    return all(a == b or size == 1 for size, a, b in zip(tensor.shape, tensor.stride(), other.stride()))


def with_strides_of(other, tensor):
    """The tensor, or a copy that lies as another one of its shape does."""
    if has_strides_of(other, tensor):
        return tensor
    return torch.empty_strided(tensor.shape, other.stride(), dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def with_traced_arguments(graph, arguments: list) -> list:
    """Arguments of a graph of fixed sizes, with the strides that were traced."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    values = [node.meta.get("val") for node in placeholders]
    return [
        with_strides_of(value, argument) if isinstance(value, torch.Tensor) and isinstance(argument, torch.Tensor) else argument
        for value, argument in zip(values, arguments, strict=True)
    ]


def _order_of_result(node, values, orders):
    name = packet_name(node.target)
    rank = _rank(values.get(node))
    if name == "convolution":
        return channels_last(rank)
    if name == "permute":
        order = orders.get(node.args[0])
        axes = [axis % rank for axis in node.args[1]]
        return None if order is None else [axes.index(axis) for axis in order]
    if name in CONTRACTIONS or (viewed(node) is not None and node.target is not operator.getitem and name != "slice"):
        return None
    operands = [other for other in node.all_input_nodes if other in orders and len(orders[other]) == rank]
    # The largest operand decides: others are broadcast.
    return orders[max(operands, key=lambda other: _size(values[other]))] if operands else None


def _tensors(value):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _rank(value):
    return max((tensor.dim() for tensor in _tensors(value)), default=0)


def _size(value):
    return max((tensor.numel() for tensor in _tensors(value)), default=0)
