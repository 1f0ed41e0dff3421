"""Recomputation in the backward pass under a limit of memory."""

from __future__ import annotations

import copy
import warnings

import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition

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
