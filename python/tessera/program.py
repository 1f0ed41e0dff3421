"""Compiled programs."""

from __future__ import annotations

import html
import json
import os
import pathlib
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from . import _tessera


class Profile:
    """Times of the steps of a program: means over the middle half of the runs, the longest first.

    >>> program = ts.parse("graph g(x: f32[64, 64]) { y = matmul(x, x) return y }").compile()
    >>> profile = program.profile(np.ones((64, 64), "float32"), runs=3)
    >>> profile.ms > 0, profile.steps[0]["what"]
    (True, 'matmul')
    >>> profile.save("trace.json")
    """

    def __init__(self, steps: list[dict], trace: str):
        self.steps = steps
        self.trace = json.loads(trace)

    @property
    def ms(self) -> float:
        """Milliseconds of all steps together."""
        return sum(step["ms"] for step in self.steps)

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the trace of the last run for Perfetto (ui.perfetto.dev) and chrome://tracing."""
        pathlib.Path(path).write_text(json.dumps(self.trace))

    def __str__(self) -> str:
        lines = [f"{'step':>5} {'calls':>6} {'ms':>9} {'share':>6} {'GFLOP/s':>8} {'GB/s':>7}  what"]
        for row in self.steps:
            how = f" [{row['how']}]" if row["how"] else ""
            lines.append(
                f"{row['step']:>5} {row['calls']:>6} {row['ms']:>9.4f} {100 * row['share']:>5.1f}% "
                f"{row['gflops']:>8.1f} {row['gbytes_per_second']:>7.1f}  {row['what']}{how}"
            )
        return "\n".join(lines)


class Report:
    """A page that shows how a program was made and what it costs; a notebook shows it inline.

    >>> program = ts.parse("graph g(x: f32[64, 64]) { y = matmul(x, x) return y }").compile()
    >>> report = program.report(runs=3)
    >>> report.save("page.html")
    >>> sorted({event["event"] for event in report.events} & {"step", "kernel", "run"})
    ['kernel', 'run', 'step']
    """

    def __init__(self, page: str, events: str):
        self.page = page
        self.events = [json.loads(line) for line in events.splitlines()]

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the page: one HTML file that needs no other."""
        pathlib.Path(path).write_text(self.page, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.page)}" style="width:100%;height:720px;border:0"></iframe>'


class Program(_tessera.Program):
    """A program: machine code, packed weights and a memory plan. Threads may call it at the same time.

    program(x, y) takes inputs in order or by name, as arrays of numpy or torch, and gives one array or a
    tuple of them, of the same kind. Dense arrays that are aligned to 64 bytes are read where they are; others
    are copied first. A program for a GPU takes tensors of torch on the GPU as they are, and runs in torch's current
    stream; within torch.cuda.graph it becomes a part of that graph, which must not outlive the program.

    >>> program = ts.parse("graph g(x: f32[n], y: f32[n]) { z = add(x, y) return z }").compile()
    >>> x = np.array([1, 2, 3], "float32")
    >>> program(x, x)
    array([2., 4., 6.], dtype=float32)
    >>> program(y=x, x=x[:1].repeat(3))
    array([2., 3., 4.], dtype=float32)
    >>> program(x)
    Traceback (most recent call last):
    tessera.Error: error[program-argument]: input 'y' is missing
      note: inputs are x, y
    """

    if TYPE_CHECKING:  # a slot of the type

        def __call__(self, *inputs: Any, **named: Any) -> Any: ...

    def run(self, inputs: Mapping, outputs: Optional[Sequence[str]] = None) -> dict:
        """Runs on inputs by name, and gives outputs by name: all, or those asked for.

        >>> program = ts.parse("graph g(x: f32[2]) { y = neg(x) z = abs(x) return y, z }").compile()
        >>> program.run({"x": np.array([1, -2], "float32")}, ["z"])
        {'z': array([1., 2.], dtype=float32)}
        """
        return super().run(dict(inputs), None if outputs is None else list(outputs))

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the program as one file (.tsr) for tessera.open, `tessera run` and the C API.

        >>> ts.parse("graph g(x: f32[2]) { y = neg(x) return y }").compile().save("neg.tsr")
        >>> ts.open("neg.tsr")(np.array([1, -2], "float32"))
        array([-1.,  2.], dtype=float32)
        """
        super().save(pathlib.Path(path))

    def profile(self, *inputs, runs: int = 20, **named) -> Profile:
        """Times every step over so many runs."""
        if not isinstance(runs, int) or runs < 1:
            raise ValueError(f"runs is a positive number, not {runs!r}")
        return Profile(*super().profile(runs, *inputs, **named))

    def report(self, *inputs, runs: int = 20, **named) -> Report:
        """Compiles and times the program once more, on these inputs or on sines, and shows all that is known of it."""
        if not isinstance(runs, int) or runs < 1:
            raise ValueError(f"runs is a positive number, not {runs!r}")
        return Report(*super().report(runs, *inputs, **named))

    def explain(self) -> dict:
        """How the program was compiled: passes, steps with their strategies, interpreted operators, memory.

        >>> program = ts.parse("graph g(x: f32[2]) { y = neg(x) z = exp(y) return z }").compile()
        >>> [step["what"] for step in program.explain()["steps"]]
        ['neg+exp']
        """
        return super().explain()

    def __repr__(self) -> str:
        return f"<tessera.Program of {', '.join(self.input_names)} to {', '.join(self.output_names)}>"
