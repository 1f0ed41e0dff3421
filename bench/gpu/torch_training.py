#!/usr/bin/env python3
"""Times training steps under torch.compile(backend="tessera") beside Inductor's, with autocast, on the GPU of this computer.

    bench/gpu/torch_training.py [--only resnet50,bert_base] [--dtypes float16,bfloat16] [--rounds 7] [--json FILE]
    bench/gpu/torch_training.py --parts 16 [--only mobilenet_v2] [--dtypes float16]     gradients of blocks alone

Models: ResNet-50 on 32 images of 224 x 224; BERT base (12 layers) on 8 sequences of 128 tokens, without dropout, and with it
as bert_base_dropout. Other names are those of torchvision, such as mobilenet_v2, without dropout. A step is a forward pass,
cross entropy and a backward pass; the loss is scaled as a GradScaler does, and the optimizer, which is the same for both, is
not part of it. Steps are interleaved; the ratio is that of medians, below 1 where Tessera is faster.

Gradients, all of a model as one vector, are compared with those of f64, with autocast and in f32 without: Tessera's error may
be twice eager execution's; with dropout, they are compared with eager execution's. Where the vector is wrong, and with --each,
the worst parameters are named, with their own errors relative to their own gradients. Gradients of f16 say little in a network
that is not trained, since each layer amplifies what the one before it rounds: --parts N compares up to N different blocks
of each model alone (their output, and the gradients of their input and parameters), on the inputs that they have within it.
--device cpu checks small models by the same code. Exit code 1: a gradient is wrong, or a model could not be compiled.
"""
import argparse
import contextlib
import copy
import json
import pathlib
import statistics
import sys
import time

import torch
import turns
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

SCALE = 1024.0  # of the loss, so that small gradients are no zeros in f16


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, blocks=(3, 4, 6, 3), width=64, classes=1000):
        super().__init__()
        layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        channels = width
        for stage, count in enumerate(blocks):
            for block in range(count):
                layers.append(Bottleneck(channels, width << stage, 2 if stage and not block else 1))
                channels = 4 * width << stage
        self.features, self.head = nn.Sequential(*layers), nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, size, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        x = self.first(x + F.dropout(self.o(y.transpose(1, 2).flatten(2)), self.dropout, self.training))
        return self.second(x + F.dropout(self.down(F.gelu(self.up(x))), self.dropout, self.training))


class Bert(nn.Module):
    def __init__(self, layers=12, size=768, heads=12, words=30522, length=128, dropout=0.0):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(words, size), nn.Embedding(length, size), nn.LayerNorm(size)
        self.layers = nn.Sequential(*(Layer(size, heads, dropout) for _ in range(layers)))
        self.head = nn.Linear(size, 2)

    def forward(self, ids):
        return self.head(self.layers(self.norm(self.words(ids) + self.places.weight))[:, 0])


def model_of(name, device):
    """A model, its input and the classes that it learns."""
    torch.manual_seed(0)
    small = device == "cpu"
    batch, classes = (2, 10) if small else (32, 1000)
    given = torch.randn(batch, 3, *((64, 64) if small else (224, 224)))
    if name == "resnet50":
        model = ResNet((1, 1), 8, 10) if small else ResNet()
    elif not name.startswith("bert"):
        from torchvision import models

        if small and name.startswith("vit"):
            given = torch.randn(batch, 3, 224, 224)
        model = getattr(models, name)(num_classes=classes)
        for part in model.modules():
            if isinstance(part, nn.Dropout) or type(part).__name__ == "StochasticDepth":
                part.p = 0.0
    else:
        dropout = 0.1 if name == "bert_base_dropout" else 0.0
        model = Bert(2, 32, 2, 100, 16, dropout) if small else Bert(dropout=dropout)
        batch, classes = (2, 2) if small else (8, 2)
        given = torch.randint(0, 100 if small else 30522, (batch, 16 if small else 128))
    return model.to(device).train(), given.to(device), torch.randint(0, classes, (batch,)).to(device)


def step(model, run, given, classes, dtype):
    model.zero_grad(set_to_none=True)
    with torch.autocast(given.device.type, dtype=dtype, enabled=dtype is not None):
        loss = F.cross_entropy(run(given).float(), classes)
    (loss * SCALE).backward()


def gradients(model, run, given, classes, dtype):
    """Gradients of a step by parameter, for one state of the generator of random numbers."""
    state = copy.deepcopy(model.state_dict())
    torch.manual_seed(1)
    step(model, run, given, classes, dtype)
    model.load_state_dict(state)  # statistics of batch norms
    return {name: p.grad.double() / SCALE for name, p in model.named_parameters()}


ROUNDING = {None: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


class Gradients:
    """What gradients of a model are compared with."""

    def __init__(self, name, model, given, classes):
        self.model, self.given, self.classes = model, given, classes
        self.drops, self._f64 = name.endswith("dropout"), None

    @property
    def f64(self):
        """Exact gradients. None: what is dropped depends on the dtype, and only eager execution in the same one drops the same."""
        if self._f64 is None and not self.drops:
            double = copy.deepcopy(self.model).double()
            given = self.given.double() if self.given.is_floating_point() else self.given
            self._f64 = gradients(double, double, given, self.classes, None)
            del double
            release(given.device)
        return self._f64

    def compare(self, run, dtype):
        """Error of a compiled model, that of eager execution, whether they agree, and the worst parameters as lines."""
        found = gradients(self.model, run, self.given, self.classes, dtype)
        # Attention kernels of torch with dropout draw other numbers than its operators, which the backend traces.
        with sdpa_kernel(SDPBackend.MATH) if self.drops else contextlib.nullcontext():
            eager = gradients(self.model, self.model, self.given, self.classes, dtype)
        exact = self.f64 or eager
        worst = sorted(without_zeros(exact), key=lambda key: excess(found[key], eager[key], exact[key], dtype), reverse=True)[:6]
        lines = [f"{key} {list(exact[key].shape)}: error {relative(found[key], exact[key]):.1e}, "
                 f"eager's {relative(eager[key], exact[key]):.1e}" for key in worst]
        vector = lambda tensors: torch.cat([tensor.flatten() for tensor in tensors.values()])
        eager_error = relative(vector(eager), vector(exact)) if self.f64 else ROUNDING[dtype]
        error = relative(vector(found), vector(exact))
        agrees = error <= 2 * eager_error + (1e-5 if dtype is None else 1e-3)
        return {"error": error, "eager_error": eager_error, "agrees": agrees, "worst": lines}


def relative(found, exact):
    return (found - exact).norm().item() / (exact.norm().item() or 1.0)


def without_zeros(exact):
    """Gradients but those that are rounding errors alone, such as that of a bias before a norm."""
    total = max(tensor.norm().item() for tensor in exact.values())
    return [name for name, tensor in exact.items() if tensor.norm().item() > 1e-6 * total]


def excess(found, eager, exact, dtype):
    """An error beside that of eager execution and of rounding; infinite for NaN."""
    value = relative(found, exact) / (relative(eager, exact) + ROUNDING[dtype])
    return value if value == value else float("inf")


def release(device):
    if device.type == "cuda":
        torch.cuda.empty_cache()


BLOCKS = ("Bottleneck", "InvertedResidual", "MBConv", "ResBottleneckBlock", "_DenseLayer", "_Transition", "CNBlock", "EncoderBlock",
          "Layer", "Conv2dNormActivation", "Conv2d")


def parts_of(model, given, dtype, most):
    """Different blocks of a model by name, each with the inputs of its first call; at most so many, evenly spaced."""
    found, kinds = {}, set()

    def collect(name):
        def hook(module, inputs):
            kind = (str(module), str([(x.shape, x.dtype) for x in torch.utils._pytree.tree_leaves(inputs)]))
            if kind not in kinds:
                kinds.add(kind)
                found[name] = (module, torch.utils._pytree.tree_map(lambda x: x.detach().cpu(), inputs))
        return hook

    outermost, hooks = "", []
    for name, module in model.named_modules():
        if type(module).__name__ in BLOCKS and not (outermost and name.startswith(outermost + ".")):
            outermost = name
            hooks.append(module.register_forward_pre_hook(collect(name)))
    with torch.no_grad(), torch.autocast(given.device.type, dtype=dtype, enabled=dtype is not None):
        model(given)
    for hook in hooks:
        hook.remove()
    names = list(found)
    names = [names[i * len(names) // most] for i in range(most)] if len(names) > most else names
    return {name: found[name] for name in names}


def part_gradients(module, run, inputs, dtype, to=None):
    """Output of a block, and gradients of its inputs and parameters, for a random gradient of the output."""
    device = next(module.parameters()).device
    inputs = torch.utils._pytree.tree_map(
        lambda x: x.to(device, to if x.is_floating_point() else None, copy=True).requires_grad_(x.is_floating_point()), inputs)
    state = copy.deepcopy(module.state_dict())
    torch.manual_seed(1)
    module.zero_grad(set_to_none=True)
    with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
        y = run(*inputs)
    torch.manual_seed(2)
    y.backward(torch.randn(y.shape, device=device).to(y.dtype))
    module.load_state_dict(state)
    leaves = [x for x in torch.utils._pytree.tree_leaves(inputs) if x.requires_grad]
    return ({"output": y.detach().double()} | {f"gradient of input {i}": x.grad.double() for i, x in enumerate(leaves)}
            | {f"gradient of {name}": p.grad.double() for name, p in module.named_parameters()})


def compare_parts(name, dtype, options):
    """Prints one line for each block; whether all agree."""
    from tessera.torch.dynamo import backend

    model, given, _ = model_of(name, options.device)
    parts, agree = parts_of(model, given, dtype, options.parts), True
    release(given.device)
    for part, (module, inputs) in parts.items():
        torch._dynamo.reset()
        start = time.perf_counter()
        try:
            found = part_gradients(module, torch.compile(module, backend=lambda m, i: backend(m, i)), inputs, dtype)
        except Exception as problem:  # whatever torch raises: the next block goes on
            print(f"FAIL {name} {part} {dtype}: {type(problem).__name__}: {str(problem)[:600]}", flush=True)
            agree = False
            continue
        seconds = time.perf_counter() - start
        eager = part_gradients(module, module, inputs, dtype)
        double = copy.deepcopy(module).double()
        exact = part_gradients(double, double, inputs, None, torch.float64)
        real = without_zeros(exact)
        wrong = [key for key in exact if not relative(found[key], exact[key]) <=
                 (2 if key in real else 30) * relative(eager[key], exact[key]) + 4 * ROUNDING[dtype]]
        worst = max(real, key=lambda key: excess(found[key], eager[key], exact[key], dtype))
        shapes = [list(x.shape) for x in torch.utils._pytree.tree_leaves(inputs)]
        print(f"{'FAIL' if wrong else 'ok  '} {name} {part} {type(module).__name__} of {shapes[-1]} {str(dtype).removeprefix('torch.')}: "
              f"worst is {worst}, error {relative(found[worst], exact[worst]):.1e}, eager's {relative(eager[worst], exact[worst]):.1e}, "
              f"{seconds:.1f} s", flush=True)
        for key in wrong:
            print(f"     {key} {list(exact[key].shape)}: error {relative(found[key], exact[key]):.1e}, "
                  f"eager's {relative(eager[key], exact[key]):.1e}", flush=True)
        agree = agree and not wrong
        del found, eager, exact, double
        release(given.device)
    return agree


def milliseconds(run, calls, device):
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    wait()
    return (time.perf_counter() - start) / calls * 1e3


def measure(name, dtype, options):
    from tessera.torch.dynamo import backend

    model, given, classes = model_of(name, options.device)
    graphs = []
    runs = {"tessera": torch.compile(model, backend=lambda m, i: backend(m, i, recorder=graphs))}
    row = {"model": name, "dtype": str(dtype).removeprefix("torch."), "differences": []}
    if not options.only_times:
        reference = Gradients(name, model, given, classes)
        for which in (dtype,) if options.skip_f32 else (dtype, None):
            start = time.perf_counter()
            row["differences"].append(difference := reference.compare(runs["tessera"], which))
            said = "f32" if which is None else row["dtype"]
            print(f"{'ok  ' if difference['agrees'] else 'FAIL'} {name} {said}: error {difference['error']:.1e}, "
                  f"eager's {difference['eager_error']:.1e}, {time.perf_counter() - start:.1f} s", flush=True)
            for line in difference["worst"] if options.each or not difference["agrees"] else []:
                print(f"     {line}", flush=True)
        del reference
        release(given.device)
    if options.rounds:
        runs["inductor"] = torch.compile(model, backend="inductor")
        calls = {key: lambda run=run: step(model, run, given, classes, dtype) for key, run in runs.items()}
        for call in calls.values():
            for _ in range(4):
                call()
        times = {key: [] for key in calls}
        with turns.turn():
            count = max(2, min(50, int(300 / milliseconds(calls["inductor"], 3, options.device))))
            for _ in range(options.rounds):
                for key, call in calls.items():
                    times[key].append(milliseconds(call, count, options.device))
        row |= {f"{key}_ms": statistics.median(values) for key, values in times.items()}
        row["ratio"] = row["tessera_ms"] / row["inductor_ms"]
    left = {}
    for graph in graphs:
        for plan in graph.plans:
            for node, why in plan.declined.items():
                left[str(node.target)] = left.get(str(node.target), 0) + bool(why)
    row |= {"left_to_torch": left,
            "programs": [sum(hasattr(s, "program") for s in plan.steps) for graph in graphs for plan in graph.plans]}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="resnet50,bert_base,bert_base_dropout")
    parser.add_argument("--dtypes", default="float16,bfloat16")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rounds", type=int, default=7, help="of both, interleaved; 0 compares gradients only")
    parser.add_argument("--parts", type=int, default=0, metavar="N", help="compare gradients of up to N blocks of each model alone")
    parser.add_argument("--each", action="store_true", help="name the worst parameters of every model")
    parser.add_argument("--skip-f32", action="store_true", help="compare gradients with autocast alone")
    parser.add_argument("--only-times", action="store_true", help="compare no gradients")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_training: there is no GPU")
    rows, failed = [], False
    for dtype in (getattr(torch, name) for name in options.dtypes.split(",")):
        for name in options.only.split(","):
            torch._dynamo.reset()
            if options.parts:
                failed |= not compare_parts(name, dtype, options)
                continue
            try:
                row = measure(name, dtype, options)
            except Exception as problem:  # whatever torch raises: the next model goes on
                print(f"FAIL {name} {dtype}: {type(problem).__name__}: {str(problem)[:600]}", flush=True)
                failed = True
                continue
            failed |= not all(difference["agrees"] for difference in row["differences"])
            said = (f", {row['tessera_ms']:.2f} ms, Inductor {row['inductor_ms']:.2f} ms: {row['ratio']:.3f}" if "ratio" in row else "")
            print(f"     {name} {row['dtype']}: programs {row['programs']}, left to torch {row['left_to_torch']}{said}", flush=True)
            rows.append(row)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
