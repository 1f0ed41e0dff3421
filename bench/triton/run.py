"""Checks Triton kernels against torch and times them.

  python bench/triton/run.py                                  checks on this computer's cores
  python bench/triton/run.py --device cuda --compare          on a GPU: Tessera's code beside Triton's own
  python bench/triton/run.py --threads 1 --time               timings beside torch's

Exit code 1: a result is wrong, or a kernel failed.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time


def measure(arguments) -> list[dict]:
    import torch

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.compiler == "tessera":
        import tessera.triton_backend as backend

        backend.use("cuda" if arguments.device == "cuda" else "cpu")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import kernels

    rows = []
    for case in kernels.cases(arguments.device, arguments.size):
        if arguments.filter and arguments.filter not in case.name:
            continue
        row = {"name": case.name, "unit": case.unit}
        try:
            start = time.perf_counter()
            found = case.run()
            if arguments.device == "cuda":
                torch.cuda.synchronize()
            row["first_call_s"] = time.perf_counter() - start
            found, expected = found.float(), case.expected().float()
            scale = max(1.0, expected.abs().max().item())
            row["error"] = ((found - expected).abs().max() / scale).item()
            row["ok"] = bool(row["error"] <= case.tolerance)  # NaN is not
            if arguments.time or arguments.compare:
                seconds = best_time(case.run, arguments.device)
                row["rate"] = case.amount / seconds / 1e9
                if arguments.device == "cpu":
                    row["torch"] = case.amount / best_time(case.expected, arguments.device) / 1e9
        except Exception as error:  # a kernel that fails is a row, the others follow
            row.update(ok=False, failure=f"{type(error).__name__}: {str(error)[:300]}")
        rows.append(row)
        if arguments.progress:
            print(json.dumps(row), file=sys.stderr, flush=True)
    return rows


def best_time(run, device: str) -> float:
    if device == "cuda":
        import triton

        return triton.testing.do_bench(run, warmup=10, rep=60, return_mode="min") * 1e-3
    run()
    best = math.inf
    for _ in range(7):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compiler", choices=["tessera", "triton"], default="tessera")
    parser.add_argument("--size", choices=["small", "large"], default="small")
    parser.add_argument("--time", action="store_true", help="time the kernels")
    parser.add_argument("--compare", action="store_true", help="time Tessera's code and Triton's (GPU)")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--filter", default="", help="run cases whose name contains this")
    parser.add_argument("--progress", action="store_true", help="print each row as it is measured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    environment = dict(os.environ)  # before Tessera gives Triton another cache
    rows = measure(arguments)
    if arguments.compare and arguments.compiler == "tessera":
        others = subprocess.run(
            [sys.executable, __file__, "--json", "--compiler", "triton", "--device", arguments.device, "--size",
             arguments.size, "--time", "--filter", arguments.filter], capture_output=True, text=True, env=environment)
        if others.returncode not in (0, 1):
            print(others.stderr, file=sys.stderr)
            return 1
        for row, other in zip(rows, json.loads(others.stdout)["rows"]):
            row["triton"] = other.get("rate")
            row["triton_ok"] = other["ok"]
    if arguments.json:
        print(json.dumps({"rows": rows}))
    else:
        for row in rows:
            parts = [f"{'PASS' if row['ok'] else 'FAIL'}  {row['name']:<46}"]
            if "error" in row:
                parts.append(f"error {row['error']:.1e}")
            if "rate" in row:
                parts.append(f"{row['rate']:10.1f} {row['unit']}")
            for peer in ("triton", "torch"):
                if row.get(peer) and "rate" in row:
                    parts.append(f"{peer} {row[peer]:10.1f}  ratio {row['rate'] / row[peer]:.2f}")
            print("  ".join(parts), row.get("failure", ""))
        ratios = [row["rate"] / row["triton"] for row in rows if row.get("triton") and "rate" in row]
        if ratios:
            print(f"geometric mean of {len(ratios)} ratios to Triton: "
                  f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, least {min(ratios):.2f}")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
