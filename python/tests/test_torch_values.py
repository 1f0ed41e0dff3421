"""Values of operators through torch.compile(backend="tessera") where they are easily wrong: special numbers, dtypes, memory."""

import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: torch.compile is not tested")

from torch_checks import check, compiled, fresh  # noqa: F401 (a fixture)


def test_empty_tensors():
    check(lambda x, y: (torch.cat([x, y]), x.sum(0), x @ y.t()), torch.randn(0, 3), torch.randn(2, 3))
    check(lambda x: torch.nn.functional.group_norm(x, 2), torch.randn(0, 4, 5))


@pytest.mark.parametrize("left", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool])
@pytest.mark.parametrize("right", [torch.float32, torch.int32, torch.uint8, torch.bool])
def test_dtypes_are_promoted(left, right):
    x = torch.tensor([[1, 0], [3, 2]]).to(left)
    y = torch.tensor([1, 2]).to(right)
    scalar = torch.tensor(2).to(right)  # without axes: of lower priority
    check(lambda x, y, s: (x + y, x * s, x / 2, x < y, torch.where(x > 0, x, y), x.sum(), x + 1.5, x == s), x, y, scalar)


def test_integers_divide_as_torch_does():
    x = torch.tensor([7, -7, 7, -7, 6, 0])
    y = torch.tensor([2, 2, -2, -2, 3, 5])
    check(lambda x, y: (x // y, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc")), x, y)
    check(lambda x, y: (x // y, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc")), x / 2, y.float())


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_numbers_beyond_a_dtype_wrap_around(dtype):
    x = torch.tensor([3, 5, 100]).to(dtype)
    check(lambda x: (x * 100_000, x + 70_000, 1000 - x, x & 1000, x < 300, x == -156, x // 1000, x % 300, x * -1), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_numbers_beyond_the_largest_float(dtype):
    x = torch.tensor([-3, 0.001, 100]).to(dtype)
    check(lambda x: (x * 1e5, x + 1e39, x < 1e39, x / 1e39, x == 1e300), x)


def test_nan_and_infinity():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0])
    check(lambda x: (torch.relu(x), x.clamp(-1, 1), x.max(), x.amin(), torch.maximum(x, x.flip(0)), x.isnan(), x * 0,
                     x - x, torch.sign(x), x.argmax()), x)


def test_functions_at_zeros_and_infinities():
    inf = float("inf")
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, inf, -inf, float("nan"), 1e-30, -1e30])
    points = [t.contiguous() for t in torch.meshgrid(x, x, indexing="ij")]
    check(torch.atan2, *points)
    check(torch.log1p, x)
    check(torch.special.erfc, torch.tensor([inf, -inf, float("nan"), 0.0, 10.5, 1e38, -1e38]))
    steep = torch.tensor([-1e30, -1e8, -1e4, -88.0, -20.0, 20.0, 1e30])
    for approximate in ("none", "tanh"):  # 1 + erf(x) and 1 + tanh(x) are exactly 0
        check(lambda x: torch.nn.functional.gelu(x, approximate=approximate), steep)


def test_erfc_is_accurate_where_it_is_small():
    x = torch.linspace(-4, 9, 4001)
    actual, exact = compiled(torch.special.erfc)(x).double(), torch.special.erfc(x.double())
    assert float(((actual - exact).abs() / exact).max()) < 1e-5
    check(torch.special.erfc, x.double(), left=1)


@pytest.mark.parametrize("function, left", [
    (lambda x: (x * 2).transpose(0, 1).as_strided((3, 4), (8, 1)) + 1, 0),
    (lambda x: (x * 2).permute(2, 0, 1).as_strided((5, 4, 8), (32, 8, 1), 32) + 1, 0),
    (lambda x: torch.as_strided_scatter((x * 2).transpose(0, 1), torch.ones(3, 4), (3, 4), (8, 1), 5) + 1, 0),
    (lambda x: (x * 2)[1:, 1:3].as_strided((3, 4), (8, 1), 2) + 1, 3),  # with the views that lead to it
    (lambda x: x.transpose(0, 2)[1:].as_strided((3, 4), (8, 1), 0) + 1, 3),
    (lambda x: torch.as_strided_scatter((x * 2)[:, 1:3], torch.ones(3, 4), (3, 4), (8, 1), 50) + 1, 2),
])
def test_as_strided_reads_the_memory_of_its_operand(function, left):
    check(function, torch.randn(6, 4, 8), left=left)
    x = torch.randn(4, 6, 8).transpose(0, 1)
    torch.testing.assert_close(compiled(function)(x), function(x), check_stride=True)


@pytest.mark.parametrize("shape, axis", [((3, 5000), 1), ((300, 4), 0), ((2, 129, 3), -2), ((2, 64), 1), ((65,), 0), ((2, 0), 1)])
def test_sums_of_prefixes(shape, axis):
    for x in (torch.randn(shape) + 100, torch.randint(-9, 9, shape), torch.rand(shape) > 0.5, torch.randn(shape).double()):
        check(lambda x: x.cumsum(axis), x)
    large = torch.full((200,), 3e38)
    large[::2] *= -1
    check(lambda x: x.cumsum(0), large)  # no part of it overflows
    check(lambda x: x.cumprod(0), torch.rand(100) + 0.5, left=1)


def test_the_time_of_sums_of_prefixes_grows_with_their_number():
    run, x = compiled(lambda x, mask: (x.cumsum(0), x.masked_scatter(mask, x.flip(0)))), torch.randn(200_000)
    run(x, x > 0)
    start = time.process_time()
    run(x, x > 0)
    assert time.process_time() - start < 2  # a pass over each prefix would take 20 s


def test_writes_by_a_mask():
    def function(x, row):
        x = x.clone()
        x[x > 0] = 7.0
        x[x.sum(1) > 3] = row
        x[:, :2][x[:, :2] < -1] += 1
        return x

    check(function, torch.randn(5, 4), torch.arange(4.0), left=1)  # what is read by a mask has as many elements as it says


def test_sorting_of_equal_elements():
    x = torch.randint(0, 4, (300,)).float()
    x[7] = float("nan")
    check(lambda x: torch.sort(x, stable=True, descending=True), x)
    check(lambda x: torch.sort(x), x, left=1)
    check(lambda x: torch.topk(x, 20), x, left=1)


@pytest.mark.parametrize("view", [
    lambda x, i: x.narrow(0, i, 1),
    lambda x, i: x.select(0, i),
    lambda x, i: (x[i:], x * 2),
    lambda x, i: x[i:].view(-1, 20).t(),
    lambda x, i: x.as_strided((2, 2), (1, 4), i),
    lambda x, i: (x.mul_(2)[i:], x.sum()),
    lambda x, i: (x[i], x[i] + 1, (x * 2)[i]),
], ids="narrow select slice view as_strided written read".split())
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("differentiates", [False, True])
def test_views_of_arguments_at_an_open_number(view, dynamic, differentiates):
    run = compiled(view, dynamic=dynamic)
    for i in (5, 6, 3):  # the second number is open
        given = torch.randn(8, 2, 5, 4)
        x, y = (given.clone().requires_grad_(differentiates) * 1 for _ in range(2))
        actual, expected = ((r,) if isinstance(r, torch.Tensor) else r for r in (run(x, i), view(y, i)))
        for a, b in zip(actual, expected, strict=True):
            torch.testing.assert_close(a, b, check_stride=True)
            if b.untyped_storage().data_ptr() == y.untyped_storage().data_ptr():
                assert a.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
                assert a.storage_offset() == b.storage_offset()


@pytest.mark.parametrize("function, x", [
    (torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last), torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last)),
    (lambda x: x.t() * 2, torch.randn(3, 4)),
    (lambda x: (x * 2).t(), torch.randn(3, 4)),
    (lambda x: x * 3, torch.randn(4, 1, 10).as_strided((4, 1, 10), (10, 3, 1))),
    (lambda x: torch.nn.functional.dropout(x.t() + 1, 0.5) * 2, torch.randn(3, 4)),
], ids="convolution transposed view size_1 two_programs".split())
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_can_be_written_to(function, x, dynamic):
    run = compiled(function, dynamic=dynamic)
    for seed in range(2):
        gradients = []
        for f in (run, function):
            torch.manual_seed(seed)
            given = x.clone().requires_grad_()
            y = f(given)
            y.mul_(2).add_(1)
            y.sum().backward()
            gradients.append((y.detach(), given.grad))
        torch.testing.assert_close(*gradients)
