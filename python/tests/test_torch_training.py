"""Gradients of convolutions, and activations that a forward graph keeps for the backward one."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: training steps are not tested")

from tessera.torch.plan import ProgramStep
from torch_checks import compiled, fresh  # noqa: F401 (a fixture)


def gradients(model, run, x):
    """Output and gradients of a model, of a loss that weighs all elements differently."""
    x = x.detach().requires_grad_(True)
    torch.manual_seed(1)
    y = run(x)
    torch.manual_seed(2)
    return [y.detach(), *torch.autograd.grad(y, [x, *model.parameters()], torch.randn_like(y))]


def expect_gradients(model, x, calls=2, graphs=None, **options):
    twin = copy.deepcopy(model)
    run = compiled(model, graphs, **options)
    for _ in range(calls):  # the second call is one of the bindings
        actual, expected = gradients(model, run, x), gradients(twin, twin, x)
        for a, b in zip(actual, expected, strict=True):
            assert a.stride() == b.stride()
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4 * float(b.abs().max() + 1))


@pytest.mark.parametrize(
    "convolution, size, batch",
    [
        (dict(i=16, o=24, k=3, padding=1), (9, 11), 2),
        (dict(i=3, o=16, k=7, stride=2, padding=3), (17, 16), 2),
        (dict(i=24, o=8, k=1), (7, 7), 3),
        (dict(i=8, o=12, k=1, stride=2), (7, 9), 1),
        (dict(i=48, o=48, k=3, padding=1, groups=48), (10, 10), 2),
        (dict(i=20, o=20, k=3, stride=2, padding=1, groups=20), (9, 11), 1),
        (dict(i=33, o=33, k=5, stride=2, padding=2, groups=33), (13, 8), 2),
        (dict(i=16, o=16, k=7, padding=3, groups=16), (9, 9), 2),
        (dict(i=16, o=16, k=(3, 5), padding=(1, 0), dilation=2, groups=16), (11, 15), 2),
        (dict(i=16, o=32, k=3, padding=1, groups=16), (8, 8), 2),
        (dict(i=24, o=36, k=3, padding=1, groups=4), (8, 8), 2),
        (dict(i=6, o=6, k=3, groups=6), (9, 9), 4),
        (dict(i=1, o=1, k=3, padding=1), (8, 8), 1),
        (dict(i=16, o=16, k=4, stride=4, groups=16), (12, 14), 2),
        (dict(i=16, o=16, k=9, padding=4, groups=16), (40,), 2),
        (dict(i=16, o=16, k=3, padding=1, groups=16), (5, 6, 7), 2),
    ],
)
@pytest.mark.parametrize("normalized", [False, True])
def test_gradients_of_convolutions(convolution, size, batch, normalized):
    arguments = dict(convolution)
    i, o, k = (arguments.pop(name) for name in "iok")
    rank = len(size)
    layers = [getattr(torch.nn, f"Conv{rank}d")(i, o, k, bias=not normalized, **arguments)]
    if normalized:
        layers += [getattr(torch.nn, f"BatchNorm{rank}d")(o), torch.nn.ReLU6()]
    expect_gradients(torch.nn.Sequential(*layers), torch.randn(batch, i, *size))


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_gradients_of_batch_norms(affine, training):
    # Statistics that are used are those of the batch, or the running ones.
    norm = torch.nn.BatchNorm2d(6, affine=affine)
    norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
    model = torch.nn.Sequential(torch.nn.Conv2d(4, 6, 3), norm, torch.nn.Tanh()).train(training)
    expect_gradients(model, 3 * torch.randn(3, 4, 9, 8) + 1)


class Block(torch.nn.Module):
    """An inverted residual with a head, of operators that keep images, masks, and views of them."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.expand, self.depthwise = torch.nn.Conv2d(8, 24, 1, bias=False), torch.nn.Conv2d(24, 24, 3, 1, 1, groups=24)
        self.project, self.norm = torch.nn.Conv2d(24, 8, 1, bias=False), torch.nn.BatchNorm2d(24)
        self.dropout, self.head = torch.nn.Dropout2d(dropout), torch.nn.Linear(8 * 6 * 6, 5)

    def forward(self, x):
        hidden = torch.nn.functional.relu6(self.norm(self.expand(x)))
        hidden = torch.nn.functional.silu(self.depthwise(self.dropout(hidden)))
        x = x + self.project(hidden)
        return self.head(torch.nn.functional.max_pool2d(x, 2).flatten(1))


def kept_orders(graphs):
    forward = next(graph for graph in graphs if graph.kind == "forward")
    layouts = [layout for step in forward.plans[-1].steps if isinstance(step, ProgramStep) for layout in step.output_layouts]
    return [layout.order for layout in layouts]


def test_kept_activations_are_channels_last():
    graphs = []
    expect_gradients(Block(), torch.randn(3, 8, 12, 12), graphs=graphs)
    assert [0, 2, 3, 1] in kept_orders(graphs)
    backward = next(graph for graph in graphs if graph.kind == "backward")
    (step,) = backward.plans[-1].steps
    assert not step.copies_tensors
    assert [0, 2, 3, 1] in [layout.order for layout in step.input_layouts]


def test_torch_reads_kept_activations_as_it_traced_them():
    # Dropout is torch's; its mask and its operand are kept.
    expect_gradients(Block(dropout=0.5), torch.randn(3, 8, 12, 12))


def test_checked_calls_of_a_training_step():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        expect_gradients(Block(), torch.randn(3, 8, 12, 12), check=4)


def test_open_sizes_keep_the_strides_that_were_traced():
    graphs = []
    model = torch.nn.Sequential(torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 4, 3))
    for images in (2, 3):
        expect_gradients(model, torch.randn(images, 8, 9, 9), calls=1, graphs=graphs, dynamic=True)
    assert all(order is None for order in kept_orders(graphs))


def test_hooks_may_give_kept_activations_other_strides():
    model, x = Block(), torch.randn(3, 8, 12, 12)
    twin, run = copy.deepcopy(model), compiled(model)
    gradients(model, run, x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t.contiguous()):
        for a, b in zip(gradients(model, run, x), gradients(twin, twin, x), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


class Counted(torch.nn.Module):
    """A layer whose gradient depends on buffers that its forward pass writes to."""

    def __init__(self, read):
        super().__init__()
        self.linear, self.read = torch.nn.Linear(4, 3), read
        self.register_buffer("calls", torch.ones(2, 3))

    def forward(self, x):
        self.calls += 1
        return self.read(self.linear(x), self.calls)


@pytest.mark.parametrize("read", [
    lambda y, calls: y * calls[0],
    lambda y, calls: y * calls.t()[:, 1] + y.sin() * calls.view(-1)[:3],
    lambda y, calls: (y * calls.sum() * torch.rand(())).exp(),
], ids="row views random".split())
@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_read_buffers_as_the_forward_pass_did(read, dynamic):
    graphs = []
    expect_gradients(Counted(read), torch.randn(5, 4), calls=3, graphs=graphs, dynamic=dynamic)
    assert {graph.kind for graph in graphs} == {"forward", "backward"}


def test_matmuls_of_a_gradient_are_those_of_its_convolutions(monkeypatch):
    """By their dtypes, precision is chosen on a GPU."""
    from tessera.torch.options import Options

    seen, compile_ = [], Options.compile
    monkeypatch.setattr(Options, "compile", lambda self, model, device, products=(): seen.append(products) or compile_(self, model, device, products))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = compiled(model)(torch.randn(1, 3, 8, 8))
    y.float().sum().backward()
    assert seen == [[torch.bfloat16] * 2] * 2


@pytest.mark.parametrize("mask", ["bool", "float"])
def test_attention_of_queries_that_see_no_key(mask):
    seen = torch.tensor([[0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0]], dtype=torch.bool)
    given = seen if mask == "bool" else torch.zeros(4, 4).masked_fill(~seen, -torch.inf)
    linear = torch.nn.Linear(8, 8)

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = linear

        def forward(self, x):
            return torch.nn.functional.scaled_dot_product_attention(self.linear(x), x, x, attn_mask=given)

    expect_gradients(Attention(), torch.randn(2, 3, 4, 8))


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_adaptive_pooling_keeps_special_numbers_in_their_windows(number):
    x = torch.randn(2, 3, 9, 10)
    x[1, 2, 4, 4] = number
    pool = torch.nn.AdaptiveAvgPool2d((4, 6))
    run = compiled(pool)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, expected = run(a), pool(b)
    torch.testing.assert_close(y, expected, equal_nan=True)
    cotangent = torch.randn_like(y)
    cotangent[0, 1, 2, 3] = number
    for output in (y, expected):
        output.backward(cotangent)
    torch.testing.assert_close(a.grad, b.grad, equal_nan=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_backward_pass_may_run_twice(dynamic):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    x = torch.randn(3, 4)
    y = compiled(model, dynamic=dynamic)(x)
    expected = torch.autograd.grad(model(x).sum(), list(model.parameters()))
    for retain in (True, False):
        for a, b in zip(torch.autograd.grad(y.sum(), list(model.parameters()), retain_graph=retain), expected, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dropout, drops", [((), False), ((None, 0.0), False), ((None, 0.1), True), ({"dropout_p": 0.1}, True)])
def test_attention_with_dropout_is_found(dropout, drops):
    """On a GPU, torch runs it: what it drops depends on its kernel."""
    from tessera.torch.dynamo import _attention_drops

    class Attention(torch.nn.Module):
        def forward(self, q):
            arguments, named = ((), dropout) if isinstance(dropout, dict) else (dropout, {})
            return torch.nn.functional.scaled_dot_product_attention(q, q, q, *arguments, **named)

    def found(module, *inputs):
        seen = []
        torch.compile(module, backend=lambda graph, _: seen.append(_attention_drops(graph)) or graph)(*inputs)
        return seen

    assert found(Attention(), torch.ones(1, 2, 4, 8)) == [drops]
    x = torch.ones(1, 4, 8)
    heads = torch.nn.MultiheadAttention(8, 2, dropout=0.1 if drops else 0.0, batch_first=True)
    assert found(heads.train(), x, x, x) == [drops]
    assert found(heads.eval(), x, x, x) in ([False], [])
