"""The contract of torch.compile(backend="tessera"); tools/torch-suite has models and torch's operator samples."""

import copy
import os
import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: torch.compile is not tested")

import tessera as ts
from tessera.torch.dynamo import backend
from torch_checks import check, compiled, fresh  # noqa: F401 (a fixture)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.linear(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layers_of_torch(norm_first):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=norm_first, activation="gelu").eval()
    x, hidden = torch.randn(2, 5, 32), torch.arange(5)[None] >= torch.tensor([[5], [3]])
    with torch.no_grad():
        check(layer, x)
        for masks in ({"src_key_padding_mask": hidden}, {"src_mask": torch.ones(5, 5).triu(1).bool()}):
            graphs = []
            torch.testing.assert_close(compiled(layer, graphs)(x, **masks)[~hidden], layer(x, **masks)[~hidden])
            assert not any(plan.declined for graph in graphs for plan in graph.plans)


def test_the_backend_is_found_by_its_name():
    assert "tessera" in torch._dynamo.list_backends(exclude_tags=())
    with torch.no_grad():
        y = torch.compile(torch.nn.Linear(2, 3).eval(), backend="tessera")(torch.ones(1, 2))
    assert y.shape == (1, 3)


def test_import_of_the_package_does_not_import_torch():
    import subprocess
    import sys

    code = "import sys, tessera; assert 'torch' not in sys.modules; tessera.torch; assert 'torch' in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_inference_of_a_network():
    with torch.no_grad():
        check(Net().eval(), torch.randn(2, 3, 9, 7))


@pytest.mark.parametrize("function", [
    lambda x: x.t() + 1,
    lambda x: (x + 1).t(),
    lambda x: (x * 2).t().contiguous(),
    lambda x: x.t(),
    lambda x: (x[1:], x[:, ::2] * 1),
    lambda x: (x, x + 1, x),
    lambda x: (x.view(-1), x.sum()),
])
def test_strides_and_aliases(function):
    x = torch.randn(4, 6)
    check(function, x)
    check(function, x[:, :3].contiguous())


def test_an_output_that_is_a_view_of_an_input_shares_its_memory():
    x = torch.randn(4, 6)
    y, z = compiled(lambda x: (x.t(), x + 1))(x)
    x.zero_()
    assert y.eq(0).all() and not z.eq(1).all()


@pytest.mark.parametrize("views", [
    lambda y: (y, y.t()),
    lambda y: (y[1:], y[:, 1].unsqueeze(0)),
    lambda y: y.split(2) + (y,),
    lambda y: (y.view(-1), y.permute(1, 0), y + 1),
])
def test_outputs_that_share_memory(views):
    def function(x):
        return views(x * 2)

    x = torch.randn(4, 6)
    check(function, x)
    results = []
    for run in (compiled(function), function):
        outputs = run(x)
        outputs[0].fill_(5)
        results.append(outputs)
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, check_stride=True)


@pytest.mark.parametrize("x", [
    torch.randn(6, 4).t(),
    torch.randn(4, 1).expand(4, 6),
    torch.randn(8, 12)[::2, ::2],
    torch.randn(25)[1:].view(4, 6),
    torch.randn(0, 6),
    torch.randn(2, 4, 6).permute(2, 0, 1),
    torch._neg_view(torch.randn(4, 6)),
], ids="transposed expanded strided unaligned empty permuted negated".split())
def test_inputs_of_any_layout(x):
    check(lambda x: (x * 2 + 1, x.sum(-1)), x)


def test_f64_is_computed_in_f64():
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.GELU(),
                                torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)).double().eval()
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x), rtol=1e-12, atol=1e-12)
        image = torch.randn(2, 3, 9, 9, dtype=torch.float64)
        net = Net().double().eval()
        torch.testing.assert_close(compiled(net)(image), net(image), rtol=1e-12, atol=1e-12)


def test_channels_last_is_kept():
    model = Net().eval().to(memory_format=torch.channels_last).conv
    with torch.no_grad():
        check(lambda x: model(x).relu(), torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last))


def test_arguments_are_written_in_place():
    x, cache = torch.randn(3), torch.zeros(4, 3)
    address = cache.data_ptr()

    def step(x, cache, i):
        cache[i] = x
        return cache.sum()

    run = compiled(step)
    with torch.no_grad():
        for i in range(4):
            torch.testing.assert_close(run(x, cache, i), torch.tensor((i + 1.0)) * x.sum())
    assert cache.data_ptr() == address and torch.equal(cache, x.expand(4, 3))


def test_buffers_of_a_module_change():
    def run(model, wrap):
        step = wrap(model)
        for _ in range(3):
            step(torch.ones(4, 3, 5, 5) * torch.arange(4).view(4, 1, 1, 1))
        return model.norm.running_mean, model.norm.running_var, model.norm.num_batches_tracked

    model = Net().train()
    twin = copy.deepcopy(model)
    for a, b in zip(run(model, compiled), run(twin, lambda m: m), strict=True):
        torch.testing.assert_close(a, b)


def test_one_graph_serves_every_batch_size():
    # Without convolutions: torch picks NNPACK for batches below 16 on some CPUs, on which Dynamo then guards.
    model, graphs = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.LayerNorm(6), torch.nn.GELU()).eval(), []
    run = compiled(model, graphs, dynamic=True)
    with torch.no_grad():
        for n in [*range(2, 22), 5, 2]:
            x = torch.randn(n, 3, 8)
            torch.testing.assert_close(run(x), model(x))
    assert len(graphs) == 1
    assert len(graphs[0].plans) == 16  # the least recently used ones were dropped
    assert graphs[0].compilations == 22  # 20 sizes, and two that were dropped before they came again


def test_sizes_are_computed():
    def function(x):
        n, m = x.shape
        return torch.arange(n * m).view(m, n)[: n // 2 + 1], x.view(-1)[: max(n, m)] * n

    graphs = []
    run = compiled(function, graphs, dynamic=True)
    for shape in ((3, 5), (6, 9), (4, 7)):
        x = torch.randn(shape)
        for a, b in zip(run(x), function(x), strict=True):
            torch.testing.assert_close(a, b)
    assert len(graphs) == 1


def test_an_index_into_a_tensor_of_open_size():
    def function(x, i):
        return x[i] * 2, x[:, i]

    graphs = []
    run = compiled(function, graphs, dynamic=True)
    for n in (3, 5, 4):
        x, i = torch.randn(n, n), torch.arange(n).flip(0)[:2]
        for a, b in zip(run(x, i), function(x, i), strict=True):
            torch.testing.assert_close(a, b)
    assert [plan.declined for graph in graphs for plan in graph.plans] == [{}] * 3


def test_changed_weights_are_seen():
    model, graphs = torch.nn.Linear(3, 2).eval(), []
    run = compiled(model, graphs)
    x = torch.randn(4, 3)
    with torch.no_grad():
        for change in (lambda: None, lambda: model.weight.mul_(2), lambda: model.bias.add_(1),
                       lambda: setattr(model.weight, "data", torch.randn(2, 3)),
                       lambda: model.load_state_dict(torch.nn.Linear(3, 2).state_dict()), lambda: model.weight.add_(1),
                       lambda: model.weight.add_(1)):
            change()
            torch.testing.assert_close(run(x), model(x))
    assert graphs[0].compilations <= 6  # weights that change again and again are inputs


def test_weights_that_take_the_place_of_others_are_seen():
    model = torch.nn.Linear(300, 20, bias=False).eval()
    run, x = compiled(model), torch.randn(4, 300)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(run(x), model(x))
            for _ in range(3):  # memory that is freed is given to the next
                model.weight.data = torch.randn(20, 300)
        for _ in range(4):
            model.weight = torch.nn.Parameter(torch.randn(20, 300))
            torch.testing.assert_close(run(x), model(x))


def test_a_step_of_an_optimizer_outside_the_graph_is_seen():
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)), torch.randn(4, 8)
    run = compiled(model)
    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimizer = kind(model.parameters(), lr=0.1)
        for _ in range(3):
            with torch.no_grad():
                torch.testing.assert_close(run(x), model(x))
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()


def test_a_parameter_of_the_same_memory_and_version_is_another():
    model, x = torch.nn.Linear(30, 20, bias=False).eval(), torch.randn(4, 30)
    run = compiled(model)
    with torch.no_grad():
        model.weight = torch.nn.Parameter(torch.randn(20, 30))
        torch.testing.assert_close(run(x), model(x))
        version = model.weight._version
        model.weight = torch.nn.Parameter(model.weight.data)
        model.weight[0, 1] += 1
        torch._C._autograd._unsafe_set_version_counter((model.weight,), (version,))
        torch.testing.assert_close(run(x), model(x))


@pytest.mark.parametrize("write", [
    lambda w: w.data.mul_(2),
    lambda w: w.data.copy_(torch.randn_like(w)),
    lambda w: w.detach().numpy().__iadd__(1),
    lambda w: torch.nn.init.normal_(w.data),
], ids="mul copy numpy init".split())
def test_writes_that_torch_does_not_count_are_seen(write):
    model, x = torch.nn.Linear(300, 200).eval(), torch.randn(4, 300)
    run = compiled(model)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-3)
            write(model.weight)


def test_changes_are_named_by_position():
    from tessera import _tessera

    tensors = [torch.nn.Parameter(torch.randn(20)), torch.randn(3, 4).t(), torch.randn(0), torch.tensor(1.0), torch.arange(9)[1:]]
    for change in (lambda t: t.add_(1), lambda t: setattr(t, "data", t.data.clone()), lambda t: t.data.add_(1)):
        for i, tensor in enumerate(tensors):
            if tensor.numel() == 0:
                continue
            versions = _tessera.TensorVersions(tensors, list(range(len(tensors))))
            assert versions.match(tensors) and versions.changes(tensors) == []
            with torch.no_grad():
                change(tensor)
            assert not versions.match(tensors) and versions.changes(tensors) == [i]


def test_frozen_weights_are_packed_once():
    model, graphs = torch.nn.Linear(3, 2).eval(), []
    run = compiled(model, graphs, freeze=True)
    x = torch.randn(4, 3)
    with torch.no_grad():
        before = run(x)
        model.weight.mul_(2)
        assert torch.equal(run(x), before)
    assert graphs[0].compilations == 1


@pytest.mark.parametrize("function", [
    lambda x, y: x @ y + 1,
    lambda x, y: (x * 2).t(),
    lambda x, y: ((x @ y).permute(1, 0), y, x * 2, 3, y),
    lambda x, y: (x[:, None] * 2).transpose(0, 1),
], ids="plain transposed several unit".split())
@pytest.mark.parametrize("is_permuted", [False, True])
def test_repeated_calls_stay_in_the_bindings(function, is_permuted):
    graphs = []
    run = compiled(function, graphs)
    for _ in range(4):
        x, y = torch.randn(6, 5), torch.randn(5, 6)
        if is_permuted:
            x, y = x.t().contiguous().t(), y.t().contiguous().t()
        actual, expected = (torch.utils._pytree.tree_leaves(f(x, y)) for f in (run, function))
        for a, b in zip(actual, expected, strict=True):
            torch.testing.assert_close(a, b, check_stride=True)
    assert [graph.has_program for graph in graphs] == [True] and graphs[0].compilations == 1


def test_training_calls_stay_in_the_bindings():
    model, graphs = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)), []
    twin, x = copy.deepcopy(model), torch.randn(4, 8)
    assert train(model, x, wrap=lambda m: compiled(m, graphs)) == pytest.approx(train(twin, x), rel=1e-4)
    assert sorted(graph.kind for graph in graphs) == ["backward", "forward"]
    assert all(graph.has_program for graph in graphs)


def test_what_has_no_translation_is_left_to_torch_with_one_warning():
    def function(x):
        return torch.linalg.svd(x.relu() + 1).S.exp() * 2

    x = torch.randn(3, 3)
    from tessera.torch import compiled_graph

    compiled_graph._warned.clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.testing.assert_close(compiled(function)(x), function(x))
        torch._dynamo.reset()
        compiled(function)(x)
    messages = [str(w.message) for w in seen if "tessera leaves nodes" in str(w.message)]
    assert len(messages) == 1 and "svd" in messages[0]
    explanation = ts.torch.explain(function, x)
    assert [name for name in explanation.left] == ["aten._linalg_svd.default"] and explanation.compiled >= 4
    assert "svd" in str(explanation)


def test_dropout_is_equal_to_eager_execution():
    def function(x):
        return torch.nn.functional.dropout(x * 2, 0.3, training=True) + torch.rand(5)

    x = torch.randn(7, 5)
    torch.manual_seed(3)
    expected = function(x)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(function)(x), expected)


def test_random_numbers_are_drawn_in_order():
    def function(x):
        first = torch.rand(5) + torch.linalg.svd(x).S  # waits for torch
        return first * torch.rand_like(first), torch.rand(3), torch.nn.functional.dropout(x, 0.5)

    x = torch.randn(5, 5)
    torch.manual_seed(3)
    expected = function(x)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(function)(x), expected)


def test_sizes_that_depend_on_data_are_left_to_torch():
    def function(x):
        return x[x > 0].sum() + x.nonzero().shape[0] * x.max().item()

    x = torch.randn(9)
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        torch.testing.assert_close(compiled(function)(x), function(x))


def test_branches_and_operators_of_others_are_left_to_torch():
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,)) * 3

    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(compiled(function)(x), function(x))


def test_an_index_out_of_range_is_an_error():
    table = torch.randn(4, 3)
    run = compiled(lambda i: table[i] * 2)
    torch.testing.assert_close(run(torch.tensor([3, -1])), table[[3, -1]] * 2)
    for index in ([4, 0], [0, -5], [-8, 1]):
        with pytest.raises(Exception, match="(?i)range|index"):
            run(torch.tensor(index))


def test_one_of_several_indices_out_of_range_is_an_error():
    def read(x, i, j):
        return x[i, j] * 2

    def write(x, i, j):
        x = x.clone()
        x[i, j] = 5.0
        return x

    x, i = torch.randn(4, 3), torch.tensor([1, -4])
    for function in (read, write):
        check(function, x, i, torch.tensor([2, -3]))
        run = compiled(function)
        for j in ([3, 0], [0, -4]):  # element 3 of row 1 would be element 0 of row 2
            with pytest.raises(Exception, match="(?i)range|index"):
                run(x, i, torch.tensor(j))


def train(model, x, steps=3, wrap=lambda m: m, optimizer=torch.optim.SGD):
    optimizer = optimizer(model.parameters(), lr=0.1)
    run, losses = wrap(model), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def test_training_follows_eager_execution():
    model, x = Net(), torch.randn(4, 3, 8, 8)
    twin = copy.deepcopy(model)
    torch.testing.assert_close(train(model, x, wrap=compiled), train(twin, x), rtol=1e-4, atol=0)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_attention_and_its_gradient():
    def function(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum()

    def gradients(run):
        tensors = [t.clone().requires_grad_() for t in (q, k, v)]
        run(*tensors).backward()
        return [t.grad for t in tensors]

    q, k, v = torch.randn(3, 2, 4, 8, 16).unbind(0)
    for a, b in zip(gradients(compiled(function)), gradients(function), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch, length", [(1, 8), (4, 300)])
def test_a_mask_that_masks_nothing_is_not_computed(batch, length):
    def function(q):  # as transformers writes it where there is no padding
        mask = (torch.arange(length)[None, None, :, None] >= 0).expand(batch, 1, length, length)
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    with torch.no_grad():
        graphs = check(function, torch.randn(batch, 2, length, 8))
    steps = graphs[0].plans[0].steps[0].program.explain()["steps"]
    assert len(steps) == 1 and "where" not in steps[0]["what"] and "add" not in steps[0]["what"]


def test_gradient_checkpointing():
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(Net):
        def forward(self, x):
            return checkpoint(super().forward, x, use_reentrant=False)

    model, x = Checkpointed(), torch.randn(4, 3, 8, 8)
    twin = copy.deepcopy(model)
    torch.testing.assert_close(train(model, x, wrap=compiled), train(twin, x), rtol=1e-4, atol=0)


def test_a_limit_of_memory_is_kept_by_recomputation():
    from tessera.torch.memory import saved_bytes

    model, x = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(6)]), torch.randn(32, 64)
    twin, bytes_kept, expected = copy.deepcopy(model), [], train(copy.deepcopy(model), x)
    for limit in (None, 30000):
        graphs, net = [], copy.deepcopy(twin)
        torch._dynamo.reset()
        torch.testing.assert_close(train(net, x, wrap=lambda m: compiled(m, graphs, memory_limit=limit)), expected, rtol=1e-4, atol=0)
        bytes_kept.append(saved_bytes(next(g for g in graphs if g.kind == "forward").module, 1))
    assert bytes_kept[0] > 30000 >= bytes_kept[1]
    with pytest.raises(Exception, match="memory_limit is a number"):
        torch.compile(torch.nn.ReLU(), backend="tessera", options={"memory_limit": "much"})(torch.ones(2))


def test_a_step_of_an_optimizer():
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)), torch.randn(4, 8)
    twin = copy.deepcopy(model)
    for net, wrap in ((model, compiled), (twin, lambda f: f)):
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        step = wrap(optimizer.step)
        for _ in range(3):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            step()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_autocast():
    model, x = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4)).eval(), torch.randn(3, 16)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        actual, expected = compiled(model)(x), model(x)
    assert actual.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-2)


def test_threads_share_a_compiled_model():
    model, wrong = torch.nn.Linear(8, 8).eval(), []
    run = compiled(model)
    with torch.no_grad():
        run(torch.randn(2, 8))

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for _ in range(20):
                x = torch.randn(2, 8, generator=generator)
                if not torch.allclose(run(x), model(x), atol=1e-5):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_see_weights_that_change():
    model, wrong, lock = torch.nn.Linear(16, 16).eval(), [], threading.Lock()
    run = compiled(model)
    with torch.no_grad():
        run(torch.randn(2, 16))

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for i in range(30):
                x = torch.randn(2, 16, generator=generator)
                with lock:
                    if i % 10 == 7:
                        model.weight.mul_(1.01)
                    if not torch.allclose(run(x), model(x), atol=1e-5):
                        wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_forked_process_runs_compiled_models():
    model, x = torch.nn.Linear(64, 64).eval(), torch.randn(300, 64)
    run = compiled(model, threads=2)
    with torch.no_grad():
        expected = run(x)
        child = os.fork()
        if child == 0:
            status = 2
            try:
                status = 0 if torch.equal(run(x), expected) else 1
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert torch.equal(run(x), expected)


def test_a_cache_of_keys_is_written_in_place():
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.project = torch.nn.Linear(16, 48)
            self.register_buffer("keys", torch.zeros(2, 2, 8, 8))
            self.register_buffer("values", torch.zeros(2, 2, 8, 8))

        def forward(self, x, position):
            q, k, v = self.project(x).view(2, 1, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
            self.keys.index_copy_(2, position, k)
            self.values.index_copy_(2, position, v)
            mask = torch.arange(8)[None] <= position[:, None]
            return torch.nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)

    model = Attention().eval()
    twin, run, address = copy.deepcopy(model), compiled(model), model.keys.data_ptr()
    with torch.no_grad():
        for i in range(5):
            x, position = torch.randn(2, 1, 16), torch.tensor([i])
            torch.testing.assert_close(run(x, position), twin(x, position))
            torch.testing.assert_close(model.state_dict(), twin.state_dict())
    assert model.keys.data_ptr() == address


def test_overlapping_arguments_are_written_to():
    def function(x, y):
        x.add_(1)
        return y * 2

    run = compiled(function)
    for slices in ((slice(0, 6), slice(0, 6)), (slice(0, 3), slice(3, 6)), (slice(0, 4), slice(2, 6))):
        results = []
        for call in (run, function):
            base = torch.arange(6.0)
            results.append((call(base[slices[0]], base[slices[1]]), base))
        torch.testing.assert_close(*results)


def test_checked_calls_report_what_differs(monkeypatch):
    from tessera.torch.aten import ROWS

    x = torch.randn(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        compiled(lambda x: x.exp() * 2, check=1)(x)
    monkeypatch.setitem(ROWS, "exp", lambda e, out, x: e.op("neg", x))
    with pytest.warns(UserWarning, match="output 0 .*differ, first at \\[0\\]"):
        run = compiled(lambda x: x.exp() * 3, check=1)
        torch.testing.assert_close(run(x), x.exp() * 3)  # eager's results are used
    torch.testing.assert_close(run(x), -x * 3)  # the second call is not checked


def test_wrong_options_are_refused():
    with pytest.raises(Exception, match="frozen.*options are"):
        torch.compile(torch.nn.ReLU(), backend="tessera", options={"frozen": True})(torch.ones(2))
    with pytest.raises(Exception, match="cudagraphs=False is not supported"):
        torch.compile(torch.nn.ReLU(), backend="tessera", options={"cudagraphs": False})(torch.ones(2))
    check(torch.nn.ReLU(), torch.randn(2), cudagraphs=True)  # what programs on a GPU do by default


def test_exported_programs(tmp_path):
    model, x = Net().eval(), torch.randn(2, 3, 6, 6)
    ts.torch.compile_exported(torch.export.export(model, (x,))).save(tmp_path / "net.tsr")
    torch.testing.assert_close(ts.open(tmp_path / "net.tsr")(x), model(x).detach())
    traced = torch.fx.symbolic_trace(model)
    torch.testing.assert_close(ts.torch.compile_exported(torch.export.export(traced, (x,)))(x), model(x).detach())
    converted = torch.export.export(Converted(), (x,))  # torch asserts the dtype that .to() was traced with
    assert any("_assert_tensor_metadata" in str(node.target) for node in converted.graph.nodes)
    torch.testing.assert_close(ts.torch.compile_exported(converted)(x), Converted()(x))
    with pytest.raises(ValueError, match="svd"):
        ts.torch.compile_exported(torch.export.export(SVD(), (torch.ones(2, 2),)))


class Converted(torch.nn.Module):
    def forward(self, x):
        return x.to(torch.float64) * 2


class SVD(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.svd(x).S


def test_proofs_of_modules():
    class Rewritten(Net):
        def forward(self, x):
            y = self.norm(self.conv(x)).clamp(min=0)
            return torch.nn.functional.linear(y.sum((2, 3)) / (y.shape[2] * y.shape[3]), self.linear.weight) + self.linear.bias

    class Wrong(Net):
        def forward(self, x):
            return self.linear(torch.relu(self.norm(self.conv(x))).amax((2, 3)))

    model, x = Net().eval(), torch.randn(1, 3, 4, 4)
    proofs = []
    for kind in (Rewritten, Wrong):
        other = kind().eval()
        other.load_state_dict(model.state_dict())
        proofs.append((other, ts.torch.prove(model, other, x)))
    assert proofs[0][1].verdict == "proved"
    other, proof = proofs[1]
    assert proof.verdict == "refuted" and all(isinstance(t, torch.Tensor) for t in proof.counterexample.values())
    assert ts.torch.prove(SVD(), SVD(), torch.ones(2, 2)).verdict == "unknown"


def test_samples_of_torch_itself():
    """A few operators of OpInfo; tools/torch-suite has all."""
    pytest.importorskip("expecttest", reason="torch's samples need expecttest")
    import argparse
    import importlib.machinery
    import importlib.util
    import pathlib

    path = pathlib.Path(__file__).resolve().parents[2] / "tools" / "torch-suite"
    loader = importlib.machinery.SourceFileLoader("torch_suite", str(path))
    suite = importlib.util.module_from_spec(importlib.util.spec_from_loader("torch_suite", loader))
    loader.exec_module(suite)
    names = ("add atan2 cumsum index_put nn.functional.conv2d nn.functional.layer_norm nn.functional.max_pool2d "
             "scatter_reduce softmax var where nn.functional.interpolate as_strided diff").split()
    arguments = argparse.Namespace(samples=2, gradients=False, noncontiguous=False, part="1/1", dtype="float32", limit=120,
                                   results=None)
    rows = list(suite.check_operators(names, arguments))
    assert len(rows) >= len(names)
    assert [row for row in rows if not row["ok"]] == []
    assert sum(row["outcome"] == "whole" for row in rows) >= 15


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kernel", ["flash", "efficient", "cudnn"])
def test_attention_as_it_is_traced_on_a_gpu(kernel, dtype):
    """The operators have no kernels on a CPU: they are compiled whole, or the call fails."""
    q, k, v = (torch.randn(2, 3, 20, 16, dtype=dtype) for _ in range(3))
    bias = torch.randn(2, 3, 20, 20, dtype=dtype) if kernel != "flash" else None

    def attention(q, k, v, bias):
        operator = getattr(torch.ops.aten, f"_scaled_dot_product_{kernel}_attention").default
        if bias is None:
            return operator(q, k, v, 0.0, True)[0]
        return operator(q, k, v, bias, False, scale=0.3)[0]

    with torch.no_grad():
        y = torch.compile(attention, backend=backend)(q, k, v, bias)
        expected = torch.nn.functional.scaled_dot_product_attention(
            q.float(), k.float(), v.float(), bias if bias is None else bias.float(), is_causal=bias is None,
            scale=None if bias is None else 0.3)
    tolerance = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}[dtype]
    assert y.dtype == dtype
    torch.testing.assert_close(y.float(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matmuls_of_16_bit_floats_are_as_precise_as_eager(dtype):
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 32)).eval()
    x = torch.randn(16, 64)
    expected = model(x)
    model, x = model.to(dtype), x.to(dtype)
    with torch.no_grad():
        y = torch.compile(model, backend=backend)(x)
        eager = model(x)
    error, allowed = ((t.float() - expected).abs().max() for t in (y, eager))
    assert error <= 4 * allowed


class Scaled(torch.nn.Module):
    def __init__(self, stride=1, factor=2.0):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.factor = torch.nn.Conv2d(3, 4, 3, stride), factor

    def forward(self, x):
        return torch.relu(self.conv(x)) * self.factor


def doubled(model):
    return model.double()


def with_other_weight(model):
    with torch.no_grad():
        model.conv.weight[0, 0, 0, 0] += 1e-3
    return model


@pytest.mark.parametrize(
    "make, view, options",
    [
        (lambda: Scaled(factor=2.5), None, {}),
        (lambda: Scaled(stride=2), None, {}),
        (lambda: with_other_weight(Scaled()), None, {}),
        (lambda: doubled(Scaled()), lambda x: x.double(), {}),
        (Scaled, lambda x: x.contiguous(memory_format=torch.channels_last), {}),
        (Scaled, lambda x: x[:, :, 1:], {}),
        (Scaled, None, {"numerics": "exact"}),
        (Scaled, None, {"threads": 2}),
        (Scaled, None, {"precision": "bf16"}),
        (Scaled, None, {"disable": ("cse",)}),
    ],
    ids="constant attribute weight dtype strides sizes numerics threads precision passes".split(),
)
def test_a_cached_program_serves_no_other_compilation(tmp_path, make, view, options):
    os.chmod(tmp_path, 0o700)
    x = torch.randn(2, 3, 8, 8)

    def run(model, x, **options):
        """The number of cached programs after a call."""
        torch._dynamo.reset()
        with torch.no_grad():
            y = compiled(model, cache=str(tmp_path), **options)(x)
            loose = options.get("precision") == "bf16"
            torch.testing.assert_close(y, model(x), rtol=5e-2 if loose else 1e-4, atol=5e-2 if loose else 1e-5)
        return len(list((tmp_path / "programs").iterdir()))

    base = {"threads": 1}
    assert run(Scaled(), x, **base) == 1
    assert run(Scaled(), x, **base) == 1
    assert run(make(), x if view is None else view(x), **{**base, **options}) == 2
    assert run(Scaled(), x, **base) == 2
