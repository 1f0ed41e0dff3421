"""ATen operators that reduce or scan axes."""

from __future__ import annotations

import math

import torch

from ..emitter import Unsupported, compute_dtype


def axes_of(x, dim) -> list[int]:
    """Axes that an argument `dim` names: all of them for None and for an empty list."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(x.rank))
    dims = dim if isinstance(dim, (list, tuple)) else [dim]
    return [axis % max(x.rank, 1) for axis in dims]


def _reduction(op):
    def row(e, out, x, dim=None, keepdim=False, **_):
        value = e.cast(x, compute_dtype(out.dtype))
        return e.cast(e.reduce(op, value, axes_of(x, dim), keepdim), out.dtype)

    return row


def _extremum(op):
    def row(e, out, x, dim=(), keepdim=False):
        if x.dtype == torch.bool:
            return e.cast(e.reduce(op, e.cast(x, torch.uint8), axes_of(x, dim), keepdim), torch.bool)
        return e.reduce(op, x, axes_of(x, dim), keepdim)

    return row


def _truth(op, of_nothing):
    """Whether any or all are true; `of_nothing`: over no elements."""

    def row(e, out, x, dim=None, keepdim=False):
        if dim is not None and isinstance(dim, (list, tuple)) and not dim:
            return e.cast(x, out.dtype)
        value = e.cast(e.cast(x, torch.bool), torch.uint8)
        if any(x.shape[axis] == 0 for axis in axes_of(x, dim) if x.rank):
            return e.full(out.shape, of_nothing, out.dtype)
        return e.cast(e.reduce(op, value, axes_of(x, dim), keepdim), out.dtype)

    return row


def _position(op):
    def row(e, out, x, dim=None, keepdim=False):
        value = e.cast(x, torch.uint8) if x.dtype == torch.bool else x
        if x.rank == 0:
            return e.full(out.shape, 0, torch.int64)
        if dim is None:
            value, dim = e.reshape(value, [x.numel]), 0
            return e.reshape(e.op(op, value, axis=0, keepdims=0), out.shape)
        return e.op(op, value, axis=dim % x.rank, keepdims=int(keepdim))

    return row


def _extremum_with_position(reduction, position):
    def row(e, out, x, dim=None, keepdim=False):
        if dim is None:
            return _extremum(reduction)(e, out, x)
        values = _extremum(reduction)(e, out[0], x, dim, keepdim)
        return (values, _position(position)(e, out[1], x, dim, keepdim))

    return row


def _variance_and_mean(e, x, dim, correction, keepdim):
    axes = axes_of(x, dim)
    count = math.prod(x.shape[axis] for axis in axes) if x.rank else 1
    mean = e.reduce("reduce_mean", x, axes, True)
    squares = e.reduce("reduce_sum_square", x - mean, axes, keepdim)
    divisor = max(count - correction, 0.0)
    if not keepdim:
        mean = e.reshape(mean, squares.shape)
    if divisor == 0:
        # 0/0 and x/0 as torch has them.
        return squares / 0.0, mean
    return squares / float(divisor), mean


def _correction(dim, unbiased, correction):
    """The three spellings: var(x, unbiased), var(x, dim, unbiased), var(x, dim, correction=)."""
    if isinstance(dim, bool):
        return None, float(dim)
    if isinstance(unbiased, bool):
        return dim, float(unbiased)
    return dim, 1.0 if correction is None else float(correction)


def _var(e, out, x, dim=None, unbiased=None, keepdim=False, correction=None):
    dim, correction = _correction(dim, unbiased, correction)
    value = e.cast(x, compute_dtype(out.dtype))
    return e.cast(_variance_and_mean(e, value, dim, correction, keepdim)[0], out.dtype)


def _std(e, out, x, dim=None, unbiased=None, keepdim=False, correction=None):
    dim, correction = _correction(dim, unbiased, correction)
    value = e.cast(x, compute_dtype(out.dtype))
    return e.cast(e.op("sqrt", _variance_and_mean(e, value, dim, correction, keepdim)[0]), out.dtype)


def _var_mean(e, out, x, dim=None, unbiased=None, keepdim=False, correction=None):
    dim, correction = _correction(dim, unbiased, correction)
    value = e.cast(x, compute_dtype(out[0].dtype))
    results = _variance_and_mean(e, value, dim, correction, keepdim)
    return tuple(e.cast(result, out[0].dtype) for result in results)


# Elements that one scan adds up: it computes each prefix by itself, at a cost that grows with their square.
SCANNED = 64


def prefix_sums(e, x, axis):
    """Sums of the elements up to each along an axis: within blocks, and of the blocks before."""
    size = x.shape[axis]
    if size <= SCANNED:
        return e.op("cum_sum", x, e.number(axis, torch.int64))
    before, after = x.shape[:axis], x.shape[axis + 1:]
    blocks = -(-size // SCANNED)
    rest = e.full((*before, blocks * SCANNED - size, *after), 0, x.dtype)
    whole = e.op("concat", x, rest, axis=axis) if blocks * SCANNED != size else x
    inside = e.op("cum_sum", e.reshape(whole, (*before, blocks, SCANNED, *after)), e.number(axis + 1, torch.int64))
    totals = e.reshape(e.slice(inside, axis + 1, SCANNED - 1, SCANNED), (*before, blocks, *after))
    ends = e.slice(prefix_sums(e, totals, axis), axis, 0, blocks - 1)
    starts = e.op("concat", e.full((*before, 1, *after), 0, x.dtype), ends, axis=axis)
    sums = inside + e.reshape(starts, (*before, blocks, 1, *after))
    return e.slice(e.reshape(sums, whole.shape), axis, 0, size)


def _cumsum(e, out, x, dim, **_):
    if x.rank == 0:
        return e.cast(x, out.dtype)
    # torch adds up f32 in f64 on a CPU.
    in_double = out.dtype == torch.float32 and out.device.type == "cpu"
    value = e.cast(x, torch.float64 if in_double else compute_dtype(out.dtype))
    return e.cast(prefix_sums(e, value, dim % x.rank), out.dtype)


def _cumprod(e, out, x, dim, **_):
    if x.rank == 0:
        return e.cast(x, out.dtype)
    if x.shape[dim] > SCANNED:
        raise Unsupported("products of many elements")  # those of blocks overflow where a product does not
    value = e.cast(x, compute_dtype(out.dtype))
    return e.cast(e.op("cum_prod", value, e.number(dim % x.rank, torch.int64)), out.dtype)


def _softmax(op, of_one):
    def row(e, out, x, dim, half_to_float=False):
        if x.rank == 0:
            return e.full((), of_one, out.dtype)
        value = e.cast(x, compute_dtype(out.dtype))
        return e.cast(e.op(op, value, axis=dim % x.rank), out.dtype)

    return row


def vector_norm(e, out, x, ord=2, dim=None, keepdim=False, dtype=None):
    value = e.cast(x, compute_dtype(out.dtype))
    axes = axes_of(x, dim)
    if ord == 2:
        result = e.reduce("reduce_l2", value, axes, keepdim)
    elif ord == 1:
        result = e.reduce("reduce_l1", value, axes, keepdim)
    elif ord == 0:
        nonzero = e.cast(e.op("logical_not", value.equals(0)), value.dtype)
        result = e.reduce("reduce_sum", nonzero, axes, keepdim)
    elif math.isinf(ord):
        result = e.reduce("reduce_max" if ord > 0 else "reduce_min", e.op("abs", value), axes, keepdim)
    else:
        power = e.op("pow", e.op("abs", value), e.number(float(ord), value.dtype))
        result = e.op("pow", e.reduce("reduce_sum", power, axes, keepdim), e.number(1.0 / ord, value.dtype))
    return e.cast(result, out.dtype)


def _logsumexp(e, out, x, dim, keepdim=False):
    value = e.cast(x, compute_dtype(out.dtype))
    axes = axes_of(x, dim)
    largest = e.reduce("reduce_max", value, axes, True)
    largest = e.where(e.op("is_inf", largest), 0.0, largest)
    total = e.reduce("reduce_sum", e.op("exp", value - largest), axes, keepdim)
    return e.cast(e.op("log", total) + e.reshape(largest, total.shape), out.dtype)


def _dist(e, out, x, y, p=2):
    return vector_norm(e, out, x - y, p)


def _sort(e, out, x, dim=-1, descending=False, *, stable=None):
    """By top_k, which is stable, and for which NaN is the largest number, as for torch.

    Where torch's order of equal elements is its own matter, as it is for aten.topk, torch sorts.
    """
    if not stable:
        raise Unsupported("the order of equal elements is torch's")
    if x.rank == 0:
        return (x, e.full((), 0, torch.int64))
    value = e.cast(x, torch.uint8) if x.dtype == torch.bool else x
    values, positions = e.op("top_k", value, e.ints([x.shape[dim]]), axis=dim % x.rank, largest=int(descending))
    return (e.cast(values, x.dtype), positions)


ROWS = {
    "all": _truth("reduce_min", True),
    "amax": _extremum("reduce_max"),
    "amin": _extremum("reduce_min"),
    "any": _truth("reduce_max", False),
    "argmax": _position("arg_max"),
    "argmin": _position("arg_min"),
    "cumprod": _cumprod,
    "cumsum": _cumsum,
    "dist": _dist,
    "linalg_vector_norm": vector_norm,
    "logsumexp": _logsumexp,
    "max": _extremum_with_position("reduce_max", "arg_max"),
    "mean": _reduction("reduce_mean"),
    "min": _extremum_with_position("reduce_min", "arg_min"),
    "prod": _reduction("reduce_prod"),
    "sort": _sort,
    "std": _std,
    "sum": _reduction("reduce_sum"),
    "var": _var,
    "var_mean": _var_mean,
    "_log_softmax": _softmax("log_softmax", of_one=0.0),
    "_softmax": _softmax("softmax", of_one=1.0),
}
