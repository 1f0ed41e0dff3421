#!/usr/bin/env python3
"""Times torch.compile(backend="tessera") beside torch.compile(mode="reduce-overhead") on the GPU of this computer.

    bench/gpu/torch_backend.py FOLDER [--batches 1,32] [--only resnet50,bert_base] [--prepare 8] [--json FILE]

Models are the torch modules that bench/peers/torch_models.py makes of ONNX files (FOLDER: with weights, and golden
outputs in --goldens), in f16, inputs on the GPU. Calls are timed from Python, in turns; the ratio is that of medians, below 1
where Tessera is faster. Outputs in a batch of one are compared with golden ones, in others with eager execution. An ONNX file
that uses its batch of one in other ways than bench/gpu/rebatch knows has no other batch: --modules takes the modules of
torchvision and transformers instead, with random weights, and compares with eager execution. Exit code 1: one differs, or a
model could not be compiled.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "peers")]
import torch  # noqa: E402
import torch_models as peers  # noqa: E402
import turns  # noqa: E402

MODELS = "resnet50,bert_base,mobilenet_v3_large,efficientnet_b0,vit_b_16,gpt2,convnext_tiny,densenet121"


class FirstOutput(torch.nn.Module):
    """The first output of a model of transformers, as a tuple."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return (self.model(ids, return_dict=False)[0],)


class OneOutput(torch.nn.Sequential):
    def forward(self, x):
        return (super().forward(x),)


def library_module(name, batch, options):
    """As module_of, of torchvision or transformers."""
    torch.manual_seed(0)
    if name in ("bert_base", "gpt2"):
        import transformers

        kinds = {"bert_base": (transformers.BertModel, transformers.BertConfig()),
                 "gpt2": (transformers.GPT2Model, transformers.GPT2Config(use_cache=False))}
        kind, config = kinds[name]
        model, given = FirstOutput(kind(config)), torch.randint(0, 1000, (batch, 128))
    else:
        from torchvision import models

        model, given = OneOutput(getattr(models, name)()), torch.randn(batch, 3, 224, 224).half()
        model, given = model.to(memory_format=torch.channels_last), given.to(memory_format=torch.channels_last)
    with torch.no_grad():  # heads of zeros and scales of 1e-6 would hide errors
        for parameter in model.parameters():
            if parameter.dim() > 1 and parameter.abs().max() < 1e-4:
                torch.nn.init.normal_(parameter, std=0.1)
    return model.eval().half().to(options.device), [given.to(options.device)], ["output"]


def module_of(name, batch, options):
    """The module in f16, its inputs, and the names of its outputs."""
    if options.modules:
        return library_module(name, batch, options)
    model, inputs, names = peers.imported(peers.file_of(name, batch, options))
    model = model.eval().to(options.device)
    for key, value in list(model.named_buffers(recurse=False)):
        value = value.half() if value.is_floating_point() else value
        setattr(model, key, value.to(memory_format=torch.channels_last) if value.dim() == 4 else value)
    return model, [peers.filled(shape, kind, torch.float16).to(options.device) for shape, kind in inputs], names


def error(results, expected):
    """The largest over outputs of a quarter of the largest error and of its root mean square, over the latter's."""
    worst = 0.0
    for found, wanted in zip(results, expected, strict=True):
        off, wanted = (found.float() - wanted.float()), wanted.float()
        scale = wanted.square().mean().sqrt().item() or 1.0
        worst = max(worst, off.abs().max().item() / 4 / scale, off.square().mean().sqrt().item() / scale)
    return worst if worst == worst else float("inf")


def microseconds(run, calls):
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    wait()
    return (time.perf_counter() - start) / calls * 1e6


def measure(name, batch, options):
    model, given, names = module_of(name, batch, options)
    with torch.inference_mode():
        ours = torch.compile(model, backend="tessera", options={"freeze": True}, fullgraph=True)
        theirs = torch.compile(model, mode="reduce-overhead", fullgraph=True)
        start = time.perf_counter()
        results = ours(*given)
        seconds = time.perf_counter() - start
        off = (peers.error(results, names, (options.goldens or options.folder) / f"{name}.golden.json") if batch == 1 and not options.modules
               else error(results, model(*given)))
        for run in (ours, theirs):
            for _ in range(4):
                run(*given)
        print(f"     {name} batch {batch}: error {off:.1e}, {seconds:.1f} s, reduce-overhead "
              f"{time.perf_counter() - start - seconds:.1f} s", flush=True)
        if options.rounds == 0:
            return {"error": off}
        with turns.turn():
            calls = max(5, min(200, int(50e3 / microseconds(lambda: theirs(*given), 3))))
            times = [(microseconds(lambda: ours(*given), calls), microseconds(lambda: theirs(*given), calls))
                     for _ in range(options.rounds)]
    tessera, torch_us = (statistics.median(t[i] for t in times) for i in (0, 1))
    return {"error": off, "tessera_us": tessera, "torch_us": torch_us, "ratio": tessera / torch_us}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", help="not needed with --modules")
    parser.add_argument("--modules", action="store_true", help="of torchvision and transformers, with random weights")
    parser.add_argument("--goldens", type=pathlib.Path)
    parser.add_argument("--only", default=MODELS)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--rounds", type=int, default=7, help="of both, in turns; 0 compiles and compares only")
    parser.add_argument("--prepare", type=int, default=0, help="processes that fill the caches of both compilers first")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: whether it runs; times say nothing there")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_backend: there is no GPU")
    names = options.only.split(",")
    if options.prepare:
        command = [sys.executable, __file__, *sys.argv[1:], "--rounds", "0", "--json", "/dev/null", "--prepare", "0"]
        workers = [subprocess.Popen([*command, "--only", ",".join(part)], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
                   for part in (names[i::options.prepare] for i in range(options.prepare)) if part]
        for worker in workers:
            worker.wait()
    rows, failed = [], False
    for name in names:
        for batch in map(int, options.batches.split(",")):
            try:
                row = measure(name, batch, options)
            except Exception as problem:  # whatever torch raises: the next model goes on
                print(f"{name} batch {batch}: {type(problem).__name__}: {str(problem)[:400]}", flush=True)
                failed = True
                continue
            agrees = row["error"] <= peers.TOLERANCE["float16"]
            failed |= not agrees
            said = (f", {row['tessera_us']:.1f} us, reduce-overhead {row['torch_us']:.1f} us: {row['ratio']:.3f}"
                    if "ratio" in row else "")
            print(f"{'ok  ' if agrees else 'FAIL'} {name} batch {batch}: error {row['error']:.1e}{said}", flush=True)
            rows.append({"model": name, "batch": batch, **row})
            torch._dynamo.reset()
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"{len(ratios)} of them: geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, "
              f"largest {max(ratios):.3f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
