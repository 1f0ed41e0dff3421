"""Small Triton kernels, one for each construct of TTIR, and the generator of the fixtures beside this file.

usage: PYTHONPATH=PACKAGE python tests/triton/kernels.py --write

writes fixtures/VERSION/NAME.ttir for the Triton that is installed, unless 3.6 prints the same (write that one first).
The tests read them without Triton.
"""

import argparse
import inspect
import pathlib
import re

import triton
import triton.language as tl
from triton.language.extra import libdevice

f32p, i32p = "*fp32", "*i32"
KERNELS = []


def fixture(signature, **constants):
    """Registers a kernel with the types of its parameters, in order, and the values of its constants."""

    def register(function):
        jitted = triton.jit(function)
        names = [name for name in inspect.signature(function).parameters if name not in constants]
        KERNELS.append((function.__name__, jitted, dict(zip(names, signature, strict=True)), constants))
        return jitted

    return register


# The listings that everyone starts with


@fixture([f32p, f32p, f32p, "i32"], BLOCK=64)
def masked_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


@fixture([f32p, f32p, "i32", "i32", "i32"], BLOCK=32)
def softmax_rows(out_ptr, x_ptr, row_stride, rows, cols, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        lanes = tl.arange(0, BLOCK)
        mask = lanes < cols
        x = tl.load(x_ptr + row * row_stride + lanes, mask=mask, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * row_stride + lanes, e / tl.sum(e, axis=0), mask=mask)


@fixture([f32p, f32p, f32p] + ["i32"] * 9, BM=16, BN=16, BK=8, GROUP=2)
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, cm, cn,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * columns
    first = (pid // in_group) * GROUP
    height = min(rows - first, GROUP)
    pid_m = first + ((pid % in_group) % height)
    pid_n = (pid % in_group) // height
    m = (pid_m * BM + tl.arange(0, BM)) % M
    n = (pid_n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a = a_ptr + (m[:, None] * am + k[None, :] * ak)
    b = b_ptr + (k[:, None] * bk + n[None, :] * bn)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        left = tl.load(a, mask=k[None, :] < K - step * BK, other=0.0)
        right = tl.load(b, mask=k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(left, right, total)
        a += BK * ak
        b += BK * bk
    m = pid_m * BM + tl.arange(0, BM)
    n = pid_n * BN + tl.arange(0, BN)
    tl.store(c_ptr + cm * m[:, None] + cn * n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


# Control flow


@fixture([f32p, f32p, "i32"], BLOCK=16)
def early_return(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if pid % 2 == 0:
        tl.store(out_ptr + i, x * 2)
        return
    tl.store(out_ptr + i, x + 1)


@fixture([f32p, f32p, "i32", "i32"], BLOCK=16)
def common_return(x_ptr, out_ptr, n, least, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    x = tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))
    if pid < least:
        return
    tl.store(out_ptr + pid * BLOCK + tl.arange(0, BLOCK), x * 2)


@fixture([i32p, i32p])
def while_loop(x_ptr, out_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    steps = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    tl.store(out_ptr + pid, steps)


@fixture([i32p, i32p, "i32"])
def nested_if(x_ptr, out_ptr, limit):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    y = x
    if x > 0:
        if x > limit:
            y = limit
            x = 1
        else:
            y = 2 * x
    else:
        y = -x
        if y > limit:
            x = 7
    tl.store(out_ptr + 2 * pid, y)
    tl.store(out_ptr + 2 * pid + 1, x)


@triton.jit(noinline=True)
def _divided(x, y):
    if y == 0:
        return 0, x
    return x // y, x % y


@fixture([i32p, i32p, i32p, i32p])
def noinline_call(x_ptr, y_ptr, quotient_ptr, remainder_ptr):
    pid = tl.program_id(0)
    quotient, remainder = _divided(tl.load(x_ptr + pid), tl.load(y_ptr + pid))
    tl.store(quotient_ptr + pid, quotient)
    tl.store(remainder_ptr + pid, remainder)


@fixture([i32p, i32p, "i32"], BLOCK=16)
def asserts(x_ptr, out_ptr, limit, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.device_assert(x < limit, "x is below the limit")
    tl.store(out_ptr + tl.arange(0, BLOCK), x + 1)


@fixture([i32p, "fp32"], BLOCK=4)
def prints(x_ptr, scale, BLOCK: tl.constexpr):
    tl.device_print("x: ", tl.load(x_ptr + tl.arange(0, BLOCK)), scale)


# Reductions and scans


@fixture([f32p, i32p, i32p], ROWS=8, BLOCK=32)
def arg_reduce(x_ptr, most_ptr, least_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.arange(0, ROWS)
    x = tl.load(x_ptr + rows[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
    tl.store(most_ptr + rows, tl.argmax(x, axis=1))
    tl.store(least_ptr + rows, tl.argmin(x, axis=1))


@triton.jit
def _welford(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    share = tl.where(weight == 0.0, 0.0, weight_b / weight)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * weight_a * share, weight


@fixture([f32p, f32p, f32p, "i32"], ROWS=4, BLOCK=32)
def welford(x_ptr, mean_ptr, variance_ptr, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, lanes = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    mask = (lanes < cols) & (rows >= 0)
    x = tl.load(x_ptr + rows * cols + lanes, mask=mask, other=0.0)
    mean, m2, weight = tl.reduce((x, tl.zeros_like(x), mask.to(tl.float32)), 1, _welford)
    tl.store(mean_ptr + tl.arange(0, ROWS), mean)
    tl.store(variance_ptr + tl.arange(0, ROWS), m2 / weight)


@triton.jit
def _recurrence(a, x, b, y):
    return a * b, x * b + y


@fixture([f32p, f32p, f32p, f32p, f32p], ROWS=4, BLOCK=16)
def scans(a_ptr, x_ptr, sums_ptr, reversed_ptr, recurrence_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a, x = tl.load(a_ptr + at), tl.load(x_ptr + at)
    tl.store(sums_ptr + at, tl.cumsum(x, axis=1))
    tl.store(reversed_ptr + at, tl.cumsum(x, axis=0, reverse=True))
    products, y = tl.associative_scan((a, x), 1, _recurrence)
    tl.store(recurrence_ptr + at, y)


@fixture([i32p, i32p, "i32"], COUNT=64, BINS=8)
def histogram(x_ptr, out_ptr, n, COUNT: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, COUNT)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=i < n))


@fixture([i32p, i32p], ROWS=4, BLOCK=16)
def folds(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.min(x, axis=0))
    tl.store(out_ptr + BLOCK + i, tl.max(x.to(tl.uint32, bitcast=True), axis=0).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 2 * BLOCK + i, tl.xor_sum(x, axis=0))
    tl.store(out_ptr + 3 * BLOCK, tl.sum(tl.sum(x, axis=0), axis=0))


@fixture([i32p, i32p], BLOCK=32)
def sort(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i), descending=True))


# Shapes


@fixture([f32p, i32p, f32p], ROWS=8, COLS=16, PICKED=4)
def gathered(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, PICKED: tl.constexpr):
    cols = tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * COLS + cols)
    at = tl.arange(0, PICKED)[:, None] * COLS + cols
    tl.store(out_ptr + at, tl.gather(x, tl.load(index_ptr + at), 0))


@fixture([f32p, f32p, f32p], N=16)
def rearranged(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    pairs = tl.join(x, y)  # [N, 2]
    even, odd = tl.split(tl.reshape(pairs, (2, N // 2, 2)))  # [2, N/2] each
    turned = tl.trans(tl.join(even, odd), 2, 0, 1)  # [2, 2, N/2]
    tl.store(out_ptr + tl.arange(0, 2 * N), tl.reshape(turned, (2 * N,)))
    both = tl.cat(x, y, can_reorder=True)
    tl.store(out_ptr + 2 * N + tl.arange(0, 2 * N), tl.sort(both))


@fixture([f32p, f32p, f32p], B=2, M=4, N=8, K=4)
def dot_3d(a_ptr, b_ptr, c_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    batch = tl.arange(0, B)[:, None, None]
    m, k, n = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    a = tl.load(a_ptr + batch * M * K + m[None, :, None] * K + k[None, None, :])
    b = tl.load(b_ptr + batch * K * N + k[None, :, None] * N + n[None, None, :])
    c = tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + batch * M * N + m[None, :, None] * N + n[None, None, :], c)


@fixture(["*u8", "*u8", "*u8", "*u8", f32p], M=16, N=16, K=64)
def dot_scaled(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, groups = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    a = tl.load(a_ptr + m[:, None] * K + tl.arange(0, K)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K // 2)[:, None] * N + n[None, :])
    a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + groups[None, :])
    b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + groups[None, :])
    c = tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, "e2m1")
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


# Types


@fixture([f32p, "*u8", "*u8", f32p], N=64)
def float8_casts(x_ptr, nearest_ptr, truncated_ptr, decoded_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    bits = (tl.program_id(0) * N + tl.arange(0, N)).to(tl.uint8)
    at = tl.num_programs(0) * N
    tl.store(nearest_ptr + i, x.to(tl.float8e4nv).to(tl.uint8, bitcast=True))
    tl.store(nearest_ptr + at + i, x.to(tl.float8e4b8).to(tl.uint8, bitcast=True))
    tl.store(nearest_ptr + 2 * at + i, x.to(tl.float8e5).to(tl.uint8, bitcast=True))
    tl.store(nearest_ptr + 3 * at + i, x.to(tl.float8e5b16).to(tl.uint8, bitcast=True))
    tl.store(nearest_ptr + 4 * at + i, x.to(tl.float8e4b15).to(tl.uint8, bitcast=True))
    tl.store(truncated_ptr + i, x.to(tl.float8e4nv, fp_downcast_rounding="rtz").to(tl.uint8, bitcast=True))
    tl.store(truncated_ptr + 2 * at + i, x.to(tl.float8e5, fp_downcast_rounding="rtz").to(tl.uint8, bitcast=True))
    tl.store(decoded_ptr + i, bits.to(tl.float8e4nv, bitcast=True).to(tl.float32))
    tl.store(decoded_ptr + at + i, bits.to(tl.float8e4b8, bitcast=True).to(tl.float32))
    tl.store(decoded_ptr + 2 * at + i, bits.to(tl.float8e5, bitcast=True).to(tl.float32))
    tl.store(decoded_ptr + 3 * at + i, bits.to(tl.float8e5b16, bitcast=True).to(tl.float32))
    tl.store(decoded_ptr + 4 * at + i, bits.to(tl.float8e4b15, bitcast=True).to(tl.float32))


@fixture([f32p, "*fp16", "*bf16", "*fp64", "*i8", "*u8", "*i64"], N=32)
def number_casts(x_ptr, half_ptr, brain_ptr, double_ptr, byte_ptr, unsigned_ptr, long_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(half_ptr + i, x.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(brain_ptr + i, x.to(tl.bfloat16))
    tl.store(double_ptr + i, x.to(tl.float64) * 3.0000000001)
    tl.store(byte_ptr + i, x.to(tl.int8))
    tl.store(unsigned_ptr + i, tl.abs(x).to(tl.uint8))
    tl.store(long_ptr + i, (x * 1e9).to(tl.int64))


@fixture(["*i1", "*i1", "*i1", i32p], N=16)
def bools(a_ptr, b_ptr, out_ptr, sum_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i, mask=i < N - 2, other=1)
    tl.store(out_ptr + i, a & b)
    tl.store(out_ptr + N + i, a | ~b)
    tl.store(out_ptr + 2 * N + i, a ^ b)
    tl.store(out_ptr + 3 * N + i, a < b)
    tl.store(sum_ptr + i, a.to(tl.int32) + b)
    tl.store(sum_ptr + N, tl.sum(a.to(tl.int32), axis=0))


@fixture(["*u32", "*u32", "*u32", f32p], N=16)
def unsigned(x_ptr, y_ptr, out_ptr, float_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, x // y)
    tl.store(out_ptr + N + i, x % y)
    tl.store(out_ptr + 2 * N + i, x >> 3)
    tl.store(out_ptr + 3 * N + i, tl.minimum(x, y))
    tl.store(out_ptr + 4 * N + i, tl.where(x > y, x - y, y - x))
    tl.store(out_ptr + 5 * N + i, tl.umulhi(x, y))
    tl.store(float_ptr + i, x.to(tl.float32))


@fixture([f32p, f32p, f32p], N=32)
def libdevice_functions(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, libdevice.tan(x))
    tl.store(out_ptr + N + i, libdevice.log1p(tl.abs(x)))
    tl.store(out_ptr + 2 * N + i, libdevice.expm1(x))
    tl.store(out_ptr + 3 * N + i, libdevice.pow(tl.abs(x), y))
    tl.store(out_ptr + 4 * N + i, libdevice.atan2(x, y))
    tl.store(out_ptr + 5 * N + i, libdevice.hypot(x, y))
    tl.store(out_ptr + 6 * N + i, libdevice.trunc(x))
    tl.store(out_ptr + 7 * N + i, libdevice.copysign(x, y))
    tl.store(out_ptr + 8 * N + i, libdevice.sinh(x))
    tl.store(out_ptr + 9 * N + i, libdevice.fmod(x, y))


@fixture(["*i64", "*fp64", f32p])
def constants(integer_ptr, double_ptr, float_ptr):
    tl.store(integer_ptr, 9223372036854775807)
    tl.store(integer_ptr + 1, -9223372036854775808)
    tl.store(integer_ptr + 2, 0x123456789ABCDEF)
    tl.store(double_ptr, 0.1)
    tl.store(double_ptr + 1, 1e300)
    tl.store(double_ptr + 2, float("-inf"))
    tl.store(float_ptr, float("inf"))
    tl.store(float_ptr + 1, float("nan"))
    tl.store(float_ptr + 2, -0.0)
    tl.store(float_ptr + 3, 1.1754944e-38)
    tl.store(float_ptr + 4 + tl.arange(0, 4), tl.full((4,), float("-inf"), tl.float32))


# Memory


@fixture([i32p, f32p, i32p, f32p, f32p], BLOCK=16)
def atomics(x_ptr, y_ptr, counts_ptr, most_ptr, least_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.atomic_add(counts_ptr + (x & 3), 1, mask=x >= 0)
    tl.atomic_xor(counts_ptr + 4, tl.sum(x, axis=0))
    tl.atomic_max(counts_ptr + 5, tl.max(x, axis=0))
    tl.atomic_max(most_ptr + (i & 1), y)
    tl.atomic_min(least_ptr + (i & 1), y, mask=y < 1.0)


@fixture([i32p, f32p, f32p], BLOCK=8)
def spin_lock(lock_ptr, x_ptr, sum_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(sum_ptr + i, tl.load(sum_ptr + i) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@fixture(["*i64", i32p, f32p], BLOCK=16)
def pointers_in_memory(table_ptr, sizes_ptr, scale_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    x_ptr = tl.load(table_ptr + pid).to(tl.pointer_type(tl.float32))
    n = tl.load(sizes_ptr + pid)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x * tl.load(scale_ptr), mask=i < n)


@fixture([f32p, f32p, "i32", "i32"], BM=8, BN=16)
def descriptors(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    out = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([m, n], x.load([m, n]) * 2)


@fixture([f32p, "i32", "fp32"], BLOCK=32)
def dropout_mask(out_ptr, seed, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.where(tl.rand(seed, i) > p, 1.0, 0.0))


if hasattr(tl, "map_elementwise"):

    @triton.jit
    def _ordered(x, y):
        less = x < y
        return (x + y) * 2 if less else x - y

    @fixture([i32p, i32p, i32p], N=16)
    def map_elementwise(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
        tl.store(out_ptr + i, tl.map_elementwise(_ordered, x, y))


def ttir(kernel, signature, constants):
    """The text that Tessera's backend is given for a kernel."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tessera.triton_backend.compiler import CpuBackend

    backend = CpuBackend(GPUTarget("cpu", "any", 1))
    options = backend.parse_options({"debug": kernel.fn.__name__ == "asserts"})  # asserts are for debug mode
    named = dict(signature) | {name: "constexpr" for name in constants}
    ordered = {name: named[name] for name in kernel.arg_names}
    values = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, ordered, values, None)
    context = ir.context()
    ir.load_dialects(context)
    arguments = [options, backend.get_codegen_implementation(options), backend.get_module_map(), context]
    if "target" in inspect.signature(source.make_ir).parameters:
        arguments.insert(0, backend.target)
    module = source.make_ir(*arguments)
    return str(backend.make_ttir(module, {}, options))


def portable(name, text):
    """The text without the folders of this machine; one fixture keeps its positions, the others have none."""
    if name == "masked_add":
        return re.sub(r'"[^"]*/([^"/]+\.py)"', r'"\1"', text)
    lines = [line for line in text.splitlines() if not re.match(r"#loc", line)]
    return re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", "\n".join(lines)) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the fixtures of the installed Triton")
    parser.add_argument("--only", help="a kernel to print")
    arguments = parser.parse_args()
    version = ".".join(triton.__version__.split(".")[:2])
    folder = pathlib.Path(__file__).resolve().parent / "fixtures" / version
    for name, kernel, signature, constants in KERNELS:
        if arguments.only not in (None, name):
            continue
        text = portable(name, ttir(kernel, signature, constants))
        if arguments.write:
            folder.mkdir(parents=True, exist_ok=True)
            path, first = folder / f"{name}.ttir", folder.parent / "3.6" / f"{name}.ttir"
            if path == first or not first.exists() or first.read_text() != text:
                path.write_text(text)
        else:
            print(f"// {name}\n{text}")


if __name__ == "__main__":
    main()
