"""Times the vendor's libraries and Triton, reads what gpu_check timed, and prints each bar with its ratio.

usage: bars.py TIMES.json [ROWS.json] [--part]    table.py prints the rows

Exits with 1 where a bar is missed. One that was not timed, or has nothing to be compared with, is missed as well; with
--part only what was timed counts.
"""

import argparse
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
OTHER_ROWS = (768, 1000, 3072, 5000, 8001, 12288, 32000, 50257, 65536, 128256, 151936)  # shown, without a bar
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
# Those of resnet50, which have a bar: size of the image, channels, filters, window, stride.
RESNET50 = (
    (56, 64, 64, 3, 1), (56, 128, 128, 3, 2), (28, 128, 128, 3, 1), (28, 256, 256, 3, 2), (14, 256, 256, 3, 1),
    (14, 512, 512, 3, 2), (7, 512, 512, 3, 1), (56, 64, 64, 1, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1),
    (56, 256, 128, 1, 1), (28, 128, 512, 1, 1), (28, 512, 128, 1, 1), (28, 512, 256, 1, 1), (14, 256, 1024, 1, 1),
    (14, 1024, 256, 1, 1), (7, 512, 2048, 1, 1), (7, 2048, 512, 1, 1), (56, 256, 512, 1, 2), (28, 512, 1024, 1, 2),
    (14, 1024, 2048, 1, 2))
CONVOLUTIONS = [f"conv f16 32x{size}x{size}x{channels} to {filters} {window}x{window} stride {stride} dilation 1"
                for size, channels, filters, window, stride in RESNET50]


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


class Bars:
    """What was timed, and each bar that is shown."""

    def __init__(self, timed, part):
        self.timed = {row["name"]: row for row in timed}
        self.part, self.missed, self.table = part, [], []

    def rate(self, name):
        return self.timed[name]["rate"] if name in self.timed else None

    def best(self, prefix):
        """The fastest of those that gpu_check timed; it leaves out what gave another result than the others."""
        found = [row for name, row in self.timed.items() if (name + " ").startswith(prefix + " ")]
        return max(found, key=lambda row: row["rate"], default=None)

    def counts(self, prefix, bar=1):
        """Whether it is looked at: it was timed, or ought to have been."""
        return self.best(prefix) is not None or bool(bar and not self.part)

    def show(self, prefix, bar, base, of):
        row = self.best(prefix)
        if row is None and not bar:
            return
        ours = row["rate"] if row else None
        ratio = ours / base if ours and base else None
        self.table.append({"what": prefix, "ours": ours, "peer": base or None, "of": of, "ratio": ratio, "bar": bar or None})
        if ratio is None:
            if bar:
                self.missed.append(prefix)
            what = "not timed" if ours is None else f"{ours:.1f}, {of} has no time"
            print(f"{prefix:<36} {what} (bar {bar:.2f}) {'MISSED (absent)' if bar else ''}", flush=True)
            return
        if ratio < bar:
            self.missed.append(prefix)
        how = f"{row['name'][len(prefix):]}; {row.get('kernels', '')}"
        verdict = "ok" if ratio >= bar else "MISSED"
        print(f"{prefix:<36} {ours:8.1f} = {ratio:.3f} of {of:<13} (bar {bar:.2f}) {verdict:<7}{how}", flush=True)

    def show_most(self, what, name, most):
        """What may take so long at most; None: any time."""
        value = self.rate(name)
        if value is None and (self.part or most is None):
            return
        self.table.append({"what": what, "ours": value, "most": most})
        reached = most is None or value is not None and value <= most
        if not reached:
            self.missed.append(what)
        said = "not timed" if value is None else f"{value:8.1f}"
        verdict = "" if most is None else "ok" if reached else "MISSED (absent)" if value is None else "MISSED"
        print(f"{what:<36} {said} {f'(bar {most}) ' if most else ''}{verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times")
    parser.add_argument("rows", nargs="?")
    parser.add_argument("--part", action="store_true", help="what was not timed does not count")
    options = parser.parse_args()
    with open(options.times) as lines:
        bars = Bars([json.loads(line) for line in lines], options.part)
    show, counts = bars.show, bars.counts
    copy, by_triton = attempt("copy", streams) or (0, 0)
    copy = max(copy, bars.rate("copy by the driver") or 0)

    if counts("vector_add f32 2^28"):
        show("vector_add f32 2^28", 0.97, copy, "copy")
        show("vector_add f32 2^28", 0.0, by_triton, "Triton")
    for shape in PRODUCTS:
        names = [f"{kernel} bf16 {'x'.join(map(str, shape))}" for kernel in ("matmul", "matmul_gelu")]
        residual = names[0].replace("matmul", "matmul_residual")
        timings = any(map(bars.best, names)) and attempt(names[0], lambda: products(*shape)) or (0, 0, 0)
        for name, by_triton in zip(names, timings[1:]):
            if counts(name):
                show(name, 0.85, timings[0], "cuBLAS")
                show(name, 0.0, by_triton, "Triton")
        show(residual, 0.0, timings[0], "cuBLAS")  # of the product alone
    for length in (1024, 4096, 16384):
        for kernel in ("attention", "causal_attention"):
            name = f"{kernel} bf16 {length}"
            if counts(name):
                work = lambda: attention(length, kernel == "causal_attention")
                library, by_triton = bars.best(name) and attempt(name, work) or (0, 0)
                show(name, 0.65, library, "cuDNN")
                show(name, 0.0, by_triton, "Triton")
    found = [match[1] for match in map(CONVOLUTION.match, bars.timed) if match]
    for name in dict.fromkeys(CONVOLUTIONS + found):
        bar = 0.70 if name in CONVOLUTIONS else 0.0
        if counts(name, bar):
            _, *shape = CONVOLUTION.match(name).groups()
            show(name, bar, bars.best(name) and attempt(name, lambda: convolution(*map(int, shape))), "cuDNN")
    for name in filter(re.compile("window ").match, bars.timed):
        show(name, 0.0, copy, "copy")
    for kernel in ("softmax", "layer_norm"):
        for columns in ROWS + OTHER_ROWS:
            name, has_bar = f"{kernel} f16 {columns}", columns in ROWS
            if counts(name, has_bar):
                timings = bars.best(name) and attempt(name, lambda: rows(kernel, columns))
                eager, compiled, by_triton = timings or (0, 0, 0)
                show(name, 0.88 if has_bar else 0.0, copy, "copy")
                show(name, 0.0, eager, "torch")
                show(name, 1.0 if has_bar else 0.0, compiled, "torch.compile")
                show(name, 0.0, by_triton, "Triton")
    bars.show_most("compile of a matmul, ms", "compile matmul", 400)
    bars.show_most("compile of a matmul + GELU, ms", "compile matmul_gelu", 400)
    bars.show_most("launch, us", "launch", 4)
    bars.show_most("launch with tensor maps, us", "launch with maps", None)
    if options.rows:
        with open(options.rows, "w") as file:
            json.dump(bars.table, file, indent=1)
    return 1 if bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
