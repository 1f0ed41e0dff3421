#!/usr/bin/env python3
"""Times ResNet-50 and BERT base in PyTorch, compiled with CUDA Graphs, on the GPU of this computer.

    bench/peers/torch_models.py FOLDER --batches 1,32 --dtype float16 --json peers.json

The models are written out in plain modules, with the weights of NAME.onnx (tools/fill-weights makes them), and their
outputs are compared with NAME.golden.json: exits with 1 if one differs. Times are means of runs one after the other,
inputs on the GPU, as `tessera bench --target cuda` has them for "on the GPU".
"""
import argparse
import json
import pathlib
import re
import sys

import numpy as np

import onnx_file

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
        self.conv1, self.conv2 = nn.Conv2d(channels, width, 1), nn.Conv2d(width, width, 3, stride, 1)
        self.conv3, self.downsample = nn.Conv2d(width, out, 1), None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride))

    def forward(self, x):
        y = self.conv3(F.relu(self.conv2(F.relu(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    """Normalizations are parts of the convolutions, as in the ONNX file."""
    inputs = staticmethod(lambda batch: torch.sin(torch.arange(batch * 3 * 224 * 224.0)).view(batch, 3, 224, 224))

    def __init__(self):
        super().__init__()
        self.conv1, channels = nn.Conv2d(3, 64, 7, 2, 3), 64
        for i, count in enumerate((3, 4, 6, 3)):
            blocks = []
            for j in range(count):
                blocks.append(Bottleneck(channels, 64 << i, 2 if j == 0 and i > 0 else 1))
                channels = 256 << i
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 3, 2, 1)
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3)))

    @staticmethod
    def state(nodes, weights):
        """By the names of parameters. A bias is named after its weight."""
        return {name.replace(".weight_bias", ".bias"): value for name, value in weights.items()
                if re.match(r"conv1|layer|fc", name)}


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
    inputs = staticmethod(lambda batch: (torch.arange(batch * 128) % 1000).view(batch, 128))

    def __init__(self, width=768):
        super().__init__()
        self.words, self.places, self.kinds = (nn.Embedding(n, width) for n in (30522, 512, 2))
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.Sequential(*[Layer() for _ in range(12)])

    def forward(self, ids):
        at = torch.arange(ids.shape[1], device=ids.device)
        return self.layers(self.norm(self.words(ids) + self.places(at) + self.kinds.weight[0]))

    @staticmethod
    def state(nodes, weights):
        """By the names of parameters. A product's weight has no name of its own, but that of its bias."""
        made_by = {output: node for node in nodes for output in node.outputs}
        named = dict(weights)
        for node in nodes:
            if node.kind == "Add" and node.inputs[1].endswith(".bias"):
                product = made_by[node.inputs[0]]
                named[node.inputs[1][:-len("bias")] + "weight"] = weights[product.inputs[1]].T
        state = {f"{ours}.weight": named[f"m.embeddings.{theirs}_embeddings.weight"]
                 for ours, theirs in (("words", "word"), ("places", "position"), ("kinds", "token_type"))}
        for part in ("weight", "bias"):
            state[f"norm.{part}"] = named[f"m.embeddings.LayerNorm.{part}"]
            for i in range(12):
                ours, theirs = f"layers.{i}.", f"m.encoder.layer.{i}."
                state[f"{ours}qkv.{part}"] = np.concatenate(
                    [named[f"{theirs}attention.self.{which}.{part}"] for which in ("query", "key", "value")])
                for name, source in (("o", "attention.output.dense"), ("n1", "attention.output.LayerNorm"),
                                     ("up", "intermediate.dense"), ("down", "output.dense"), ("n2", "output.LayerNorm")):
                    state[f"{ours}{name}.{part}"] = named[f"{theirs}{source}.{part}"]
        return state


MODELS = {"resnet50": ResNet50, "bert_base": Bert}
TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 3e-2}


def with_weights(name, folder):
    """The model with the weights of NAME.onnx, which fill-weights has completed."""
    model = MODELS[name]()
    state = MODELS[name].state(*onnx_file.read(folder / f"{name}.onnx"))
    model.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    return model


def error(result, golden):
    """Of an output, over the root mean square of the golden one."""
    (wanted,) = json.loads(golden.read_text())["outputs"].values()
    found = result.float().flatten().cpu()[torch.tensor(wanted["at"])]
    wanted = torch.tensor(wanted["values"])
    return ((found - wanted).abs().max() / wanted.square().mean().sqrt()).item()


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
    parser.add_argument("folder", type=pathlib.Path, help="models with their weights, and golden outputs")
    parser.add_argument("--goldens", type=pathlib.Path, help="where these are, if not in the same folder")
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--dtype", default="float16", choices=list(TOLERANCE))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--device", default="cuda", help="cpu: outputs are checked, nothing is timed")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_models: there is no GPU")
    dtype, times, wrong = getattr(torch, options.dtype), {}, False
    with torch.inference_mode():
        for name in MODELS:
            model = with_weights(name, options.folder).eval().to(options.device, dtype)
            if name == "resnet50":
                model = model.to(memory_format=torch.channels_last)
            compiled = model if options.device == "cpu" else torch.compile(model, mode="reduce-overhead")
            for batch in map(int, options.batches.split(",")):
                given = MODELS[name].inputs(batch).to(options.device)
                if given.is_floating_point():
                    given = given.to(dtype, memory_format=torch.channels_last)
                # The first of a batch is what the golden output is of.
                off = error(compiled(given)[0], (options.goldens or options.folder) / f"{name}.golden.json")
                agrees = off <= TOLERANCE[options.dtype]
                wrong |= not agrees
                print(f"{name} batch {batch} {options.dtype}: error {off:.1e} of the golden output", flush=True)
                if options.device == "cpu" or not agrees:  # what is wrong is nothing to compare with
                    continue
                times[f"{name} {batch}"] = ms = milliseconds(lambda: compiled(given), options.rounds)
                print(f"torch.compile {name} batch {batch} {options.dtype}: {ms:.4f} ms", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(times, file, indent=1)
    if wrong:
        sys.exit("torch_models: an output is not the golden one")


if __name__ == "__main__":
    main()
