import pytest

torch = pytest.importorskip("torch")

import tessera as ts


def test_torch_in_torch_out(add):
    p = add.compile(cache=None)
    x = torch.arange(4, dtype=torch.float32)
    y = p(x, x)
    assert isinstance(y, torch.Tensor) and torch.equal(y, 2 * x)


def test_tensors_that_need_gradients_and_strided_ones(add):
    p = add.compile(cache=None)
    x = torch.arange(8, dtype=torch.float32)[::2].requires_grad_()
    assert torch.equal(p(x, x), 2 * x.detach())


def test_bf16_and_bool():
    p = ts.parse('graph g(x: bf16[2]) { y = add(x, x) z = cast(x) {to="bool"} return y, z }').compile(cache=None)
    y, z = p(torch.tensor([1, 0], dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16 and y.tolist() == [2, 0]
    assert z.dtype == torch.bool and z.tolist() == [True, False]


def test_a_result_outlives_its_program(add):
    y = add.compile(cache=None)(torch.ones(4), torch.ones(4))
    assert y.tolist() == [2] * 4


def test_tensors_and_parameters_are_read_directly(add):
    p = add.compile(cache=None)
    w = torch.nn.Parameter(torch.arange(4, dtype=torch.float32))
    for _ in range(3):
        y = p(w, torch.ones(4))
        assert torch.equal(y, w.detach() + 1) and not y.requires_grad
    offset = torch.arange(9, dtype=torch.float32)[1:5]  # 4 bytes after a multiple of 64
    assert torch.equal(p(offset, offset), 2 * offset)


def test_results_may_be_changed_and_resized():
    p = ts.parse("graph g(x: f32[n, 2]) { y = neg(x) s = reduce_sum(x, [1]) {keepdims=0} return y, s }").compile(cache=None)
    for n in (2, 3, 2, 0):
        x = torch.randn(n, 2)
        y, s = p(x)
        assert torch.equal(y, -x) and torch.allclose(s, x.sum(1)) and y.is_contiguous()
        y.add_(1)
        assert torch.equal(y, 1 - x)


def test_mistakes_in_tensors_are_diagnostics(add):
    p = add.compile(cache=None)
    with pytest.raises(ts.Error, match="f64"):
        p(torch.zeros(4, dtype=torch.float64), torch.zeros(4))
    with pytest.raises(ts.Error):
        p(torch.zeros(4, device="meta"), torch.zeros(4))
    with pytest.raises(ts.Error):
        p(torch.eye(4).to_sparse(), torch.zeros(4))


def test_views_of_negated_elements_keep_their_sign(add):
    p = add.compile(cache=None)
    x = torch.arange(4, dtype=torch.float32)
    for _ in range(2):
        for negated in (torch._neg_view(x), torch.complex(x, x).conj().imag):
            assert negated.is_neg() and torch.equal(p(negated, x), torch.zeros(4))
            assert torch.equal(p(x=negated, y=x), torch.zeros(4))
    with pytest.raises(ts.Error, match="negated"):
        ts.Graph().constant(torch._neg_view(x))


def test_tensors_without_memory_are_refused(add):
    from torch._subclasses.fake_tensor import FakeTensorMode

    p = add.compile(cache=None)
    with FakeTensorMode():
        fake = torch.ones(4)
    with pytest.raises(ts.Error):
        p(fake, torch.ones(4))
    with pytest.raises(ts.Error):
        torch.func.vmap(lambda row: p(row, row))(torch.ones(2, 4))


def test_array_types_come_and_go_while_threads_call(add):
    import threading

    p = add.compile(cache=None)
    wrong = []

    def work():
        for i in range(200):
            kind = type(f"Kind{i}", (torch.Tensor,), {})  # a new type each time
            x = torch.full((4,), float(i)).as_subclass(kind)
            if p(x, x).tolist() != [2.0 * i] * 4:
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
