"""Triton kernels of the kind that people write, for checks and timings: each with its launch, what torch
says, and the bytes or operations of a call."""

import dataclasses
import math
from typing import Callable

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    x = tl.load(in_ptr + row * in_stride + offsets, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + offsets, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        x = tl.where(at < cols, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < cols
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + at, mask=mask)
        b = tl.load(b_ptr + at, mask=mask)
        tl.store(y_ptr + at, (x - mean) * rstd * w + b, mask=mask)


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, w_ptr, stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    x = tl.load(x_ptr + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / cols + eps)
    w = tl.load(w_ptr + at, mask=mask, other=0.0)
    tl.store(y_ptr + row * stride + at, x * rstd * w, mask=mask)


@triton.jit
def swiglu_kernel(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a = tl.load(a_ptr + at, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask, other=0).to(tl.float32)
    tl.store(c_ptr + at, (a * tl.sigmoid(a) * b).to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    keep = tl.rand(seed, at) > p
    tl.store(out_ptr + at, tl.where(keep, x / (1 - p), 0.0), mask=mask)


@triton.jit
def cross_entropy_kernel(logits_ptr, labels_ptr, loss_ptr, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    peak = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + at, mask=at < cols, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(peak, tl.max(x, axis=0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(x - higher), axis=0)
        peak = higher
    chosen = tl.load(logits_ptr + row * stride + label).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + peak - chosen)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    in_group = GROUP * columns
    first = pid // in_group * GROUP
    size = min(rows - first, GROUP)
    m = first + (pid % in_group) % size
    n = (pid % in_group) // size
    at_m = (m * BM + tl.arange(0, BM)) % M
    at_n = (n * BN + tl.arange(0, BN)) % N
    at_k = tl.arange(0, BK)
    a_ptrs = a_ptr + at_m[:, None] * stride_am + at_k[None, :] * stride_ak
    b_ptrs = b_ptr + at_k[:, None] * stride_bk + at_n[None, :] * stride_bn
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=at_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=at_k[:, None] < K - k * BK, other=0.0)
        sums = tl.dot(a, b, sums)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    c_m = m * BM + tl.arange(0, BM)
    c_n = n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * c_m[:, None] + stride_cn * c_n[None, :]
    tl.store(c_ptrs, sums.to(c_ptr.dtype.element_ty), mask=(c_m[:, None] < M) & (c_n[None, :] < N))


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, stride_head, stride_row, length, scale,
                     BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64) * stride_head
    at_m = block * BM + tl.arange(0, BM)
    at_n = tl.arange(0, BN)
    at_d = tl.arange(0, D)
    q = tl.load(q_ptr + head + at_m[:, None] * stride_row + at_d[None, :], mask=at_m[:, None] < length, other=0.0)
    peak = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    sums = tl.zeros([BM, D], tl.float32)
    end = tl.minimum((block + 1) * BM, length) if CAUSAL else length
    for start in range(0, end, BN):
        rows = start + at_n
        k = tl.load(k_ptr + head + rows[None, :] * stride_row + at_d[:, None], mask=rows[None, :] < length, other=0.0)
        s = tl.dot(q, k) * scale
        seen = rows[None, :] < length
        if CAUSAL:
            seen = seen & (rows[None, :] <= at_m[:, None])
        s = tl.where(seen, s, -1.0e30)
        higher = tl.maximum(peak, tl.max(s, 1))
        p = tl.exp2(s - higher[:, None])
        factor = tl.exp2(peak - higher)
        total = total * factor + tl.sum(p, 1)
        sums = sums * factor[:, None]
        v = tl.load(v_ptr + head + rows[:, None] * stride_row + at_d[None, :], mask=rows[:, None] < length, other=0.0)
        sums = tl.dot(p.to(v.dtype), v, sums)
        peak = higher
    sums = sums / total[:, None]
    tl.store(out_ptr + head + at_m[:, None] * stride_row + at_d[None, :], sums.to(out_ptr.dtype.element_ty),
             mask=at_m[:, None] < length)


@dataclasses.dataclass
class Case:
    name: str
    run: Callable  # launches; returns what it wrote
    expected: Callable
    tolerance: float
    amount: float  # bytes or operations of a call
    unit: str  # GB/s or GFLOP/s


def power_of_2(n: int) -> int:
    return 1 << (n - 1).bit_length()


def cases(device: str, size: str = "small") -> list[Case]:
    """The cases; `size` is small (checks), or large (timings on a GPU)."""
    large = size == "large"
    generator = torch.Generator(device="cpu").manual_seed(1)

    def random(*shape, dtype=torch.float32):
        return torch.randn(*shape, generator=generator).to(dtype).to(device)

    made = []

    def rowwise(rows, cols, dtype):
        bytes_ = 2 * rows * cols * dtype.itemsize
        tag = f"{rows}x{cols} {str(dtype)[6:]}"
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        x, y = random(rows, cols, dtype=dtype), torch.empty(rows, cols, dtype=dtype, device=device)
        w, b = random(cols, dtype=dtype), random(cols, dtype=dtype)
        if cols <= 32768:
            made.append(Case(
                f"softmax {tag}",
                lambda: (softmax_kernel[(rows,)](y, x, x.stride(0), y.stride(0), cols, BLOCK=power_of_2(cols),
                                                 num_warps=8 if cols > 2048 else 4), y)[1],
                lambda: torch.softmax(x, 1), tolerance, bytes_, "GB/s"))
            made.append(Case(
                f"rms norm {tag}",
                lambda: (rms_norm_kernel[(rows,)](x, y, w, x.stride(0), cols, 1e-6, BLOCK=power_of_2(cols),
                                                  num_warps=8 if cols > 2048 else 4), y)[1],
                lambda: (x.float() * torch.rsqrt(x.float().square().mean(1, keepdim=True) + 1e-6) * w).to(dtype),
                tolerance, bytes_, "GB/s"))
        made.append(Case(
            f"layer norm {tag}",
            lambda: (layer_norm_kernel[(rows,)](x, y, w, b, x.stride(0), cols, 1e-5,
                                                BLOCK=min(4096, power_of_2(cols)), num_warps=8), y)[1],
            lambda: torch.nn.functional.layer_norm(x.float(), (cols,), w.float(), b.float(), 1e-5).to(dtype),
            tolerance * 4, bytes_, "GB/s"))

    def elementwise(n, dtype):
        x, y, out = random(n, dtype=dtype), random(n, dtype=dtype), torch.empty(n, dtype=dtype, device=device)
        grid = (triton.cdiv(n, 1024),)
        tag = f"{n} {str(dtype)[6:]}"
        tolerance = 1e-6 if dtype == torch.float32 else 1e-2
        made.append(Case(f"add {tag}", lambda: (add_kernel[grid](x, y, out, n, BLOCK=1024), out)[1],
                         lambda: x + y, tolerance, 3 * n * dtype.itemsize, "GB/s"))
        made.append(Case(f"swiglu {tag}", lambda: (swiglu_kernel[grid](x, y, out, n, BLOCK=1024), out)[1],
                         lambda: (torch.nn.functional.silu(x.float()) * y.float()).to(dtype), tolerance * 2,
                         3 * n * dtype.itemsize, "GB/s"))

    def dropout(n):
        x, out, again = random(n), torch.empty(n, device=device), torch.empty(n, device=device)

        def expected():
            # The same numbers from the same seed; about p of them dropped.
            dropout_kernel[(triton.cdiv(n, 512),)](x, again, n, 0.4, 123, BLOCK=512)
            share = (again == 0).float().mean().item()
            assert abs(share - 0.4) < 0.02, share
            return torch.where(again != 0, x / (1 - 0.4), torch.zeros_like(x))

        made.append(Case(f"dropout {n}", lambda: (dropout_kernel[(triton.cdiv(n, 1024),)](
            x, out, n, 0.4, 123, BLOCK=1024), out)[1], expected, 1e-5, 8 * n, "GB/s"))

    def cross_entropy(rows, cols, dtype):
        x, loss = random(rows, cols, dtype=dtype), torch.empty(rows, device=device)
        labels = torch.randint(0, cols, (rows,), generator=generator).to(device)
        made.append(Case(
            f"cross entropy {rows}x{cols} {str(dtype)[6:]}",
            lambda: (cross_entropy_kernel[(rows,)](x, labels, loss, x.stride(0), cols, BLOCK=4096, num_warps=8),
                     loss)[1],
            lambda: torch.nn.functional.cross_entropy(x.float(), labels, reduction="none"), 1e-4,
            rows * cols * dtype.itemsize, "GB/s"))

    def matmul(m, n, k, dtype, tile, **options):
        a, b = random(m, k, dtype=dtype) / math.sqrt(k), random(k, n, dtype=dtype)
        c = torch.empty(m, n, dtype=dtype, device=device)
        grid = (triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1]),)
        made.append(Case(
            f"matmul {m}x{n}x{k} {str(dtype)[6:]} {'x'.join(map(str, tile))}",
            lambda: (matmul_kernel[grid](a, b, c, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
                                         c.stride(0), c.stride(1), BM=tile[0], BN=tile[1], BK=tile[2], GROUP=8,
                                         **options), c)[1],
            lambda: (a.float() @ b.float()).to(dtype), 1e-4 if dtype == torch.float32 and device == "cpu" else 2e-2,
            2.0 * m * n * k, "GFLOP/s"))

    def attention(heads, length, d, causal, dtype, tile=(128, 64)):
        q, k, v = (random(heads, length, d, dtype=dtype) for _ in range(3))
        out = torch.empty_like(q)
        scale = 1.4426950408889634 / math.sqrt(d)
        made.append(Case(
            f"attention {heads}x{length}x{d}{' causal' if causal else ''} {str(dtype)[6:]}",
            lambda: (attention_kernel[(triton.cdiv(length, tile[0]), heads)](
                q, k, v, out, q.stride(0), q.stride(1), length, scale, BM=tile[0], BN=tile[1], D=d, CAUSAL=causal,
                num_warps=8 if large else 4, num_stages=3), out)[1],
            lambda: torch.nn.functional.scaled_dot_product_attention(
                q.float()[None], k.float()[None], v.float()[None], is_causal=causal)[0].to(dtype),
            1e-4 if dtype == torch.float32 and device == "cpu" else 2e-2,
            4.0 * heads * length * length * d * (0.5 if causal else 1), "GFLOP/s"))

    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    if large:
        elementwise(1 << 26, f32)
        elementwise((1 << 25) + 123, f16)
        for rows, cols, dtype in [(65536, 1000, f32), (16384, 4096, f32), (4096, 16384, f32), (16384, 4096, f16)]:
            rowwise(rows, cols, dtype)
        dropout(1 << 26)
        cross_entropy(4096, 32000, bf16)
        for s in (4096, 8192):
            matmul(s, s, s, f16, (128, 256, 64), num_warps=8, num_stages=3)
        matmul(4096, 4096, 4096, f16, (128, 128, 64), num_warps=8, num_stages=4)
        matmul(4000, 4040, 4056, bf16, (128, 128, 64), num_warps=8, num_stages=4)
        matmul(1024, 1024, 1024, f32, (64, 64, 32), num_warps=4, num_stages=3)
        for d in (64, 128):
            for causal in (False, True):
                attention(64, 4096, d, causal, f16)
    else:
        for dtype in (f32, f16, bf16):
            elementwise(98432, dtype)
            rowwise(63, 781, dtype)
            rowwise(17, 4096, dtype)
            cross_entropy(13, 5000, dtype)
            matmul(200, 136, 96, dtype, (64, 64, 32))
            matmul(64, 64, 7, dtype, (64, 64, 16))
            attention(3, 200, 64, True, dtype, (64, 32))
            attention(2, 256, 32, False, dtype, (64, 64))
        dropout(100_000)
    return made
