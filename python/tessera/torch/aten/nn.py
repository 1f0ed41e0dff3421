"""ATen operators of neural networks: contractions, convolutions, normalization, pooling, attention."""

from __future__ import annotations

import math

import torch

from ..emitter import Unsupported, compute_dtype, dtype_name
from .reductions import vector_norm


def spatial(values, rank):
    return list(values) * rank if len(values) == 1 else list(values)


def product_dtype(dtype):
    """The type of matmuls and convolutions: 16-bit floats stay, since sums of products are rounded once anyway."""
    return dtype if dtype in (torch.float16, torch.bfloat16) else compute_dtype(dtype)


def _matmul(e, dtype, x, y):
    """A product of matrices; sums are those of the type that torch computes in."""
    dtype = product_dtype(dtype)
    if not dtype.is_floating_point and dtype not in (torch.int32, torch.int64):
        raise Unsupported(f"a product of matrices of {dtype}")
    if x.shape[-1] == 0:
        return e.full((*x.shape[:-1], y.shape[-1]), 0, dtype)
    return e.cast(x, dtype) @ e.cast(y, dtype)


def _mm(e, out, x, y, **_):
    return e.cast(_matmul(e, out.dtype, x, y), out.dtype)


def _mv(e, out, x, y):
    return e.reshape(_mm(e, out, x, e.reshape(y, [y.shape[0], 1])), out.shape)


def _dot(e, out, x, y):
    return e.reshape(_mm(e, out, e.reshape(x, [1, x.shape[0]]), e.reshape(y, [y.shape[0], 1])), ())


def _addmm(e, out, bias, x, y, beta=1, alpha=1):
    product = e.cast(_matmul(e, out.dtype, x, y), compute_dtype(out.dtype))
    if alpha != 1:
        product = product * alpha
    if beta == 0:  # what is not read may be NaN
        return e.cast(product, out.dtype)
    bias = e.cast(bias, product.dtype)
    return e.cast(product + (bias if beta == 1 else bias * beta), out.dtype)


def _addmv(e, out, bias, x, y, beta=1, alpha=1):
    bias = e.reshape(bias, [*bias.shape, 1]) if bias.rank else bias
    return e.reshape(_addmm(e, out, bias, x, e.reshape(y, [y.shape[0], 1]), beta, alpha), out.shape)


def _addbmm(e, out, bias, x, y, beta=1, alpha=1):
    """The sum of the products of a batch."""
    batch, rows, inner = x.shape
    x = e.reshape(e.permute(x, [1, 0, 2]), [rows, batch * inner])
    return _addmm(e, out, bias, x, e.reshape(y, [batch * inner, y.shape[2]]), beta, alpha)


def _cdist(e, out, x, y, p, compute_mode=None):
    if x.numel == 0 or y.numel == 0:
        return e.full(out.shape, 0.0, out.dtype)
    difference = e.reshape(x, [*x.shape[:-1], 1, x.shape[-1]]) - e.reshape(y, [*y.shape[:-2], 1, *y.shape[-2:]])
    return vector_norm(e, out, difference, p, [-1])


def _pdist(e, out, x, p=2):
    pairs = [(i, j) for i in range(x.shape[0]) for j in range(i + 1, x.shape[0])]
    first, second = (e.op("gather", x, e.ints(numbers), axis=0) for numbers in zip(*pairs))
    return vector_norm(e, out, first - second, p, [-1])


def _linear(e, out, x, weight, bias=None):
    product = e.cast(_matmul(e, out.dtype, x, e.permute(weight, [1, 0])), compute_dtype(out.dtype))
    return e.cast(product if bias is None else product + e.cast(bias, product.dtype), out.dtype)


def _convolution(e, out, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    rank = x.rank - 2
    if x.numel == 0 or weight.numel == 0:
        raise Unsupported("a convolution of no elements")
    dtype = product_dtype(out.dtype)
    operands = [e.cast(x, dtype), e.cast(weight, dtype)] + ([] if bias is None else [e.cast(bias, dtype)])
    attributes = dict(strides=spatial(stride, rank), pads=spatial(padding, rank) * 2,
                      dilations=spatial(dilation, rank), group=groups)
    if transposed:
        attributes["output_padding"] = spatial(output_padding, rank)
    return e.cast(e.op("conv_transpose" if transposed else "conv", *operands, **attributes), out.dtype)


def _per_channel(e, x, vector):
    return e.reshape(vector, [1, vector.shape[0]] + [1] * (x.rank - 2))


def _batch_norm_inference(e, out, x, weight, bias, mean, var, momentum, eps):
    result = out[0]
    dtype = compute_dtype(result.dtype)
    channels = x.shape[1]
    weight = e.full([channels], 1.0, dtype) if weight is None else e.cast(weight, dtype)
    bias = e.full([channels], 0.0, dtype) if bias is None else e.cast(bias, dtype)
    y = e.op("batch_normalization", e.cast(x, dtype), weight, bias, e.cast(mean, dtype), e.cast(var, dtype), epsilon=eps)
    y = e.cast(y[0] if isinstance(y, tuple) else y, result.dtype)
    if 0 in out[1].shape:
        return (y, *(e.full(meta.shape, 0.0, meta.dtype) for meta in out[1:3]))
    # On a GPU, the statistics that were used are results too.
    rstd = 1.0 / e.op("sqrt", e.cast(var, out[2].dtype) + eps)
    return (y, e.cast(mean, out[1].dtype), rstd)


def _batch_norm_training(e, out, x, weight, bias, running_mean, running_var, training, momentum, eps):
    dtype = compute_dtype(x.dtype)
    value = e.cast(x, dtype)
    if not training:
        result = _batch_norm_inference(e, out, x, weight, bias, running_mean, running_var, momentum, eps)
        return (*result, running_mean, running_var)[: len(out)]
    axes = [axis for axis in range(x.rank) if axis != 1]
    count = math.prod(x.shape[axis] for axis in axes)
    mean = e.reduce("reduce_mean", value, axes, True)
    centered = value - mean
    var = e.reduce("reduce_mean", centered * centered, axes, True)
    rstd = 1.0 / e.op("sqrt", var + eps)
    y = centered * rstd
    if weight is not None:
        y = y * _per_channel(e, x, e.cast(weight, dtype))
    if bias is not None:
        y = y + _per_channel(e, x, e.cast(bias, dtype))
    mean, var, rstd = (e.reshape(v, [x.shape[1]]) for v in (mean, var, rstd))
    results = [e.cast(y, x.dtype), e.cast(mean, out[1].dtype), e.cast(rstd, out[2].dtype)]
    if len(out) > 3:
        unbiased = var * (count / max(count - 1, 1))
        for running, new, meta in ((running_mean, mean, out[3]), (running_var, unbiased, out[4])):
            if running is None:
                results.append(None)
                continue
            old = e.cast(running, dtype)
            results.append(e.cast(old * (1 - momentum) + new * momentum, meta.dtype))
    return tuple(results)


def _batch_norm_no_stats(e, out, x, weight, bias, *rest):
    """_native_batch_norm_legit: with running statistics, which it would change, or without."""
    if len(rest) > 3:
        raise Unsupported("batch normalization that changes its arguments")
    return _batch_norm_training(e, out, x, weight, bias, None, None, *rest)


def _layer_norm(e, out, x, shape, weight, bias, eps):
    dtype = compute_dtype(x.dtype)
    value = e.cast(x, dtype)
    count = len(shape)
    scale = e.full(shape, 1.0, dtype) if weight is None else e.cast(weight, dtype)
    bias = None if bias is None else e.cast(bias, dtype)
    results = e.op("layer_normalization", value, scale, bias, axis=x.rank - count, epsilon=eps,
                   stash_type=dtype_name(dtype), outputs=3)
    return tuple(e.cast(result, meta.dtype) for result, meta in zip(results, out))


def _group_norm(e, out, x, weight, bias, n, c, spatial, groups, eps):
    if n == 0:
        return tuple(e.full(result.shape, 0, result.dtype) for result in out)
    if x.numel == 0:
        raise Unsupported("normalization of no elements")
    dtype = compute_dtype(x.dtype)
    grouped = e.reshape(e.cast(x, dtype), [n, groups, c // groups * spatial])
    mean = e.reduce("reduce_mean", grouped, [2], True)
    var = e.reduce("reduce_mean", (grouped - mean) * (grouped - mean), [2], True)
    rstd = 1.0 / e.op("sqrt", var + eps)
    weight = e.full([c], 1.0, dtype) if weight is None else e.cast(weight, dtype)
    bias = e.full([c], 0.0, dtype) if bias is None else e.cast(bias, dtype)
    y = e.reshape((grouped - mean) * rstd, x.shape)
    y = y * _per_channel(e, x, weight) + _per_channel(e, x, bias)
    return (e.cast(y, x.dtype), *(e.cast(e.reshape(v, [n, groups]), m.dtype) for v, m in zip((mean, rstd), out[1:])))


def _batched(e, x, rank):
    """x with a batch axis, as pooling has it."""
    return x if x.rank == rank + 2 else e.reshape(x, (1, *x.shape))


def _pool_attributes(rank, kernel, stride, padding, dilation, ceil_mode):
    return dict(kernel_shape=spatial(kernel, rank), strides=spatial(stride or kernel, rank),
                pads=spatial(padding, rank) * 2, dilations=spatial(dilation, rank), ceil_mode=int(ceil_mode))


def _max_pool(rank):
    def row(e, out, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
        value = _batched(e, x, rank)
        if not x.dtype.is_floating_point or x.numel == 0:
            raise Unsupported("pooling of integers or of no elements")
        attributes = _pool_attributes(rank, kernel, stride, padding, dilation, ceil_mode)
        y, indices = e.op("max_pool", value, outputs=2, **attributes)
        plane = math.prod(x.shape[-rank:])
        indices = e.op("mod", indices, e.number(plane, torch.int64))
        return (e.reshape(y, out[0].shape), e.reshape(indices, out[1].shape))

    return row


def _average_pool(rank):
    def row(e, out, x, kernel, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
        if x.numel == 0 or not x.dtype.is_floating_point:
            raise Unsupported("pooling of integers or of no elements")
        attributes = _pool_attributes(rank, kernel, stride, padding, [1], ceil_mode)
        if divisor_override is not None and ceil_mode:
            raise Unsupported("divisor_override with ceil_mode")
        value = e.cast(_batched(e, x, rank), compute_dtype(x.dtype))
        counts_pads = count_include_pad or divisor_override is not None
        y = e.op("average_pool", value, count_include_pad=int(counts_pads), **attributes)
        if divisor_override is not None:
            y = y * (math.prod(attributes["kernel_shape"]) / divisor_override)
        return e.cast(e.reshape(y, out.shape), x.dtype)

    return row


def adaptive_windows(size, count):
    """Windows of adaptive pooling along an axis."""
    return [range(i * size // count, -((-(i + 1) * size) // count)) for i in range(count)]


def weighted_sums(e, x, axis, terms):
    """Sums along an axis: each result is that of a list of (position, weight). Other positions do not count, not even if they
    are NaN, as they would in a matmul."""
    longest = max(map(len, terms))
    rows = [[*row, *[(0, None)] * (longest - len(row))] for row in terms]
    with torch.utils._python_dispatch._disable_current_modes():
        positions = e.constant(torch.tensor([[position for position, _ in row] for row in rows]))
        shape = [len(terms), longest] + [1] * (x.rank - 1 - axis)
        weights = torch.tensor([[weight or 0.0 for _, weight in row] for row in rows], dtype=torch.float64).reshape(shape)
        is_term = e.constant(weights != 0)
        weights = e.constant(weights.to(x.dtype))
    operands = e.op("gather", x, positions, axis=axis)
    return e.reduce("reduce_sum", e.where(is_term, operands, 0.0) * weights, [axis + 1], False)


def _adaptive_average_pool(rank):
    def row(e, out, x, output_size):
        if x.numel == 0:
            raise Unsupported("pooling of no elements")
        value = e.cast(x, compute_dtype(x.dtype))
        sizes, counts = x.shape[-rank:], out.shape[-rank:]
        if all(count == 1 for count in counts):
            axes = range(x.rank - rank, x.rank)
            return e.cast(e.reduce("reduce_mean", value, axes, True), x.dtype)
        if all(size % count == 0 for size, count in zip(sizes, counts)):
            steps = [size // count for size, count in zip(sizes, counts)]
            y = e.op("average_pool", _batched(e, value, rank), kernel_shape=steps, strides=steps)
            return e.cast(e.reshape(y, out.shape), x.dtype)
        # Means over windows of different sizes, along one axis after the other.
        for axis, (size, count) in enumerate(zip(sizes, counts)):
            terms = [[(j, 1 / len(window)) for j in window] for window in adaptive_windows(size, count)]
            value = weighted_sums(e, value, x.rank - rank + axis, terms)
        return e.cast(value, x.dtype)

    return row


def _attention(e, q, k, v, mask, is_causal, scale, dtype):
    dtype = product_dtype(dtype)
    q, k, v = (e.cast(x, dtype) for x in (q, k, v))
    if 0 in (*q.shape, *k.shape, *v.shape):
        raise Unsupported("attention over no elements")
    if mask is not None and mask.dtype != torch.bool:
        mask = e.cast(mask, q.dtype)
    if dtype != compute_dtype(dtype):  # the operator would round the scale too
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
        q, scale = e.cast(e.cast(q, compute_dtype(dtype)) * factor, dtype), 1.0
    attributes = {} if scale is None else {"scale": float(scale)}
    y = e.op("attention", q, k, v, mask, is_causal=int(is_causal), **attributes)
    return y[0] if isinstance(y, tuple) else y


def _flash_attention_cpu(e, out, q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p:
        raise Unsupported("attention with dropout")
    y = e.cast(_attention(e, q, k, v, attn_mask, is_causal, scale, q.dtype), q.dtype)
    return (y, LazyValue(lambda: _log_sum_exp(e, q, k, attn_mask, is_causal, scale, out[1].dtype)))


def _gpu_attention(with_bias):
    """Attention as torch traces it on a GPU; of its results, only the first is computed."""

    def row(e, out, q, k, v, *rest, dropout_p=0.0, is_causal=False, scale=None, **_):
        bias, rest = (rest[0], rest[2:]) if with_bias else (None, rest)
        dropout_p, is_causal = (*rest, *(dropout_p, is_causal)[len(rest):])[:2]
        if dropout_p:
            raise Unsupported("attention with dropout")
        y = e.cast(_attention(e, q, k, v, bias, is_causal, scale, q.dtype), q.dtype)
        return (y, *(None for _ in out[1:]))

    return row


def _trilinear(e, out, x, y, z, expand1, expand2, expand3, sumdim, unroll_dim=1):
    def spread(t, axes):
        shape = list(t.shape)
        for axis in sorted(axes):
            shape.insert(axis, 1)
        return e.reshape(t, shape)

    product = spread(x, expand1) * spread(y, expand2) * spread(z, expand3)
    return e.reduce("reduce_sum", product, sumdim, False)


def _adaptive_max_pool(rank):
    def row(e, out, x, output_size):
        sizes, counts = x.shape[-rank:], out[0].shape[-rank:]
        if any(size % count for size, count in zip(sizes, counts)) or not x.dtype.is_floating_point:
            raise Unsupported("windows of different sizes")
        steps = [size // count for size, count in zip(sizes, counts)]
        return _max_pool(rank)(e, out, x, steps, steps)

    return row


def _grid_sample(e, out, x, grid, mode, padding, align_corners):
    if x.numel == 0:
        raise Unsupported("sampling of no elements")
    dtype = compute_dtype(x.dtype)
    y = e.op("grid_sample", e.cast(x, dtype), e.cast(grid, dtype), mode=("linear", "nearest", "cubic")[mode],
             padding_mode=("zeros", "border", "reflection")[padding], align_corners=int(align_corners))
    return e.cast(y, x.dtype)


class LazyValue:
    """An output that is emitted where it is used."""

    def __init__(self, emit):
        self.emit = emit


def scores(e, q, k, mask, is_causal, scale):
    """Scores of attention before the softmax."""
    dtype = compute_dtype(q.dtype)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    products = (e.cast(q, dtype) @ e.permute(e.cast(k, dtype), [0, 1, 3, 2])) * scale
    if mask is not None:
        bias = e.where(mask, 0.0, e.number(-math.inf, dtype)) if mask.dtype == torch.bool else e.cast(mask, dtype)
        products = products + bias
    if is_causal:
        rows, columns = q.shape[-2], k.shape[-2]
        with torch.utils._python_dispatch._disable_current_modes():
            kept = e.constant(torch.ones(rows, columns, dtype=torch.bool).tril())
        products = e.where(kept, products, -math.inf)
    return products


def _log_sum_exp(e, q, k, mask, is_causal, scale, dtype):
    """Of a query that sees no key, it is 0, as torch has it."""
    products = scores(e, q, k, mask, is_causal, scale)
    largest = e.reduce("reduce_max", products, [3], True)
    blind = largest.equals(-math.inf)
    largest = e.where(blind, 0.0, largest)
    total = e.reduce("reduce_sum", e.op("exp", products - largest), [3], False)
    return e.cast(e.op("log", e.where(e.reshape(blind, total.shape), 1.0, total)) + e.reshape(largest, total.shape), dtype)


def _resize(mode, **fixed):
    def row(e, out, x, *arguments, **_):
        align_corners = bool(arguments[1]) if mode != "nearest" and len(arguments) > 1 else False
        if x.numel == 0 or not x.dtype.is_floating_point:
            raise Unsupported("resizing of integers or of no elements")
        scales = next((a for a in reversed(arguments) if isinstance(a, (list, tuple)) and a
                       and all(isinstance(s, float) for s in a)), None)
        rank = x.rank - 2
        ratio = [o / i for o, i in zip(out.shape[2:], x.shape[2:])]
        if scales is None:
            numbers = [a for a in arguments if isinstance(a, float)]
            scales = numbers[-rank:] if len(numbers) >= rank else None
        if scales is not None and not align_corners and any(abs(s - r) > 1e-12 for s, r in zip(scales, ratio)):
            raise Unsupported("resizing by a scale that is not the ratio of the sizes")
        attributes = dict(mode=mode, axes=list(range(2, x.rank)), **fixed)
        if align_corners:
            attributes["coordinate_transformation_mode"] = "align_corners"
        value = e.cast(x, compute_dtype(x.dtype))
        return e.cast(e.op("resize", value, None, None, e.ints(out.shape[2:]), **attributes), x.dtype)

    return row


_NEAREST = dict(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
_LINEAR = dict(coordinate_transformation_mode="pytorch_half_pixel")

ROWS = {
    "_adaptive_avg_pool2d": _adaptive_average_pool(2),
    "_adaptive_avg_pool3d": _adaptive_average_pool(3),
    "_native_batch_norm_legit": _batch_norm_no_stats,
    "_native_batch_norm_legit_functional": _batch_norm_training,
    "_native_batch_norm_legit_no_training": _batch_norm_inference,
    "_scaled_dot_product_cudnn_attention": _gpu_attention(with_bias=True),
    "_scaled_dot_product_efficient_attention": _gpu_attention(with_bias=True),
    "_scaled_dot_product_flash_attention": _gpu_attention(with_bias=False),
    "_scaled_dot_product_flash_attention_for_cpu": _flash_attention_cpu,
    "_trilinear": _trilinear,
    "adaptive_avg_pool1d": _adaptive_average_pool(1),
    "_cdist_forward": _cdist,
    "_pdist_forward": _pdist,
    "adaptive_max_pool2d": _adaptive_max_pool(2),
    "adaptive_max_pool3d": _adaptive_max_pool(3),
    "addbmm": _addbmm,
    "addmm": _addmm,
    "addmv": _addmv,
    "avg_pool1d": _average_pool(1),
    "avg_pool2d": _average_pool(2),
    "avg_pool3d": _average_pool(3),
    "baddbmm": _addmm,
    "bmm": _mm,
    "convolution": _convolution,
    "dot": _dot,
    "grid_sampler_2d": _grid_sample,
    "grid_sampler_3d": _grid_sample,
    "linear": _linear,
    "max_pool2d_with_indices": _max_pool(2),
    "max_pool3d_with_indices": _max_pool(3),
    "mm": _mm,
    "mv": _mv,
    "native_group_norm": _group_norm,
    "native_layer_norm": _layer_norm,
    "upsample_bilinear2d": _resize("linear", **_LINEAR),
    "upsample_linear1d": _resize("linear", **_LINEAR),
    "upsample_nearest1d": _resize("nearest", **_NEAREST),
    "upsample_nearest2d": _resize("nearest", **_NEAREST),
    "upsample_nearest3d": _resize("nearest", **_NEAREST),
    "upsample_trilinear3d": _resize("linear", **_LINEAR),
}
