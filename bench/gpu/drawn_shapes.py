"""Times classes of shapes that are drawn by a seed, on the GPU of this computer, against torch in the same run.

usage: python bench/gpu/drawn_shapes.py [attention] [matmul] [conv] [resnet50] [rows] [--seed N] [--count N] [--json FILE] [--only TEXT]

Every case is a model of one operator with its epilogue, compiled for cuda; its result is compared with torch in f32 first.
Both are captured as CUDA graphs, whose replays are timed in loops, alternating, best of several; ratio = torch's time over
ours.
Peers: cuDNN's attention, cuBLAS with the epilogue by torch.compile, cuDNN's convolutions (those of resnet50
by its one call for convolution, bias and relu), for rows the bandwidth of a copy.
Exit code 1: a result is wrong, or a case failed; 3: there is no GPU.
"""

import argparse
import json
import math
import random
import sys

import numpy
import torch

import tessera as ts

NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


def times(functions, blocks=5, seconds=0.02):
    """Best seconds of a call of each, measured in alternating blocks."""
    best = [math.inf] * len(functions)
    counts = []
    for function in functions:
        for _ in range(3):
            function()
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(5):
            function()
        end.record()
        torch.cuda.synchronize()
        counts.append(max(5, min(2000, int(seconds / max(1e-6, start.elapsed_time(end) / 5e3)))))
    for _ in range(blocks):
        for i, function in enumerate(functions):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(counts[i]):
                function()
            end.record()
            torch.cuda.synchronize()
            best[i] = min(best[i], start.elapsed_time(end) / 1e3 / counts[i])
    return best


def captured(function, *arguments):
    """A call as a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            function(*arguments)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(*arguments)
    return graph.replay


class Case:
    """A drawn case: its name, inputs, the graph of Tessera, the call of torch, the result in f32."""

    def __init__(self, name, inputs, build, peer, expected, tolerance, flops=0, bytes=0, precision="f32"):
        self.name, self.inputs, self.build, self.peer, self.expected = name, inputs, build, peer, expected
        self.tolerance, self.flops, self.bytes, self.precision = tolerance, flops, bytes, precision

    def run(self):
        graph = ts.Graph()
        values = [graph.input(f"x{i}", NAMES[x.dtype], list(x.shape)) for i, x in enumerate(self.inputs)]
        model = graph.finish(y=self.build(graph, *values))
        program = model.compile(target="cuda", precision=self.precision)
        result = program(*self.inputs).float()
        expected = self.expected(*[x.float() for x in self.inputs])
        rms = expected.square().mean().sqrt()
        error = ((result - expected).abs() / (rms + expected.abs()).clamp(min=1e-30)).max().item()
        row = dict(case=self.name, error=error, right=bool(error <= self.tolerance),
                   how="; ".join(step["strategy"] for step in program.explain()["steps"] if step.get("strategy")))
        del result, expected
        ours = captured(program, *self.inputs)
        if self.bytes:
            source = torch.empty(self.bytes // 2, dtype=torch.uint8, device="cuda")
            target = torch.empty_like(source)
            seconds, copy = times([ours, lambda: target.copy_(source)])
            row.update(us=seconds * 1e6, peer_us=copy * 1e6, ratio=copy / seconds, gbytes=self.bytes / seconds / 1e9)
        else:
            seconds, peer = times([ours, captured(self.peer, *self.inputs)])
            row.update(us=seconds * 1e6, peer_us=peer * 1e6, ratio=peer / seconds, tflops=self.flops / seconds / 1e12)
        return row


def rand(*shape, dtype=torch.float16, scale=1.0):
    return (torch.randn(*shape, device="cuda", dtype=torch.float32) * scale).to(dtype)


def attention_cases(rng, count):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def case(width, length, causal, dtype, tokens=16384):
        heads, batch = 2048 // width, max(1, tokens // length)
        inputs = [rand(batch, length, heads * width, dtype=dtype) for _ in range(3)]

        def build(g, q, k, v):
            return g.op("attention", q, k, v, is_causal=int(causal), q_num_heads=heads, kv_num_heads=heads, outputs=1)

        def split(x):
            return x.view(batch, length, heads, width).transpose(1, 2)

        def peer(q, k, v):
            with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
                return torch.nn.functional.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=causal)

        def expected(q, k, v):
            parts = []
            for b in range(batch):
                one = [split(x)[b:b + 1] for x in (q, k, v)]
                parts.append(torch.nn.functional.scaled_dot_product_attention(*one, is_causal=causal))
            return torch.cat(parts).transpose(1, 2).reshape(batch, length, heads * width)

        flops = 4 * batch * heads * length * length * width // (2 if causal else 1)
        name = f"D={width} L={length} {'causal' if causal else 'plain'} {NAMES[dtype]}"
        return Case(name, inputs, build, peer, expected, 3e-2 if dtype == torch.float16 else 0.15, flops)

    for width in (64, 96, 128, 256):
        for length in (512, 1536, 4096, 16384):
            for causal in (False, True):
                yield lambda a=(width, length, causal, rng.choice([torch.float16, torch.bfloat16])): case(*a)


def matmul_cases(rng, count):
    def case(m, n, k, dtype, epilogue):
        x, w, b = rand(m, k, dtype=dtype), rand(k, n, dtype=dtype, scale=k ** -0.5), rand(n, dtype=dtype)
        inputs = [x] + ([rand(m, n, dtype=dtype)] if epilogue == "residual" else [])
        weights = [t.cpu().float().numpy() for t in (w, b)]
        tf32 = dtype == torch.float32

        def build(g, x, residual=None):
            w, b = (g.op("cast", g.constant(t), to=NAMES[dtype]) if not tf32 else g.constant(t) for t in weights)
            y = x @ w + b
            if epilogue == "gelu":
                return g.op("gelu", y)
            if epilogue == "silu":
                return y * g.op("sigmoid", y)
            return y + residual if residual is not None else y

        def plain(x, residual=None, w=w, b=b):
            y = torch.nn.functional.linear(x, w.T, b)
            if epilogue == "gelu":
                return torch.nn.functional.gelu(y)
            if epilogue == "silu":
                return torch.nn.functional.silu(y)
            return y + residual if residual is not None else y

        def expected(x, residual=None):
            torch.backends.cuda.matmul.allow_tf32 = False
            result = plain(x, residual, w.float(), b.float())
            torch.backends.cuda.matmul.allow_tf32 = True
            return result

        torch.backends.cuda.matmul.allow_tf32 = True
        name = f"{m}x{n}x{k} {'tf32' if tf32 else NAMES[dtype]} {epilogue}"
        return Case(name, inputs, build, torch.compile(plain, dynamic=False), expected, 3e-2 if dtype == torch.float16 else 0.1,
                    2 * m * n * k, precision="tf32" if tf32 else "f32")

    for i in range(count or 30):
        unit = 8 if i % 3 else 1
        size = lambda low, high: max(unit, int(2 ** rng.uniform(math.log2(low), math.log2(high))) // unit * unit)
        arguments = (size(16, 8192), size(64, 8192), size(64, 8192),
                     rng.choice([torch.float16, torch.bfloat16, torch.float32]), rng.choice(["gelu", "silu", "residual", "bias"]))
        yield lambda a=arguments: case(*a)


def conv_case(batch, channels, outputs, size, kernel, stride, dilation, groups, is_compiled=True):
    """A convolution with bias and relu; the peer is torch.compile, or else the one call of cuDNN for the three."""
    padding = dilation * (kernel // 2)
    x = rand(batch, size, size, channels)  # channels last, as between layers of a model
    w = rand(outputs, channels // groups, kernel, kernel, scale=(channels // groups * kernel * kernel) ** -0.5)
    b = rand(outputs)
    weights = [t.cpu().float().numpy() for t in (w, b)]

    def build(g, x):
        w, b = (g.op("cast", g.constant(t), to="f16") for t in weights)
        y = g.op("conv", g.op("transpose", x, perm=[0, 3, 1, 2]), w, b, strides=[stride] * 2, dilations=[dilation] * 2,
                 pads=[padding] * 4, group=groups)
        return g.op("transpose", g.op("relu", y), perm=[0, 2, 3, 1])

    def plain(x, w=w, b=b):
        y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w, b, stride, padding, dilation, groups)
        return y.relu().permute(0, 2, 3, 1)

    def expected(x):
        torch.backends.cudnn.allow_tf32 = False
        return plain(x, w.float(), b.float())

    channels_last = w.contiguous(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    fused = torch.compile(plain, dynamic=False) if is_compiled else None

    def peer(x):
        if is_compiled:
            return fused(x, channels_last, b)
        return torch.cudnn_convolution_relu(x.permute(0, 3, 1, 2), channels_last, b, [stride] * 2, [padding] * 2, [dilation] * 2, groups)

    out = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    name = f"{batch}x{channels}x{size} -> {outputs}, {kernel}x{kernel}" + (f" /{stride}" if stride > 1 else "") + \
        (f" dilated {dilation}" if dilation > 1 else "") + (f" groups {groups}" if groups > 1 else "")
    return Case(name, [x], build, peer, expected, 3e-2,
                2 * batch * outputs * out * out * channels // groups * kernel * kernel)


# Of resnet50: size of the image, channels, filters, window, stride.
RESNET50 = [(56, 64, 64, 3, 1), (56, 128, 128, 3, 2), (28, 128, 128, 3, 1), (28, 256, 256, 3, 2), (14, 256, 256, 3, 1),
            (14, 512, 512, 3, 2), (7, 512, 512, 3, 1), (56, 64, 64, 1, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1),
            (56, 256, 128, 1, 1), (28, 128, 512, 1, 1), (28, 512, 128, 1, 1), (28, 512, 256, 1, 1), (14, 256, 1024, 1, 1),
            (14, 1024, 256, 1, 1), (7, 512, 2048, 1, 1), (7, 2048, 512, 1, 1), (56, 256, 512, 1, 2), (28, 512, 1024, 1, 2),
            (14, 1024, 2048, 1, 2)]


def resnet50_cases(rng, count):
    for batch in (1, 32):
        for size, channels, filters, window, stride in RESNET50:
            yield lambda a=(batch, channels, filters, size, window, stride, 1, 1): conv_case(*a, is_compiled=False)


def conv_cases(rng, count):
    for i in range(count or 40):
        kernel = rng.choice([1, 1, 3, 3, 3, 5])
        channels, outputs = (8 * rng.randint(2, 64) for _ in range(2))
        size, batch = rng.choice([7, 14, 28, 56]), rng.choice([1, 8, 32])
        groups = 1
        kind = rng.choice(["plain", "plain", "plain", "strided", "dilated", "grouped", "depthwise"])
        if kind == "grouped":
            groups = rng.choice([2, 4, 8])
            channels, outputs = (max(1, c // (8 * groups)) * 8 * groups for c in (channels, outputs))
        if kind == "depthwise":
            groups = outputs = channels
            kernel = max(3, kernel)
        arguments = (batch, channels, outputs, size, kernel, 2 if kind == "strided" else 1,
                     rng.choice([2, 3]) if kind == "dilated" and kernel > 1 else 1, groups)
        yield lambda a=arguments: conv_case(*a)


def rows_cases(rng, count):
    def case(kind, columns, dtype):
        width = 4 if dtype == torch.float32 else 2
        rows = max(1, (128 << 20) // (columns * width))
        x = rand(rows, columns, dtype=dtype)
        scale, shift = rand(columns, dtype=dtype), rand(columns, dtype=dtype)
        scale_, shift_ = scale.cpu().float().numpy(), shift.cpu().float().numpy()

        def build(g, x):
            if kind == "softmax":
                return g.op("softmax", x, axis=1)
            if kind == "sum":
                return g.op("reduce_sum", x, g.constant(numpy.array([1])), keepdims=0)
            s, b = (g.op("cast", g.constant(t), to=NAMES[dtype]) if width == 2 else g.constant(t) for t in (scale_, shift_))
            return g.op("layer_normalization", x, s, b, axis=1, outputs=1)

        def expected(x):
            if kind == "softmax":
                return torch.softmax(x, 1)
            if kind == "sum":
                return x.double().sum(1).float()
            return torch.nn.functional.layer_norm(x, [columns], scale.float(), shift.float())

        bytes = rows * columns * width * (1 if kind == "sum" else 2)
        return Case(f"{kind} {rows}x{columns} {NAMES[dtype]}", [x], build, None, expected, 3e-2 if width == 2 else 1e-4, bytes=bytes)

    for _ in range(count or 30):
        columns = int(2 ** rng.uniform(6, 16))
        yield lambda a=(rng.choice(["softmax", "layer_norm", "sum"]), columns, rng.choice([torch.float16, torch.float32])): case(*a)


CLASSES = {"attention": attention_cases, "matmul": matmul_cases, "conv": conv_cases, "resnet50": resnet50_cases, "rows": rows_cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="*", help=", ".join(CLASSES))
    parser.add_argument("--seed", type=int, default=random.randrange(10 ** 6))
    parser.add_argument("--count", type=int, default=0, help="cases of a class")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", help="file for the rows")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("drawn_shapes: there is no GPU", file=sys.stderr)
        return 3
    wrong, rows = 0, []
    for kind in options.classes or CLASSES:
        rng = random.Random(f"{kind} {options.seed}")
        torch.manual_seed(options.seed)
        print(f"{kind}, seed {options.seed}", flush=True)
        ratios = []
        for make in CLASSES[kind](rng, options.count):
            case = None
            try:
                case = make()
                if options.only not in case.name:
                    continue
                row = case.run()
            except Exception as error:  # a case that fails is reported, and the rest goes on
                row = dict(case=case.name if case else "?", right=False, failure=f"{type(error).__name__}: {error}"[:300])
            row["class"] = kind
            rows.append(row)
            wrong += not row["right"]
            if "ratio" in row:
                ratios.append(row["ratio"])
                rate = f"{row['tflops']:7.1f} TFLOP/s" if "tflops" in row else f"{row['gbytes']:7.0f} GB/s"
                print(f"  {row['case']:44} {row['us']:9.1f} us  peer {row['peer_us']:9.1f} us  ratio {row['ratio']:5.2f}  {rate}"
                      f"  error {row['error']:.1e}{'' if row['right'] else '  WRONG'}  {row['how'][:60]}", flush=True)
            else:
                print(f"  {row['case']:44} FAILED {row['failure']}", flush=True)
            del case
            torch.cuda.empty_cache()
            torch._dynamo.reset()
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"  {kind}: geometric mean {mean:.3f}, least {min(ratios):.2f}, below 0.8: {sum(r < 0.8 for r in ratios)} of {len(ratios)}",
                  flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(seed=options.seed, device=torch.cuda.get_device_name(), rows=rows), file, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
