#!/usr/bin/env python3
"""Compares `--search --mutants` with `--search` on the GPU of this computer, for PET's models.

    bench/gpu/mutants.py FOLDER --tessera PATH --work FOLDER [--batches 1,16] [--budget 60s] [--jobs 4]
    bench/gpu/mutants.py FOLDER --tessera PATH --work FOLDER --target cuda:sm_90a     only compiles, without a GPU

Searches run --jobs at a time; what they choose is compared within each of them, in turns. Both programs are timed in turns, steps on the GPU without the copies of inputs and outputs; the ratio is that of the
medians, with its 95 % interval by resampling. Prints one line for each model and batch, and writes WORK/mutants.json.
"""
import argparse
import concurrent.futures
import json
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import Models, call  # noqa: E402

PET = "resnet18,csrnet,inception_v3,bert_base,r3d_18"


def interval(ours, theirs, seed=1):
    """Ratio of two medians with its 95 % interval."""
    rng = random.Random(seed)
    draw = lambda times: statistics.median(rng.choices(times, k=len(times)))  # noqa: E731
    ratios = sorted(draw(theirs) / draw(ours) for _ in range(2000))
    return statistics.median(theirs) / statistics.median(ours), ratios[50], ratios[-51]


def compiled(models, options, name, batch, mutants):
    """A compiled program, what the search says of it, and the seconds that it took."""
    there = models.in_batch(name, batch)
    if there is None:
        return None
    model, sizes = there
    out = models.work / f"{name}.b{batch}.{'mutants' if mutants else 'search'}.tsr"
    command = [options.tessera, "compile", str(model), "-o", str(out), "--target", options.target, "--precision",
               options.precision, "--search", "--budget", options.budget, "--store", str(models.work / "costs.sqlite"),
               "--json", *sizes] + (["--mutants", "--explain"] if mutants else [])
    code, text, err, seconds = call(command, options.timeout)
    if code != 0:
        print(f"{name} batch {batch}: {(err.strip() or text)[-400:]}", flush=True)
        return None
    return out, json.loads(text).get("search", {}), seconds


def gpu_ms(options, program):
    code, text, err, _ = call([options.tessera, "bench", str(program), "--json", "--blocks", "1", "--block-ms", "5"],
                              options.timeout)
    if code != 0:
        raise RuntimeError((err.strip() or text)[-400:])
    return json.loads(text)["gpu_ms"]


def rules_of(search):
    return sorted({step["rule"] for choice in search.get("choices", []) for step in choice["rules"]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tessera", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", default=PET)
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--jobs", type=int, default=1, help="searches at a time")
    parser.add_argument("--precision", default="f16")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--rounds", type=int, default=15, help="timings of each program")
    parser.add_argument("--timeout", type=float, default=400)
    parser.add_argument("--fill-weights", default=str(pathlib.Path(__file__).resolve().parents[2] / "tools/fill-weights"))
    options = parser.parse_args()
    pathlib.Path(options.work).mkdir(parents=True, exist_ok=True)
    models, results, failed = Models(options), [], False
    for name in models.names:
        models.fill(name)
    batches = list(map(int, options.batches.split(",")))
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    programs = {(name, batch, mutants): pool.submit(compiled, models, options, name, batch, mutants)
                for batch in batches for name in models.names for mutants in (False, True)}
    concurrent.futures.wait(programs.values())
    for name in models.names:
        for batch in batches:
            plain, mutant = (programs[name, batch, mutants].result() for mutants in (False, True))
            if plain is None or mutant is None:
                failed = True
                continue
            result = {"model": name, "batch": batch, "search_seconds": round(mutant[2], 1), "rules": rules_of(mutant[1]),
                      "mutants": mutant[1].get("mutants", [])}
            line = f"{name:14} batch {batch:<3}"
            if options.target == "cuda":
                ours, theirs = [], []
                for _ in range(options.rounds):
                    theirs.append(gpu_ms(options, plain[0]))
                    ours.append(gpu_ms(options, mutant[0]))
                result["speedup"], result["low"], result["high"] = interval(ours, theirs)
                result["search_ms"], result["mutants_ms"] = statistics.median(theirs), statistics.median(ours)
                line += (f" {result['search_ms']:8.4f} -> {result['mutants_ms']:8.4f} ms, {result['speedup']:.3f}x "
                         f"({result['low']:.3f} to {result['high']:.3f})")
            print(f"{line}  in {result['search_seconds']} s: {', '.join(result['rules']) or 'no rule'}", flush=True)
            for trial in result["mutants"][:3]:
                print(f"    {trial['rule']}: {trial['before_ms']:.4f} -> {trial['after_ms']:.4f} ms"
                      f"{'' if trial['measured'] else ' by the cost model'}, of which the correction "
                      f"{100 * trial['correction_share']:.1f} %", flush=True)
            results.append(result)
    pathlib.Path(options.work, "mutants.json").write_text(json.dumps({"at": time.strftime("%F %T"), "results": results}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
