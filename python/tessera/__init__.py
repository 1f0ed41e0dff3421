"""Tessera: an optimizing compiler for tensor programs that proves its rewrites.

    import tessera as ts

    program = ts.load("model.onnx").compile(threads=2)
    y = program(x)                      # numpy or torch in, the same kind out
    program.save("model.tsr")           # ts.open("model.tsr") runs it without compiling

    ts.prove("a.onnx", "b.onnx").verdict    # "proved", "refuted" or "unknown"

Mistakes in inputs raise tessera.Error, whose text is the diagnostic that the command line prints.
"""

from ._tessera import Error, __version__, cores
from .graph import Graph, Value
from .kernel import Kernel, kernel
from .model import Model, Pass, ValueInfo, load, open, optimize, parse, passes
from .program import Profile, Program, Report
from .proof import Assumption, Proof, prove

__all__ = [
    "Assumption",
    "Error",
    "Graph",
    "Kernel",
    "Model",
    "Pass",
    "Profile",
    "Report",
    "Program",
    "Proof",
    "Value",
    "ValueInfo",
    "__version__",
    "cores",
    "kernel",
    "load",
    "open",
    "optimize",
    "parse",
    "passes",
    "prove",
]


def __getattr__(name):
    """tessera.torch is imported when it is first used: `import tessera` does not import torch."""
    if name == "torch":
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
