"""The example kernels as one writes them in Triton, for bars.py to time beside ours.

    triton_kernels.softmax(x)   layer_norm(x, weight, bias)   add(x, y)
    triton_kernels.matmul(a, b)   matmul(a, b, bias): with GELU   attention(q, k, v, causal)

Tiles of products are the best of a few, tried at the first call of each shape.
"""
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


def add(x, y, out):
    block = 1024
    add_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), BLOCK=block)
    return out


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row + at, at < columns, -float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row + at, powers / tl.sum(powers, 0), at < columns)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row + at, inside, 0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    off = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(off * off, 0) / columns + epsilon)
    result = off * scale * tl.load(weight + at, inside) + tl.load(bias + at, inside)
    tl.store(out + row + at, result, inside)


def shape_of_rows(columns):
    block = triton.next_power_of_2(columns)
    return {"BLOCK": block, "num_warps": min(32, max(1, block // 1024))}


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], **shape_of_rows(x.shape[1]))
    return out


def layer_norm(x, weight, bias):
    out = torch.empty_like(x)
    layer_norm_kernel[(x.shape[0],)](x, weight, bias, out, x.shape[1], 1e-5, **shape_of_rows(x.shape[1]))
    return out


TILES = [triton.Config({"M": m, "N": n, "K": k}, num_stages=stages, num_warps=8)
         for m, n, k, stages in ((128, 256, 64, 3), (128, 256, 64, 4), (128, 128, 64, 4))]


@triton.autotune(configs=TILES, key=["m", "n", "k", "GELU"])
@triton.jit
def matmul_kernel(a, b, bias, out, m, n, k, GELU: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    # Programs go down eight rows of tiles before they go on to the next column, so that both operands stay in the cache.
    down, across = tl.cdiv(m, M), tl.cdiv(n, N)
    program = tl.program_id(0)
    first = program // (8 * across) * 8
    rows = tl.minimum(down - first, 8)
    row, column = first + program % rows, program % (8 * across) // rows
    i, j, at = row * M + tl.arange(0, M), column * N + tl.arange(0, N), tl.arange(0, K)
    left, right = a + i[:, None] * k + at[None, :], b + at[:, None] * n + j[None, :]
    sums = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        sums = tl.dot(tl.load(left), tl.load(right), sums)
        left += K
        right += K * n
    if GELU:
        sums += tl.load(bias + j)[None, :]
        sums = 0.5 * sums * (1.0 + tl.erf(sums * 0.7071067811865476))
    tl.store(out + i[:, None] * n + j[None, :], sums.to(out.dtype.element_ty))


def matmul(a, b, bias=None):
    """Sizes are multiples of the tiles."""
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty(m, n, device=a.device, dtype=a.dtype)
    grid = lambda tiles: (triton.cdiv(m, tiles["M"]) * triton.cdiv(n, tiles["N"]),)
    matmul_kernel[grid](a, b, a if bias is None else bias, out, m, n, k, GELU=bias is not None)
    return out


@triton.autotune(configs=[triton.Config({"Q": 128, "K": keys}, num_stages=stages, num_warps=8)
                          for keys, stages in ((64, 3), (128, 2), (128, 3))], key=["length", "CAUSAL"])
@triton.jit
def attention_kernel(q, k, v, out, length, scale, CAUSAL: tl.constexpr, WIDTH: tl.constexpr, Q: tl.constexpr,
                     K: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * length * WIDTH
    first = tl.program_id(0) * Q
    i, j, at = first + tl.arange(0, Q), tl.arange(0, K), tl.arange(0, WIDTH)
    queries = tl.load(q + head + i[:, None] * WIDTH + at[None, :])
    most = tl.full((Q,), -float("inf"), tl.float32)
    total = tl.zeros((Q,), tl.float32)
    sums = tl.zeros((Q, WIDTH), tl.float32)
    for begin in range(0, first + Q if CAUSAL else length, K):
        keys = tl.load(k + head + (begin + j)[None, :] * WIDTH + at[:, None])
        scores = tl.dot(queries, keys) * (scale * 1.4426950408889634)
        if CAUSAL:
            if begin + K > first:
                scores = tl.where(i[:, None] >= (begin + j)[None, :], scores, -float("inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        powers, fade = tl.exp2(scores - now[:, None]), tl.exp2(most - now)
        total = total * fade + tl.sum(powers, 1)
        values = tl.load(v + head + (begin + j)[:, None] * WIDTH + at[None, :])
        sums = tl.dot(powers.to(values.dtype), values, sums * fade[:, None])
        most = now
    tl.store(out + head + i[:, None] * WIDTH + at[None, :], (sums / total[:, None]).to(out.dtype.element_ty))


def attention(q, k, v, causal):
    """Of heads by length by width; lengths are multiples of the tiles."""
    heads, length, width = q.shape
    out = torch.empty_like(q)
    grid = lambda tiles: (triton.cdiv(length, tiles["Q"]), heads)
    attention_kernel[grid](q, k, v, out, length, width**-0.5, CAUSAL=causal, WIDTH=width)
    return out


def main():
    """Compares each kernel with PyTorch."""
    def draw(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device="cuda").to(dtype)

    functional = torch.nn.functional
    x, w, c = draw(64, 1000, dtype=torch.float16), draw(1000, dtype=torch.float16), draw(1000, dtype=torch.float16)
    a, b, bias = draw(512, 256), draw(256, 1024), draw(1024)
    q, k, v = (draw(4, 512, 128) for _ in range(3))
    for name, found, wanted in (
        ("add", add(x, x, torch.empty_like(x)), x + x),
        ("softmax", softmax(x), torch.softmax(x, -1)),
        ("layer_norm", layer_norm(x, w, c), functional.layer_norm(x, (1000,), w, c, 1e-5)),
        ("matmul", matmul(a, b), a @ b),
        ("matmul, GELU", matmul(a, b, bias), functional.gelu(a @ b + bias)),
        ("attention", attention(q, k, v, False), functional.scaled_dot_product_attention(q, k, v)),
        ("causal attention", attention(q, k, v, True),
         functional.scaled_dot_product_attention(q, k, v, is_causal=True)),
    ):
        off = ((found - wanted).float().abs().max() / wanted.float().square().mean().sqrt()).item()
        print(f"{'ok  ' if off < 0.05 else 'FAIL'} {name}: {off:.1e}")


if __name__ == "__main__":
    main()
