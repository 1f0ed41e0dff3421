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
