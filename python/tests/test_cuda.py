"""Tensors of torch on a GPU. Skipped without torch from 2.10 on, or without a GPU.

On a computer with one: pytest python/tests/test_cuda.py
"""

import pytest

torch = pytest.importorskip("torch")

import tessera as ts

if not torch.cuda.is_available():
    pytest.skip("torch finds no CUDA GPU: tensors on a GPU are not tested", allow_module_level=True)
if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    pytest.skip(f"torch {torch.__version__} has no DLPack C table: 2.10 has", allow_module_level=True)

MLP = """graph g(x: f32[n, 64], w: f32[64, 32]) {
  a = matmul(x, w)
  y = relu(a)
  s = reduce_sum(y, [1]) {keepdims=0}
  return y, s
}"""


def expected(x, w):
    y = torch.relu(x @ w)
    return y, y.sum(1)


def inputs(n, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return (torch.randn(n, 64, device="cuda", generator=generator),
            torch.randn(64, 32, device="cuda", generator=generator) / 8)


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def mlp():
    return ts.parse(MLP).compile(target="cuda", cache=None)


def test_tensors_on_a_gpu_stay_there(mlp):
    for n in (3, 128, 3, 1):
        x, w = inputs(n, n)
        found = mlp(x, w)
        assert all(tensor.is_cuda and tensor.is_contiguous() for tensor in found)
        close(found, expected(x, w))


def test_results_come_of_the_allocator_of_torch(mlp):
    x, w = inputs(1024)
    mlp(x, w)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    found = mlp(x, w)
    assert torch.cuda.memory_allocated() >= before + 1024 * 32 * 4
    del found
    assert torch.cuda.memory_allocated() == before


def test_inputs_are_not_copied(mlp):
    x, w = inputs(64)
    first, _ = mlp(x, w)
    x.zero_()  # the same memory, other numbers
    second, _ = mlp(x, w)
    close(second, torch.zeros_like(second))
    assert first.abs().sum() > 0


def test_repeated_calls_with_the_same_and_with_changing_memory(mlp):
    x, w = inputs(16)
    wanted = expected(x, w)
    kept = []
    for _ in range(30):  # addresses come again, for which graphs are captured
        close(mlp(x, w), wanted)
    for i in range(12):  # and others do not
        kept.append((x + i, mlp(x + i, w)))
    for shifted, found in kept:
        close(found, expected(shifted, w))


def test_runs_in_the_current_stream_of_torch(mlp):
    x, w = inputs(512)
    mlp(x, w)
    stream = torch.cuda.Stream()
    for _ in range(20):
        with torch.cuda.stream(stream):
            y = torch.full_like(x, 0.5)
            for _ in range(50):  # work that the program has to wait for
                y = y * 1.01
            found = mlp(y, w)
            total = found[0].sum()
        stream.synchronize()
        close(found, expected(y, w))
        assert torch.isfinite(total)
        close(mlp(x, w), expected(x, w))  # and in another stream right after


def test_two_streams_in_turn(mlp):
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    x, w = inputs(256)
    torch.cuda.synchronize()
    found = []
    for i in range(20):
        with torch.cuda.stream((a, b)[i % 2]):
            found.append(mlp(x, w))
    torch.cuda.synchronize()
    for each in found:
        close(each, expected(x, w))


def test_captured_in_a_graph_of_torch(mlp):
    x, w = inputs(100, 5)
    other, _ = inputs(100, 6)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        mlp(x, w)
    torch.cuda.current_stream().wait_stream(side)
    graphs, found = [torch.cuda.CUDAGraph() for _ in range(2)], []
    for graph in graphs:  # twice in each: the results of one call are the inputs of the next
        with torch.cuda.graph(graph):
            y, s = mlp(x, w)
            found.append((y, s, mlp(y.repeat(1, 2), w)[0]))
    for values in (x.clone(), other):
        x.copy_(values)
        for (y, s, again), graph in zip(found, graphs):
            graph.replay()
            direct = mlp(values, w)  # in another arena
            close((y, s), expected(values, w))
            close(direct, expected(values, w))
            close(again, expected(expected(values, w)[0].repeat(1, 2), w)[0])


def test_what_needs_the_host_is_not_captured():
    program = ts.parse("graph g(x: f32[8]) { y = unique(x) return y }").compile(target="cuda", cache=None)
    x = torch.arange(8.0, device="cuda")
    program(x)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            program(x)
    except Exception as error:  # by our diagnostic, or by torch's for a copy to the host
        assert "captur" in str(error)
    else:
        raise AssertionError("a program with host steps was captured")
    torch.cuda.synchronize()


def test_strided_and_unaligned_tensors_are_copied_on_the_gpu(mlp):
    x, w = inputs(8)
    close(mlp(x, w.T.contiguous().T), expected(x, w))
    shifted = torch.randn(8 * 64 + 1, device="cuda")[1:].view(8, 64)
    close(mlp(shifted, w), expected(shifted, w))


def test_mistakes_are_diagnostics(mlp):
    x, w = inputs(8)
    with pytest.raises(ts.Error, match="f64"):
        mlp(x.double(), w)
    with pytest.raises(ts.Error, match="host memory"):
        mlp(x, w.cpu())
    with pytest.raises(ts.Error):
        mlp(x, w[:3])
    with pytest.raises(ts.Error, match="for a CPU"):
        ts.parse(MLP).compile(cache=None)(x, w)
    close(mlp(x, w), expected(x, w))


def test_tensors_in_host_memory_still_run(mlp):
    x, w = inputs(8)
    y, s = mlp(x.cpu(), w.cpu())
    assert not y.is_cuda
    close((y.cuda(), s.cuda()), expected(x, w))


def test_results_in_host_memory_stay_what_they_are(mlp):
    import numpy as np

    kept = []
    for seed in range(6):  # of 1 MB and 32 KB: in memory of a pool, and copied
        x, w = (tensor.cpu() for tensor in inputs(8192, seed))
        for give in (lambda t: t, lambda t: t.numpy(), lambda t: t.pin_memory()):
            kept.append((x, w, mlp(give(x), give(w))))
            assert isinstance(kept[-1][2][0], np.ndarray) == isinstance(give(x), np.ndarray)
    for x, w, found in kept:
        close(tuple(torch.as_tensor(array) for array in found), expected(x, w))


def test_host_arrays_of_any_alignment(mlp):
    import numpy as np

    x, w = (tensor.cpu().numpy() for tensor in inputs(1024))
    for offset in (0, 4, 8, 20):
        memory = np.zeros(x.nbytes + 128, np.uint8)
        first = -memory.ctypes.data % 64 + offset
        shifted = memory[first : first + x.nbytes].view(np.float32).reshape(x.shape)
        shifted[:] = x
        y, s = mlp(shifted, w)
        close((torch.as_tensor(y), torch.as_tensor(s)), expected(torch.as_tensor(x), torch.as_tensor(w)))


def test_host_results_are_writable_and_outlive_the_program():
    program = ts.parse(MLP).compile(target="cuda", cache=None)
    x, w = (tensor.cpu() for tensor in inputs(8192, 3))
    y, s = program(x, w)
    del program
    close((y, s), expected(x, w))
    y.zero_()
    assert y.abs().sum() == 0


def test_indices_are_checked():
    p = ts.parse("graph g(x: f32[10, 4], i: i64[3]) { y = gather(x, i) {axis=0} return y }").compile(
        target="cuda", cache=None)
    x = torch.randn(10, 4, device="cuda")
    i = torch.tensor([0, 9, 3], device="cuda")
    torch.testing.assert_close(p(x, i), x[i])
    with pytest.raises(ts.Error, match="out of range"):
        p(x, torch.tensor([0, 10, 3], device="cuda"))
    torch.testing.assert_close(p(x, i), x[i])


def test_sizes_that_depend_on_data_go_through_the_host():
    p = ts.parse("graph g(x: f32[4], c: bool[4]) { y = compress(x, c) {axis=0} return y }").compile(
        target="cuda", cache=None)
    x = torch.arange(4, dtype=torch.float32, device="cuda")
    y = p(x, torch.tensor([True, False, True, True], device="cuda"))
    assert y.is_cuda and y.tolist() == [0, 2, 3]


def test_threads_call_at_the_same_time(mlp):
    import threading

    wrong = []

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            x, w = inputs(64, seed)
            for _ in range(30):
                y, _ = mlp(x, w)
                if not torch.allclose(y, torch.relu(x @ w), rtol=1e-3, atol=1e-3):
                    wrong.append(seed)
            torch.cuda.current_stream().synchronize()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
