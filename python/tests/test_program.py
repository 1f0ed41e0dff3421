import os
import pathlib
import threading

import numpy as np
import pytest

import tessera as ts

X = np.arange(4, dtype=np.float32)


def test_runs_by_position_and_by_name(add):
    p = add.compile(cache=None)
    np.testing.assert_array_equal(p(X, X), 2 * X)
    np.testing.assert_array_equal(p(y=X, x=X + 1), 2 * X + 1)
    np.testing.assert_array_equal(p.run({"x": X, "y": X}, ["z"])["z"], 2 * X)
    assert p.input_names == ["x", "y"] and p.output_names == ["z"]


def test_results_are_writable_and_not_shared_between_calls(add):
    p = add.compile(cache=None)
    first = p(X, X)
    first[:] = 7
    np.testing.assert_array_equal(p(X, X), 2 * X)
    np.testing.assert_array_equal(first, [7] * 4)


def test_an_output_that_is_an_input_or_a_constant_is_a_copy():
    p = ts.parse("graph g(x: f32[2]) { c = const f32[2] [1.0, 2.0] return x, c }").compile(cache=None)
    x = np.zeros(2, np.float32)
    for _ in range(2):
        y, c = p(x)
        np.testing.assert_array_equal(c, [1, 2])
        y[:] = 5
        c[:] = 5
    np.testing.assert_array_equal(x, [0, 0])


@pytest.mark.parametrize("offset", range(4))
def test_arrays_of_any_alignment_and_stride(add, offset):
    p = add.compile(cache=None)
    memory = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(p(memory[offset : offset + 4], memory[offset : offset + 12 : 3]), 
                                  memory[offset : offset + 4] + memory[offset : offset + 12 : 3])
    backwards = memory[offset + 3 : offset + 7][::-1]
    np.testing.assert_array_equal(p(backwards, backwards), 2 * backwards)


def aligned(count, offset=0):
    """Floats that begin so many bytes after a multiple of 64."""
    memory = np.zeros(4 * count + 128, np.uint8)
    first = -memory.ctypes.data % 64 + offset
    return memory[first : first + 4 * count].view(np.float32)


def test_direct_and_general_calls_agree():
    p = ts.parse("graph g(x: f32[n, 4], y: i64[n]) { z = neg(x) w = add(y, y) return z, w }").compile(cache=None)
    rng = np.random.default_rng(1)
    for n in (3, 5, 3, 0, 5, 1) * 3:  # of several sizes in turn, each compiled once
        x, y = rng.standard_normal((n, 4)).astype(np.float32), rng.integers(-9, 9, n)
        for z, w in (p(x, y), p(x, y=y), p.run({"x": x, "y": y}).values()):
            np.testing.assert_array_equal(z, -x)
            np.testing.assert_array_equal(w, 2 * y)
            assert z.flags.writeable and z.flags.c_contiguous and z.ctypes.data % 64 == 0


@pytest.mark.parametrize("offset", [0, 4, 16])
def test_aligned_and_unaligned_arrays_called_again_and_again(add, offset):
    p = add.compile(cache=None)
    x, y = aligned(4, offset), aligned(4)
    for i in range(5):
        x[:], y[:] = X + i, X - i
        np.testing.assert_array_equal(p(x, y), 2 * X)


def test_what_a_direct_call_declines_is_converted_or_refused(add):
    p = add.compile(cache=None)
    p(X, X)
    big_endian = X.astype(">f4")
    with pytest.raises(ts.Error):
        p(big_endian, X)
    np.testing.assert_array_equal(p(X.view(np.matrix).A1, X), 2 * X)

    class Subclass(np.ndarray):
        pass

    np.testing.assert_array_equal(p(X.view(Subclass), X), 2 * X)
    with pytest.raises(ts.Error, match="is missing"):
        p(X)


def test_a_program_that_was_not_initialized_is_refused():
    with pytest.raises(TypeError):
        ts.Program.__new__(ts.Program)(X)


def test_results_do_not_leak(add):
    import sys

    p = add.compile(cache=None)
    before = sys.getrefcount(X)
    for _ in range(100):
        p(X, X)
    assert sys.getrefcount(X) == before
    assert sys.getrefcount(p(X, X)) == 1 + 1  # the argument of getrefcount


def test_read_only_arrays_are_fine(add):
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(add.compile(cache=None)(x, x), 2 * X)


def test_open_sizes_are_those_of_each_call(open_sizes):
    p = open_sizes.compile(cache=None)
    for n in (1, 5, 0, 5):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        y, s = p(x)
        np.testing.assert_array_equal(y, np.maximum(x, 0))
        np.testing.assert_allclose(s, np.maximum(x, 0).sum(1), rtol=1e-6)


def test_arrays_have_the_declared_sizes():
    model = ts.parse("graph g(x: f32[n, 3], y: f32[n, 1]) { z = add(x, y) return z }")
    p = model.compile(cache=None)
    assert p(np.ones((4, 3), "float32"), np.ones((4, 1), "float32")).shape == (4, 3)
    for x, y in (((4, 2), (4, 1)), ((4, 3), (1, 1))):
        with pytest.raises(ts.Error, match="run-input-shape"):
            p(np.ones(x, "float32"), np.ones(y, "float32"))
    p = model.compile(cache=None, shapes={"x": (4, 2), "y": (4, 1)})
    assert p(np.ones((4, 2), "float32"), np.ones((4, 1), "float32")).shape == (4, 2)


def test_sizes_may_be_given_to_compile(open_sizes):
    p = open_sizes.compile(sizes={"n": 2}, cache=None)
    assert p.explain()["steps"]
    with pytest.raises(ts.Error, match="m"):
        open_sizes.compile(sizes={"m": 2}, cache=None)


@pytest.mark.parametrize(
    "arguments, named, text",
    [
        ((X,), {}, "input 'y' is missing"),
        ((X, X, X), {}, "3 inputs are given"),
        ((X,), {"x": X, "y": X}, "given twice"),
        ((X, X), {"q": X}, "no input 'q'"),
        ((X.astype(np.float64), X), {}, r"f64\[4\]"),
        ((X[:3], X), {}, "the shape is 3"),
        ((X.reshape(2, 2), X), {}, r"declares f32\[4\]"),
        ((None, X), {}, "no tensor"),
        (("text", X), {}, "not an array"),
        ((object(), X), {}, "not an array"),
        ((X.astype(np.complex64), X), {}, "not an array|not supported"),
    ],
)
def test_mistakes_are_diagnostics(add, arguments, named, text):
    with pytest.raises(ts.Error, match=text) as caught:
        add.compile(cache=None)(*arguments, **named)
    assert caught.value.id
    assert caught.value.message


def test_a_diagnostic_has_its_parts():
    with pytest.raises(ts.Error) as caught:
        ts.parse("graph g(x: f32[2]) { y = no_such_operator(x) return y }")
    assert "no_such_operator" in caught.value.message
    assert str(caught.value).count("error[") == 1


def test_bad_files(tmp_path):
    with pytest.raises(ts.Error) as caught:
        ts.load(tmp_path / "missing.onnx")
    assert "missing.onnx" in str(caught.value)
    bad = tmp_path / "bad.tsr"
    bad.write_bytes(b"not a program")
    with pytest.raises(ts.Error):
        ts.open(bad)


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({"numerics": "fast"}, ValueError),
        ({"threads": -1}, ValueError),
        ({"target": "tpu"}, ts.Error),
        ({"precision": "f8"}, ts.Error),
        ({"precision": "f16"}, ts.Error),
        ({"disable": ["no_such_pass"]}, ValueError),
    ],
)
def test_bad_options(add, arguments, error):
    with pytest.raises(error):
        add.compile(cache=None, **arguments)


def test_saved_programs_run_again(add, tmp_path):
    add.compile(cache=None).save(tmp_path / "add.tsr")
    p = ts.open(tmp_path / "add.tsr")
    np.testing.assert_array_equal(p(X, y=X), 2 * X)
    assert p.explain()["steps"]


def test_profile_and_explain(open_sizes, tmp_path):
    p = open_sizes.compile(cache=None)
    with pytest.raises(ts.Error, match="not compiled yet"):
        p.explain()
    profile = p.profile(np.ones((8, 3), np.float32), runs=3)
    assert profile.ms > 0 and "relu" in str(profile)
    profile.save(tmp_path / "trace.json")
    assert profile.trace["traceEvents"]
    explained = p.explain()
    assert explained["passes"] and explained["interpreted"] == {}


def test_report(open_sizes, add, tmp_path):
    p = open_sizes.compile(cache=None)
    with pytest.raises(ts.Error, match="not compiled yet"):
        p.report()
    with pytest.raises(ValueError):
        p.report(np.ones((8, 3), np.float32), runs=0)
    report = p.report(np.ones((8, 3), np.float32), runs=3)
    run = next(event for event in report.events if event["event"] == "run")
    times = [event["ms"] for event in report.events if event["event"] == "step_time"]
    assert sum(times) + run["between_ms"] == pytest.approx(run["ms"])
    assert report.events[0] == {"event": "log", "schema": 1, "version": report.events[0]["version"], "command": "report"}
    assert "<iframe" in report._repr_html_() and "<script" not in report._repr_html_()
    report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().endswith("</html>\n")
    add.compile(cache=None).save(tmp_path / "add.tsr")
    assert any(event["event"] == "step" for event in ts.open(tmp_path / "add.tsr").report(runs=2).events)


def test_threads_call_at_the_same_time():
    model = ts.parse("graph g(x: f32[64, 64]) { y = matmul(x, x) z = softmax(y) {axis=1} return z }")
    p = model.compile(threads=2, cache=None)
    inputs = [np.random.default_rng(i).standard_normal((64, 64)).astype(np.float32) for i in range(4)]
    expected = [p(x) for x in inputs]
    wrong = []

    def work(i):
        for _ in range(50):
            if not np.array_equal(p(inputs[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_works_after_fork():
    p = ts.parse("graph g(x: f32[256, 256]) { y = matmul(x, x) return y }").compile(threads=2, cache=None)
    x = np.random.default_rng(1).standard_normal((256, 256)).astype(np.float32)
    expected = p(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(p(x), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("dtype", ["f16", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
def test_dtypes(dtype):
    name = {"f": "float", "i": "int", "u": "uint"}[dtype[0]] + dtype[1:]
    p = ts.parse(f"graph g(x: {dtype}[3]) {{ y = add(x, x) return y }}").compile(cache=None)
    y = p(np.array([1, 2, 3], name))
    assert y.dtype == name
    np.testing.assert_array_equal(y, np.array([2, 4, 6], name))


def test_truth_values():
    p = ts.parse("graph g(x: bool[2]) { y = logical_not(x) return y }").compile(cache=None)
    y = p(np.array([True, False]))
    assert y.dtype == bool and y.tolist() == [False, True]


def test_bf16_is_given_by_its_bits_or_ml_dtypes():
    p = ts.parse("graph g(x: f32[2]) { y = cast(x) {to=\"bf16\"} return y }").compile(cache=None)
    y = p(np.array([1, -2], np.float32))
    assert y.view("uint16").tolist() == [0x3F80, 0xC000]


def test_scalars_and_empty_arrays():
    p = ts.parse("graph g(x: f32[], y: f32[0, 2]) { z = neg(x) w = neg(y) return z, w }").compile(cache=None)
    z, w = p(np.float32(3).reshape(()), np.zeros((0, 2), np.float32))
    assert z.shape == () and z == -3 and w.shape == (0, 2)


def test_exact_keeps_bits_and_passes_can_be_disabled(add):
    names = [info.name for info in ts.passes()]
    assert "cse" in names
    p = add.compile(numerics="exact", disable=["cse"], cache=None)
    assert all(record[0] != "cse" for record in p.explain()["passes"])


def test_text_keeps_every_character_and_objects_are_refused():
    p = ts.parse("graph g(x: string[2]) { y = identity(x) return y }").compile(cache=None)
    assert p(np.array(["a\0b", "ä"], object)).tolist() == ["a\0b", "ä"]
    assert p(np.array([b"a\0b", "c"], object)).tolist() == ["a\0b", "c"]
    with pytest.raises(ts.Error, match="no text"):
        p(np.array(["a", 1], object))


def test_code_for_a_gpu_is_compiled_and_saved_without_one(tmp_path):
    p = ts.parse("graph g(x: f32[64, 64]) { y = matmul(x, x) return y }").compile(target="cuda:sm_90a", cache=None)
    assert p.explain()["architecture"] == "sm_90a"
    p.save(tmp_path / "gpu.tsr")
    assert (tmp_path / "gpu.tsr").stat().st_size > 0
