"""ATen operators that read or write elements at positions that data says."""

from __future__ import annotations

import math

import torch

from ..emitter import TensorValue, Unsupported
from .elementwise import common_dtype, operand
from .reductions import prefix_sums


def _position(e, index, size, beyond=None):
    """The position that an index means, which counts from the end if it is negative; `beyond` if there is no such element:
    by default the size, and only for indices that are too small, since operators refuse those that are too large."""
    index = e.cast(index, torch.int64)
    position = e.where(index.less(0), index + size, index)
    if beyond is None:
        return e.where(position.less(0), size, position)
    return e.where(e.op("logical_or", position.less(0), position.greater(size - 1)), beyond, position)


def _gather(e, out, x, dim, index, sparse_grad=False):
    index = e.cast(index, torch.int64)
    if x.rank == 0 or index.rank == 0:
        return e.reshape(e.op("gather_elements", e.reshape(x, [max(x.numel, 1)]), e.reshape(index, [1]), axis=0), out.shape)
    if index.numel == 0:
        return e.full(out.shape, 0, out.dtype)
    dim %= x.rank
    for axis in range(x.rank):  # the index may be smaller
        if axis != dim and index.shape[axis] != x.shape[axis]:
            x = e.slice(x, axis, 0, index.shape[axis])
    return e.op("gather_elements", x, index, axis=dim)


def _index_select(e, out, x, dim, index):
    index = e.cast(index, torch.int64)
    if x.rank == 0:
        return x
    return e.op("gather", x, e.reshape(index, [index.numel]), axis=dim % x.rank)


def _embedding(e, out, weight, indices, *_, **__):
    return e.op("gather", weight, e.cast(indices, torch.int64), axis=0)


class _Indexing:
    """Subscripts x[i, :, j]: axes with an index are moved to the front and merged into one."""

    def __init__(self, e, x, indices):
        if any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices):
            raise Unsupported("an index by a mask")
        self.axes = [axis for axis, index in enumerate(indices) if index is not None]
        self.rest = [axis for axis in range(x.rank) if axis not in self.axes]
        self.sizes = [x.shape[axis] for axis in self.axes]
        # The merged index of several is out of range if one of them is.
        beyond = math.prod(self.sizes) if len(self.sizes) > 1 else None
        given = [_position(e, index, size, beyond) for index, size in
                 zip((index for index in indices if index is not None), self.sizes)]
        shape = torch.broadcast_shapes(*(index.shape for index in given))
        linear = given[0]
        for index, size in zip(given[1:], self.sizes[1:]):
            linear = linear * size + index
        self.linear = e.expand(linear, shape)
        self.is_adjacent = self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes)))

    def front(self, e, x):
        moved = e.permute(x, self.axes + self.rest)
        return e.reshape(moved, [math.prod(self.sizes), *(x.shape[axis] for axis in self.rest)])

    def result_order(self):
        """Order of the axes of a result that has those of the index first."""
        count, before = self.linear.rank, self.axes[0] if self.is_adjacent else 0
        total = count + len(self.rest)
        return [*range(count, count + before), *range(count), *range(count + before, total)]


def _index(e, out, x, indices):
    if not any(index is not None for index in indices):
        return x
    how = _Indexing(e, x, indices)
    if len(how.axes) == 1:
        return e.op("gather", x, how.linear, axis=how.axes[0])
    if len(how.axes) > 1 and any(size == 0 for size in how.sizes):
        return e.full(out.shape, 0, out.dtype)
    return e.permute(e.op("gather", how.front(e, x), how.linear, axis=0), how.result_order())


def _put_by_mask(e, x, mask, values, accumulate):
    """x[mask] = values, where each position is given the same values."""
    rest = x.shape[mask.rank:]
    if values.rank > len(rest) and values.numel != 1:
        raise Unsupported("different values for the elements of a mask")
    if accumulate and x.dtype == torch.bool:
        raise Unsupported("a sum of bool")
    values = e.cast(values, x.dtype)
    values = e.expand(e.reshape(values, ()) if values.numel == 1 else values, rest)
    return e.op("where", e.reshape(mask, [*mask.shape, *[1] * len(rest)]), x + values if accumulate else values, x)


def _index_put(e, out, x, indices, values, accumulate=False, *_):
    if not any(index is not None for index in indices):
        raise Unsupported("a write without an index")
    if len(indices) == 1 and indices[0].dtype == torch.bool:
        return _put_by_mask(e, x, indices[0], values, accumulate)
    how = _Indexing(e, x, indices)
    order = how.result_order()
    shape = [*how.linear.shape, *(x.shape[axis] for axis in how.rest)]
    values = e.expand(e.cast(values, x.dtype), [shape[axis] for axis in order])
    inverse = [order.index(axis) for axis in range(len(order))]
    if how.linear.numel == 0 or x.numel == 0:
        return x
    if accumulate and x.dtype == torch.bool:
        raise Unsupported("a sum of bool")
    front = how.front(e, x)
    index = e.reshape(how.linear, [*how.linear.shape, 1])
    written = e.op("scatter_nd", front, index, e.permute(values, inverse), reduction="add" if accumulate else "none")
    back = e.reshape(written, [*how.sizes, *(x.shape[axis] for axis in how.rest)])
    axes = how.axes + how.rest
    return e.permute(back, [axes.index(axis) for axis in range(len(axes))])


def _scatter(e, x, dim, index, source, reduction):
    """Writes source at index along an axis; source may be a number, and larger than the index."""
    index = e.cast(index, torch.int64)
    if index.numel == 0:
        return x
    rank = max(x.rank, 1)
    shape = list(index.shape) or [1]
    if isinstance(source, TensorValue) and source.rank == index.rank:
        for axis, size in enumerate(index.shape):
            if source.shape[axis] != size:
                source = e.slice(source, axis, 0, size)
    source = e.expand(operand(e, source, x.dtype), index.shape)
    target = e.reshape(x, x.shape or (1,))
    positions = _position(e, e.reshape(index, shape), target.shape[dim % rank])
    written = e.op("scatter_elements", target, positions, e.reshape(source, shape), axis=dim % rank, reduction=reduction)
    return e.reshape(written, x.shape)


def _scatter_write(e, out, x, dim, index, source=None, reduce=None, value=None):
    reductions = {None: "none", "add": "add", "multiply": "mul"}
    if x.dtype == torch.bool and reduce is not None:
        raise Unsupported("a reduction of bool")
    return _scatter(e, x, dim, index, value if source is None else source, reductions[reduce])


def _scatter_add(e, out, x, dim, index, source):
    if x.dtype == torch.bool:
        raise Unsupported("a sum of bool")
    return _scatter(e, x, dim, index, source, "add")


def _scatter_reduce(e, out, x, dim, index, source, reduce, include_self=True):
    if x.dtype == torch.bool:
        raise Unsupported("a reduction of bool")
    if reduce == "mean":
        return _scatter_mean(e, x, dim, index, source, include_self)
    reductions = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if not include_self:  # what is written to starts from the neutral element
        x = _scatter(e, x, dim, index, _neutral(x.dtype, reduce), "none")
    return _scatter(e, x, dim, index, source, reductions[reduce])


def _neutral(dtype, reduce):
    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    limits = torch.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


def _scatter_mean(e, x, dim, index, source, include_self):
    if not x.dtype.is_floating_point:
        raise Unsupported("a mean of integers")
    total = x if include_self else _scatter(e, x, dim, index, 0.0, "none")
    total = _scatter(e, total, dim, index, source, "add")
    count = _scatter(e, e.full(x.shape, float(include_self), x.dtype), dim, index, 1.0, "add")
    return total / e.op("max", count, e.number(1.0, x.dtype))


def _index_reduce(e, out, x, dim, index, source, reduce, include_self=True):
    if x.rank == 0:  # as a vector of one element
        result = _index_reduce(e, out, e.reshape(x, [1]), 0, index, e.reshape(source, [source.numel]), reduce, include_self)
        return e.reshape(result, ())
    shape = [1] * source.rank
    shape[dim] = index.numel
    index = e.expand(e.reshape(e.cast(index, torch.int64), shape), source.shape)
    return _scatter_reduce(e, out, x, dim, index, source, reduce, include_self)


def _put(e, out, x, index, source, accumulate=False):
    if accumulate and x.dtype == torch.bool:
        raise Unsupported("a sum of bool")
    if index.numel == 0:
        return x
    flat = _scatter(e, e.reshape(x, [x.numel]), 0, e.reshape(index, [index.numel]),
                    e.reshape(source, [source.numel]), "add" if accumulate else "none")
    return e.reshape(flat, x.shape)


def _masked_scatter(e, out, x, mask, source):
    """Elements of source in order, where the mask holds."""
    x = e.expand(x, out.shape)
    if x.numel == 0 or source.numel == 0:
        return x
    kept = e.reshape(e.expand(mask, x.shape), [x.numel])
    order = prefix_sums(e, e.cast(kept, torch.int64), 0) - 1
    order = e.op("min", e.op("max", order, e.number(0, torch.int64)), e.number(source.numel - 1, torch.int64))
    values = e.op("gather", e.reshape(source, [source.numel]), order, axis=0)
    return e.reshape(e.op("where", kept, values, e.reshape(x, [x.numel])), x.shape)


def _bucketize(e, boundaries, values, right, dtype):
    """The number of boundaries along the last axis that are below each value, or not above it."""
    if boundaries.rank > 1:
        boundaries = e.reshape(boundaries, [*boundaries.shape[:-1], 1, boundaries.shape[-1]])
    if boundaries.shape[-1] * max(values.numel, 1) > 2**24:
        raise Unsupported("a search among many boundaries")
    common = common_dtype(boundaries, values)
    x = e.reshape(e.cast(values, common), [*values.shape, 1])
    below = e.op("less_or_equal" if right else "less", e.cast(boundaries, common), x)
    return e.reduce("reduce_sum", e.cast(below, dtype), [below.rank - 1], False)


def _searchsorted(e, out, boundaries, values, *, out_int32=False, right=False, side=None, sorter=None):
    if sorter is not None or not isinstance(values, TensorValue) or 0 in (boundaries.numel, values.numel):
        raise Unsupported("a search with a sorter, of a number or among no elements")
    return _bucketize(e, boundaries, values, right or side == "right", out.dtype)


def _bucketize_row(e, out, values, boundaries, *, out_int32=False, right=False):
    if not isinstance(values, TensorValue):
        raise Unsupported("a search of a number")
    if boundaries.numel == 0:
        return e.full(out.shape, 0, out.dtype)
    return _bucketize(e, boundaries, values, right, out.dtype)


ROWS = {
    "bucketize": _bucketize_row,
    "embedding": _embedding,
    "gather": _gather,
    "index": _index,
    "index_put": _index_put,
    "index_reduce": _index_reduce,
    "index_select": _index_select,
    "masked_scatter": _masked_scatter,
    "put": _put,
    "scatter": _scatter_write,
    "scatter_add": _scatter_add,
    "scatter_reduce": _scatter_reduce,
    "searchsorted": _searchsorted,
}
