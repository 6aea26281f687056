# SPDX-License-Identifier: Apache-2.0
"""Rows of scores that a mask closes: a softmax that gives zeros for them needs no choice after it.

A mask is open where it is not -inf.  What a program says of that, by the mask or by flags, is read back to
one value in memory and the addresses that are read of it (`Openness`); two sayings agree where these do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import prod

import attrs
import numpy as np

from ..frontend.relax_view import axes_of
from ..sizes.open_arithmetic import is_open
from .patterns import producer, reading_counts
from .program import Program, Value, View
from .strided_views import Layout, merge_atoms, rebase

#: Larger constants are not compared element by element.
ELEMENT_LIMIT = 1 << 24


@attrs.frozen(eq=False)
class Openness:
    """Where something is open: at the elements of a value that are true (flags), or not -inf (a mask).

    Attributes
    ----------
    base : Value
    layout : Layout
        Which of its elements are read: dimensions as in what is asked about.
    """

    base: Value
    layout: Layout


def safe_softmax(program: Program) -> None:
    """where(row is open, softmax(score + mask), 0) -> safe_softmax(score + mask).

    A row whose scores are all -inf has no softmax (it is NaN): programs that export attention replace it by
    zeros, as a safe softmax gives them by itself.

    The condition must say of every row that some element of this row of the mask is open, and nothing else.
    Of scores that are NaN or +inf in a row that the mask closes the safe softmax is NaN, as that of PyTorch
    (``torch._safe_softmax``, which asks the sums and not the mask).
    """
    counts = reading_counts(program)
    for select in list(program.ops):
        if select.name != "where" or not _is_zero(select.operands[2]):
            continue
        condition, weights, _ = select.operands
        softmax = producer(weights, "nn.softmax")
        if softmax is None or softmax.call is None or counts[softmax.result] != 1:
            continue
        if not softmax.shape or int(softmax.call.attrs.axis) not in (-1, len(softmax.shape) - 1):
            continue
        total = producer(softmax.operands[0], "add")
        if total is not None and any(_opens_rows(condition, mask) for mask in total.operands):
            softmax.name = "uir.safe_softmax"
            program.replace_value(select.result, softmax.result.view())
    program.remove_dead()


def _opens_rows(condition: View, mask: View) -> bool:
    """Whether the condition is, along each row, that some element of this row of the mask is open."""
    if condition.base.constant is not None and mask.base.constant is not None:
        return _opens_constant_rows(condition, mask)
    asked = {(one.base, _row_key(one.layout, len(mask.shape))) for one in _any_open(condition)}
    return any((one.base, _row_key(one.layout, len(mask.shape))) in asked for one in _open_where(mask))


def _row_key(layout: Layout, rank: int) -> object:
    """Addresses of every row, the row's own without order or repetition: of ``rank`` dimensions the last, and
    those after them, are along the row."""
    *rows, last = layout.dims[:rank]
    along = [atom for dim in (last, *layout.dims[rank:]) for atom in dim if atom[1]]
    return tuple(rows), merge_atoms(sorted(along, key=lambda atom: -atom[1])), layout.offset


def through(layout: Layout, view: View) -> Openness | None:
    """A reading of what has the shape of ``view``, as a reading of the view's base; None where it is none."""
    flat = view.layout.reshape([prod(view.shape)])
    found = rebase(layout, flat) if flat is not None else None
    return None if found is None else Openness(view.base, found)


def _open_where(mask: View) -> Iterator[Openness]:
    """The sayings of where a mask is not -inf."""
    here = Openness(mask.base, mask.layout)
    yield here
    select = mask.base.producer
    if select is None or select.name != "where":
        return
    flags, opened, closed = select.operands
    if _is_finite(opened) and _is_minus_infinity(closed):
        found = through(here.layout, flags)
        if found is not None:
            yield found
            yield from _flags_of_mask(found)


def _any_open(condition: View) -> Iterator[Openness]:
    """The sayings of what a condition finds open: dimensions of the condition, then those it looks along.

    ``max(where(flags, 1, 0)) > 0``, ``max(mask) != -inf``; of a mask without NaN also ``max(mask) > -inf``.
    """
    compare = condition.base.producer
    if compare is None or compare.name not in ("greater", "not_equal"):
        return
    if not _repeats_along_rows(condition):
        return
    reduced, bound = compare.operands
    found = through(condition.layout, reduced)
    maximum = reduced.base.producer
    if found is None or maximum is None or maximum.name != "max" or maximum.call is None:
        return
    source = maximum.operands[0]
    axes = axes_of(maximum.call.attrs.axis, len(source.shape))
    along = tuple(source.layout.dims[axis] for axis in axes)
    kept = tuple(atom for axis, dim in enumerate(source.layout.dims) if axis not in axes for atom in dim)
    outer = rebase(found.layout, Layout((kept,), source.layout.offset))
    if outer is None:
        return
    inside = Openness(source.base, Layout(outer.dims + along, outer.offset))
    if _is_zero(bound):
        ones = source.base.producer
        if ones is not None and ones.name == "where" and _is_positive(ones.operands[1]):
            flags = through(inside.layout, ones.operands[0]) if _is_zero(ones.operands[2]) else None
            if flags is not None:
                yield flags
                yield from _flags_of_mask(flags)
    elif _is_minus_infinity(bound):
        sayings = list(_open_where(View(inside.base, inside.layout)))
        if compare.name == "not_equal" or len(sayings) > 1:  # a choice of two numbers is no NaN
            yield from sayings


def _flags_of_mask(flags: Openness) -> Iterator[Openness]:
    """The mask in flags that are ``mask != -inf``."""
    compare = flags.base.producer
    if compare is not None and compare.name == "not_equal" and _is_minus_infinity(compare.operands[1]):
        found = through(flags.layout, compare.operands[0])
        if found is not None:
            yield found


def _repeats_along_rows(condition: View) -> bool:
    """Whether the condition is the same for every element of a row."""
    return bool(condition.shape) and all(stride == 0 for _, stride in condition.layout.dims[-1])


def _opens_constant_rows(condition: View, mask: View) -> bool:
    """The same of constants, by their elements."""
    if is_open((*mask.shape, *condition.shape)):
        return False
    if max(mask.layout.size, mask.base.size, condition.base.size) > ELEMENT_LIMIT:
        return False
    opened = (_elements(mask) != -np.inf).any(-1, keepdims=True)
    return bool((_elements(condition) == opened).all())


def _elements(view: View) -> np.ndarray:
    """What a view of a constant reads."""
    address = np.full((), view.layout.offset, np.int64)
    for extent, stride in view.layout.atoms:
        address = address[..., None] + np.arange(extent, dtype=np.int64) * stride
    found: np.ndarray = view.base.array.reshape(-1)[address].reshape(view.shape)
    return found


def _is_minus_infinity(view: View) -> bool:
    return view.scalar == -math.inf


def _is_finite(view: View) -> bool:
    return view.scalar is not None and math.isfinite(view.scalar)


def _is_positive(view: View) -> bool:
    return view.scalar is not None and view.scalar > 0


def _is_zero(view: View) -> bool:
    """Whether a view is +0 everywhere."""
    return view.scalar == 0 and math.copysign(1.0, view.scalar) > 0
