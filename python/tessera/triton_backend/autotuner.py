"""``autotune(configs="auto")``: tile sizes of Triton kernels without a list of configurations.

>>> @autotune(configs="auto", key=["n"])                        # doctest: +SKIP
... @triton.jit
... def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr): ...
>>> add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)   # doctest: +SKIP
"""

from __future__ import annotations

import ast
import math
import time
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

import torch
import triton
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner

__all__ = ["autotune"]

#: Functions of triton.language whose arguments are shapes of tiles.
_SHAPED = {"arange", "zeros", "full", "make_block_ptr", "make_tensor_descriptor"}
#: Least and largest tile sizes, along one of several axes and along the only one.
_SEVERAL, _ONE = (16, 256), (64, 16384)
#: Elements of the largest tile.
_MOST_ELEMENTS = 1 << 16
_WARPS, _STAGES = (1, 2, 4, 8), (1, 2, 3, 4, 5)
#: Largest relative difference of results that count as equal, by dtype.
_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3, torch.float16: 3e-2, torch.bfloat16: 1e-1}

#: A configuration: constants by name, and on GPUs num_warps and num_stages.
Point = Tuple[Tuple[str, int], ...]


def _names_in_shapes(tree: ast.AST) -> Set[str]:
    """Names that occur in the arguments of functions that make tiles."""
    names: Set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in _SHAPED:
                names.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
    return names


def _calls(tree: ast.AST, function: str) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == function for n in ast.walk(tree))


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    tolerance = _TOLERANCE.get(a.dtype)
    if tolerance is None:
        return torch.equal(a, b)
    x, y = a.double(), b.double()
    scale = torch.maximum(x.abs(), torch.ones_like(x))
    equal = (x == y) | (x.isnan() & y.isnan())
    return bool((equal | ((x - y).abs() <= tolerance * scale)).all())


class SearchingAutotuner(Autotuner):
    """Triton's autotuner with a search in place of a list: hill climbing over powers of two.

    Every configuration is run once on the same data, on a CPU in debug mode, and is used only if its
    accesses stay inside of the tensors. Configurations whose results differ are an error.
    """

    def __init__(self, fn, starts: Sequence[triton.Config], key: Sequence[str], trials: int, **options):
        super().__init__(fn, fn.arg_names, [triton.Config({}), triton.Config({})], list(key), None, None, **options)
        self._starts = list(starts)
        self._trials = trials
        self._tree = ast.parse(fn.src)
        self._constants = [p.name for p in fn.params if p.is_constexpr and not p.has_default]

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        named = {**self.nargs, **kwargs}
        free = [name for name in self._constants if name not in named]
        key = tuple(named[k] for k in self.keys if k in named) + tuple(
            str(a.dtype) for a in named.values() if hasattr(a, "dtype"))
        if key not in self.cache:
            self.cache[key] = self._search(args, kwargs, free)
        self.best_config = config = self.cache[key]
        result = self.fn.run(*args, **kwargs, **config.all_kwargs())
        self.nargs = None
        return result

    # The space

    def _start(self, free: Sequence[str]) -> List[Point]:
        tiles = _names_in_shapes(self._tree)
        others = [name for name in free if name not in tiles]
        if others and not self._starts:
            raise ValueError(f"{self.base_fn.__name__}: {', '.join(others)} is not a tile size: give it at the launch")
        options = self._options()
        if self._starts:
            return [self._point({**c.kwargs, **{o: getattr(c, o) for o in options}}) for c in self._starts]
        usual = 64 if len(free) > 1 else 1024
        return [self._point({**dict.fromkeys(free, usual), **options})]

    def _options(self) -> Dict[str, int]:
        """Options of the compiler that are searched: those of GPUs."""
        if driver.active.get_current_target().backend == "cpu":
            return {}
        return {"num_warps": 4, **({"num_stages": 3} if _calls(self._tree, "dot") else {})}

    @staticmethod
    def _point(values: Dict[str, int]) -> Point:
        return tuple(sorted(values.items()))

    @staticmethod
    def _config(point: Point) -> triton.Config:
        values = dict(point)
        options = {o: values.pop(o) for o in ("num_warps", "num_stages") if o in values}
        return triton.Config(values, **options)

    def _neighbours(self, point: Point, free: Sequence[str]) -> Iterator[Tuple[str, Point]]:
        """Points that differ in one coordinate, by a factor of two or, for stages, by one."""
        values = dict(point)
        tiles = _names_in_shapes(self._tree)
        least, most = _SEVERAL if len(free) > 1 else _ONE
        for name, value in point:
            if name == "num_stages":
                others = [v for v in (value - 1, value + 1) if v in _STAGES]
            elif name == "num_warps":
                others = [v for v in (value // 2, value * 2) if v in _WARPS]
            elif name in tiles:
                others = [v for v in (value // 2, value * 2) if least <= v <= most]
            else:
                continue
            for other in others:
                moved = {**values, name: other}
                sizes = sorted((v for n, v in moved.items() if n in tiles), reverse=True)
                if math.prod(sizes[:2]) <= _MOST_ELEMENTS:
                    yield name, self._point(moved)

    # The search

    def _search(self, args, kwargs, free: Sequence[str]) -> triton.Config:
        began = time.time()
        named = {**dict(zip(self.arg_names, args)), **kwargs}
        tensors = {n: a for n, a in named.items() if isinstance(a, torch.Tensor)}
        storages = {s.data_ptr(): s for s in (t.untyped_storage() for t in tensors.values())}
        given = {address: storage.clone() for address, storage in storages.items()}
        timings: Dict[Point, float] = {}
        reference: Dict[str, torch.Tensor] = {}
        failure: Optional[Exception] = None

        def restore() -> None:
            for address, storage in storages.items():
                storage.copy_(given[address])

        def measure(point: Point, moved: str) -> float:
            nonlocal failure
            if point in timings:
                return timings[point]
            config = self._config(point)
            timings[point] = math.inf
            restore()
            try:
                checked = {"debug": True} if driver.active.get_current_target().backend == "cpu" else {}
                self.fn.run(*args, **kwargs, **config.all_kwargs(), **checked)
            except Exception as error:  # an access out of bounds, a shape that does not fit, no resources
                failure = error
                return math.inf
            if not reference:
                reference.update({n: t.clone() for n, t in tensors.items()})
            for name, tensor in tensors.items():
                if not _same(tensor, reference[name]):
                    restore()
                    raise ValueError(f"{self.base_fn.__name__}: the result {name} depends on "
                                     f"{moved or 'the configuration'}: give it at the launch, or configurations that agree")
            restore()
            timings[point] = self._bench(*args, config=config, **kwargs)[0]
            return timings[point]

        starts = self._start(free)
        best = min(starts, key=lambda p: measure(p, ""))
        improved = True
        while improved and len(timings) < self._trials:
            improved = False
            for name, point in self._neighbours(best, free):
                if len(timings) >= self._trials:
                    break
                if measure(point, name) < 0.98 * timings[best]:
                    best, improved = point, True
        restore()
        if math.isinf(timings[best]):
            raise ValueError(f"{self.base_fn.__name__}: no configuration of {', '.join(free)} runs") from failure
        self.bench_time = time.time() - began
        self.configs_timings = {self._config(p): t for p, t in timings.items()}
        return self._config(best)


def autotune(configs: Union[str, Sequence[triton.Config]] = "auto", key: Sequence[str] = (), *, trials: int = 48,
             **options):
    """Decorator of ``@triton.jit`` kernels that searches fast tile sizes at the first launch of each key.

    configs: ``"auto"``, or configurations with which the search begins
    key: names of arguments; the search is repeated where one of them, or a dtype, changes
    trials: the most configurations that are run

    Constants without a value at the launch are searched if they are the sizes of tiles (``tl.arange``,
    ``tl.zeros``, block pointers); on GPUs ``num_warps`` and, with ``tl.dot``, ``num_stages`` too.
    """
    if isinstance(configs, str) and configs != "auto":
        raise ValueError(f"autotune: configs is 'auto' or a list of triton.Config, not {configs!r}")
    starts = [] if isinstance(configs, str) else list(configs)
    return lambda fn: SearchingAutotuner(fn, starts, key, trials, **options)
