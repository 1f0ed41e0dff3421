"""Division of an FX graph into segments for the compiler and nodes for torch."""

from __future__ import annotations

import dataclasses
import operator

import torch

from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from .aten import ROWS

# Functions of sizes, which are computed on the host while a graph is imported.
SIZE_FUNCTIONS = {
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, operator.truediv,
    operator.pow, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    torch.sym_float, torch.sym_int, torch.sym_max, torch.sym_min, torch.sym_ite, torch.sym_not, torch.sym_sum,
}
SIZE_OPERATORS = {"sym_size", "sym_numel", "sym_stride", "sym_storage_offset"}
MATMULS = ("mm", "addmm", "linear")
BATCHED_MATMULS = ("bmm", "baddbmm")
# Operators whose results differ from one call to the next: those of torch are equal to eager's.
RANDOM = "the generator of random numbers is torch's"
HOST_DATA = "sizes that depend on data"


@dataclasses.dataclass
class Segment:
    """Nodes that one program computes."""

    nodes: list = dataclasses.field(default_factory=list)
    inputs: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)


def packet_name(target) -> str:
    """The name of an ATen operator without its overload; "" for other functions."""
    if isinstance(target, torch._ops.OpOverload) and target.namespace in ("aten", "prims"):
        return target._schema.name.split("::")[1]
    return ""


def is_write(node) -> bool:
    """Whether a node writes to an input of the graph: the end of a functional graph has such copies."""
    return node.op == "call_function" and node.target is torch.ops.aten.copy_.default


def is_traced_assertion(node) -> bool:
    """Whether a node asserts the dtype, device or layout that was traced, as torch.export writes it; it has no result."""
    return node.op == "call_function" and node.target is torch.ops.aten._assert_tensor_metadata.default


def is_size(value) -> bool:
    """Whether the traced value of a node is a number."""
    return isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool))


def is_size_function(node) -> bool:
    return node.op == "call_function" and (
        node.target in SIZE_FUNCTIONS or packet_name(node.target) in SIZE_OPERATORS
    )


def viewed(node):
    """The node whose memory a node shares: its own argument, if it is a view; else None."""
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        return node.args[0] if viewed(node.args[0]) is not None else None
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.arguments:
        return None
    alias = node.target._schema.arguments[0].alias_info
    return node.args[0] if alias is not None and not alias.is_write and node.args else None


def views_of(node) -> list:
    """The views that lead to a node from the one whose memory it shares, the last one first; [] if it is no view."""
    chain = []
    while isinstance(node, torch.fx.Node) and viewed(node) is not None:
        chain.append(node)
        node = viewed(node)
    return chain


def base_of(node):
    """The node whose memory a node shares; the node itself if it is no view."""
    chain = views_of(node)
    return viewed(chain[-1]) if chain else node


def views_of_arguments(graph, count) -> tuple[set, list]:
    """Computed values that are written to arguments, and the views that lead from these or from arguments to the first `count`
    results of a graph; None: to all of them."""
    results = next(node for node in graph.nodes if node.op == "output").args[0]
    written = {base_of(node.args[1]) for node in graph.nodes if is_write(node)}
    bases, views = set(), set()
    for result in results[:count]:
        chain, base = views_of(result), base_of(result)
        if chain and (base.op == "placeholder" or base in written):
            bases.add(base)
            views.update(chain)
    return {base for base in bases if base.op == "call_function"}, [node for node in graph.nodes if node in views]


def shared_views(graph) -> tuple[set, list]:
    """Nodes whose memory several outputs of a graph share, and the views that lead from them to the outputs.

    Views of arguments are none of them (`views_of_arguments`).
    """
    results = next(node for node in graph.nodes if node.op == "output").args[0]
    chains = {}  # base -> chains of views, one for each output
    for result in {r: None for r in results if isinstance(r, torch.fx.Node)}:
        chain = views_of(result)
        chains.setdefault(viewed(chain[-1]) if chain else result, []).append(chain)
    shared = {base: group for base, group in chains.items() if len(group) > 1 and base.op == "call_function"}
    views = {node for group in shared.values() for chain in group for node in chain}
    return set(shared), [node for node in graph.nodes if node in views]


def reason_to_decline(node, values, device) -> str | None:
    """Why a node is left to torch, as far as its target and types say."""
    if node.op != "call_function":
        return f"a node of kind {node.op}"
    if node.target is operator.getitem or is_size_function(node):
        return None
    name = packet_name(node.target)
    if not name:
        return "it is not an ATen operator"
    if name not in ROWS:
        tags = node.target.tags
        if torch.Tag.nondeterministic_seeded in tags:
            return RANDOM
        if torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags:
            return HOST_DATA
        return "it has no translation"
    for other in (node, *node.all_input_nodes):
        for tensor in torch.utils._pytree.tree_leaves(values[other]):
            if isinstance(tensor, torch.Tensor) and tensor.device != device:
                # A number on the host beside tensors on a GPU.
                return f"it has a tensor on {tensor.device}"
            if isinstance(tensor, torch.Tensor) and tensor.layout != torch.strided:
                return f"it has a tensor of layout {tensor.layout}"
    return None


def reason_to_run_eagerly(graph) -> str | None:
    """Why a whole graph is left to torch: sizes that depend on data, or nodes whose order matters."""
    for node in graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        value = node.meta.get("val")
        if isinstance(value, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)) and free_unbacked_symbols(value):
            return f"{node.target}: {HOST_DATA}"
        if node.target._schema.is_mutable and not is_write(node):
            return f"{node.target}: it writes to its arguments"
    return None


def segments(graph, declined) -> list:
    """Segments and nodes of torch, in the order in which they run: level by level.

    The level of a compiled node is one more than that of any node of torch that it depends on, so that nodes of equal
    level form one program; nodes of torch run right after the program of their level. Nodes that draw random numbers
    keep their order.
    """
    levels, programs, eager, random_level = {}, {}, {}, 0
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output") or is_write(node):
            continue
        is_eager = node in declined
        level = 0
        for other in node.all_input_nodes:
            if other in levels:
                level = max(level, levels[other] + (other in declined and not is_eager))
        if declined.get(node) == RANDOM:
            level = random_level = max(level, random_level)
        levels[node] = level
        if is_eager:
            eager.setdefault(level, []).append(node)
        else:
            programs.setdefault(level, Segment()).nodes.append(node)
    order = []
    for level in sorted({*programs, *eager}):
        if level in programs:
            order.append(programs[level])
        order.extend(eager.get(level, []))
    return order
