#!/usr/bin/env python3
"""Runs models on the GPU of this computer and compares them with golden answers; exits with 1 if one differs.

    bench/gpu/models.py FOLDER --tessera PATH           every NAME.onnx of FOLDER with NAME.golden.json
    bench/gpu/models.py FOLDER --only resnet50,bert_base --precisions f16 --batches 1,32 --peers peers.json

Weights of models that have NAME.recipe.json are made by fill-weights first. A model for a batch of one is timed in
another as NAME.bBATCH.onnx, which is in FOLDER or made by rebatch. Each model is run --repeat times in each
precision, with the same bits; what fails is told and the next one goes on. Times are of the steps on the GPU, without copies of
inputs and outputs. What is timed in a batch is compared as well, every item of it: with f32, whose first item is
compared with the golden answers.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

TOLERANCE = {"f32": 1e-4, "f16": 1e-2, "bf16": 3e-2}


def call(command, seconds):
    start = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, err = -1, "", f"longer than {seconds} s"
    return code, out, err, time.time() - start


class Models:
    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(options.folder)
        self.work = pathlib.Path(options.work)
        only = options.only.split(",") if options.only else None
        self.names = [p.name[: -len(".golden.json")] for p in sorted(self.folder.glob("*.golden.json"))]
        self.names = [n for n in self.names if only is None or n in only]

    def path(self, name):
        made = self.work / f"{name}.onnx"
        return made if made.exists() else self.folder / f"{name}.onnx"

    def fill(self, name):
        if (self.folder / f"{name}.recipe.json").exists() and not (self.work / f"{name}.onnx").exists():
            code, _, err, _ = call([sys.executable, self.options.fill_weights,
                                    str(self.folder / f"{name}.onnx"), str(self.work)], 300)
            if code != 0:
                print(f"{name}: weights: {err.strip()[-300:]}", flush=True)

    def rebatched(self, name, batch):
        """The model in another batch, beside its weights."""
        made, given = self.work / f"{name}.b{batch}.onnx", self.folder / f"{name}.b{batch}.onnx"
        if given.exists():
            shutil.copyfile(given, made)
        else:
            code, _, err, _ = call([sys.executable, str(pathlib.Path(__file__).with_name("rebatch")),
                                    str(self.path(name)), str(batch), str(made)], 60)
            if code != 0:
                print(f"{name} batch {batch}: {err.strip()[-300:]}", flush=True)
                return None
        return made

    def command(self, verb, model, precision):
        return [self.options.tessera, verb, str(model), "--target", "cuda", "--precision", precision,
                "--threads", str(self.options.threads), "--cache", str(self.work / "cache"), "--json"]

    def check(self, name, precision):
        golden = self.folder / f"{name}.golden.json"
        code, out, err, seconds = call(
            self.command("run", self.path(name), precision)
            + ["--fill", "sin", "--compare", str(golden), "--tolerance", str(TOLERANCE[precision]),
               "--repeat", str(self.options.repeat)],
            self.options.timeout)
        result = {"model": name, "precision": precision, "seconds": round(seconds, 1), "agrees": False}
        try:
            answer = json.loads(out)
            result["agrees"] = bool(answer["agrees"]) and code == 0
            # An error that is not finite is null in JSON.
            errors = [o.get("error") for o in answer["outputs"]]
            result["error"] = float("inf") if None in errors else max(errors, default=0)
            made = answer["compile"]
            result["kernels"], result["compile_seconds"] = made["kernels"], round(made["seconds"], 2)
            result["steps"] = len(made["steps"])
            result["host"] = {k: [v["count"], v["why"]] for k, v in made["interpreted"].items()}
        except (ValueError, KeyError):
            result["problem"] = (err.strip() or out.strip())[-400:]
        return result

    def in_batch(self, name, batch):
        """A model file and the sizes of its dimensions, or None where it has no such batch."""
        dims = json.loads((self.folder / f"{name}.golden.json").read_text()).get("dims", {})
        model = self.path(name) if dims or batch == 1 else self.rebatched(name, batch)
        if model is None:
            return None
        sizes = []
        for dim, size in dims.items():
            sizes += ["--set", f"{dim}={batch if batch and re.match('(?i)n$|batch', dim) else size}"]
        return model, sizes

    def outputs(self, name, precision, batch):
        """What a batch of sines gives, by the name of its file."""
        import numpy

        model, sizes = self.in_batch(name, batch)
        saved = self.work / f"{name}.b{batch}.{precision}.outputs"
        shutil.rmtree(saved, ignore_errors=True)  # what an earlier run left must not be taken for this one's
        code, out, err, _ = call(self.command("run", model, precision) + sizes + ["--fill", "sin", "--save", str(saved)],
                                 self.options.timeout)
        if code != 0:
            raise ValueError((err.strip() or out.strip())[-400:])
        return {path.name: numpy.load(path).astype(numpy.float64) for path in sorted(saved.glob("*.npy"))}

    def check_batch(self, name, precision, batch):
        """How far a batch is from what it should be: whether it agrees, the error, and what went wrong."""
        golden = json.loads((self.folder / f"{name}.golden.json").read_text())["outputs"]
        try:
            exact = self.outputs(name, "f32", batch)
            found = exact if precision == "f32" else self.outputs(name, precision, batch)
        except (ValueError, TypeError, OSError) as problem:
            return {"agrees": False, "problem": str(problem)}
        first = golden_error(exact, golden)
        error = batch_error(found, exact)
        return {"agrees": first <= TOLERANCE["f32"] and error <= TOLERANCE[precision], "error": max(first, error)}

    def time(self, name, precision, batch):
        there = self.in_batch(name, batch)
        if there is None:
            return None
        model, sizes = there
        command = self.command("bench", model, precision) + ["--fill", "sin", "--blocks", "3", "--block-ms", "20"] + sizes
        code, out, err, _ = call(command, self.options.timeout)
        try:
            return json.loads(out).get("gpu_ms")
        except ValueError:
            print(f"{name} {precision} batch {batch}: {(err.strip() or out)[-400:]}", flush=True)
            return None


def golden_error(outputs, golden):
    """Of the first item of a batch, at the golden samples, over the root mean square of the item. Inputs are sines of
    the flat index, so that the first item is what the golden answers are of."""
    import numpy

    if len(outputs) != len(golden):
        return float("inf")
    worst = 0.0
    # One output has a name that needs none; several are found by theirs.
    for name, wanted in golden.items():
        output = next(iter(outputs.values())) if len(golden) == 1 else outputs.get(f"{name}.npy")
        count = int(numpy.prod(wanted["shape"]))
        if output is None or list(output.shape[1:]) != wanted["shape"][1:]:
            return float("inf")
        off = numpy.abs(output.reshape(-1)[:count][wanted["at"]] - wanted["values"]).max()
        worst = max(worst, of_scale(off, wanted["l2"] / count**0.5))
    return worst


def batch_error(found, exact):
    """The largest over items: of the root mean square of an item's error, and of a fourth of its largest error, which
    has millions of elements to be drawn from; each over the root mean square of the item."""
    import numpy

    if list(found) != list(exact):
        return float("inf")
    worst = 0.0
    for name, wanted in exact.items():
        if found[name].shape != wanted.shape or wanted.ndim == 0:
            return float("inf")
        wanted = wanted.reshape(len(wanted), -1)
        off = numpy.abs(found[name].reshape(wanted.shape) - wanted)
        for error, item in zip(off, wanted):
            rms = numpy.sqrt(numpy.square(item).mean())
            worst = max(worst, of_scale(numpy.sqrt(numpy.square(error).mean()), rms), of_scale(error.max() / 4, rms))
    return worst


def of_scale(error, scale):
    """A NaN is infinitely far away, and zeros have no scale of their own."""
    ratio = float(error) / (float(scale) or 1.0)
    return ratio if ratio == ratio else float("inf")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tessera", default="tessera")
    parser.add_argument("--fill-weights", default=str(pathlib.Path(__file__).with_name("fill-weights")))
    parser.add_argument("--work", default="filled-models", help="a folder for weights and cached kernels")
    parser.add_argument("--only")
    parser.add_argument("--precisions", default="f32,f16,bf16")
    parser.add_argument("--batches", default="")
    parser.add_argument("--peers", help="times of torch_models.py, to compare with")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=2, help="runs of each model, which have to be bit-identical")
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("--json")
    options = parser.parse_args()
    models = Models(options)
    os.makedirs(options.work, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(models.fill, models.names))
    precisions, results = options.precisions.split(","), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(models.check, n, p) for p in precisions for n in models.names]
        for job in jobs:
            results.append(one := job.result())
            said = f"error {one['error']:.2e}" if "error" in one else one.get("problem", "")
            host = "".join(f"\n    on the computer: {k} ({c}): {why}" for k, (c, why) in one.get("host", {}).items())
            print(f"{'ok  ' if one['agrees'] else 'FAIL'} {one['model']:<20} {one['precision']:<5} "
                  f"{one['seconds']:>6} s, {one.get('steps', 0):>4} steps  {said}{host}", flush=True)
    peers = json.loads(pathlib.Path(options.peers).read_text()) if options.peers else {}
    for batch in [int(b) for b in options.batches.split(",") if b]:
        for precision in precisions:
            for name in models.names:
                ms, peer = models.time(name, precision, batch), peers.get(f"{name} {batch}")
                calls = peers.get(f"{name} {batch} calls")
                if ms is None:
                    continue
                checked = {"agrees": True, "error": 0.0}  # a batch of one was compared above
                if batch != 1:
                    checked = models.check_batch(name, precision, batch)
                results.append({"model": name, "precision": precision, "batch": batch, "ms": ms, "torch_ms": peer,
                                "torch_calls_ms": calls, **checked})
                against = f", torch.compile {peer:.4f} ms: {ms / peer:.2f}" if peer else ""
                against += f", by calls {calls:.4f} ms: {ms / calls:.2f}" if calls else ""
                said = f"error {checked['error']:.2e}" if "error" in checked else checked["problem"]
                print(f"{'time' if checked['agrees'] else 'FAIL'} {name:<20} {precision:<5} batch {batch:<3} "
                      f"{ms:.4f} ms{against}, {said}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))
    sys.exit(0 if all(r.get("agrees", True) for r in results) else 1)


if __name__ == "__main__":
    main()
