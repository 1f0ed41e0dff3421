"""ATen operators that move, select or create elements."""

from __future__ import annotations

import math

import torch

from ..emitter import TensorValue, Unsupported
from .elementwise import common_dtype, operand


def _reshaped(e, out, x, *_, **__):
    return e.reshape(x, out.shape)


def _same(e, out, x, *_, **__):
    return x


def _permute(e, out, x, dims):
    return e.permute(x, dims)


def _t(e, out, x):
    return x if x.rank < 2 else e.permute(x, [1, 0])


def _transpose(e, out, x, first, second):
    if x.rank == 0:
        return x
    order = list(range(x.rank))
    order[first], order[second] = order[second], order[first]
    return e.permute(x, order)


def _expand(e, out, x, *_, **__):
    return e.expand(x, out.shape)


def _select(e, out, x, dim, index):
    dim %= x.rank
    index %= x.shape[dim]
    return e.reshape(e.slice(x, dim, index, index + 1), out.shape)


def _bounds(size, start, end):
    """Start and end as torch clamps them to the size of an axis."""
    start, end = 0 if start is None else start, size if end is None else end
    start = min(max(start + size if start < 0 else start, 0), size)
    end = min(max(end + size if end < 0 else end, start), size)
    return start, end


def _slice(e, out, x, dim=0, start=None, end=None, step=1):
    dim %= x.rank
    start, end = _bounds(x.shape[dim], start, end)
    return x if (start, end, step) == (0, x.shape[dim], 1) else e.slice(x, dim, start, end, step)


def _narrow(e, out, x, dim, start, length):
    return _slice(e, out, x, dim, start, start + length)


def _pieces(e, x, sizes, dim):
    dim %= max(x.rank, 1)
    results, start = [], 0
    for size in sizes:
        results.append(e.slice(x, dim, start, start + size))
        start += size
    return tuple(results)


def _split_with_sizes(e, out, x, sizes, dim=0):
    return _pieces(e, x, sizes, dim)


def _split(e, out, x, size, dim=0):
    return _pieces(e, x, [piece.shape[dim] for piece in out], dim)


def _unbind(e, out, x, dim=0):
    pieces = _pieces(e, x, [1] * x.shape[dim], dim)
    return tuple(e.reshape(piece, shape.shape) for piece, shape in zip(pieces, out))


def _cat(e, out, tensors, dim=0):
    # Empty vectors are neutral, whatever the rank of the others.
    tensors = [e.cast(x, out.dtype) for x in tensors if x.shape != (0,) or len(out.shape) == 1]
    if not tensors:
        return e.full(out.shape, 0, out.dtype)
    return tensors[0] if len(tensors) == 1 else e.op("concat", *tensors, axis=dim % len(out.shape))


def _stack(e, out, tensors, dim=0):
    dim %= len(out.shape)
    shape = [1 if axis == dim else size for axis, size in enumerate(out.shape)]
    return e.op("concat", *(e.reshape(e.cast(x, out.dtype), shape) for x in tensors), axis=dim)


def _repeat(e, out, x, repeats):
    x = e.reshape(x, [1] * (len(repeats) - x.rank) + list(x.shape))
    return x if x.rank == 0 else e.op("tile", x, e.ints(repeats))


def _flip(e, out, x, dims):
    for dim in dims:
        if x.rank:
            dim %= x.rank
            x = e.slice(x, dim, -1, -(2**62), -1)
    return x


def _roll(e, out, x, shifts, dims=()):
    if not dims:
        flat = _roll(e, None, e.reshape(x, [x.numel]), shifts, [0])
        return e.reshape(flat, x.shape)
    for shift, dim in zip(shifts, dims):
        dim %= x.rank
        size = x.shape[dim]
        shift = shift % size if size else 0
        if shift:
            x = e.op("concat", e.slice(x, dim, size - shift, size), e.slice(x, dim, 0, size - shift), axis=dim)
    return x


def _pads(x, padding):
    """Pads of each axis, begins then ends, from torch's pairs that start at the last axis."""
    begins, ends = [0] * x.rank, [0] * x.rank
    for i in range(len(padding) // 2):
        begins[x.rank - 1 - i], ends[x.rank - 1 - i] = padding[2 * i], padding[2 * i + 1]
    return begins + ends


def _constant_pad(e, out, x, padding, value=0):
    if not any(padding):
        return x
    if x.dtype == torch.bool:
        return e.cast(e.op("pad", e.cast(x, torch.uint8), e.ints(_pads(x, padding)),
                           e.number(int(bool(value)), torch.uint8)), torch.bool)
    return e.op("pad", x, e.ints(_pads(x, padding)), operand(e, value, x.dtype))


def _pad(mode):
    return lambda e, out, x, padding: e.op("pad", x, e.ints(_pads(x, padding)), mode=mode)


def _diagonal(e, out, x, offset=0, dim1=0, dim2=1):
    dim1, dim2 = dim1 % x.rank, dim2 % x.rank
    rest = [axis for axis in range(x.rank) if axis not in (dim1, dim2)]
    rows, columns = x.shape[dim1], x.shape[dim2]
    count = out.shape[-1]
    moved = e.reshape(e.permute(x, rest + [dim1, dim2]), [*(x.shape[axis] for axis in rest), rows * columns])
    start = offset if offset >= 0 else -offset * columns
    positions = e.ints(start + i * (columns + 1) for i in range(count))
    return e.op("gather", moved, positions, axis=len(rest))


def _diagonal_scatter(e, out, x, source, offset=0, dim1=0, dim2=1):
    dim1, dim2 = dim1 % x.rank, dim2 % x.rank
    rest = [axis for axis in range(x.rank) if axis not in (dim1, dim2)]
    rows, columns = x.shape[dim1], x.shape[dim2]
    if source.numel == 0:
        return x
    order = rest + [dim1, dim2]
    moved = e.reshape(e.permute(x, order), [*(x.shape[axis] for axis in rest), rows * columns])
    start = offset if offset >= 0 else -offset * columns
    positions = e.ints(start + i * (columns + 1) for i in range(source.shape[-1]))
    written = e.op("scatter_elements", moved, e.expand(positions, source.shape), e.cast(source, x.dtype), axis=len(rest))
    back = e.reshape(written, [x.shape[axis] for axis in order])
    return e.permute(back, [order.index(axis) for axis in range(x.rank)])


def _triangle(upper):
    def row(e, out, x, diagonal=0):
        value = e.cast(x, torch.uint8) if x.dtype == torch.bool else x
        return e.cast(e.op("trilu", value, e.number(diagonal, torch.int64), upper=upper), x.dtype)

    return row


def _strided_positions(shape, stride, offset):
    positions = torch.zeros([1] * len(shape), dtype=torch.int64) + (offset or 0)
    for axis, (size, step) in enumerate(zip(shape, stride)):
        view = [1] * len(shape)
        view[axis] = size
        positions = positions + (torch.arange(size) * step).reshape(view)
    return positions.expand(list(shape))


def _as_strided(e, out, x, size, stride, storage_offset=None):
    with torch.utils._python_dispatch._disable_current_modes():
        positions = _strided_positions(size, stride, storage_offset)
        if positions.numel() and int(positions.max()) >= x.numel:
            raise Unsupported("a view of elements beyond the tensor")
        if torch.equal(positions.flatten(), torch.arange(x.numel)):
            return e.reshape(x, size)
        constant = e.constant(positions.contiguous())
    return e.op("gather", e.reshape(x, [x.numel]), constant, axis=0)


def _as_strided_scatter(e, out, x, source, size, stride, storage_offset=None):
    with torch.utils._python_dispatch._disable_current_modes():
        positions = _strided_positions(size, stride, storage_offset).reshape(-1)
        if positions.numel() and int(positions.max()) >= x.numel:
            raise Unsupported("a view of elements beyond the tensor")
        if positions.unique().numel() != positions.numel():
            raise Unsupported("a write to overlapping elements")
        constant = e.constant(positions.contiguous())
    flat = e.op("scatter_elements", e.reshape(x, [x.numel]), constant,
                e.reshape(e.cast(source, x.dtype), [source.numel]), axis=0)
    return e.reshape(flat, x.shape)


def _slice_scatter(e, out, x, source, dim=0, start=None, end=None, step=1):
    dim %= x.rank
    start, end = _bounds(x.shape[dim], start, end)
    source = e.cast(source, x.dtype)
    if source.numel == 0:
        return x
    source = e.expand(source, [len(range(start, end, step)) if axis == dim else size for axis, size in enumerate(x.shape)])
    if step == 1:
        parts = [e.slice(x, dim, 0, start), source, e.slice(x, dim, end, x.shape[dim])]
        parts = [part for part in parts if part.numel]
        return parts[0] if len(parts) == 1 else e.op("concat", *parts, axis=dim)
    positions = e.ints(range(start, end, step))
    shape = [1] * x.rank
    shape[dim] = positions.shape[0]
    return e.op("scatter_elements", x, e.expand(e.reshape(positions, shape), source.shape), source, axis=dim)


def _select_scatter(e, out, x, source, dim, index):
    dim %= x.rank
    index %= x.shape[dim]
    source = e.reshape(source, [1 if axis == dim else size for axis, size in enumerate(x.shape)])
    return _slice_scatter(e, out, x, source, dim, index, index + 1)


def _nonnegative(e, index, size):
    index = e.cast(index, torch.int64)
    return e.where(index.less(0), index + size, index)


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
        given = [_nonnegative(e, index, size) for index, size in
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


def _index_put(e, out, x, indices, values, accumulate=False, *_):
    if not any(index is not None for index in indices):
        raise Unsupported("a write without an index")
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
    written = e.op("scatter_elements", e.reshape(x, x.shape or (1,)), _nonnegative(e, e.reshape(index, shape), (x.shape or (1,))[dim % rank]),
                   e.reshape(source, shape), axis=dim % rank, reduction=reduction)
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
    if x.rank == 0 or source.rank == 0:
        raise Unsupported("an index of a number")
    shape = [1] * source.rank
    shape[dim] = index.numel
    index = e.expand(e.reshape(e.cast(index, torch.int64), shape), source.shape)
    reduce = {"prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}[reduce]
    return _scatter_reduce(e, out, x, dim, index, source, reduce, include_self)


def _unfold(e, out, x, dim, size, step):
    if x.rank == 0:
        return e.reshape(x, out.shape)
    dim %= x.rank
    count = out.shape[dim]
    positions = e.reshape(e.ints(i * step + j for i in range(count) for j in range(size)), [count, size])
    windows = e.op("gather", x, positions, axis=dim)
    return e.permute(windows, [*range(dim + 1), *range(dim + 2, windows.rank), dim + 1])


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
    order = e.op("cum_sum", e.cast(kept, torch.int64), e.number(0, torch.int64)) - 1
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


def _full(e, out, size, value, **_):
    return e.expand(operand(e, value, out.dtype), out.shape)


def _new_full(e, out, x, size, value, **_):
    return e.expand(operand(e, value, out.dtype), out.shape)


def _filled(number):
    return lambda e, out, *_, **__: e.full(out.shape, number, out.dtype)


def _scalar_tensor(e, out, number, **_):
    return e.number(number, out.dtype)


def _computed_by_torch(function):
    """A row for what depends on numbers alone: a constant."""

    def row(e, out, *arguments, **keywords):
        if any(isinstance(value, TensorValue) for value in (*arguments, *keywords.values())):
            raise Unsupported("sizes that are tensors")
        keywords.update(device="cpu", dtype=out.dtype)
        for name in ("layout", "pin_memory"):
            keywords.pop(name, None)
        with torch.utils._python_dispatch._disable_current_modes():
            return e.constant(function(*arguments, **keywords))

    return row



ROWS = {
    "_reshape_alias": _reshaped,
    "_unsafe_view": _reshaped,
    "alias": _same,
    "arange": _computed_by_torch(torch.arange),
    "as_strided": _as_strided,
    "as_strided_scatter": _as_strided_scatter,
    "bucketize": _bucketize_row,
    "cat": _cat,
    "clone": _same,
    "constant_pad_nd": _constant_pad,
    "contiguous": _same,
    "detach": _same,
    "diagonal": _diagonal,
    "diagonal_scatter": _diagonal_scatter,
    "embedding": _embedding,
    "empty": _filled(0),
    "empty_like": _filled(0),
    "empty_permuted": _filled(0),
    "empty_strided": _filled(0),
    "expand": _expand,
    "eye": _computed_by_torch(torch.eye),
    "flip": _flip,
    "full": _full,
    "full_like": _full,
    "gather": _gather,
    "index": _index,
    "index_put": _index_put,
    "index_reduce": _index_reduce,
    "index_select": _index_select,
    "lift_fresh": _same,
    "lift_fresh_copy": _same,
    "linspace": _computed_by_torch(torch.linspace),
    "logspace": _computed_by_torch(torch.logspace),
    "masked_scatter": _masked_scatter,
    "narrow_copy": _narrow,
    "new_empty": _filled(0),
    "new_empty_strided": _filled(0),
    "new_full": _new_full,
    "new_ones": _filled(1),
    "new_zeros": _filled(0),
    "ones": _filled(1),
    "ones_like": _filled(1),
    "permute": _permute,
    "put": _put,
    "reflection_pad1d": _pad("reflect"),
    "reflection_pad2d": _pad("reflect"),
    "reflection_pad3d": _pad("reflect"),
    "repeat": _repeat,
    "replication_pad1d": _pad("edge"),
    "replication_pad2d": _pad("edge"),
    "replication_pad3d": _pad("edge"),
    "reshape": _reshaped,
    "roll": _roll,
    "scalar_tensor": _scalar_tensor,
    "scatter": _scatter_write,
    "scatter_add": _scatter_add,
    "scatter_reduce": _scatter_reduce,
    "searchsorted": _searchsorted,
    "select": _select,
    "select_scatter": _select_scatter,
    "slice": _slice,
    "slice_scatter": _slice_scatter,
    "split": _split,
    "split_with_sizes": _split_with_sizes,
    "squeeze": _reshaped,
    "stack": _stack,
    "t": _t,
    "transpose": _transpose,
    "tril": _triangle(0),
    "triu": _triangle(1),
    "unbind": _unbind,
    "unfold": _unfold,
    "unsqueeze": _reshaped,
    "view": _reshaped,
    "zeros": _filled(0),
    "zeros_like": _filled(0),
}
# Copies of views: the same elements.
ROWS.update({f"{name}_copy": ROWS[name] for name in
             "alias as_strided detach diagonal expand permute select slice split split_with_sizes squeeze t transpose "
             "unbind unfold unsqueeze view".split()})
