"""Times the vendor's libraries and Triton, reads what gpu_check timed, and prints each bar with its ratio.

usage: bars.py TIMES.json [ROWS.json]   (exits with 1 where a bar is missed; table.py prints the rows)
"""

import json
import re
import sys


def median_ms(work, sets=((),), rounds=20, repeat=5):
    """Of a call, from the replays of a CUDA graph of several, each with the next set of arguments: without what
    Python costs, and without what the caches would serve."""
    import torch

    calls = len(sets) * max(1, repeat // len(sets))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work(*sets[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for i in range(calls):
            work(*sets[i % len(sets)])
    times = []
    for _ in range(rounds):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        graph.replay()
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after) / calls)
    return sorted(times)[len(times) // 2]


ROWS = tuple(256 << i for i in range(8))
OTHER_ROWS = (768, 1000, 3072, 5000, 12288, 50257)  # shown, without a bar
PRODUCTS = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 512))


def streams():
    """GB/s of a copy, and of additions by Triton."""
    import torch
    import triton_kernels

    x = torch.rand(2**28, device="cuda")
    y, z = torch.empty_like(x), torch.rand(2**28, device="cuda")
    copy = 8 * 2**28 / median_ms(lambda: y.copy_(x)) / 1e6
    return copy, 12 * 2**28 / median_ms(lambda: triton_kernels.add(x, z, y)) / 1e6


def products(m, n, k):
    """TFLOP/s of cuBLAS, of Triton, and of Triton with bias and GELU."""
    import torch
    import triton_kernels

    def draw(*shape):
        return torch.randn(*shape, device="cuda").bfloat16()

    bytes_of_a_set = 2 * (m * k + k * n + m * n)
    sets = [(draw(m, k), draw(k, n), draw(m, n)) for _ in range(min(16, -(-192 * 2**20 // bytes_of_a_set)))]
    bias = draw(n)
    ways = (lambda a, b, out: torch.matmul(a, b, out=out), lambda a, b, out: triton_kernels.matmul(a, b),
            lambda a, b, out: triton_kernels.matmul(a, b, bias))
    return [2 * m * n * k / median_ms(way, sets) / 1e9 for way in ways]


def attention(length, causal, width=128):
    """TFLOP/s of cuDNN's and of Triton."""
    import torch
    import triton_kernels
    from torch.nn.attention import SDPBackend, sdpa_kernel

    heads = 16 * (16384 // length)
    q, k, v = (torch.randn(1, heads, length, width, device="cuda").bfloat16() for _ in range(3))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        library = median_ms(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
    by_triton = median_ms(lambda: triton_kernels.attention(q[0], k[0], v[0], causal))
    return [(2 if causal else 4) * heads * length * length * width / ms / 1e9 for ms in (library, by_triton)]


CONVOLUTION = re.compile(r"(conv f16 (\d+)x(\d+)x(\d+)x(\d+) to (\d+) (\d+)x\d+ stride (\d+) dilation (\d+))")
RESNET50 = 21  # the first of them, which have a bar


def convolution(batch, height, width, channels, filters, window, stride, dilation):
    """TFLOP/s of cuDNN's best."""
    import torch

    torch.backends.cudnn.benchmark = True

    def draw(*shape):
        return torch.randn(*shape, device="cuda").half().to(memory_format=torch.channels_last)

    pad = window // 2 * dilation
    out = [(size + 2 * pad - dilation * (window - 1) - 1) // stride + 1 for size in (height, width)]
    # As many sets as gpu_check has, results included.
    taken = 2 * (batch * height * width * channels + filters * channels * window * window + batch * out[0] * out[1] * filters)
    sets = [(draw(batch, channels, height, width), draw(filters, channels, window, window))
            for _ in range(max(1, min(16, -(-(192 << 20) // taken))))]
    ms = median_ms(lambda x, w: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad, dilation=dilation), sets)
    return 2 * batch * out[0] * out[1] * filters * channels * window * window / ms / 1e9


def rows(kernel, columns, elements=2**27):
    """GB/s of PyTorch, as it is and compiled, and of Triton."""
    import torch
    import triton_kernels

    elements = elements // columns * columns
    x = torch.randn(elements // columns, columns, device="cuda").half()
    if kernel == "softmax":
        work, arguments = (lambda x: torch.softmax(x, -1)), (x,)
    else:
        weight, bias = (torch.randn(columns, device="cuda").half() for _ in range(2))
        work = lambda x, weight, bias: torch.nn.functional.layer_norm(x, (columns,), weight, bias, 1e-5)
        arguments = (x, weight, bias)
    torch._dynamo.reset()
    return tuple(4 * elements / median_ms(way, (arguments,)) / 1e6
                 for way in (work, torch.compile(work, dynamic=False), getattr(triton_kernels, kernel)))


def attempt(name, work):
    """What a library reaches, or None where it cannot do it."""
    try:
        return work()
    except Exception as problem:  # a library that refuses is no reason to lose the other rows
        print(f"{name}: {problem}")
        return None


def main():
    with open(sys.argv[1]) as lines:
        timed = [json.loads(line) for line in lines]
    rates = {row["name"]: row["rate"] for row in timed}
    copy, by_triton = streams()
    copy = max(copy, rates.get("copy by the driver", 0))

    def best(prefix):
        found = {name: rate for name, rate in rates.items() if (name + " ").startswith(prefix + " ")}
        return max(found.items(), key=lambda item: item[1], default=("not timed", 0))

    by_name = {row["name"]: row for row in timed}
    missed, table = [], []

    def show(prefix, bar, base, of):
        name, rate = best(prefix)
        if not base:
            print(f"{prefix:<36} {rate:8.1f}, nothing to compare with   {name}", flush=True)
            return
        row, ratio = by_name[name], rate / base
        table.append({"what": prefix, "ours": rate, "peer": base, "of": of, "ratio": ratio, "bar": bar or None})
        if ratio < bar:
            missed.append(prefix)
        how = f"{name[len(prefix):]}; {row.get('kernels', '')}"
        verdict = "ok" if ratio >= bar else "MISSED"
        print(f"{prefix:<36} {rate:8.1f} = {ratio:.3f} of {of:<13} (bar {bar:.2f}) {verdict:<7}{how}", flush=True)

    def is_timed(prefix):
        return best(prefix)[1] > 0

    if is_timed("vector_add f32 2^28"):
        show("vector_add f32 2^28", 0.97, copy, "copy")
        show("vector_add f32 2^28", 0.0, by_triton, "Triton")
    for shape in PRODUCTS:
        names = [f"{kernel} bf16 {'x'.join(map(str, shape))}" for kernel in ("matmul", "matmul_gelu")]
        timings = any(map(is_timed, names)) and attempt(names[0], lambda: products(*shape)) or (0, 0, 0)
        for name, by_triton in zip(names, timings[1:]):
            if is_timed(name):
                show(name, 0.85, timings[0], "cuBLAS")
                show(name, 0.0, by_triton, "Triton")
    for length in (1024, 4096, 16384):
        for kernel in ("attention", "causal_attention"):
            name = f"{kernel} bf16 {length}"
            if is_timed(name):
                library, by_triton = attempt(name, lambda: attention(length, kernel == "causal_attention")) or (0, 0)
                show(name, 0.65, library, "cuDNN")
                show(name, 0.0, by_triton, "Triton")
    found = dict.fromkeys(match.groups() for match in map(CONVOLUTION.match, rates) if match)
    for at, (name, *shape) in enumerate(found):
        rate = attempt(name, lambda: convolution(*map(int, shape)))
        show(name, 0.70 if at < RESNET50 else 0.0, rate, "cuDNN")
    for name in filter(re.compile("window ").match, rates):
        show(name, 0.0, copy, "copy")
    for kernel in ("softmax", "layer_norm"):
        for columns in ROWS + OTHER_ROWS:
            name, counts = f"{kernel} f16 {columns}", columns in ROWS
            if is_timed(name):
                show(name, 0.88 if counts else 0.0, copy, "copy")
                eager, compiled, by_triton = attempt(name, lambda: rows(kernel, columns)) or (0, 0, 0)
                show(name, 0.0, eager, "torch")
                show(name, 1.0 if counts else 0.0, compiled, "torch.compile")
                show(name, 0.0, by_triton, "Triton")
    compiles = sorted(row["compile_ms"] for row in timed if row["name"].startswith("matmul "))
    for what, value, bar in (
        ("compile of a matmul, ms", compiles[len(compiles) // 2] if compiles else None, 400),
        ("launch, us", rates.get("launch"), 4),
    ):
        if value is None:
            continue
        table.append({"what": what, "ours": value, "most": bar})
        if value > bar:
            missed.append(what)
        print(f"{what:<32} {value:8.1f} (bar {bar}) {'ok' if value <= bar else 'MISSED'}")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            json.dump(table, file, indent=1)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
