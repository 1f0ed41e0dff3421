"""Proofs that two models compute the same function."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import tempfile
import time
from typing import NamedTuple, Optional, Union

from . import _tessera
from .model import Model


class Assumption(NamedTuple):
    """Something that a proof takes for granted, such as the kind "rounding"."""

    kind: str
    text: str


@dataclasses.dataclass
class Proof:
    """The answer of prove(). Only "proved" is true in a condition."""

    verdict: str  # "proved", "refuted" or "unknown"
    why: str = ""  # of "refuted" the difference, of "unknown" the reason
    assumptions: list[Assumption] = dataclasses.field(default_factory=list)
    counterexample: Optional[dict] = None  # of "refuted": inputs by name on which the outputs differ
    output: Optional[str] = None  # of "refuted": the output that differs,
    position: Optional[tuple] = None  # where,
    values: Optional[tuple] = None  # and its two elements there

    def __bool__(self) -> bool:
        return self.verdict == "proved"


def prove(
    source: Union[Model, str, os.PathLike],
    target: Union[Model, str, os.PathLike],
    *,
    time_limit: float = 120.0,
    threads: int = 0,
    seed: int = 1,
    certificate: Union[str, os.PathLike, None] = None,
) -> Proof:
    """Whether two models (or files) compute the same function over the reals, for all inputs.

    time_limit: seconds, after which the verdict is "unknown"; writing models that are no files counts
    certificate: a file for the proof, which `tessera rules check-certificate` replays; for models that are files

    >>> a = ts.parse("graph g(x: f32[n]) { y = add(x, x) z = sub(y, x) return z }")
    >>> b = ts.parse("graph g(x: f32[n]) { z = identity(x) return z }")
    >>> ts.prove(a, b).verdict
    'proved'
    >>> c = ts.parse("graph g(x: f32[n]) { z = neg(x) return z }")
    >>> proof = ts.prove(a, c)
    >>> proof.verdict, sorted(proof.counterexample)
    ('refuted', ['x'])
    """
    if not time_limit > 0:
        raise ValueError(f"time_limit is a positive number of seconds, not {time_limit!r}")
    if certificate is not None and (isinstance(source, Model) or isinstance(target, Model)):
        raise ValueError("a certificate binds files: give the paths of both models")
    end = time.monotonic() + time_limit
    with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        paths = []
        for name, model in (("source", source), ("target", target)):
            if isinstance(model, Model):
                path = pathlib.Path(folder, name + ".tessera")
                model.save(path)
            else:
                path = pathlib.Path(model)
            paths.append(path)
        answer = _tessera.prove(
            *paths,
            time_limit=max(end - time.monotonic(), 0.0),
            threads=threads or _tessera.cores(),
            seed=seed,
            certificate="" if certificate is None else pathlib.Path(certificate),
        )
    answer["assumptions"] = [Assumption(*entry) for entry in answer.get("assumptions", [])]
    return Proof(**answer)
