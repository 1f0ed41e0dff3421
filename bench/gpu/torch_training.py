#!/usr/bin/env python3
"""Times training steps under torch.compile(backend="tessera") beside Inductor's, with autocast, on the GPU of this computer.

    bench/gpu/torch_training.py [--only resnet50,bert_base] [--dtypes float16,bfloat16] [--rounds 7] [--json FILE]

Models: ResNet-50 on 32 images of 224 x 224; BERT base (12 layers) on 8 sequences of 128 tokens, without dropout, and with it
as bert_base_dropout. Other names are those of torchvision, such as mobilenet_v2, without dropout. A step is a forward pass, cross entropy and a backward pass; the loss is scaled as a GradScaler does, and
the optimizer, which is the same for both, is not part of it. Steps are interleaved; the ratio is that of medians, below 1
where Tessera is faster. Gradients, all of a model as one vector, are compared with those of f64, with autocast and in f32
without: Tessera's error may be twice eager execution's; with dropout, they are compared with eager execution's. (Gradients of f16 say little in
a network that is not trained.)
--device cpu checks small models by the same code. Exit code 1: a gradient is wrong, or a model could not be compiled.
"""
import argparse
import copy
import json
import pathlib
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

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

        model = getattr(models, name)(num_classes=classes)
        for part in model.modules():
            if isinstance(part, nn.Dropout):
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
    """All gradients of a step as one vector, for one state of the generator of random numbers."""
    state = copy.deepcopy(model.state_dict())
    torch.manual_seed(1)
    step(model, run, given, classes, dtype)
    model.load_state_dict(state)  # statistics of batch norms
    return torch.cat([p.grad.double().flatten() for p in model.parameters()]) / SCALE


def errors_of(name, model, compiled, given, classes, dtype):
    """Relative errors of gradients by who computes and whether with autocast."""
    if name.endswith("dropout"):  # what is dropped depends on the dtype: only eager execution in the same one drops the same
        exact = {which: gradients(model, model, given, classes, which) for which in (None, dtype)}
        rounding = {None: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
        errors = {("eager", which): rounding[which] for which in exact}
    else:
        double = copy.deepcopy(model).double()
        f64 = gradients(double, double, given.double() if given.is_floating_point() else given, classes, None)
        exact = {None: f64, dtype: f64}
        errors = {("eager", which): relative(gradients(model, model, given, classes, which), f64) for which in exact}
    return errors | {("tessera", which): relative(gradients(model, compiled, given, classes, which), exact[which]) for which in exact}


def relative(found, exact):
    return (found - exact).norm().item() / exact.norm().item()


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
    errors = errors_of(name, model, runs["tessera"], given, classes, dtype)
    left = {}
    for graph in graphs:
        for plan in graph.plans:
            for node, why in plan.declined.items():
                left[str(node.target)] = left.get(str(node.target), 0) + bool(why)
    row = {"model": name, "dtype": str(dtype).removeprefix("torch."), "left_to_torch": left,
           "error": errors["tessera", dtype], "eager_error": errors["eager", dtype],
           "f32_error": errors["tessera", None], "eager_f32_error": errors["eager", None],
           "programs": [sum(hasattr(s, "program") for s in plan.steps) for graph in graphs for plan in graph.plans]}
    if options.rounds:
        runs["inductor"] = torch.compile(model, backend="inductor")
        calls = {key: lambda run=run: step(model, run, given, classes, dtype) for key, run in runs.items()}
        for call in calls.values():
            for _ in range(4):
                call()
        count = max(2, min(50, int(500 / milliseconds(calls["inductor"], 3, options.device))))
        times = {key: [] for key in calls}
        for _ in range(options.rounds):
            for key, call in calls.items():
                times[key].append(milliseconds(call, count, options.device))
        row |= {f"{key}_ms": statistics.median(values) for key, values in times.items()}
        row["ratio"] = row["tessera_ms"] / row["inductor_ms"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="resnet50,bert_base,bert_base_dropout")
    parser.add_argument("--dtypes", default="float16,bfloat16")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rounds", type=int, default=7, help="of both, interleaved; 0 compares gradients only")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_training: there is no GPU")
    rows, failed = [], False
    for dtype in (getattr(torch, name) for name in options.dtypes.split(",")):
        for name in options.only.split(","):
            torch._dynamo.reset()
            try:
                row = measure(name, dtype, options)
            except Exception as problem:  # whatever torch raises: the next model goes on
                print(f"FAIL {name} {dtype}: {type(problem).__name__}: {str(problem)[:600]}", flush=True)
                failed = True
                continue
            agrees = row["error"] <= 2 * row["eager_error"] + 1e-3 and row["f32_error"] <= 2 * row["eager_f32_error"] + 1e-5
            failed |= not agrees
            said = (f", {row['tessera_ms']:.2f} ms, Inductor {row['inductor_ms']:.2f} ms: {row['ratio']:.3f}" if "ratio" in row else "")
            print(f"{'ok  ' if agrees else 'FAIL'} {name} {row['dtype']}: error {row['error']:.1e}, eager's {row['eager_error']:.1e}, "
                  f"in f32 {row['f32_error']:.1e}, eager's {row['eager_f32_error']:.1e}, "
                  f"programs {row['programs']}, left to torch {row['left_to_torch']}{said}", flush=True)
            rows.append(row)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
