"""A captured graph with its plans."""

from __future__ import annotations

import collections
import threading
import time
import warnings

import torch

from .. import _tessera
from .check import checked_call
from .layouts import with_traced_arguments
from .options import Options
from .partition import reason_to_run_eagerly
from .plan import EagerPlan, Plan, traced_values


class CompiledGraph(_tessera.GraphCall):
    """A graph of ATen operators, with a plan for each tuple of sizes that it meets.

    graph(arguments) takes a list, which it empties, and gives a list. Where the plan in effect is one program, calls stay
    in the base class.
    """

    # A weight that changes more often than this is an input of programs rather than a packed constant.
    MOST_REPACKINGS = 1

    def __init__(self, module, static_inputs, options: Options, kind: str, returned=None):
        """returned: number of results that the caller sees; a forward graph keeps the others for the backward one."""
        super().__init__()
        # AOT Autograd's mark of functions that empty their list of arguments; wrappers copy attributes of the object alone.
        self._boxed_call = True
        self.module, self.options, self.kind = module, options, kind
        self._static = sorted(static_inputs)
        self._changes = collections.Counter()
        self._plans = collections.OrderedDict()
        self._lock = threading.Lock()
        self._is_dynamic = any(
            isinstance(size, torch.SymInt)
            for node in module.graph.nodes
            for value in torch.utils._pytree.tree_leaves(node.meta.get("val"))
            for size in (value.shape if isinstance(value, torch.Tensor) else [value])
        )
        # Open graphs are traced again with arguments as they lie, which `view` may refuse: what they keep lies as traced.
        self._returned = None if self._is_dynamic else returned
        self._aliased = {"inference": None, "forward": returned, "backward": 0}[kind] if self._is_dynamic else 0
        self._static_set = set(self._static)
        self._checks = options.check
        self.compilations, self.seconds, self._clock = 0, 0.0, None
        self._direct_plan = None  # that the base class has tried to run

    @property
    def plans(self):
        return list(self._plans.values())

    @property
    def clock(self):
        """Times the steps of every call; None: calls are not timed."""
        return self._clock

    @clock.setter
    def clock(self, clock):
        self._clock = clock
        self._forget_program()

    def keeps(self, result: int) -> bool:
        """Whether a result is kept for the backward graph, in any strides."""
        return self._returned is not None and result >= self._returned

    def traced_arguments(self, arguments: list) -> list:
        """Arguments with the strides that torch traced."""
        return arguments if self._is_dynamic else with_traced_arguments(self.module.graph, arguments)

    def _forget_program(self):
        self._direct_plan = None
        self.clear_program()

    def _key(self, arguments):
        if not self._is_dynamic:
            return None
        return tuple(
            (tuple(a.shape), None if a.is_contiguous() else a.stride()) if isinstance(a, torch.Tensor) else a
            for i, a in enumerate(arguments)
            if i not in self._static_set
        )

    def _weights(self, arguments):
        """Weights to pack, by position."""
        weights = {}
        for i in self._static:
            tensor = arguments[i]
            if not isinstance(tensor, torch.Tensor) or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
                continue
            if self.options.freeze:
                weights[i] = tensor
            elif self._changes[i] <= self.MOST_REPACKINGS and not tensor.is_inference():
                weights[i] = tensor
        return weights

    def _new_plan(self, arguments):
        why = reason_to_run_eagerly(self.module.graph)
        if why is not None:
            return EagerPlan(self, why)
        values = traced_values(self.module, arguments if self._is_dynamic else None)
        # Compilation is no part of what is traced, differentiated or cast.
        with torch.no_grad(), torch.utils._python_dispatch._disable_current_modes():
            weights = self._weights(arguments)
            return Plan(self.module, values, arguments, weights, self.options, self._returned, self._aliased)

    def _compile(self, key, arguments):
        start = time.perf_counter()
        self._forget_program()
        plan = self._new_plan(arguments)
        self.compilations += 1
        self.seconds += time.perf_counter() - start
        warn_about(plan.declined)
        self._plans[key] = plan
        while len(self._plans) > max(self.options.programs, 1):
            self._plans.popitem(last=False)
        return plan

    def plan_for(self, arguments) -> Plan:
        key = self._key(arguments)
        plan = self._plans.get(key)
        if plan is not None and (self.options.freeze or plan.packed.match(arguments)):
            if self._is_dynamic:
                self._plans.move_to_end(key)
            return plan
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None and not self.options.freeze:
                changed = plan.packed.changes(arguments)
                self._changes.update(changed)
                plan = None if changed else plan
            if plan is None:
                plan = self._compile(key, arguments)
            self._plans.move_to_end(key)
            return plan

    def call_any(self, arguments: list) -> list:
        """A call that the base class declines."""
        plan = self.plan_for(arguments)
        if self._checks:
            self._checks -= 1
            results = checked_call(self, plan, arguments)
        else:
            results = plan.run(arguments, self.clock)
            if not self._is_dynamic and self.clock is None and self._direct_plan is not plan:
                self._direct_plan = plan
                plan.set_program_of(self, compares_weights=not self.options.freeze)
        arguments.clear()
        return results


_warned = set()


def warn_about(declined):
    """One warning for each kind of node that is left to torch."""
    names = {}
    for node, why in declined.items():
        if why:
            names.setdefault((str(node.target), why), 0)
            names[(str(node.target), why)] += 1
    new = [f"{name} ({why})" for name, why in names if name not in _warned]
    _warned.update(name for name, _ in names)
    if new:
        warnings.warn(
            f"tessera leaves nodes to torch: {', '.join(new)}; tessera.torch.explain tells which", stacklevel=2
        )
