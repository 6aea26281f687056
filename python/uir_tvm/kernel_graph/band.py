# SPDX-License-Identifier: Apache-2.0
"""Masks that are rules about rows and columns, not data: a causal mask, a sliding window.

A mask that is 0 where ``first <= j - i <= last`` and -inf elsewhere, added to scores or choosing between them
and -inf, becomes that rule.  Nothing of it is then read from memory, and blocks of keys that it closes can be
left out.  It may be a constant, or be computed of positions:
``where(arange(n) <= arange(n)[:, None], 0, -inf)``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from tvm import te, tirx

from ..frontend.relax_view import integer
from ..library.integer_matmul_attrs import EXACT
from ..sizes.open_arithmetic import ends_of, is_open, structure
from ..sizes.open_size import AnySize, expression
from .closed_rows import through
from .program import Op, View

#: Name of the step `scores where the band is, else -inf`.
BAND = "uir.band"
#: Larger constants are not looked at element by element.
ELEMENT_LIMIT = 1 << 26


@attrs.frozen
class Band:
    """The keys that are open to a query: ``first <= j - i <= last``; None is no bound.

    Bounds may be open sizes: of keys of which queries are the last, ``last`` is how many come before.
    """

    first: AnySize | None = attrs.field(default=None, eq=structure)
    last: AnySize | None = attrs.field(default=None, eq=structure)

    def both(self, other: Band) -> Band:
        """What two bands have in common."""
        firsts = [b.first for b in (self, other) if b.first is not None]
        lasts = [b.last for b in (self, other) if b.last is not None]
        return Band(max(firsts, default=None), min(lasts, default=None))

    def opens_rows(self, rows: Any, keys: Any) -> bool:
        """Whether every row has an open key, as far as that is known."""
        if self.last is not None and (is_open((self.last,)) or self.last < 0):
            return False
        if self.first is None:
            return True
        return not is_open((rows, keys, self.first)) and bool(rows - 1 + self.first < keys)

    def is_exact(self, rows: AnySize, keys: AnySize) -> bool:
        """Whether all places and bounds are whole numbers of fp32."""
        bounds = [bound for bound in (self.first, self.last) if bound is not None]
        ends = [ends_of(size) for size in (rows, keys, *bounds)]
        far = [max(-low, high) for low, high in ends if low is not None and high is not None]
        return len(far) == len(ends) and sum(far) < EXACT

    def tensor(self, scores: Any, in_floats: bool = False) -> Any:
        """The step as a tensor expression, with places compared in fp32 if asked for (`is_exact`)."""

        def sides(key: Any, row: Any, bound: AnySize) -> tuple[Any, Any]:
            """A key, and the last or the first that is open, to be compared."""
            end = row + expression(bound)
            if not in_floats:
                return key, end
            return key.astype("float32") - end.astype("float32"), tirx.const(0, "float32")

        def body(*at: Any) -> Any:
            row, key = at[-2], at[-1]
            open_here = [] if self.last is None else [operator.le(*sides(key, row, self.last))]
            open_here += [] if self.first is None else [operator.ge(*sides(key, row, self.first))]
            lowest = tirx.const(float("-inf"), scores.dtype)
            return tirx.Select(tirx.all(*open_here), scores(*at), lowest)

        return te.compute(scores.shape, body, "band")


def band_of(name: str, operands: Sequence[View | None]) -> Band | None:
    """The band that an elementwise step on scores leaves open; None where it does another thing.

    Parameters
    ----------
    name : str
        ``add`` or ``where``; others leave none.
    operands : sequence
        Views of the scores' shape; None where the scores flow in.
    """
    if name == "add":
        (mask,) = [view for view in operands if view is not None]
        band, infinite = _added(mask)
        shape = mask.shape[-2:]
    elif name == "where" and operands[1] is None:
        flags, _, closed = operands
        if flags is None or closed is None or not _closes_by(closed):
            return None
        band, infinite, shape = _open_by(flags), closed.scalar == -math.inf, flags.shape[-2:]
    elif name == "where" and operands[2] is None:
        flags, closed, _ = operands
        if flags is None or closed is None or not _closes_by(closed):
            return None
        band, infinite, shape = _open_without(flags), closed.scalar == -math.inf, flags.shape[-2:]
    else:
        return None
    if band is None or band == Band():
        return None
    # a row that is closed all over by a finite number weighs its keys alike; by -inf it has no weights
    return band if infinite or band.opens_rows(*shape) else None


def _added(mask: View) -> tuple[Band | None, bool]:
    """The band of a mask that is added, a constant or a choice between 0 and -inf; whether that is -inf."""
    select = mask.base.producer
    if select is not None and select.name == "where":
        flags, opened, closed = select.operands
        found = through(mask.layout, flags) if opened.scalar == 0 and _closes_by(closed) else None
        band = None if found is None else _open_by(View(found.base, found.layout))
        return band, closed.scalar == -math.inf
    values = _matrix(mask)
    if values is None or not _closes(values[values != 0], mask.base.dtype).all():
        return None, False
    return _of_flags(values == 0), bool((values[values != 0] == -math.inf).all())


def _open_by(flags: View) -> Band | None:
    """The band in which flags are true."""
    op = flags.base.producer
    if op is None:
        values = _matrix(flags)
        if values is not None:
            return _of_flags(values.astype(bool))
        return Band() if flags.scalar is not None and flags.scalar else None
    if op.name == "logical_and":
        parts = [through(flags.layout, operand) for operand in op.operands]
        bands = [None if part is None else _open_by(View(part.base, part.layout)) for part in parts]
        known = [band for band in bands if band is not None]
        return known[0].both(known[1]) if len(known) == 2 else None
    return _compared(op.name, op, flags) if op.name in _COMPARISONS else None


def _open_without(flags: View) -> Band | None:
    """The band in which flags are false."""
    op = flags.base.producer
    if op is None:
        values = _matrix(flags)
        return None if values is None else _of_flags(~values.astype(bool))
    if op.name in ("logical_not", "bitwise_not"):
        inner = through(flags.layout, op.operands[0])
        return None if inner is None else _open_by(View(inner.base, inner.layout))
    return _compared(_OPPOSITES[op.name], op, flags) if op.name in _OPPOSITES else None


#: Comparison -> (which operand is the greater one, how much greater it is at least).
_COMPARISONS = {"less_equal": (1, 0), "less": (1, 1), "greater_equal": (0, 0), "greater": (0, 1)}
#: Comparison -> the one that holds where it does not.
_OPPOSITES = {
    "less_equal": "greater",
    "less": "greater_equal",
    "greater_equal": "less",
    "greater": "less_equal",
}


def _compared(name: str, op: Op, flags: View) -> Band | None:
    """The band in which a comparison of an operator's operands holds."""
    sides = [through(flags.layout, operand) for operand in op.operands]
    lines = [None if side is None else _line(View(side.base, side.layout)) for side in sides]
    known = [line for line in lines if line is not None]
    if len(known) != 2:
        return None
    greater, least = _COMPARISONS[name]
    room = known[greater] - known[1 - greater]  # at least ``least`` where it is open
    if room.row == 0 or room.key != -room.row:
        return None
    step, rest = abs(room.row), room.start - least
    return Band(last=rest // step) if room.row > 0 else Band(first=-(rest // step))


@attrs.frozen
class _Positions:
    """``row * i + key * j + start``."""

    row: int = 0
    key: int = 0
    start: AnySize = 0

    def __sub__(self, other: _Positions) -> _Positions:
        return _Positions(self.row - other.row, self.key - other.key, self.start - other.start)

    def __add__(self, other: _Positions) -> _Positions:
        return _Positions(self.row + other.row, self.key + other.key, self.start + other.start)


def _line(view: View) -> _Positions | None:
    """Positions as a line in row and column; None where they are none."""
    if view.base.dtype not in ("int32", "int64"):
        return None
    if isinstance(view.scalar, int):
        return _Positions(start=view.scalar)
    op = view.base.producer
    if op is None or op.name == "arange":
        return _ramp(view, op)
    parts = [through(view.layout, operand) for operand in op.operands]
    lines = [None if part is None else _line(View(part.base, part.layout)) for part in parts]
    known = [line for line in lines if line is not None]
    if len(known) != len(lines):
        return None
    if op.name == "astype":
        return known[0]
    if op.name in ("add", "subtract"):
        return known[0] + known[1] if op.name == "add" else known[0] - known[1]
    return None


def _ramp(view: View, op: Op | None) -> _Positions | None:
    """Positions that are a constant of even steps, or ``arange``."""
    if op is not None:
        start, step = (integer(op.call.args[k]) for k in (0, 2)) if op.call is not None else (None, None)
    else:
        if view.base.constant is None or view.base.size < 2:
            return None
        values = view.base.array.reshape(-1)
        start, step = int(values[0]), int(values[1]) - int(values[0])
        if not np.array_equal(values, start + step * np.arange(values.size)):
            return None
    dims = view.layout.dims
    walked = [stride for dim in dims[:-2] for _, stride in dim]
    if start is None or step is None or any(walked) or any(len(dim) > 1 for dim in dims[-2:]):
        return None
    row, key = (dim[0][1] if dim else 0 for dim in dims[-2:])
    offset = view.layout.offset
    if not all(isinstance(number, int) for number in (row, key, offset, step)):
        return None
    return _Positions(step * row, step * key, start + step * offset)


def _matrix(view: View) -> np.ndarray | None:
    """A constant that is the same for all but the last two axes."""
    if view.base.constant is None or is_open(view.shape) or len(view.shape) < 2:
        return None
    layout = view.layout
    if any(stride for dim in layout.dims[:-2] for _, stride in dim):
        return None
    rows, keys = view.shape[-2:]
    if rows * keys > ELEMENT_LIMIT or view.base.size < keys:
        return None
    address = np.full((), layout.offset, np.int64)
    for extent, stride in (atom for dim in layout.dims[-2:] for atom in dim):
        address = address[..., None] + np.arange(extent, dtype=np.int64) * stride
    return np.asarray(view.base.array.reshape(-1)[address.reshape(rows, keys)])


def _closes_by(number: View) -> bool:
    value = number.scalar
    return value is not None and bool(_closes(np.asarray(value), number.base.dtype).all())


def _closes(values: np.ndarray, dtype: str) -> np.ndarray:
    """Where a mask closes: -inf, or the least finite number, beside which no score counts."""
    return values <= (np.finfo(dtype).min if dtype in ("float16", "float32", "float64") else -np.inf)


def _of_flags(flags: np.ndarray) -> Band | None:
    """The band that a matrix of flags is; None where it is none, or all of the matrix."""
    rows, keys = flags.shape
    row, key = np.nonzero(flags)
    if not row.size or flags.all():
        return None
    apart = key - row
    first, last = int(apart.min()), int(apart.max())
    if row.size != (np.tri(rows, keys, last, bool) & ~np.tri(rows, keys, first - 1, bool)).sum():
        return None
    return Band(first if first > 1 - rows else None, last if last < keys - 1 else None)
