"""Compiled programs on disk: what is read again, and what is compiled anew."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tessera as ts

TEXT = "graph g(x: f32[4, 3]) { w = const f32[3, 2] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]  y = matmul(x, w)  return y }"
X = np.arange(12, dtype="float32").reshape(4, 3)


@pytest.fixture
def folder(tmp_path):
    os.chmod(tmp_path, 0o700)
    return tmp_path


def programs(folder):
    return sorted((folder / "programs").iterdir())


def test_a_program_is_read_again(folder):
    first = ts.parse(TEXT).compile(cache=folder)
    assert len(programs(folder)) == 1
    written = programs(folder)[0].stat().st_ino
    second = ts.parse(TEXT).compile(cache=folder)
    assert [file.stat().st_ino for file in programs(folder)] == [written]
    np.testing.assert_array_equal(first(X), second(X))
    np.testing.assert_allclose(second(X), X @ np.arange(1, 7, dtype="float32").reshape(3, 2))


def test_another_process_reads_it(folder):
    code = (
        f"import sys, numpy as np, tessera as ts\n"
        f"p = ts.parse({TEXT!r}).compile(cache=sys.argv[1])\n"
        f"print(p(np.ones((4, 3), 'float32')).tolist())"
    )
    results = [subprocess.run([sys.executable, "-c", code, folder], check=True, capture_output=True, text=True).stdout for _ in range(2)]
    assert results[0] == results[1] == f"{[[9.0, 12.0]] * 4}\n"
    assert len(programs(folder)) == 1


@pytest.mark.parametrize(
    "options",
    [{"threads": 2}, {"numerics": "exact"}, {"disable": ["cse"]}, {"precision": "bf16"}, {"precision": "auto"}, {"max_error": 0.5}],
    ids=str,
)
def test_other_options_are_compiled(folder, options):
    ts.parse(TEXT).compile(cache=folder)
    ts.parse(TEXT).compile(cache=folder, **options)
    assert len(programs(folder)) == 2


@pytest.mark.parametrize("edit", [("6.0", "6.5"), ("6.0", "-6.0"), ("matmul(x, w)", "matmul(x, w)  z = neg(y)"), ("4, 3]", "5, 3]")], ids=str)
def test_other_models_are_compiled(folder, edit):
    ts.parse(TEXT).compile(cache=folder)
    changed = ts.parse(TEXT.replace(*edit))
    program = changed.compile(cache=folder)
    assert len(programs(folder)) == 2
    x = np.ones([4 if edit[1] != "5, 3]" else 5, 3], "float32")
    np.testing.assert_array_equal(program(x), changed.compile(cache=None)(x))


def test_explanations_are_those_of_a_compilation(folder):
    first, second = (ts.parse(TEXT).compile(cache=folder).explain() for _ in range(2))
    for explanation in (first, second):
        del explanation["seconds"]
    assert first == second


def test_without_a_cache_nothing_is_written(folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    ts.parse(TEXT).compile(cache=None)
    assert not list(folder.iterdir())
