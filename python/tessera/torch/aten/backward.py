"""ATen operators of backward passes that stay whole."""

from __future__ import annotations

import itertools
import math

import torch

from ..emitter import Unsupported, compute_dtype
from .nn import adaptive_windows, product_dtype, scores, spatial, weighted_sums


def _grouped_transpose(e, x, groups):
    """[N, G c, …] as [c, G N, …]: the batch becomes the channels of each group."""
    n, channels, *sizes = x.shape
    split = e.reshape(x, [n, groups, channels // groups, *sizes])
    moved = e.permute(split, [2, 1, 0, *range(3, split.rank)])
    return e.reshape(moved, [channels // groups, groups * n, *sizes])


def _conv_weight_gradient(e, x, grad, window, stride, padding, dilation, groups):
    """Gradient of the weights of a convolution: [F, C/G, window]."""
    return e.op("conv_weight_gradient", x, grad, kernel_shape=list(window), strides=stride, pads=padding * 2,
                dilations=dilation, group=groups)


def _conv_weight_gradient_by_conv(e, x, grad, window, stride, padding, dilation, groups):
    """The same as a convolution of x by grad, whose taps are as far apart as the windows were."""
    image = _grouped_transpose(e, x, groups)
    taps = e.permute(grad, [1, 0, *range(2, grad.rank)])
    product = e.op("conv", image, taps, strides=list(dilation), dilations=list(stride), pads=list(padding) * 2, group=groups)
    for axis, size in enumerate(window):
        if product.shape[2 + axis] != size:
            product = e.slice(product, 2 + axis, 0, size)
    return e.permute(product, [1, 0, *range(2, product.rank)])


def _conv_input_gradient(e, grad, weight, sizes, stride, padding, dilation, groups):
    """Gradient of the image of a convolution, whose sizes are given.

    With strides, by sub-pixel decomposition: pixels whose position (with padding) has remainder r by the stride see the
    taps r, r + stride, … alone, so that each remainder is a transposed convolution of stride 1.
    """
    rank = len(sizes)
    if all(s == 1 for s in stride) or any(d != 1 for d in dilation):
        missing = [
            size - ((o - 1) * s - 2 * p + d * (k - 1) + 1)
            for size, o, s, p, d, k in zip(sizes, grad.shape[2:], stride, padding, dilation, weight.shape[2:])
        ]
        return e.op("conv_transpose", grad, weight, strides=stride, pads=padding * 2, dilations=dilation, group=groups,
                    output_padding=missing)
    channels = weight.shape[1] * groups
    counts = [-(-(size + p) // s) for size, s, p in zip(sizes, stride, padding)]  # positions of each remainder
    parts = []
    for remainder in itertools.product(*(range(s) for s in stride)):
        if any(r >= k for r, k in zip(remainder, weight.shape[2:])):
            parts.append(e.full([grad.shape[0], channels, *counts], 0.0, grad.dtype))
            continue
        taps = weight
        for axis in range(rank):
            if stride[axis] != 1:
                taps = e.slice(taps, 2 + axis, remainder[axis], weight.shape[2 + axis], stride[axis])
        part = e.op("conv_transpose", grad, taps, strides=[1] * rank, group=groups)
        excess = [part.shape[2 + axis] - counts[axis] for axis in range(rank)]
        if any(excess):
            part = e.op("pad", part, e.ints([0] * (2 + rank) + [0, 0] + [-x for x in excess]), e.number(0.0, grad.dtype))
        parts.append(part)
    # [remainders…, N, C, positions…] to [N, C, position, remainder, …].
    stacked = e.op("concat", *(e.reshape(part, [1, *part.shape]) for part in parts), axis=0)
    stacked = e.reshape(stacked, [*stride, *parts[0].shape])
    order = [rank, rank + 1]
    for axis in range(rank):
        order += [rank + 2 + axis, axis]
    whole = e.reshape(e.permute(stacked, order), [grad.shape[0], channels, *(c * s for c, s in zip(counts, stride))])
    for axis in range(rank):
        whole = e.slice(whole, 2 + axis, padding[axis], padding[axis] + sizes[axis])
    return whole


def _convolution_backward(e, out, grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
                          groups, mask):
    if transposed or 0 in (grad.numel, x.numel, weight.numel):
        raise Unsupported("the gradient of a transposed convolution, or of no elements")
    rank = x.rank - 2
    stride, padding, dilation = (spatial(values, rank) for values in (stride, padding, dilation))
    dtype = product_dtype(x.dtype)
    g, image, kernel = e.cast(grad, dtype), e.cast(x, dtype), e.cast(weight, dtype)
    results = [None, None, None]
    if mask[0]:
        results[0] = _conv_input_gradient(e, g, kernel, x.shape[2:], stride, padding, dilation, groups)
    if mask[1]:
        on_cpu = next(gradient for gradient in out if gradient is not None).device.type == "cpu"
        # Groups of several channels are no matmuls that fill tensor cores, and too many reductions.
        is_depthwise = weight.shape[1] == 1
        weight_gradient = _conv_weight_gradient if on_cpu or groups == 1 or is_depthwise else _conv_weight_gradient_by_conv
        results[1] = weight_gradient(e, image, g, weight.shape[2:], stride, padding, dilation, groups)
    if mask[2]:
        results[2] = e.reduce("reduce_sum", e.cast(grad, compute_dtype(x.dtype)), [0, *range(2, grad.rank)], False)
    return tuple(None if r is None else e.cast(r, x.dtype) for r in results)


def _attention_backward(e, out, grad, q, k, v, result, log_sum_exp, dropout_p=0.0, is_causal=False, *, attn_mask=None,
                        scale=None):
    if dropout_p or 0 in (q.numel, k.numel):
        raise Unsupported("the gradient of attention with dropout, or of no elements")
    dtype = compute_dtype(q.dtype)
    products = scores(e, q, k, attn_mask, is_causal, scale)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    total = e.reshape(e.cast(log_sum_exp, dtype), [*log_sum_exp.shape, 1])
    # A row whose keys are all masked has no weights.
    blind = total.equals(-math.inf)
    weights = e.where(blind, 0.0, e.op("exp", products - e.where(blind, 0.0, total)))
    g, q, k, v, result = (e.cast(t, dtype) for t in (grad, q, k, v, result))
    swap = [0, 1, 3, 2]
    share = e.reduce("reduce_sum", g * result, [3], True)
    of_scores = weights * (g @ e.permute(v, swap) - share) * scale
    results = (of_scores @ k, e.permute(of_scores, swap) @ q, e.permute(weights, swap) @ g)
    return tuple(e.cast(r, meta.dtype) for r, meta in zip(results, out))


def _batch_norm_backward(e, out, grad, x, weight, running_mean, running_var, saved_mean, saved_rstd, train, eps, mask):
    """Gradients of a batch norm; what is not asked for is None."""
    if 0 in (grad.numel, x.numel):
        raise Unsupported("the gradient of a normalization of no elements")
    dtype = compute_dtype(x.dtype)
    axes = [axis for axis in range(x.rank) if axis != 1]
    inverse_count = 1.0 / math.prod(x.shape[axis] for axis in axes)
    # On a GPU, sums keep their axes, so that what is computed of them is in their group.
    keeps = next(gradient for gradient in out if gradient is not None).device.type != "cpu"
    shape = [1, x.shape[1]] + [1] * (x.rank - 2)

    def of_channels(vector):
        """A vector as sums are."""
        return e.reshape(e.cast(vector, dtype), shape) if keeps else e.cast(vector, dtype)

    def spread(value):
        return value if keeps else e.reshape(value, shape)

    if train:
        mean, rstd = of_channels(saved_mean), of_channels(saved_rstd)
    else:
        mean, rstd = of_channels(running_mean), 1.0 / e.op("sqrt", of_channels(running_var) + eps)
    g = e.cast(grad, dtype)
    centered = e.cast(x, dtype) - spread(mean)
    total = e.reduce("reduce_sum", g, axes, keeps)
    product = e.reduce("reduce_sum", g * centered, axes, keeps)
    results = [None, None, None]
    if mask[0]:
        dx = g
        if train:
            dx = dx - centered * spread(product * inverse_count * (rstd * rstd)) - spread(total * inverse_count)
        dx = dx * spread(rstd if weight is None else rstd * of_channels(weight))
        results[0] = e.cast(dx, x.dtype)
    if mask[1] and weight is not None:
        results[1] = e.cast(e.reshape(product * rstd, [x.shape[1]]), out[1].dtype)
    if mask[2]:
        results[2] = e.cast(e.reshape(total, [x.shape[1]]), out[2].dtype)
    return tuple(results)


def _max_pool_backward(rank):
    def row(e, out, grad, x, kernel, stride, padding, dilation, ceil_mode, indices):
        planes, size, count = math.prod(x.shape[:-rank]), math.prod(x.shape[-rank:]), math.prod(grad.shape[-rank:])
        if 0 in (x.numel, grad.numel):
            raise Unsupported("pooling of no elements")
        if out.device.type != "cpu" and x.dtype.is_floating_point:
            # Writes to computed positions are in order: on a GPU, each element rather looks for the windows that name it.
            image = (1, *x.shape[-rank - 1:]) if x.rank == rank + 1 else x.shape
            windows = (*image[:2], *grad.shape[-rank:])
            dx = e.op("max_pool_gradient", e.reshape(grad, windows), e.reshape(indices, windows), sizes=list(x.shape[-rank:]),
                      kernel_shape=spatial(kernel, rank), strides=spatial(stride or kernel, rank),
                      pads=spatial(padding, rank) * 2, dilations=spatial(dilation, rank), ceil_mode=int(ceil_mode))
            return e.reshape(dx, x.shape)
        dtype = compute_dtype(x.dtype)
        written = e.op("scatter_elements", e.full([planes, size], 0.0, dtype), e.reshape(indices, [planes, count]),
                       e.reshape(e.cast(grad, dtype), [planes, count]), axis=1, reduction="add")
        return e.cast(e.reshape(written, x.shape), x.dtype)

    return row


def _average_pool_backward(e, out, grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    kernel = spatial(kernel, 2)
    stride, padding = spatial(stride or kernel, 2), spatial(padding, 2)
    if ceil_mode or x.numel == 0:
        raise Unsupported("pooling with ceil_mode, or of no elements")
    dtype = compute_dtype(x.dtype)
    g = e.cast(grad, dtype)
    planes = math.prod(x.shape[:-2])
    g = e.reshape(g, [planes, 1, *grad.shape[-2:]])
    if divisor_override is not None or count_include_pad or not any(padding):
        g = g * (1.0 / (divisor_override or math.prod(kernel)))
    else:
        with torch.utils._python_dispatch._disable_current_modes():
            inside = torch.nn.functional.avg_pool2d(torch.ones(1, 1, *x.shape[-2:], dtype=dtype), kernel, stride, padding)
            g = g * e.constant(1.0 / (inside * math.prod(kernel)))
    missing = [size - ((o - 1) * s - 2 * p + k)
               for size, o, s, p, k in zip(x.shape[-2:], grad.shape[-2:], stride, padding, kernel)]
    spread = e.op("conv_transpose", g, e.full([1, 1, *kernel], 1.0, dtype), strides=stride, pads=padding * 2,
                  output_padding=missing)
    return e.cast(e.reshape(spread, x.shape), x.dtype)


def _adaptive_average_pool_backward(e, out, grad, x):
    if x.numel == 0:
        raise Unsupported("pooling of no elements")
    value = e.cast(grad, compute_dtype(x.dtype))
    if grad.shape[-2:] == (1, 1):
        return e.cast(e.expand(value * (1.0 / math.prod(x.shape[-2:])), x.shape), x.dtype)
    for axis in (x.rank - 2, x.rank - 1):
        windows = adaptive_windows(x.shape[axis], grad.shape[axis])
        terms = [[(i, 1 / len(window)) for i, window in enumerate(windows) if j in window] for j in range(x.shape[axis])]
        value = weighted_sums(e, value, axis, terms)
    return e.cast(value, x.dtype)


ROWS = {
    "_adaptive_avg_pool2d_backward": _adaptive_average_pool_backward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "avg_pool2d_backward": _average_pool_backward,
    "convolution_backward": _convolution_backward,
    "native_batch_norm_backward": _batch_norm_backward,
    "max_pool2d_with_indices_backward": _max_pool_backward(2),
    "max_pool3d_with_indices_backward": _max_pool_backward(3),
}
