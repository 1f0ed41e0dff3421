#!/usr/bin/env python3
"""Times runs of models with their data in host memory on the GPU of this computer; exits with 1 if one is too slow.

    bench/gpu/host_data.py FOLDER --tessera PATH           five models of FOLDER, with inputs and outputs of other sizes each
    bench/gpu/host_data.py FOLDER --only bert_base,unet --precision f32 --threads 1,8

A run copies the inputs to the GPU, launches the program, and copies the outputs back. Shown is the median time of a run
over what it should be: the time of the program on the GPU alone, without copies, and all bytes of inputs and outputs at
40 GB/s. Arguments are in memory of the session (pinned), on the heap, or tensors: inputs on the heap, results made by
each run. With --bar, the ratio of the kinds in --judge must not exceed it. Models are made ready as models.py does.
"""
import argparse
import json
import os
import pathlib
import sys

from models import Models, call

BYTES_PER_MS = 40e6
KINDS = ("session", "tensors", "heap")
FIVE = "resnet50,bert_base,gpt2,unet,llama_2layer"


def compiled(models, name):
    """The program of a model for this GPU, compiled once for all runs; None where that fails."""
    models.fill(name)
    there = models.in_batch(name, 1)
    if there is None:
        return None
    model, sizes = there
    program = models.work / f"{name}.{models.options.precision}.tsr"
    command = [models.options.tessera, "compile", str(model), "-o", str(program), "--target", "cuda", "--precision",
               models.options.precision, "--threads", str(os.cpu_count()), "--cache", str(models.work / "cache")] + sizes
    code, out, err, _ = call(command, models.options.timeout)
    if code != 0:
        print(f"{name}: {(err.strip() or out)[-400:]}", flush=True)
        return None
    return program


def bench(models, program, kind, threads):
    command = [models.options.tessera, "bench", str(program), "--threads", str(threads), "--cache",
               str(models.work / "cache"), "--json", "--fill", "sin", "--arguments", kind, "--blocks", "20",
               "--block-ms", "20"]
    code, out, err, _ = call(command, models.options.timeout)
    try:
        found = json.loads(out)
    except ValueError:
        found = {}
    if "gpu_ms" not in found:
        print(f"{program.stem} {kind}: {(err.strip() or out)[-400:] or f'exit code {code}'}", flush=True)
        return None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tessera", default="tessera")
    parser.add_argument("--fill-weights", default=str(pathlib.Path(__file__).with_name("fill-weights")))
    parser.add_argument("--work", default="filled-models", help="a folder for weights and cached kernels")
    parser.add_argument("--only", default=FIVE)
    parser.add_argument("--precision", default="f16")
    parser.add_argument("--threads", default="8", help="numbers of threads that copy what is on the heap")
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("--bar", type=float, default=1.15)
    parser.add_argument("--judge", default="session,tensors", help="kinds of memory that the bar is for")
    parser.add_argument("--json")
    options = parser.parse_args()
    models = Models(options)
    os.makedirs(options.work, exist_ok=True)
    results, missing = [], set(options.only.split(",")) - set(models.names)
    for name in sorted(missing):
        print(f"{name}: it is not in {options.folder}", flush=True)
    print(f"{'':<20} {'MB':>8} {'GPU ms':>8}  time of a run in ms, and over GPU + bytes at 40 GB/s", flush=True)
    for name in models.names:
        program = compiled(models, name)
        for threads in (int(number) for number in options.threads.split(",")):
            for kind in KINDS:
                found = bench(models, program, kind, threads) if program else None
                if found is None:
                    missing.add(name)
                    continue
                wanted = found["gpu_ms"] + found["argument_bytes"] / BYTES_PER_MS
                ratio = found["p50_ms"] / wanted
                results.append({"model": name, "memory": kind, "threads": threads, "precision": options.precision,
                                "ms": found["p50_ms"], "min_ms": found["min_ms"], "gpu_ms": found["gpu_ms"],
                                "bytes": found["argument_bytes"], "ratio": ratio})
                is_judged = kind in options.judge.split(",")
                verdict = "" if not is_judged else "ok" if ratio <= options.bar else "MISSED"
                print(f"{name:<20} {found['argument_bytes'] / 1e6:8.3f} {found['gpu_ms']:8.4f}  {kind:<8} "
                      f"{threads} threads  {found['p50_ms']:8.4f}  {ratio:6.3f}  (least {found['min_ms'] / wanted:.3f}) "
                      f"{verdict}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))
    missed = [r for r in results if r["memory"] in options.judge.split(",") and r["ratio"] > options.bar]
    sys.exit(1 if missed or missing else 0)


if __name__ == "__main__":
    main()
