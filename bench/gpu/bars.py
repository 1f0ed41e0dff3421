"""Times cuBLAS and a copy through PyTorch, reads what gpu_check timed, and prints each bar with its ratio.

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


PRODUCTS = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 512))


def vendor():
    """TFLOP/s of cuBLAS by shape, and GB/s of a copy."""
    import torch

    x = torch.rand(2**28, device="cuda")
    y, z = torch.empty_like(x), torch.rand(2**28, device="cuda")
    copy = 8 * 2**28 / median_ms(lambda: y.copy_(x)) / 1e6
    add = 12 * 2**28 / median_ms(lambda: torch.add(x, z, out=y)) / 1e6
    print(f"torch copy {copy:.1f} GB/s, add {add:.1f} GB/s")
    cublas = {}
    for m, n, k in PRODUCTS:
        a, b = (torch.randn(*shape, device="cuda").bfloat16() for shape in ((m, k), (k, n)))
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        ms = median_ms(lambda: torch.matmul(a, b, out=out))
        cublas[f"{m}x{n}x{k}"] = 2 * m * n * k / ms / 1e9
    return cublas, copy


def main():
    with open(sys.argv[1]) as lines:
        rates = {row["name"]: row["rate"] for row in map(json.loads, lines)}
    cublas, torch_copy = vendor()
    copy = max(torch_copy, rates.get("copy by the driver", 0))

    def best(prefix):
        found = {name: rate for name, rate in rates.items() if (name + " ").startswith(prefix + " ")}
        return max(found.items(), key=lambda item: item[1], default=("not timed", 0))

    bars = [("vector_add f32 2^28", 0.97, copy, "copy")]
    for columns in (256 << i for i in range(8)):
        for kernel in ("softmax", "layer_norm"):
            bars.append((f"{kernel} f16 {columns}", 0.88, copy, "copy"))
    for shape, rate in cublas.items():
        for kernel in ("matmul", "matmul_gelu"):
            bars.append((f"{kernel} bf16 {shape}", 0.85, rate, "cuBLAS"))
    missed = 0
    for prefix, bar, base, of in bars:
        name, rate = best(prefix)
        ratio = rate / base
        missed += ratio < bar
        verdict = "ok" if ratio >= bar else "MISSED"
        print(f"{prefix:<32} {rate:8.1f} = {ratio:.3f} of {of} (bar {bar:.2f}) {verdict}   {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
