#!/usr/bin/env python3
"""Times ResNet-50 and BERT base in PyTorch, compiled with CUDA Graphs, on the GPU of this computer.

    bench/peers/torch_models.py --batches 1,32 --dtype float16 --json peers.json

The models are written out in plain modules, with random weights: what is compared is time. Times are means of
runs one after the other, inputs on the GPU, as `tessera bench --target cuda` has them for "on the GPU".
"""
import argparse
import json
import sys

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    sys.exit("torch_models: PyTorch is missing")


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.a, self.b, self.c = (nn.Conv2d(channels, width, 1, bias=False),
                                  nn.Conv2d(width, width, 3, stride, 1, bias=False),
                                  nn.Conv2d(width, out, 1, bias=False))
        self.na, self.nb, self.nc = nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.BatchNorm2d(out)
        self.side = None
        if stride != 1 or channels != out:
            self.side = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        y = F.relu(self.nb(self.b(y)))
        y = self.nc(self.c(y))
        return F.relu(y + (x if self.side is None else self.side(x)))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, channels = [], 64
        for i, count in enumerate((3, 4, 6, 3)):
            for j in range(count):
                blocks.append(Bottleneck(channels, 64 << i, 2 if j == 0 and i > 0 else 1))
                channels = 256 << i
        self.blocks = nn.Sequential(*blocks)
        self.out = nn.Linear(channels, 1000)

    def forward(self, x):
        return self.out(self.blocks(self.stem(x)).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, width=768, heads=12):
        super().__init__()
        self.heads = heads
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.n1, self.n2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = self.n1(x + self.o(a))
        return self.n2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.words, self.places = nn.Embedding(30522, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.Sequential(*[Layer() for _ in range(12)])

    def forward(self, ids):
        at = torch.arange(ids.shape[1], device=ids.device)
        return self.layers(self.norm(self.words(ids) + self.places(at)))


def milliseconds(run, rounds):
    for _ in range(20):
        run()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(rounds):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch_models: there is no GPU")
    dtype, times = getattr(torch, options.dtype), {}
    with torch.inference_mode():
        for batch in map(int, options.batches.split(",")):
            image = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype)
            words = torch.randint(0, 30522, (batch, 128), device="cuda")
            for name, model, given in (
                ("resnet50", ResNet50().to(memory_format=torch.channels_last),
                 image.to(memory_format=torch.channels_last)),
                ("bert_base", Bert(), words)):
                model = model.eval().to("cuda", dtype)
                compiled = torch.compile(model, mode="reduce-overhead")
                times[f"{name} {batch}"] = ms = milliseconds(lambda: compiled(given), options.rounds)
                print(f"torch.compile {name} batch {batch} {options.dtype}: {ms:.4f} ms", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(times, file, indent=1)


if __name__ == "__main__":
    main()
