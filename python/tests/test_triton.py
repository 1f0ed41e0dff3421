"""Kernels of Triton on CPU tensors, through the entry point of the package, compared with torch."""

import multiprocessing
import os
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="Triton's kernels run on tensors of torch")
triton = pytest.importorskip("triton", reason="the backend is for Triton, which is not installed")

import triton.language as tl

import tessera as ts

if torch.cuda.is_available():
    pytest.skip("a GPU driver is active: kernels on CPU tensors are tested elsewhere", allow_module_level=True)

torch.manual_seed(0)


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    from triton import knobs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knobs.cache, "dir", str(tmp_path_factory.mktemp("triton")))
        yield


# The listings that everyone starts with


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def add(x, y, block=64):
    output = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)](x, y, output, x.numel(), BLOCK_SIZE=block)
    return output


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 98432])
def test_add(n):
    x, y = torch.rand(n), torch.rand(n)
    assert torch.equal(add(x, y), x + y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.int32,
                                   torch.int64, torch.uint8])
def test_add_of_every_type(dtype):
    x, y = torch.randint(0, 100, (300,)).to(dtype), torch.randint(0, 20, (300,)).to(dtype)
    assert torch.equal(add(x, y), x + y)


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages):
        lanes = tl.arange(0, BLOCK)
        mask = lanes < n_cols
        x = tl.load(in_ptr + row * in_stride + lanes, mask=mask, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * out_stride + lanes, e / tl.sum(e, axis=0), mask=mask)


@pytest.mark.parametrize("rows,cols", [(1, 1), (37, 781), (5, 64)])
def test_fused_softmax(rows, cols):
    x = torch.randn(rows, cols)
    y = torch.empty_like(x)
    softmax_kernel[(4,)](y, x, x.stride(0), y.stride(0), rows, cols, BLOCK=triton.next_power_of_2(cols), num_stages=2)
    torch.testing.assert_close(y, torch.softmax(x, 1))


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune(configs=[triton.Config({"BM": 32, "BN": 32, "BK": 16, "GROUP": 4}, num_warps=4, num_stages=3),
                          triton.Config({"BM": 16, "BN": 64, "BK": 32, "GROUP": 2}, num_warps=2, num_stages=2)],
                 key=["M", "N", "K"])
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * num_n) * GROUP
    height = min(num_m - first, GROUP)
    pid_m = first + pid % (GROUP * num_n) % height
    pid_n = pid % (GROUP * num_n) // height
    tl.assume(pid_m >= 0)
    tl.assume(pid_n >= 0)
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn, accumulator,
             mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def matmul(a, b, activation=""):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)
    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), ACTIVATION=activation)
    return c


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("m,n,k", [(64, 64, 64), (33, 70, 45), (1, 1, 1)])
def test_matmul_autotuned(m, n, k, dtype):
    a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
    expected = torch.nn.functional.leaky_relu(a.float() @ b.float()).to(dtype)
    torch.testing.assert_close(matmul(a, b, "leaky_relu"), expected, rtol=1e-3, atol=1e-3)


# Tile sizes without a list


def auto(key, **options):
    from tessera.triton_backend import autotune

    return autotune(configs="auto", key=key, do_bench=quick_bench, **options)


def quick_bench(call, quantiles):
    import time

    call()
    began = time.perf_counter()
    call()
    return [time.perf_counter() - began] * len(quantiles)


def test_tile_sizes_are_searched():
    tuned = auto(["n_elements"], trials=6)(add_kernel)
    for n in (1000, 5000, 1000):
        x, y = torch.randn(n), torch.randn(n + 8)[8:]
        out = torch.full((n,), 7.0)
        tuned[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, y, out, n)
        torch.testing.assert_close(out, x + y)
        assert tuned.best_config.kwargs["BLOCK_SIZE"] >= 64
    assert len(tuned.cache) == 2 and 3 <= len(tuned.configs_timings) <= 6


@triton.jit
def accumulate_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        sums = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + sums[None, :], mask=(rows[:, None] < m) & (sums[None, :] < k), other=0.0)
        b = tl.load(b_ptr + sums[:, None] * n + columns[None, :], mask=(sums[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(a, b, total)
    out = c_ptr + rows[:, None] * n + columns[None, :]
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out, tl.load(out, mask=inside) + total, mask=inside)


def test_memory_is_as_after_one_launch():
    m, n, k = 70, 50, 90  # launched once on memory that it changes
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.randn(m, n)
    expected = c + a @ b
    tuned = auto(["m", "n", "k"], trials=5)(accumulate_kernel)
    tuned[lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"]))](a, b, c, m, n, k)
    torch.testing.assert_close(c, expected, rtol=1e-3, atol=1e-3)


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # BLOCK has to cover a row
    columns = tl.arange(0, BLOCK)
    row = tl.load(x_ptr + tl.program_id(0) * n + columns, mask=columns < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(row))


def test_constants_that_decide_the_result_are_named():
    x, out = torch.rand(4, 900), torch.zeros(4)
    with pytest.raises(ValueError, match="depends on BLOCK"):
        auto(["n"])(row_sum_kernel)[(4,)](x, out, 900)
    assert (out == 0).all()
    auto(["n"])(row_sum_kernel)[(4,)](x, out, 900, BLOCK=1024)
    torch.testing.assert_close(out, x.sum(1))


@triton.jit
def copy_without_mask_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x + x if TWICE else x)


def test_tiles_that_leave_a_tensor_are_no_candidates():
    n = 1024
    x, out = torch.rand(n), torch.zeros(n)
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    tuned = auto(["n"])(copy_without_mask_kernel)
    tuned[grid](x, out, n, TWICE=True)
    torch.testing.assert_close(out, 2 * x)
    assert tuned.best_config.kwargs["BLOCK"] <= n
    assert any(t == float("inf") for t in tuned.configs_timings.values())
    with pytest.raises(ValueError, match="TWICE is not a tile size"):
        auto(["n"])(copy_without_mask_kernel)[grid](x, out, n)


def test_a_list_is_where_the_search_begins():
    from tessera.triton_backend import autotune

    starts = [triton.Config({"BLOCK_SIZE": 256}), triton.Config({"BLOCK_SIZE": 2048})]
    tuned = autotune(configs=starts, key=["n_elements"], trials=4, do_bench=quick_bench)(add_kernel)
    x = torch.randn(3000)
    out = torch.empty_like(x)
    tuned[lambda meta: (triton.cdiv(3000, meta["BLOCK_SIZE"]),)](x, x, out, 3000)
    torch.testing.assert_close(out, x + x)
    assert {256, 2048} <= {c.kwargs["BLOCK_SIZE"] for c in tuned.configs_timings}
    with pytest.raises(ValueError, match="'auto' or a list"):
        autotune(configs="fast")


def test_matmul_of_transposed_and_strided_matrices():
    a, b = torch.randn(40, 30).T, torch.randn(80, 100)[::2, ::3]
    torch.testing.assert_close(matmul(a, b), a @ b, rtol=1e-4, atol=1e-4)


@triton.jit
def layer_norm_forward(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        total += tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        x_hat = (tl.load(X + cols, mask=mask, other=0.0).to(tl.float32) - mean) * rstd
        tl.store(Y + cols, x_hat * tl.load(W + cols, mask=mask) + tl.load(B + cols, mask=mask), mask=mask)


@triton.jit
def layer_norm_backward(DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    lock_id = row % GROUP
    Lock += lock_id
    Count = Lock + GROUP
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + row * stride + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + row * stride + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean, rstd = tl.load(Mean + row), tl.load(Rstd + row)
    x_hat = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1, c2 = tl.sum(x_hat * wdy, axis=0) / N, tl.sum(wdy, axis=0) / N
    tl.store(DX + row * stride + cols, (wdy - (x_hat * c1 + c2)) * rstd, mask=mask)
    partial_dw, partial_db = (dy * x_hat).to(w.dtype), dy.to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@pytest.mark.parametrize("rows,cols", [(50, 100), (3, 257), (64, 64)])
def test_layer_norm_forward_and_backward(rows, cols):
    x = torch.randn(rows, cols, requires_grad=True)
    w, b = torch.rand(cols, requires_grad=True), torch.rand(cols, requires_grad=True)
    dy = torch.randn(rows, cols)
    expected = torch.nn.functional.layer_norm(x, (cols,), w, b)
    expected.backward(dy)
    y, mean, rstd = torch.empty_like(x), torch.empty(rows), torch.empty(rows)
    layer_norm_forward[(rows,)](x, y, w, b, mean, rstd, x.stride(0), cols, 1e-5, BLOCK=64)
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4)
    group = 8
    locks = torch.zeros(2 * group, dtype=torch.int32)
    dx, dw, db = torch.empty_like(x), torch.zeros(group, cols), torch.zeros(group, cols)
    layer_norm_backward[(rows,)](dx, dy, dw, db, x, w, mean, rstd, locks, x.stride(0), cols, GROUP=group,
                                 BLOCK=triton.next_power_of_2(cols))
    torch.testing.assert_close(dx, x.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(dw.sum(0), w.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(db.sum(0), b.grad, rtol=1e-4, atol=1e-4)
    assert not locks[:group].any()


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def test_dropout_is_repeated_by_its_seed():
    x = torch.ones(5000)
    runs = []
    for seed in (123, 123, 512):
        out = torch.empty_like(x)
        dropout_kernel[(triton.cdiv(5000, 256),)](x, out, 5000, 0.5, seed, BLOCK=256)
        runs.append(out)
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    assert set(runs[0].tolist()) == {0.0, 2.0} and abs(runs[0].mean() - 1) < 0.1


@triton.jit
def attention_kernel(Q, K, V, Out, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    start, head = tl.program_id(0), tl.program_id(1)
    m, n, d = start * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    base = head * N * D
    q = tl.load(Q + base + m[:, None] * D + d[None, :], mask=m[:, None] < N, other=0.0)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    most = tl.full([BM], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    end = tl.minimum((start + 1) * BM, N) if CAUSAL else N
    for at in range(0, end, BN):
        k = tl.load(K + base + (at + n)[None, :] * D + d[:, None], mask=(at + n)[None, :] < N, other=0.0)
        s = tl.dot(q, k) * scale
        seen = (at + n)[None, :] < N
        if CAUSAL:
            seen = seen & (m[:, None] >= (at + n)[None, :])
        s = tl.where(seen, s, float("-inf"))
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2((s - new[:, None]) * 1.44269504)
        alpha = tl.exp2((most - new) * 1.44269504)
        v = tl.load(V + base + (at + n)[:, None] * D + d[None, :], mask=(at + n)[:, None] < N, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        total = total * alpha + tl.sum(p, 1)
        most = new
    tl.store(Out + base + m[:, None] * D + d[None, :], acc / total[:, None], mask=m[:, None] < N)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [64, 75])
def test_attention_forward(n, causal):
    q, k, v = (torch.randn(3, n, 32) for _ in range(3))
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(n, 32), 3)](q, k, v, out, 32**-0.5, n, D=32, BM=32, BN=16, CAUSAL=causal)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


# Memory: bools, views, aliases, nothing


@triton.jit
def not_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, ~tl.load(x_ptr + i, mask=i < n), mask=i < n)


def test_bools():
    x = torch.rand(20) > 0.5
    out = torch.zeros(24, dtype=torch.bool)
    not_kernel[(1,)](x, out, 20, BLOCK=32)
    assert torch.equal(out[:20], ~x) and not out[20:].any()


@triton.jit
def scale_kernel(x_ptr, stride, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i * stride, tl.load(x_ptr + i * stride, mask=i < n) * 2, mask=i < n)


def test_in_place_through_a_strided_view():
    whole = torch.arange(100.0)
    expected = whole.clone()
    expected[5::3] *= 2
    view = whole[5::3]
    scale_kernel[(2,)](view, view.stride(0), view.numel(), BLOCK=16)
    assert torch.equal(whole, expected)


def test_negative_offsets_reach_before_the_first_element():
    whole = torch.arange(20.0)
    expected = whole.clone()
    expected[:] *= 2
    scale_kernel[(1,)](whole[19:], -1, 20, BLOCK=32)
    assert torch.equal(whole, expected)


def test_arguments_that_are_the_same_tensor():
    x = torch.rand(300)
    expected = x + x
    add_kernel[(5,)](x, x, x, 300, BLOCK_SIZE=64)
    assert torch.equal(x, expected)


def test_overlapping_views_of_one_storage():
    # One program loads all before it stores: the sum is of the old numbers.
    whole = torch.arange(40.0)
    old = whole.clone()
    add_kernel[(1,)](whole[:32], whole[4:36], whole[8:], 32, BLOCK_SIZE=32)
    assert torch.equal(whole[8:], old[:32] + old[4:36])


def test_no_elements_and_no_programs():
    x = torch.empty(0)
    assert add(x, x).numel() == 0  # a grid of 0
    add_kernel[(1,)](x, x, x, 0, BLOCK_SIZE=64)  # one program whose mask is false
    y = torch.ones(4)
    add_kernel[(0, 1, 1)](y, y, y, 4, BLOCK_SIZE=64)
    assert y.tolist() == [1] * 4


# Tuning and timing


@triton.heuristics({"BLOCK_SIZE": lambda args: triton.next_power_of_2(args["n_elements"])})
@triton.jit
def one_program_add(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    i = tl.arange(0, BLOCK_SIZE)
    mask = i < n_elements
    tl.store(output_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def test_heuristics():
    x = torch.rand(100)
    out = torch.empty_like(x)
    one_program_add[(1,)](x, x, out, 100)
    assert torch.equal(out, 2 * x)


def test_a_compiled_kernel_can_be_asked_for_its_resources():
    # As the tutorial of the fused softmax does, which divides by them.
    x = torch.rand(64)
    kernel = add_kernel.warmup(x, x, x, 64, BLOCK_SIZE=64, grid=(1,))
    kernel._init_handles()
    assert kernel.n_regs > 0 and kernel.metadata.shared > 0
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    assert properties["multiprocessor_count"] > 0 and properties["max_shared_mem"] // kernel.metadata.shared > 0


def test_do_bench_takes_time():
    x = torch.rand(1 << 14)
    milliseconds = triton.testing.do_bench(lambda: add(x, x, 1024), warmup=1, rep=5)
    assert 0 < milliseconds < 1000


# Prints, assertions, mistakes


@triton.jit
def print_kernel(x_ptr):
    tl.device_print("value", tl.load(x_ptr + tl.program_id(0)))


def test_device_print(capfd):
    print_kernel[(2,)](torch.tensor([41, 42], dtype=torch.int32))
    printed = capfd.readouterr().out
    assert "value" in printed and "41" in printed and "42" in printed


@triton.jit
def assert_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.device_assert(x > 0, "x has to be positive")
    tl.store(out_ptr + i, x)


def test_an_assertion_is_an_exception_with_its_message():
    x, out = torch.ones(16), torch.zeros(16)
    assert_kernel[(1,)](x, out, BLOCK=16, debug=True)
    assert torch.equal(out, x)
    x[7] = -1
    with pytest.raises(ts.Error, match="x has to be positive"):
        assert_kernel[(1,)](x, out, BLOCK=16, debug=True)
    assert_kernel[(1,)](x, out, BLOCK=16)  # not checked outside of debug mode
    assert torch.equal(out, x)


@triton.jit
def unmasked_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


def test_accesses_outside_of_a_tensor_in_debug_mode():
    x, out = torch.ones(20), torch.zeros(32)
    with pytest.raises(ts.Error, match="tile-out-of-bounds"):
        unmasked_kernel[(1,)](x, out, BLOCK=32, debug=True)
    with pytest.raises(ts.Error, match="tile-out-of-bounds"):
        unmasked_kernel[(1,)](torch.ones(32), out[:31], BLOCK=32, debug=True)


def test_addresses_and_reinterpreted_tensors_in_debug_mode():
    x, out = torch.arange(32, dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
    unsigned = triton.reinterpret(x, tl.uint32)
    unmasked_kernel[(1,)](unsigned, triton.reinterpret(out, tl.uint32), BLOCK=32, debug=True)
    assert torch.equal(out, x)
    with pytest.raises(ts.Error, match="tile-out-of-bounds"):
        unmasked_kernel[(1,)](unsigned, out[:31], BLOCK=32, debug=True)


def test_wrong_arguments():
    x = torch.ones(64)
    with pytest.raises(TypeError):
        add_kernel[(1,)](x, x, x, BLOCK_SIZE=64)  # too few
    with pytest.raises(Exception):
        add_kernel[(1,)](x, x, x, 64, BLOCK_SIZE=63)  # no power of 2
    with pytest.raises(Exception):
        add_kernel[(1,)](x, None, x, 64, BLOCK_SIZE=64)
    with pytest.raises(Exception):
        add_kernel[(1,)](x, "text", x, 64, BLOCK_SIZE=64)
    with pytest.raises(Exception):
        add_kernel[(1,)](x, x, x, 64, BLOCK_SIZE=64, num_warps=3)
    with pytest.raises(Exception):
        add_kernel[(1 << 40,)](x, x, x, 64, BLOCK_SIZE=64)
    add_kernel[(1,)](x, x, x, 64, BLOCK_SIZE=64, num_warps=8, num_stages=4, maxnreg=64)  # of GPUs
    assert x.tolist() == [2] * 64


@triton.jit
def asm_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = tl.inline_asm_elementwise("neg.s32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x_ptr + i, y)


def test_what_is_unsupported_is_named_with_its_line():
    with pytest.raises(ts.Error, match="inline assembly") as raised:
        asm_kernel[(1,)](torch.ones(16, dtype=torch.int32), BLOCK=16)
    assert raised.value.id == "ttir-unsupported"
    assert raised.value.file.endswith("test_triton.py")


# Kernels that Inductor writes


@pytest.fixture
def inductor(tmp_path, monkeypatch):
    if triton.__version__.split(".")[:2] != ["3", "6"]:
        pytest.skip("Inductor of torch 2.10 writes kernels for Triton 3.6")
    import torch._inductor.config as config

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    with config.patch(cpu_backend="triton", compile_threads=1, fx_graph_cache=False):
        yield


def test_inductor_forward_and_backward(inductor):
    import copy

    model = torch.nn.Sequential(torch.nn.Linear(20, 33), torch.nn.GELU(), torch.nn.LayerNorm(33), torch.nn.Softmax(-1))
    eager = copy.deepcopy(model)
    x = torch.randn(7, 20)
    y, expected = torch.compile(model)(x), eager(x)
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
    y.sin().sum().backward()
    expected.sin().sum().backward()
    for a, b in zip(model.parameters(), eager.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-5, atol=1e-5)


def test_inductor_checks_indices(inductor):
    compiled = torch.compile(lambda x, i: x[i] * 2)
    x = torch.randn(10)
    assert torch.equal(compiled(x, torch.tensor([1, -2])), x[[1, -2]] * 2)
    with pytest.raises(ts.Error, match="index out of bounds"):
        compiled(x, torch.tensor([1, 11]))


# Threads and processes


def test_launches_from_several_threads():
    tensors = [torch.rand(1000) for _ in range(8)]
    results = [None] * 8
    add(tensors[0], tensors[0], 128)  # compiled by one thread: ast.parse of CPython 3.11 is not safe in several

    def work(index):
        for _ in range(20):
            results[index] = add(tensors[index], tensors[index], 128)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(r, 2 * x) for r, x in zip(results, tensors))


def _sum_in_child(queue):
    torch.set_num_threads(1)
    x = torch.ones(100000)
    queue.put(add(x, x).sum().item())


def test_launches_after_fork():
    add(torch.ones(100000), torch.ones(100000))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_sum_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == 200000
    child.join(timeout=60)
    assert child.exitcode == 0


PROGRAM = """
import torch, triton, triton.language as tl
@triton.jit
def double_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)
x = torch.ones(64)
kernel = double_kernel[(1,)](x, BLOCK=64)
assert x.sum() == 128
print(kernel.metadata.target.backend)
"""


def test_another_process_finds_the_kernel_in_the_cache(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    made = []
    for _ in range(2):
        done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "cpu"
        made.append({p: p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("*.tile")})
    assert made[0] and made[0] == made[1]


def test_import_takes_neither_torch_nor_triton():
    program = "import sys, tessera; sys.exit(any(m in sys.modules for m in ('torch', 'triton')))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


@triton.jit
def _through_another_view(x_ptr, y_ptr, B: tl.constexpr):
    at = tl.arange(0, B)
    for _ in range(0, 3):
        value = tl.load(y_ptr - B + at)
        tl.store(x_ptr + at, value + 1)


def test_views_that_reach_into_each_other_share_memory():
    storage = torch.zeros(16)
    _through_another_view[(1,)](storage[:8], storage[8:], B=8)
    assert storage.tolist() == [3.0] * 8 + [0.0] * 8
