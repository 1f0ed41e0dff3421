"""Times cuBLAS through PyTorch, reads what gpu_check timed, and prints each bar with its ratio.

usage: bars.py TIMES.json   (exits with 1 where a bar is missed)
"""

import json
import sys


def median_ms(work, rounds=50):
    import torch

    for _ in range(5):
        work()
    times = []
    for _ in range(rounds):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        work()
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after))
    return sorted(times)[len(times) // 2]


def vendor():
    import torch

    a, b = (torch.rand(4096, 4096, device="cuda").half() * 4 - 2 for _ in range(2))
    out = torch.empty_like(a)
    ms = median_ms(lambda: torch.matmul(a, b, out=out))
    print(f"cuBLAS f16 4096^3: {ms:.4f} ms, {2 * 4096**3 / ms / 1e9:.1f} TFLOP/s")
    x = torch.rand(2**28, device="cuda")
    y, z = torch.empty_like(x), torch.rand(2**28, device="cuda")
    copy = median_ms(lambda: y.copy_(x))
    add = median_ms(lambda: torch.add(x, z, out=y))
    print(f"torch copy {8 * 2**28 / copy / 1e6:.1f} GB/s, add {12 * 2**28 / add / 1e6:.1f} GB/s")
    for columns in (1024, 4096):
        h = torch.rand(2**27 // columns, columns, device="cuda").half()
        soft = median_ms(lambda: torch.softmax(h, 1))
        print(f"torch softmax f16 {columns}: {4 * 2**27 / soft / 1e6:.1f} GB/s")
    return 2 * 4096**3 / ms / 1e9, 8 * 2**28 / copy / 1e6


def main():
    with open(sys.argv[1]) as lines:
        rates = {row["name"]: row["rate"] for row in map(json.loads, lines)}
    cublas, torch_copy = vendor()
    copy = max(torch_copy, rates.get("copy by the driver", 0))

    def best(prefix):
        found = {name: rate for name, rate in rates.items() if name.startswith(prefix)}
        return max(found.items(), key=lambda item: item[1], default=("not timed", 0))

    missed = 0
    for prefix, bar, base, of in (
        ("vector_add f32 2^28", 0.95, copy, "copy"),
        ("softmax f16 1024", 0.80, copy, "copy"),
        ("softmax f16 4096", 0.80, copy, "copy"),
        ("matmul f16 4096", 0.40, cublas, "cuBLAS"),
    ):
        name, rate = best(prefix)
        ratio = rate / base
        missed += ratio < bar
        verdict = "ok" if ratio >= bar else "MISSED"
        print(f"{prefix:<24} {rate:8.1f} = {ratio:.3f} of {of} (bar {bar:.2f}) {verdict}   {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
