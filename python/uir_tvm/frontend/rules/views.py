# SPDX-License-Identifier: Apache-2.0
"""Rules on operators that move elements without changing them: reshape, permute, broadcast, slice, index."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from ...sizes.open_arithmetic import divides, is_one, is_open, structure
from ...sizes.open_arithmetic import same as same_size
from ..fold import fold
from ..relax_view import (
    ELEMENT_LIMIT,
    Shape,
    array_of,
    dtype_of,
    integers,
    is_constant,
    permutation_of,
    shape_of,
    size_of,
)
from .positions import counted
from .rewriter import Rewriter, recall

#: Marks of training and of the placing of parameters.
MARKS = ("grad.no_grad", "grad.start_checkpoint", "grad.end_checkpoint", "builtin.stop_lift_params")
RESHAPES = ("reshape", "expand_dims", "squeeze", "flatten")
#: Operands of one concatenation: each is a choice in every element, and a parameter of a kernel.
MOST_OPERANDS = 24


def view(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """reshape, expand_dims, squeeze, flatten -> one reshape of the earliest value, or nothing at all."""
    shape = shape_of(call)
    return None if shape is None else rewriter.reshape(call.args[0], shape)


def wide_concat(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A concatenation of many values -> of concatenations of few of them, as even as can be."""
    fields = call.args[0].fields if isinstance(call.args[0], tvm.ir.Tuple) else ()
    if len(fields) <= MOST_OPERANDS:
        return None
    parts = -(-len(fields) // MOST_OPERANDS)
    cuts = [len(fields) * part // parts for part in range(parts + 1)]
    axis = call.attrs.axis
    pieces = [
        rewriter.emit(relax.op.concat(list(fields[begin:end]), axis))
        for begin, end in zip(cuts, cuts[1:], strict=False)
    ]
    return rewriter.emit(relax.op.concat(pieces, axis))


def squeeze_before_permute(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A reshape that only drops axes of size 1 from a permutation -> a permutation of fewer axes."""
    inner, target = rewriter.made_by(call.args[0], "permute_dims"), shape_of(call)
    source = None if inner is None else shape_of(inner.args[0])
    if inner is None or source is None or target is None:
        return None
    order = permutation_of(inner, len(source))
    kept: list[int] = []
    for axis in order:
        if len(kept) < len(target) and same_size(source[axis], target[len(kept)]):
            kept.append(axis)
        elif not is_one(source[axis]):
            return None
    if len(kept) != len(target) or len(kept) == len(order):
        return None
    squeezed = rewriter.reshape(inner.args[0], tuple(source[axis] for axis in sorted(kept)))
    return rewriter.emit(relax.op.permute_dims(squeezed, [sorted(kept).index(axis) for axis in kept]))


def unmerge_before_permute(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """Leading axes merged before a permutation of the others and split again after it -> left as they are."""
    permuted, target = rewriter.made_by(call.args[0], "permute_dims"), shape_of(call)
    merge = None if permuted is None else rewriter.made_by(permuted.args[0], "reshape")
    if permuted is None or merge is None or target is None:
        return None
    source, merged = shape_of(merge.args[0]), shape_of(merge)
    if source is None or merged is None or len(source) <= len(merged):
        return None
    order, leading = permutation_of(permuted, len(merged)), len(source) - len(merged) + 1
    restored = (*source[:leading], *(merged[axis] for axis in order[1:]))
    if order[0] != 0 or source[leading:] != merged[1:] or restored != target:
        return None
    axes = [*range(leading), *(axis + leading - 1 for axis in order[1:])]
    return rewriter.emit(relax.op.permute_dims(merge.args[0], axes))


def shape_of_static(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """shape_of(x) -> the shape as numbers."""
    shape = shape_of(call.args[0])
    return None if shape is None else relax.ShapeExpr(shape)


def same(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """What says something of its operand to a pass that does not run here -> the operand."""
    return call.args[0]


def shape_of_constant(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """tensor_to_shape(constant) -> the shape as numbers."""
    (source,) = call.args
    return relax.ShapeExpr([int(n) for n in array_of(source)]) if is_constant(source) else None


def fixed_slice(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """dynamic_strided_slice by constants -> strided_slice."""
    source, *bounds = call.args
    if not all(is_constant(bound) for bound in bounds):
        return None
    begin, end, strides = ([int(n) for n in array_of(bound)] for bound in bounds)
    return rewriter.emit(relax.op.strided_slice(source, list(range(len(begin))), begin, end, strides))


def permute(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """permute(permute(x)) -> permute(x); an order that moves only axes of size 1 -> reshape."""
    source, shape = call.args[0], shape_of(call.args[0])
    if shape is None:
        return None
    axes = permutation_of(call, len(shape))
    moved = [axis for axis in axes if not is_one(shape[axis])]
    if moved == sorted(moved):
        return rewriter.reshape(source, tuple(shape[axis] for axis in axes))
    inner = rewriter.made_by(source, "permute_dims")
    if inner is None:
        return None
    first = permutation_of(inner, len(shape))
    return rewriter.emit(relax.op.permute_dims(inner.args[0], [first[axis] for axis in axes]))


def broadcast(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """broadcast_to that repeats nothing -> reshape; of another broadcast_to -> one."""
    source, target = call.args[0], shape_of(call)
    shape = shape_of(source)
    if shape is None or target is None:
        return None
    if same_size(size_of(shape), size_of(target)):
        return rewriter.reshape(source, target)
    inner = rewriter.made_by(source, "broadcast_to")
    if inner is not None:
        return rewriter.emit(relax.op.broadcast_to(inner.args[0], target))
    return None


def strided_slice(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A slice of everything -> the value; a slice of what is repeated -> fewer repetitions."""
    source, shape, target = call.args[0], shape_of(call.args[0]), shape_of(call)
    axes = integers(call.args[1])
    if shape is None or target is None or axes is None:
        return None
    strides = integers(call.args[4]) if len(call.args) > 4 else (1,) * len(axes)
    whole = structure(shape) == structure(target)  # a slice that is all for some sizes stays one
    if whole and strides is not None and all(stride == 1 for stride in strides):
        return source
    inner = rewriter.made_by(source, "broadcast_to")
    if inner is None:
        return None
    small = shape_of(inner.args[0])
    if small is None:
        return None
    padded = (1,) * (len(shape) - len(small)) + small
    if all(padded[axis % len(shape)] == 1 for axis in axes) and 0 not in target:
        return rewriter.broadcast(inner.args[0], target)
    return None


def slice_before_permute(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """slice(permute(x)) -> permute(slice(x)), which moves only what is kept."""
    inner, axes = rewriter.made_by(call.args[0], "permute_dims"), integers(call.args[1])
    if inner is None or axes is None:
        return None
    source = inner.args[0]
    shape = shape_of(source)
    if shape is None:
        return None
    order = permutation_of(inner, len(shape))
    moved = tuple(order[axis % len(order)] for axis in axes)
    within = bool(call.attrs.assume_inbound)
    piece = rewriter.emit(relax.op.strided_slice(source, moved, *call.args[2:], assume_inbound=within))
    return rewriter.emit(relax.op.permute_dims(piece, order))


def slice_before_reshape(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A slice along an axis that a reshape split off the front of a larger one -> a slice of the larger."""
    inner, shape, target = rewriter.made_by(call.args[0], "reshape"), shape_of(call.args[0]), shape_of(call)
    axes, begin, end = (integers(arg) for arg in call.args[1:4])
    if inner is None or not shape or target is None:
        return None
    if axes is None or begin is None or end is None or len(axes) != 1:
        return None
    strides = integers(call.args[4]) if len(call.args) > 4 else (1,)
    axis, source = axes[0] % len(shape), shape_of(inner.args[0])
    place = _axis_before_split(source, shape, axis) if source and 0 not in shape else None
    if source is None or place is None or strides != (1,) or not 0 <= begin[0] <= end[0] <= shape[axis]:
        return None
    unit = source[place] // shape[axis]
    bounds = [begin[0] * unit], [end[0] * unit]
    within = is_open((*bounds[0], *bounds[1], source[place]))
    piece = relax.op.strided_slice(inner.args[0], [place], *bounds, assume_inbound=within)
    return rewriter.reshape(rewriter.emit(piece), target)


def _axis_before_split(source: Shape, shape: Shape, axis: int) -> int | None:
    """Axis of ``source`` whose outermost part is ``axis`` of the reshaped ``shape``, or None."""
    before = size_of(shape[:axis])
    for place, size in enumerate(source):
        if same_size(size_of(source[:place]), before) and divides(shape[axis], size) and size > shape[axis]:
            inside = [size_of(shape[axis:stop]) for stop in range(axis + 1, len(shape) + 1)]
            return place if any(same_size(size, each) for each in inside) else None
    return None


def constant_indices(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """Indexing by constants that reads every element in order -> reshape."""
    source, shape, target = call.args[0], shape_of(call.args[0]), shape_of(call)
    if shape is None or target is None or is_open(shape + target) or size_of(shape) != size_of(target):
        return None
    if size_of(shape) > ELEMENT_LIMIT:
        return None
    # The call itself, applied to the numbers of the elements, says which element goes where.
    numbers = relax.const(np.arange(size_of(shape), dtype="int64").reshape(shape), "int64")
    moved = fold(rewriter.builder.normalize(recall(call, [numbers, *call.args[1:]])))
    if moved is None or not np.array_equal(array_of(moved).ravel(), np.arange(size_of(shape))):
        return None
    return rewriter.reshape(source, target)


def take_range(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """take by a constant index, or by constant consecutive indices -> slice."""
    source, indices = call.args
    shape, target = shape_of(source), shape_of(call)
    if shape is None or target is None or call.attrs.axis is None:
        return None
    axis = int(call.attrs.axis) % len(shape)
    found = counted(indices, rewriter)
    if found is not None and 0 <= found[0] <= found[1] <= shape[axis]:
        piece = rewriter.emit(relax.op.strided_slice(source, [axis], [found[0]], [found[1]]))
        # of an open size Relax knows only that it is at most the source's
        known = (*shape[:axis], found[1] - found[0], *shape[axis + 1 :])
        return rewriter.reshape(rewriter.cast(piece, relax.TensorType(known, dtype_of(source))), target)
    if not is_constant(indices):
        return None
    array = array_of(indices).ravel()
    if array.size == 0 or array.min() < 0 or array.max() >= shape[axis] or not (np.diff(array) == 1).all():
        return None
    first = int(array[0])
    within = is_open(shape)
    piece = rewriter.emit(
        relax.op.strided_slice(source, [axis], [first], [first + array.size], assume_inbound=within)
    )
    return rewriter.reshape(piece, target)


def pixel_shuffle(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """(..., c * r * r, h, w) -> (..., c, h * r, w * r) by a permutation.

    TVM's own rule names a function that TOPI does not have.
    """
    source, target = shape_of(call.args[0]), shape_of(call)
    if source is None or target is None:
        return None
    r = int(call.attrs.upscale_factor)
    lead, (channels, height, width) = source[:-3], source[-3:]
    n = len(lead)
    apart = rewriter.reshape(call.args[0], (*lead, channels // (r * r), r, r, height, width))
    order = [*range(n + 1), n + 3, n + 1, n + 4, n + 2]
    return rewriter.reshape(rewriter.emit(relax.op.permute_dims(apart, order)), target)
