#!/usr/bin/env python3
"""Times ONNX models in PyTorch, compiled by Inductor and replayed as one CUDA graph, on the GPU of this computer.

    bench/peers/torch_models.py FOLDER --batches 1,8 --dtype float16 --json peers.json [--only resnet50,bert_base]

Every NAME.onnx of FOLDER (weights by tools/fill-weights; another batch is NAME.bBATCH.onnx or made by bench/gpu/rebatch)
becomes a torch module: operators as torch writes them, attention by scaled_dot_product_attention, images channels-last.
Outputs are compared with NAME.golden.json. Times are replays of the captured graph, one after the other, inputs on the
GPU, as `tessera bench --target cuda` has them for "on the GPU". --calls also times calls of mode="reduce-overhead", which
adds copies on the GPU and Python to that.
--jobs N compiles in N processes, which time one after the other when all are done. Exit code 1: an output differs, or a
model could not be compiled.
"""
import argparse
import fcntl
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import types

try:
    import numpy as np
    import onnx
    import torch
    from torch.nn import functional as F
except ImportError as missing:
    sys.exit(f"torch_models: {missing}")


def ints(value):
    """A constant operand, which is a list already where a model is compiled."""
    return value if isinstance(value, list) else [int(v) for v in value.reshape(-1)]


def number(value):
    return value[0] if isinstance(value, list) else float(value)


def pads_of(at):
    """Begin paddings of a window where both sides are equal, else None."""
    pads = at.get("pads", [0] * 2 * len(at["kernel_shape"]))
    half = len(pads) // 2
    return pads[:half] if pads[:half] == pads[half:] else None


def padded(x, at, value=0.0):
    """The input and the paddings that the operator itself applies."""
    same = pads_of(at)
    if same is not None:
        return x, same
    pads, half = at["pads"], len(at["pads"]) // 2
    both = [p for i in reversed(range(half)) for p in (pads[i], pads[half + i])]
    return F.pad(x, both, value=value), [0] * half


def conv(at, x, w, b=None):
    at = {"kernel_shape": list(w.shape[2:]), **at}
    x, pads = padded(x, at)
    run = (F.conv1d, F.conv2d, F.conv3d)[w.dim() - 3]
    return run(x, w, b, at.get("strides", 1), pads, at.get("dilations", 1), at.get("group", 1))


def conv_transpose(at, x, w, b=None):
    run = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[w.dim() - 3]
    return run(x, w, b, at.get("strides", 1), pads_of({"kernel_shape": w.shape[2:], **at}), at.get("output_padding", 0),
               at.get("group", 1), at.get("dilations", 1))


def max_pool(at, x):
    x, pads = padded(x, at, float("-inf"))
    run = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(at["kernel_shape"]) - 1]
    return run(x, at["kernel_shape"], at.get("strides", 1), pads, at.get("dilations", 1), bool(at.get("ceil_mode", 0)))


def average_pool(at, x):
    pads = pads_of(at)
    if pads is None:
        raise NotImplementedError("AveragePool with unequal paddings")
    return F.avg_pool2d(x, at["kernel_shape"], at.get("strides", 1), pads, bool(at.get("ceil_mode", 0)),
                        bool(at.get("count_include_pad", 0)))


def reshape(at, x, shape):
    shape = [x.shape[i] if s == 0 and not at.get("allowzero", 0) else s for i, s in enumerate(ints(shape))]
    return x.reshape(shape)


def unsqueeze(at, x, axes):
    rank = x.dim() + len(ints(axes))
    for axis in sorted(a % rank for a in ints(axes)):
        x = x.unsqueeze(axis)
    return x


def take(at, x, starts, ends, axes=None, steps=None):
    axes = ints(axes) if axes is not None else range(len(ints(starts)))
    steps = ints(steps) if steps is not None else [1] * len(ints(starts))
    index = [slice(None)] * x.dim()
    for axis, start, end, step in zip(axes, ints(starts), ints(ends), steps):
        index[axis % x.dim()] = slice(start, min(end, 2**62) if end > -(2**62) else None, step)
    return x[tuple(index)]


def pad(at, x, pads, value=None, axes=None):
    pads, half = ints(pads), len(ints(pads)) // 2
    both = [p for i in reversed(range(half)) for p in (pads[i], pads[half + i])]
    return F.pad(x, both, value=0.0 if value is None else number(value))


def gather(at, x, index):
    axis = at.get("axis", 0) % x.dim()
    index = torch.where(index < 0, index + x.shape[axis], index)
    if axis == 0 and x.dim() == 2:
        return F.embedding(index, x)
    return x.index_select(axis, index.reshape(-1)).reshape(x.shape[:axis] + index.shape + x.shape[axis + 1:])


def split(at, x, sizes=None):
    axis = at.get("axis", 0)
    return torch.split(x, ints(sizes) if sizes is not None else -(-x.shape[axis] // at["num_outputs"]), axis)


def lstm(at, x, w, r, b=None, lengths=None, h=None, c=None):
    """Gates in ONNX are input, output, forget, cell; in torch input, forget, cell, output."""
    size = at["hidden_size"]
    order = lambda t: torch.cat([t[:size], t[2 * size:4 * size], t[size:2 * size]])
    bias = [order(b[0, :4 * size]), order(b[0, 4 * size:])] if b is not None else []
    out, h, c = torch.lstm(x, (h, c), [order(w[0]), order(r[0])] + bias, b is not None, 1, 0.0, False, False, False)
    return out.unsqueeze(1), h, c


def gemm(at, a, b, c=None):
    a, b = a.t() if at.get("transA", 0) else a, b if at.get("transB", 0) else b.t()
    y = F.linear(a, b, c if at.get("beta", 1.0) == 1.0 and c is not None and c.dim() == 1 else None)
    y = y if at.get("alpha", 1.0) == 1.0 else y * at["alpha"]
    return y if c is None or (c.dim() == 1 and at.get("beta", 1.0) == 1.0) else y + c * at.get("beta", 1.0)


def layer_norm(at, x, scale, bias=None):
    return F.layer_norm(x, x.shape[at.get("axis", -1) % x.dim():], scale, bias, at.get("epsilon", 1e-5))


def scatter(at, x, index, updates):
    return x.index_put(tuple(index.unbind(-1)), updates)


def attention(at, q, k, v, mask=None):
    """k has its last two dimensions exchanged."""
    if mask is not None:
        mask = mask.to(q.dtype).expand(*q.shape[:-1], k.shape[-1])
    return F.scaled_dot_product_attention(q, k.transpose(-1, -2), v, attn_mask=mask, scale=at["scale"])


def plain(f):
    return lambda at, *given: f(*given)


def reduced(at, x, axes=None):
    return x.mean(ints(axes) if axes is not None else at.get("axes"), bool(at.get("keepdims", 1)))


OPERATORS = {
    "Abs": plain(torch.abs), "Add": plain(torch.add), "And": plain(torch.logical_and), "AveragePool": average_pool,
    "Attention": attention, "Cast": lambda at, x: x.to(DTYPES[at["to"]]),
    "BatchNormalization": lambda at, x, s, b, m, v: F.batch_norm(x, m, v, s, b, eps=at.get("epsilon", 1e-5)),
    "Clip": lambda at, x, low=None, high=None: torch.clamp(x, None if low is None else number(low),
                                                           None if high is None else number(high)),
    "Concat": lambda at, *x: torch.cat(x, at["axis"]), "Conv": conv, "ConvTranspose": conv_transpose,
    "ConstantOfShape": lambda at, s: torch.full(ints(s), at["value"].item() if "value" in at else 0.0),
    "Div": plain(lambda a, b: torch.div(a, b) if a.is_floating_point() else a // b), "Equal": plain(torch.eq),
    "Erf": plain(torch.erf), "Expand": lambda at, x, s: x.expand(torch.broadcast_shapes(x.shape, ints(s))),
    "Flatten": lambda at, x: x.flatten(at.get("axis", 1)), "Gather": gather, "Gemm": gemm,
    "GatherElements": lambda at, x, i: torch.gather(x, at.get("axis", 0), i), "Gelu": plain(F.gelu),
    "GlobalAveragePool": lambda at, x: x.mean(tuple(range(2, x.dim())), True), "Greater": plain(torch.gt),
    "HardSigmoid": lambda at, x: torch.clamp(x * at.get("alpha", 0.2) + at.get("beta", 0.5), 0, 1),
    "HardSwish": plain(F.hardswish), "Identity": plain(lambda x: x), "LSTM": lstm, "LayerNormalization": layer_norm,
    "Less": plain(torch.lt), "Log": plain(torch.log), "MatMul": plain(torch.matmul), "Max": plain(torch.maximum),
    "MaxPool": max_pool, "Min": plain(torch.minimum), "Mul": plain(torch.mul), "Neg": plain(torch.neg),
    "Not": plain(torch.logical_not), "Pad": pad, "Pow": plain(torch.pow), "Reciprocal": plain(torch.reciprocal),
    "ReduceMean": reduced, "Relu": plain(F.relu), "Reshape": reshape, "ScatterND": scatter,
    "Sigmoid": plain(torch.sigmoid), "Slice": take, "Softmax": lambda at, x: torch.softmax(x, at.get("axis", -1)),
    "Split": split, "Sqrt": plain(torch.sqrt), "Squeeze": lambda at, x, axes: x.squeeze(tuple(ints(axes))),
    "Sub": plain(torch.sub), "Tanh": plain(torch.tanh), "Transpose": lambda at, x: x.permute(at["perm"]),
    "Unsqueeze": unsqueeze, "Where": plain(torch.where),
}
DTYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16, 11: torch.float64}
# Operands that say what to do, and stay where the processor reads them.
SIZES = {"Reshape": (1,), "Unsqueeze": (1,), "Squeeze": (1,), "Slice": (1, 2, 3, 4), "Pad": (1, 2), "Split": (1,),
         "Expand": (1,), "ReduceMean": (1,), "ConstantOfShape": (0,), "Clip": (1, 2)}


def value_of(attribute):
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return torch.tensor(onnx.numpy_helper.to_array(value))
    return list(value) if not isinstance(value, (int, float, bytes)) else value


def with_attention(nodes, outputs, constants):
    """softmax(q k * scale + mask) v as one node, where nothing else reads what is between."""
    uses = {}
    for node in nodes:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    made = {name: node for node in nodes for name in node.output}
    gone, whole = set(), {}

    def single(name, kinds):
        node = made.get(name)
        return node if node is not None and node.op_type in kinds and uses[name] == 1 and name not in outputs else None

    for last in nodes:
        soft = single(last.input[0], ("Softmax",)) if last.op_type == "MatMul" else None
        if soft is None:
            continue
        between, at, mask, scale = [soft], soft.input[0], None, 1.0
        if add := single(at, ("Add",)):
            between.append(add)
            at, mask = (add.input if single(add.input[0], ("MatMul", "Mul", "Div")) else reversed(add.input))
        if mul := single(at, ("Mul", "Div")):
            factor = constants.get(mul.input[1])
            if factor is None or factor.numel() != 1:
                continue
            scale = float(factor) if mul.op_type == "Mul" else 1 / float(factor)
            between.append(mul)
            at = mul.input[0]
        dot = single(at, ("MatMul",))
        if dot is None:
            continue
        gone.update(id(n) for n in between + [dot])
        node = onnx.helper.make_node("Attention", [*dot.input, last.input[1]] + ([mask] if mask else []), last.output,
                                     scale=scale)
        whole[id(last)] = node
    return [whole.get(id(n), n) for n in nodes if id(n) not in gone]


class Steps(torch.nn.Module):
    """The nodes of a model in order; torch.compile unrolls the loop over them."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.inputs, self.outputs, self.steps, self.constants = inputs, outputs, [], set()

    def add(self, run, attributes, operands, results):
        self.steps.append((run, attributes, operands, results))

    def constant(self, name, value):
        """The name of a buffer that holds it."""
        buffer = "c_" + "".join(c if c.isalnum() else "_" for c in name)
        if buffer not in self.constants:
            self.constants.add(buffer)
            self.register_buffer(buffer, value)
        return buffer

    def forward(self, *given):
        made = dict(zip(self.inputs, given))
        value = lambda o: o if not isinstance(o, str) else made[o] if o in made else getattr(self, o)
        for run, attributes, operands, results in self.steps:
            found = run(attributes, *[value(o) for o in operands])
            made.update(zip(results, found if isinstance(found, tuple) else (found,)))
        return tuple(value(o) for o in self.outputs)


def imported(path):
    """The model, and its inputs as (shape, dtype)."""
    graph = onnx.load(str(path)).graph
    known = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in graph.initializer}
    inputs, outputs = [i for i in graph.input if i.name not in known], [o.name for o in graph.output]
    model = Steps([i.name for i in inputs], outputs)
    for node in with_attention(graph.node, outputs, known):
        at = {a.name: value_of(a) for a in node.attribute}
        if node.op_type == "Constant":
            known[node.output[0]] = at["value"]
            continue
        if node.op_type not in OPERATORS:
            raise NotImplementedError(node.op_type)
        run = OPERATORS[node.op_type]
        if all(n == "" or n in known for n in node.input):
            results = run(at, *[known.get(n) for n in node.input])
            known.update(zip(node.output, results if isinstance(results, tuple) else (results,)))
            continue
        operands = []
        for i, name in enumerate(node.input):
            if name in known and i not in SIZES.get(node.op_type, ()):
                operands.append(model.constant(name, known[name]))
            elif name in known:
                operands.append(known[name].reshape(-1).tolist())
            else:
                operands.append(name or None)
        model.add(run, at, operands, list(node.output))
    shapes = [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in inputs]
    return model, [(shape, DTYPES[i.type.tensor_type.elem_type]) for shape, i in zip(shapes, inputs)], outputs


TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 3e-2}


def filled(shape, dtype, to):
    count = int(np.prod(shape))
    if dtype.is_floating_point:
        x = torch.sin(torch.arange(count, dtype=torch.float64)).to(to).reshape(shape)
        return x.to(memory_format=torch.channels_last) if x.dim() == 4 else x
    return (torch.arange(count) % 1000).to(dtype).reshape(shape)


def error(results, names, golden):
    """The largest of the outputs, over the root mean square of the golden one."""
    worst = 0.0
    for result, name in zip(results, names):
        wanted = json.loads(golden.read_text())["outputs"][name]
        count = int(np.prod(wanted["shape"]))
        found = result.float().contiguous().flatten()[:count].cpu()[torch.tensor(wanted["at"])]
        scale = wanted["l2"] / count**0.5 or 1.0
        worst = max(worst, ((found - torch.tensor(wanted["values"])).abs().max() / scale).item())
    return worst


def milliseconds(run, rounds):
    for _ in range(5):
        run()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    best = float("inf")
    for _ in range(5):
        begin.record()
        for _ in range(rounds):
            run()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) / rounds)
    return best


def file_of(name, batch, options):
    if batch == 1:
        return options.folder / f"{name}.onnx"
    made = options.folder / f"{name}.b{batch}.onnx"
    if not made.exists():
        here = pathlib.Path(__file__).resolve().parent  # with all others in the bundle for another computer
        rebatch = here / "rebatch" if (here / "rebatch").exists() else here.parent / "gpu" / "rebatch"
        done = subprocess.run([sys.executable, rebatch, options.folder / f"{name}.onnx", str(batch), made],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise ValueError(done.stderr.strip()[-200:])
    return made


def prepared(name, batch, options):
    """Error, and what is to be timed; nothing on a CPU."""
    dtype = getattr(torch, options.dtype)
    model, inputs, names = imported(file_of(name, batch, options))
    model = model.eval().to(options.device)
    for module in model.modules():  # weights that are convolved with, as channels-last
        for key, value in module.named_buffers(recurse=False):
            value = value.to(dtype) if value.is_floating_point() else value
            setattr(module, key, value.to(memory_format=torch.channels_last) if value.dim() == 4 else value)
    # Code of its own: Dynamo keeps what it has compiled by code, and goes through all of it in each call.
    forward = types.FunctionType(Steps.forward.__code__.replace(), globals(), "forward")
    model.forward = types.MethodType(forward, model)
    given = [filled(shape, kind, dtype).to(options.device) for shape, kind in inputs]
    golden = (options.goldens or options.folder) / f"{name}.golden.json"
    with torch.inference_mode():
        if options.device == "cpu":
            return error(model(*given), names, golden), {}
        compiled = torch.compile(model, fullgraph=True)
        for _ in range(3):
            results = compiled(*given)
        off = error(results, names, golden)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            compiled(*given)
        runs = {f"{name} {batch}": graph.replay}
        if options.calls:
            called = torch.compile(model, fullgraph=True, mode="reduce-overhead")
            for _ in range(4):
                called(*given)
            runs[f"{name} {batch} calls"] = lambda: called(*given)
        return off, runs


def measured(runs, options):
    """Milliseconds of each, while no other process times."""
    with torch.inference_mode(), open(options.together / "lock" if options.together else "/dev/null", "w") as lock:
        if options.together:
            fcntl.flock(lock, fcntl.LOCK_EX)
        times = {}
        for what, run in runs.items():
            once = milliseconds(run, 5)
            times[what] = milliseconds(run, max(10, min(options.rounds, int(40 / once))))
        return times


def in_workers(names, options):
    """All models by several processes; their output, times, and whether all of them agree."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [part for part in (names[i::options.jobs] for i in range(options.jobs)) if part]
        common = [a for a in sys.argv[1:]]
        workers = [subprocess.Popen([sys.executable, __file__, *common, "--jobs", "1", "--only", ",".join(part), "--together", folder,
                                     "--workers", str(len(parts)), "--json", f"{folder}/{i}.json"]) for i, part in enumerate(parts)]
        codes = [worker.wait() for worker in workers]
        times = {}
        for file in sorted(pathlib.Path(folder).glob("*.json")):
            times.update(json.loads(file.read_text()))
        return times, any(codes)


def of_all(names, options):
    """Times of all models, and whether one is wrong."""
    all_runs, wrong, start = {}, False, time.time()
    for name in names:
        for batch in map(int, options.batches.split(",")):
            if time.time() - start > options.compile_seconds:
                print(f"{name} batch {batch}: not compiled, {options.compile_seconds} s are over", flush=True)
                continue
            try:
                off, runs = prepared(name, batch, options)
            except Exception as problem:  # whatever torch raises: the next model goes on
                print(f"{name} batch {batch}: {type(problem).__name__}: {str(problem)[:300]}", flush=True)
                wrong = True
                continue
            agrees = off <= TOLERANCE[options.dtype]
            wrong |= not agrees
            print(f"{'ok  ' if agrees else 'FAIL'} torch {name} batch {batch} {options.dtype}: error {off:.1e}", flush=True)
            if agrees:  # what is wrong is nothing to compare with
                all_runs.update(runs)
    if options.together:
        (options.together / f"{names[0]}.compiled").touch()
        patience = 60  # beyond the time for compilation: another worker may be in the midst of a model
        while (len(list(options.together.glob("*.compiled"))) < options.workers
               and time.time() - start < options.compile_seconds + patience):
            time.sleep(0.2)
    return measured(all_runs, options), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="models with their weights, and golden outputs")
    parser.add_argument("--goldens", type=pathlib.Path, help="where these are, if not in the same folder")
    parser.add_argument("--only")
    parser.add_argument("--batches", default="1")
    parser.add_argument("--dtype", default="float16", choices=list(TOLERANCE))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--device", default="cuda", help="cpu: outputs are checked, nothing is timed")
    parser.add_argument("--jobs", type=int, default=1, help="processes that compile")
    parser.add_argument("--compile-seconds", type=int, default=3600, help="after which no other model is compiled")
    parser.add_argument("--calls", action="store_true", help='time calls of mode="reduce-overhead" too')
    parser.add_argument("--json")
    parser.add_argument("--together", type=pathlib.Path, help=argparse.SUPPRESS)  # folder of several workers
    parser.add_argument("--workers", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_models: there is no GPU")
    torch._dynamo.config.recompile_limit = 64
    goldens = sorted(p.name[:-len(".golden.json")] for p in (options.goldens or options.folder).glob("*.golden.json"))
    names = options.only.split(",") if options.only else [n for n in goldens if (options.folder / f"{n}.onnx").exists()]
    times, wrong = in_workers(names, options) if options.jobs > 1 else of_all(names, options)
    if not options.together:
        for what, ms in times.items():
            print(f"time torch {what}: {ms:.4f} ms", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(times, indent=1))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
