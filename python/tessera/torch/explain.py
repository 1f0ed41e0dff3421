"""What the backend compiles of a model, and what it leaves to torch."""

from __future__ import annotations

import collections
import dataclasses
import time

import torch

from . import dynamo
from .plan import ProgramStep


@dataclasses.dataclass
class GraphReport:
    """One captured graph: numbers of nodes by where they run."""

    kind: str  # "inference", "forward" or "backward"
    programs: int
    compiled: int  # nodes in programs
    left: dict  # of nodes that torch runs: operator -> (count, reason)
    interpreted: dict  # operators of programs that have no machine code: name -> (count, reason)
    copied_inputs: int  # inputs that are dense in no order of their axes
    seconds: float  # of compilation


@dataclasses.dataclass
class Explanation:
    """The answer of explain()."""

    graphs: list
    program_ms: float  # of one call, in programs
    torch_ms: float  # in nodes that are left to torch

    @property
    def compiled(self) -> int:
        return sum(graph.compiled for graph in self.graphs)

    @property
    def left(self) -> dict:
        """Nodes that torch runs: operator -> (count, reason)."""
        total = {}
        for graph in self.graphs:
            for name, (count, why) in graph.left.items():
                total[name] = (total.get(name, (0, ""))[0] + count, why)
        return total

    def __str__(self) -> str:
        count = sum(count for count, _ in self.left.values())
        lines = [
            f"{len(self.graphs)} graphs, {self.compiled} nodes compiled ({self.program_ms:.2f} ms), "
            f"{count} left to torch ({self.torch_ms:.2f} ms)"
        ]
        for graph in self.graphs:
            lines.append(
                f"  {graph.kind}: {graph.compiled} nodes in {graph.programs} programs, compiled in {graph.seconds:.2f} s"
            )
            for name, (number, why) in sorted(graph.left.items()):
                lines.append(f"    left to torch: {number} {name}: {why}")
            for name, (number, why) in sorted(graph.interpreted.items()):
                lines.append(f"    interpreted: {number} {name}: {why}")
            if graph.copied_inputs:
                lines.append(f"    {graph.copied_inputs} inputs are copied: they are dense in no order of their axes")
        return "\n".join(lines)


def report(graph) -> GraphReport:
    """The report of a compiled graph, by the plan that was used last."""
    plan = graph.plans[-1]
    left, interpreted = {}, collections.OrderedDict()
    for node, why in plan.declined.items():
        if why:
            left[str(node.target)] = (left.get(str(node.target), (0, ""))[0] + 1, why)
    programs = [step for step in plan.steps if isinstance(step, ProgramStep)]
    for step in programs:
        for name, (count, why) in step.program.explain().get("interpreted", {}).items():
            interpreted[name] = (interpreted.get(name, (0, ""))[0] + count, why)
    return GraphReport(
        kind=graph.kind,
        programs=len(programs),
        compiled=sum(step.nodes for step in programs),
        left=left,
        interpreted=interpreted,
        copied_inputs=sum(layout.is_copied for step in programs for layout in step.input_layouts),
        seconds=graph.seconds,
    )


def explain(model, *arguments, options=None, training: bool = False, **keywords) -> Explanation:
    """Compiles a model for these arguments and says what runs where.

    training: also the backward pass, of the sum of all floating-point outputs

    >>> import torch
    >>> print(ts.torch.explain(torch.nn.Linear(2, 3), torch.ones(1, 2)))
    1 graphs, 2 nodes compiled (... ms), 0 left to torch (0.00 ms)
      inference: 2 nodes in 1 programs, compiled in ... s
    """
    graphs = []

    def recording(module, example_inputs):
        return dynamo.backend(module, example_inputs, options=options, recorder=graphs)

    compiled = torch.compile(model, backend=recording)
    for timed in (False, True):  # the second call is warm
        if timed:
            for graph in graphs:
                graph.clock = Clock()
        with torch.set_grad_enabled(training):
            output = compiled(*arguments, **keywords)
            if training:
                tensors = [t for t in torch.utils._pytree.tree_leaves(_plain(output)) if isinstance(t, torch.Tensor)]
                sum(t.sum() for t in tensors if t.requires_grad).backward()
    graphs = [graph for graph in graphs if graph.plans]
    clocks = [graph.clock for graph in graphs if graph.clock is not None]
    return Explanation(
        graphs=[report(graph) for graph in graphs],
        program_ms=1e3 * sum(clock.programs for clock in clocks),
        torch_ms=1e3 * sum(clock.eager for clock in clocks),
    )


def _plain(output):
    return output.to_tuple() if hasattr(output, "to_tuple") else output


class Clock:
    """Times of the steps of a plan."""

    def __init__(self):
        self.programs = self.eager = 0.0

    def time(self, module, arguments):
        """Runs a graph that is left to torch."""
        start = time.perf_counter()
        results = module(*arguments)
        self.eager += time.perf_counter() - start
        return results

    def run(self, step, slots):
        start = time.perf_counter()
        step.run(slots)
        if isinstance(step, ProgramStep):
            self.programs += time.perf_counter() - start
        else:
            self.eager += time.perf_counter() - start
