"""Times the vendor's libraries through PyTorch, reads what gpu_check timed, and prints each bar with its ratio.

usage: bars.py TIMES.json   (exits with 1 where a bar is missed)
"""

import json
import re
import sys


def median_ms(work, rounds=20, repeat=5):
    """Of a call, from the replays of a CUDA graph of several: without what Python costs."""
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(repeat):
            work()
    times = []
    for _ in range(rounds):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        graph.replay()
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after) / repeat)
    return sorted(times)[len(times) // 2]


PRODUCTS = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 512))


def copy_rate():
    """GB/s of a copy."""
    import torch

    x = torch.rand(2**28, device="cuda")
    y, z = torch.empty_like(x), torch.rand(2**28, device="cuda")
    copy = 8 * 2**28 / median_ms(lambda: y.copy_(x)) / 1e6
    add = 12 * 2**28 / median_ms(lambda: torch.add(x, z, out=y)) / 1e6
    print(f"torch copy {copy:.1f} GB/s, add {add:.1f} GB/s")
    return copy


def cublas(m, n, k):
    """TFLOP/s."""
    import torch

    a, b = (torch.randn(*shape, device="cuda").bfloat16() for shape in ((m, k), (k, n)))
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    return 2 * m * n * k / median_ms(lambda: torch.matmul(a, b, out=out)) / 1e9


def attention(length, causal, width=128):
    """TFLOP/s of cuDNN's."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    heads = 16 * (16384 // length)
    q, k, v = (torch.randn(1, heads, length, width, device="cuda").bfloat16() for _ in range(3))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        ms = median_ms(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
    return (2 if causal else 4) * heads * length * length * width / ms / 1e9


def convolution(size, channels, filters, window, stride, batch=32):
    """TFLOP/s of cuDNN's best."""
    import torch

    torch.backends.cudnn.benchmark = True
    x = torch.randn(batch, channels, size, size, device="cuda").half().to(memory_format=torch.channels_last)
    w = torch.randn(filters, channels, window, window, device="cuda").half().to(memory_format=torch.channels_last)
    ms = median_ms(lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=window // 2))
    out = size // stride
    return 2 * batch * out * out * filters * channels * window * window / ms / 1e9


def attempt(name, work):
    """What a library reaches, or None where it cannot do it."""
    try:
        return work()
    except Exception as problem:  # a library that refuses is no reason to lose the other rows
        print(f"{name}: {problem}")
        return None


def main():
    with open(sys.argv[1]) as lines:
        rows = [json.loads(line) for line in lines]
    rates = {row["name"]: row["rate"] for row in rows}
    copy = max(copy_rate(), rates.get("copy by the driver", 0))

    def best(prefix):
        found = {name: rate for name, rate in rates.items() if (name + " ").startswith(prefix + " ")}
        return max(found.items(), key=lambda item: item[1], default=("not timed", 0))

    bars = [("vector_add f32 2^28", 0.97, copy, "copy")]
    for columns in (256 << i for i in range(8)):
        for kernel in ("softmax", "layer_norm"):
            bars.append((f"{kernel} f16 {columns}", 0.88, copy, "copy"))
    for shape in PRODUCTS:
        rate = cublas(*shape)
        for kernel in ("matmul", "matmul_gelu"):
            bars.append((f"{kernel} bf16 {'x'.join(map(str, shape))}", 0.85, rate, "cuBLAS"))
    for length in (1024, 4096, 16384):
        for kernel in ("attention", "causal_attention"):
            rate = attempt(kernel, lambda: attention(length, kernel == "causal_attention"))
            bars.append((f"{kernel} bf16 {length}", 0.65, rate, "cuDNN"))
    found = (re.match(r"conv f16 (\d+)x(\d+)x(\d+) (\d+)x\d+ stride (\d+)", name) for name in rates)
    for shape in dict.fromkeys(match.groups() for match in found if match):
        size, channels, filters, window, stride = map(int, shape)
        rate = attempt("conv", lambda: convolution(size, channels, filters, window, stride))
        bars.append((f"conv f16 {size}x{channels}x{filters} {window}x{window} stride {stride}", 0.70, rate, "cuDNN"))

    missed = 0
    for prefix, bar, base, of in bars:
        name, rate = best(prefix)
        if not base:
            print(f"{prefix:<32} {rate:8.1f}, nothing to compare with   {name}")
            continue
        ratio = rate / base
        missed += ratio < bar
        verdict = "ok" if ratio >= bar else "MISSED"
        print(f"{prefix:<32} {rate:8.1f} = {ratio:.3f} of {of} (bar {bar:.2f}) {verdict}   {name}")
    compiles = sorted(row["compile_ms"] for row in rows if row["name"].startswith("matmul "))
    for what, value, bar in (
        ("compile of a matmul, ms", compiles[len(compiles) // 2] if compiles else None, 400),
        ("launch, us", rates.get("launch"), 4),
    ):
        if value is None:
            continue
        missed += value > bar
        print(f"{what:<32} {value:8.1f} (bar {bar}) {'ok' if value <= bar else 'MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
