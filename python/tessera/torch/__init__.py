"""PyTorch: torch.compile(model, backend="tessera"), and what belongs to it.

    import torch
    import tessera as ts

    fast = torch.compile(model, backend="tessera")
    print(ts.torch.explain(model, x))                                  # what is compiled, what is left to torch, and why
    ts.torch.prove(model, port, x).verdict                             # "proved", "refuted" or "unknown"
    ts.torch.compile_exported(torch.export.export(model, (x,))).save("model.tsr")
"""

from .dynamo import backend
from .equivalence import prove
from .explain import Explanation, explain
from .export import compile_exported

__all__ = ["Explanation", "backend", "compile_exported", "explain", "prove"]
