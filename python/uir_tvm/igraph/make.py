# SPDX-License-Identifier: Apache-2.0
"""Constructors of iOps that infer the dtype and refuse what breaks the table's rules.

Every one raises `uir_tvm.errors.IGraphError` for a wrong name, attribute, dtype or shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import IGraphError
from .affine import AffineLike, affine
from .iops import mnemonic, problems
from .nodes import IOp, ISlice


def checked(iop: IOp) -> IOp:
    """``iop`` itself, if it keeps the form, dtype and shape rules.

    Raises
    ------
    uir_tvm.errors.IGraphError
        The first rule that it breaks.
    """
    faults = problems(iop)
    if faults:
        rule, text = faults[0]
        where = f"{iop.op} {iop.name}".strip() if rule == "form" else mnemonic(iop)
        raise IGraphError(f"An iOp breaks its {rule} rule: {text}.", where=where)
    return iop


def _made(
    op: str, name: str, dtype: str, targets: Sequence[ISlice], sources: Sequence[ISlice], **attrs: Any
) -> IOp:
    present = {key: value for key, value in attrs.items() if value is not None}
    return checked(IOp(op, name, dtype, targets, sources, present))


def move(
    t: ISlice, s: ISlice, pad: float | None = None, hint: str | None = None, align: int | None = None
) -> IOp:
    """``move.FROM.TO.dtype t, s [pad=, hint=, align=]``; hint ``stream`` bypasses caches.

    ``align`` promises that rows of both slices start at multiples of so many bytes within their pointers.
    """
    return _made("move", "", t.pointer.dtype, [t], [s], pad=pad, hint=hint, align=align)


def sync(t: ISlice, s: ISlice, scope: str) -> IOp:
    """``sync.SCOPE t, s``: a barrier of the units that share ``scope``."""
    return _made("sync", "", t.pointer.dtype, [t], [s], scope=scope)


def unary(name: str, t: ISlice, s: ISlice, params: Sequence[float] = ()) -> IOp:
    """``unary.NAME.dtype t, s [params]``; dtype is that of ``s``."""
    return _made("unary", name, s.pointer.dtype, [t], [s], params=list(params) or None)


def binary(name: str, t: ISlice, a: ISlice, b: ISlice) -> IOp:
    """``binary.NAME.dtype t, a, b``."""
    return _made("binary", name, t.pointer.dtype, [t], [a, b])


def compare(name: str, t: ISlice, a: ISlice, b: ISlice) -> IOp:
    """``compare.NAME.dtype t, a, b``; dtype is that of ``a`` and ``b``, ``t`` is bool."""
    return _made("compare", name, a.pointer.dtype, [t], [a, b])


def select(t: ISlice, mask: ISlice, a: ISlice, b: ISlice) -> IOp:
    """``select.dtype t, mask, a, b``."""
    return _made("select", "", t.pointer.dtype, [t], [mask, a, b])


def broadcast(
    t: ISlice,
    s: ISlice,
    axis: str,
    scope: str = "unit",
    buffer: ISlice | None = None,
    group_size: int | None = None,
) -> IOp:
    """``broadcast.AXIS.SCOPE.dtype t, s [buffer=, group_size=]``."""
    return _made(
        "broadcast",
        "",
        t.pointer.dtype,
        [t],
        [s],
        axis=axis,
        scope=scope,
        buffer=buffer,
        group_size=group_size,
    )


def reduce(
    name: str,
    t: ISlice,
    s: ISlice,
    axis: str,
    scope: str = "unit",
    buffer: ISlice | None = None,
    group_size: int | None = None,
) -> IOp:
    """``reduce.NAME.AXIS.SCOPE.dtype t, s [buffer=, group_size=]``."""
    return _made(
        "reduce",
        name,
        t.pointer.dtype,
        [t],
        [s],
        axis=axis,
        scope=scope,
        buffer=buffer,
        group_size=group_size,
    )


def identity(targets: Sequence[ISlice], sources: Sequence[ISlice]) -> IOp:
    """``identity [t..], [s..]``: both sides are the same bytes."""
    dtype = targets[0].pointer.dtype if targets else ""
    return _made("identity", "", dtype, targets, sources)


def fill(t: ISlice, value: float) -> IOp:
    """``fill.dtype t [value]``."""
    return _made("fill", "", t.pointer.dtype, [t], [], value=value)


def cast(t: ISlice, s: ISlice, round: str | None = None) -> IOp:
    """``cast.FROM.TO t, s [round=]``."""
    return _made("cast", s.pointer.dtype, t.pointer.dtype, [t], [s], round=round)


def iota(t: ISlice, base: AffineLike = 0, row_step: int = 0, col_step: int = 1) -> IOp:
    """``iota.dtype t [base=, row_step=, col_step=]``."""
    return _made(
        "iota", "", t.pointer.dtype, [t], [], base=affine(base), row_step=row_step, col_step=col_step
    )


def transpose(t: ISlice, s: ISlice) -> IOp:
    """``transpose.dtype t, s``."""
    return _made("transpose", "", t.pointer.dtype, [t], [s])


def gather(t: ISlice, s: ISlice, index: ISlice, pad: float | None = None) -> IOp:
    """``gather.dtype t, s, index [pad=]``."""
    return _made("gather", "", t.pointer.dtype, [t], [s, index], pad=pad)


def scatter(t: ISlice, s: ISlice, index: ISlice) -> IOp:
    """``scatter.dtype t, s, index``."""
    return _made("scatter", "", t.pointer.dtype, [t], [s, index])


def contract(t: ISlice, a: ISlice, b: ISlice, accumulate: bool = False) -> IOp:
    """``contract.dtype t, a, b [accumulate=]``: t = a.b, or t += a.b."""
    return _made("contract", "", t.pointer.dtype, [t], [a, b], accumulate=accumulate)
