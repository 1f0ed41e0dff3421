"""Comparison of compiled graphs with eager execution."""

from __future__ import annotations

import warnings

import torch

from .layouts import with_strides_of

# Largest differences that rounding in another order explains, relative to the RMS of the tensor.
TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def difference(actual, expected, keeps_strides: bool = True) -> str | None:
    """How two tensors differ, or None if they are equal up to rounding."""
    other_strides = keeps_strides and actual.stride() != expected.stride()
    if actual.shape != expected.shape or actual.dtype != expected.dtype or other_strides:
        def describe(t):
            return f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)} of strides {list(t.stride())}"

        return f"{describe(actual)} in place of {describe(expected)}"
    if actual.numel() == 0:
        return None
    if expected.dtype not in TOLERANCE:
        wrong = actual != expected
    else:
        a, b = actual.double(), expected.double()
        finite = b[torch.isfinite(b)]
        scale = float(finite.square().mean().sqrt()) if finite.numel() else 1.0
        same = (a == b) | (torch.isnan(a) & torch.isnan(b))
        wrong = ~same & ~((a - b).abs() <= TOLERANCE[expected.dtype] * (b.abs() + scale + 1e-30))
    count = int(wrong.sum())
    if count == 0:
        return None
    at = tuple(int(i) for i in wrong.nonzero()[0])
    first = f"first at {list(at)}: {actual[at].item()} in place of {expected[at].item()}"
    return f"{count} of {wrong.numel()} elements differ, {first}"


def copies(arguments):
    """Arguments whose tensors may be written to."""
    return [
        torch.empty_strided(a.shape, a.stride(), dtype=a.dtype, device=a.device).copy_(a.detach())
        if isinstance(a, torch.Tensor) and all(s or n < 2 for s, n in zip(a.stride(), a.shape)) else a
        for a in arguments
    ]


def checked_call(graph, plan, arguments) -> list:
    """Runs a plan, and the graph by torch; warns about results that differ, and gives torch's."""
    kept = copies(graph.traced_arguments(arguments))
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        expected = torch.fx.Interpreter(graph.module).run(*kept)
    results = plan.run(list(arguments), graph.clock)
    found = None
    for i, (actual, wanted) in enumerate(zip(results, expected)):
        if isinstance(actual, torch.Tensor) and isinstance(wanted, torch.Tensor):
            how = difference(actual, wanted, keeps_strides=not graph.keeps(i))
            if how is not None and found is None:
                found = (i, how)
    if found is not None:
        i, how = found
        output = next(node for node in graph.module.graph.nodes if node.op == "output").args[0][i]
        warnings.warn(
            f"tessera: {graph.kind} graph: output {i} ({output.name}, {output.target}) is not what eager execution gives: "
            f"{how}; the results of eager execution are used",
            stacklevel=2,
        )
        for i, wanted in enumerate(expected):
            if isinstance(wanted, torch.Tensor) and isinstance(results[i], torch.Tensor):
                results[i] = with_strides_of(results[i], wanted) if graph.keeps(i) else wanted
    return results
