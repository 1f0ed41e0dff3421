import numpy as np
import pytest

import tessera as ts


def test_inputs_outputs_and_text(open_sizes):
    assert open_sizes.inputs == [("x", "f32", ("n", 3))]
    assert [value.name for value in open_sizes.outputs] == ["y", "s"]
    assert "relu" in str(open_sizes) and open_sizes.inspect()["operators"]["relu"] == 1
    assert "inputs x" in repr(open_sizes)


def test_models_are_saved_and_loaded(add, tmp_path):
    for name in ("model.onnx", "model.tessera"):
        add.save(tmp_path / name)
        model = ts.load(str(tmp_path / name))
        x = np.ones(4, np.float32)
        np.testing.assert_array_equal(model.compile(cache=None)(x, x), 2 * x)


def test_optimized_models_are_proved_equal(tmp_path):
    model = ts.parse(
        """graph g(x: f32[n, 4]) {
             a = transpose(x) {perm=[1, 0]}
             b = transpose(a) {perm=[1, 0]}
             c = add(b, b)
             return c
           }"""
    )
    better = ts.optimize(model)
    assert better.inspect()["nodes"] < model.inspect()["nodes"]
    proof = ts.prove(model, better)
    assert proof and proof.verdict == "proved"
    assert all(assumption.kind and assumption.text for assumption in proof.assumptions)


def test_a_refutation_has_an_input_that_shows_it():
    a = ts.parse("graph g(x: f32[4]) { y = relu(x) return y }")
    b = ts.parse("graph g(x: f32[4]) { y = abs(x) return y }")
    proof = ts.prove(a, b)
    assert not proof and proof.verdict == "refuted" and proof.output == "y"
    x = proof.counterexample["x"]
    assert not np.array_equal(a.compile(cache=None)(x), b.compile(cache=None)(x))


def test_what_is_not_decided_is_unknown():
    a = ts.parse("graph g(x: f32[n]) { y = exp(x) return y }")
    with pytest.raises(ValueError):
        ts.prove(a, a, time_limit=0)
    with pytest.raises(ValueError):
        ts.prove(a, a, certificate="c.txt")


def test_a_certificate_is_written(add, tmp_path):
    for name in ("a", "b"):
        add.save(tmp_path / (name + ".onnx"))
    proof = ts.prove(tmp_path / "a.onnx", tmp_path / "b.onnx", certificate=tmp_path / "proof.txt")
    assert proof and (tmp_path / "proof.txt").stat().st_size > 0


def test_models_of_other_signatures_are_a_diagnostic(add, open_sizes):
    with pytest.raises(ts.Error):
        ts.prove(add, open_sizes)
