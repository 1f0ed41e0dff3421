"""ATen operators that move, select or create elements."""

from __future__ import annotations

import torch

from ..emitter import TensorValue, Unsupported
from .elementwise import operand


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


def _addressed_elements(memory, size, stride, storage_offset):
    """Indices in a flat tensor of the elements that strides address in its memory, which lies as it was traced."""
    elements = _strided_positions(memory.shape, memory.stride(), memory.storage_offset()).flatten()
    addresses = _strided_positions(size, stride, memory.storage_offset() if storage_offset is None else storage_offset)
    if not addresses.numel():
        return addresses
    table = torch.full([int(max(elements.max(), addresses.max())) + 1], -1)
    table[elements] = torch.arange(elements.numel())
    indices = table[addresses]
    if int(indices.min()) < 0:
        raise Unsupported("a view of elements beyond the tensor")
    return indices


def reads_memory(row):
    """Marks a row whose result depends on the strides of its first operand: `memory` is that operand as it was traced."""
    row.reads_memory = True
    return row


@reads_memory
def _as_strided(e, out, x, size, stride, storage_offset=None, *, memory):
    with torch.utils._python_dispatch._disable_current_modes():
        indices = _addressed_elements(memory, size, stride, storage_offset)
        if torch.equal(indices.flatten(), torch.arange(x.numel)):
            return e.reshape(x, size)
        constant = e.constant(indices.contiguous())
    return e.op("gather", e.reshape(x, [x.numel]), constant, axis=0)


@reads_memory
def _as_strided_scatter(e, out, x, source, size, stride, storage_offset=None, *, memory):
    with torch.utils._python_dispatch._disable_current_modes():
        indices = _addressed_elements(memory, size, stride, storage_offset).reshape(-1)
        if indices.unique().numel() != indices.numel() or torch._debug_has_internal_overlap(memory) == 1:
            raise Unsupported("a write to overlapping elements")
        constant = e.constant(indices.contiguous())
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


def _unfold(e, out, x, dim, size, step):
    if x.rank == 0:
        return e.reshape(x, out.shape)
    dim %= x.rank
    count = out.shape[dim]
    positions = e.reshape(e.ints(i * step + j for i in range(count) for j in range(size)), [count, size])
    windows = e.op("gather", x, positions, axis=dim)
    return e.permute(windows, [*range(dim + 1), *range(dim + 2, windows.rank), dim + 1])


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
    "cat": _cat,
    "clone": _same,
    "constant_pad_nd": _constant_pad,
    "contiguous": _same,
    "detach": _same,
    "diagonal": _diagonal,
    "diagonal_scatter": _diagonal_scatter,
    "empty": _filled(0),
    "empty_like": _filled(0),
    "empty_permuted": _filled(0),
    "empty_strided": _filled(0),
    "expand": _expand,
    "eye": _computed_by_torch(torch.eye),
    "flip": _flip,
    "full": _full,
    "full_like": _full,
    "lift_fresh": _same,
    "lift_fresh_copy": _same,
    "linspace": _computed_by_torch(torch.linspace),
    "logspace": _computed_by_torch(torch.logspace),
    "narrow_copy": _narrow,
    "new_empty": _filled(0),
    "new_empty_strided": _filled(0),
    "new_full": _new_full,
    "new_ones": _filled(1),
    "new_zeros": _filled(0),
    "ones": _filled(1),
    "ones_like": _filled(1),
    "permute": _permute,
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
