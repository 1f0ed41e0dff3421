"""What a forward graph keeps for the backward one: recomputation under a limit of memory, arguments that are written to."""

from __future__ import annotations

import copy
import warnings

import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition

from .partition import base_of, is_write

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# Shares of the activations that torch's partitioner keeps, from all that pays to none.
BUDGETS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)


def parse_bytes(limit) -> int:
    """A number of bytes, or text such as "64MB"."""
    if isinstance(limit, int) and limit >= 0:
        return limit
    for unit in sorted(UNITS, key=len, reverse=True):
        if isinstance(limit, str) and limit.endswith(unit):
            number = limit[: -len(unit)].strip()
            if number.replace(".", "", 1).isdigit():
                return int(float(number) * UNITS[unit])
    raise ValueError(f"memory_limit is a number of bytes or text such as '64MB', not {limit!r}")


def _traced(size) -> int:
    """The number that a size had when it was traced."""
    return size.node.hint if isinstance(size, torch.SymInt) else size


def saved_bytes(forward, outputs: int) -> int:
    """Bytes that a forward graph keeps for the backward one, but for its own arguments and outputs."""
    results = next(node for node in forward.graph.nodes if node.op == "output").args[0]
    own = set(results[:outputs])
    total = 0
    for node in set(results[outputs:]):
        if isinstance(node, torch.fx.Node) and node.op != "placeholder" and node not in own:
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                total += _traced(value.numel()) * value.element_size()
    return total


def partition_within(limit: int):
    """A partitioner of joint graphs that keeps at most so many bytes of activations, and recomputes the rest."""

    def partition(joint, inputs, *, num_fwd_outputs, **keywords):
        smallest = None
        for budget in BUDGETS:
            with torch._functorch.config.patch(activation_memory_budget=budget):
                forward, backward = min_cut_rematerialization_partition(
                    copy.deepcopy(joint), inputs, num_fwd_outputs=num_fwd_outputs, **keywords
                )
            kept = saved_bytes(forward, num_fwd_outputs)
            if kept <= limit:
                return forward, backward
            if smallest is None or kept < smallest[0]:
                smallest = (kept, forward, backward)
        kept, forward, backward = smallest
        warnings.warn(f"tessera: the backward pass needs {kept} bytes of activations, more than memory_limit={limit}", stacklevel=2)
        return forward, backward

    return partition


def copy_written_arguments(forward, outputs: int):
    """Lets a forward graph keep copies of the arguments that it writes to, such as a counter in a buffer.

    torch's partitioner keeps the argument itself, where the backward graph would find what was written.
    """
    graph = forward.graph
    writes = [node for node in graph.nodes if is_write(node)]
    written = {base_of(node.args[0]) for node in writes}
    output = next(node for node in graph.nodes if node.op == "output")
    results, copies = list(output.args[0]), {}
    for place, result in enumerate(results[outputs:], outputs):
        if isinstance(result, torch.fx.Node) and base_of(result) in written:
            if result not in copies:
                with graph.inserting_before(writes[0]):
                    copies[result] = graph.call_function(torch.ops.aten.clone.default, (result,))
                copies[result].meta["val"] = result.meta["val"].clone()
            results[place] = copies[result]
    if copies:
        output.args = (type(output.args[0])(results), *output.args[1:])
        forward.recompile()


def partitioner(limit):
    """The partitioner of joint graphs: torch's, under a limit of memory if there is one."""
    divide = min_cut_rematerialization_partition if limit is None else partition_within(limit)

    def partition(joint, inputs, *, num_fwd_outputs, **keywords):
        forward, backward = divide(joint, inputs, num_fwd_outputs=num_fwd_outputs, **keywords)
        copy_written_arguments(forward, num_fwd_outputs)
        return forward, backward

    return partition
