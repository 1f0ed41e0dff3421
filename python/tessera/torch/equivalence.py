"""Proofs that two modules of PyTorch compute the same function."""

from __future__ import annotations

import torch

from ..proof import Proof, prove as prove_models
from .export import CannotImport, export, import_exported


def prove(f, g, example, *, time_limit: float = 120.0, threads: int = 0, seed: int = 1) -> Proof:
    """Whether two modules or functions compute the same function over the reals, for all inputs of these shapes.

    example: a tensor, or a tuple of arguments. Weights that have the same name and content in both are variables: the
    proof then holds for all weights; the rest are constants. The counterexample of "refuted" is a dict of tensors.

    >>> import torch
    >>> ts.torch.prove(lambda x: x + x, lambda x: 2 * x, torch.ones(3)).verdict
    'proved'
    >>> proof = ts.torch.prove(lambda x: x + x, lambda x: x * x, torch.ones(3))
    >>> proof.verdict, {name: type(value).__name__ for name, value in proof.counterexample.items()}
    ('refuted', {'arguments_0': 'Tensor'})
    """
    arguments = example if isinstance(example, tuple) else (example,)
    exported = [export(f, arguments), export(g, arguments)]
    states = [{**program.state_dict} for program in exported]
    shared = [name for name, tensor in states[0].items() if name in states[1] and _equal(tensor, states[1][name])]
    proof = None
    for variables in ([shared, []] if shared else [[]]):
        try:
            source, target = (import_exported(program, variables) for program in exported)
        except CannotImport as failure:
            return Proof("unknown", why=str(failure))
        proof = prove_models(source.model, target.model, time_limit=time_limit, threads=threads, seed=seed)
        if proof:
            break
    if proof.counterexample is not None:
        proof.counterexample = {name: torch.as_tensor(value) for name, value in proof.counterexample.items()}
    return proof


def _equal(x, y):
    return x.shape == y.shape and x.dtype == y.dtype and torch.equal(x, y)
