import doctest
import importlib
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tessera as ts

MODULES = ["graph", "kernel", "model", "program", "proof"]
STUB = pathlib.Path(__file__).resolve().parents[1] / "tessera" / "_tessera.pyi"
ERROR = """class Error(RuntimeError):
    id: str
    message: str
    note: str
    help: str
    file: str
    item: str"""


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module = importlib.import_module(f"tessera.{name}")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, attempted = doctest.testmod(module, extraglobs={"ts": ts, "np": np}, optionflags=flags)
    assert attempted > 0 and failed == 0


@pytest.mark.parametrize("name", ["torch.explain", "torch.export", "torch.equivalence"])
def test_examples_in_docstrings_of_the_torch_backend(name, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed")
    test_examples_in_docstrings(name, tmp_path, monkeypatch)


def test_public_names_have_docstrings():
    for name in ts.__all__:
        assert name == "__version__" or getattr(ts, name).__doc__, name


def test_the_stub_is_that_of_the_module(tmp_path):
    """TESSERA_UPDATE_GOLDEN=1 writes it again."""
    pytest.importorskip("nanobind")
    path = tmp_path / "_tessera.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "tessera._tessera", "-o", str(path)]
    subprocess.run(command, check=True)
    text = path.read_text().replace("from tessera import Error as Error", ERROR)
    if os.environ.get("TESSERA_UPDATE_GOLDEN") == "1":
        STUB.write_text(text)
    assert STUB.read_text() == text, "TESSERA_UPDATE_GOLDEN=1 pytest writes the stub again"
