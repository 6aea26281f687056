# SPDX-License-Identifier: Apache-2.0
"""The part of a pointer that each unit, or each group, has to itself.

All accesses of the pointer have addresses ``P + R``: P depends on pid alone and is the same in all of them,
R does not.  With a number N, R and P are split into whole multiples of N and rests, so that an address is a
point (high, low) of a plane with N columns; the part of one owner is then the box that P moves about, and
parts are told apart by their boxes.  Without N there is one row.  Packed, the box is the part's own memory.

What is found holds; finding nothing says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from ..igraph.affine import Affine, Term, affine, var
from ..igraph.nodes import ISlice
from ..verify.access import Access
from ..verify.region import PID

#: Owners whose boxes are compared pairwise; above it only boxes on a grid of their own size are told apart.
MAX_PAIRS = 1024
#: Owners whose places are computed; where sizes decide how many there are, there may be any number.
MAX_OWNERS = 1 << 20
#: How many numbers N are tried.
MAX_MODULI = 4


@attrs.frozen(eq=False)
class PackedPart:
    """One owner's part, packed.

    Attributes
    ----------
    size : int
        Elements.
    slices : Mapping[int, tuple[Affine, tuple[int, int]]]
        Offset and strides of each access in it, by the access's place in the list.
    """

    size: int
    slices: Sequence[tuple[Affine, tuple[int, int]]]


@attrs.frozen(eq=False)
class _SplitAccess:
    """An access: base terms (the owner's), the other terms, the constant."""

    base: tuple[Term, ...]
    rest: tuple[Term, ...]
    constant: int
    access: Access


def part_of(
    accesses: Sequence[Access], num_owners: int, units: int, sharers: int, own_loops: Iterable[str]
) -> PackedPart | None:
    """The part of each owner, if no two owners share an element; None when that is not proved.

    Parameters
    ----------
    accesses : sequence of Access
        All of one pointer.
    num_owners : int
        How many units or groups there are.
    units : int
        Units per owner: 1, or those of a group.
    sharers : int
        Owners with consecutive numbers that share the memory now; others have memory of their own.
    own_loops : iterable of str
        Loops around all accesses of which every iteration reads only what it wrote: their place in the
        addresses does not matter.
    """
    if num_owners > MAX_OWNERS:
        return None
    splits = [_split(access, units, set(own_loops)) for access in accesses]
    known = [s for s in splits if s is not None]
    if len(known) < len(splits) or len({tuple(sorted(map(_text, s.base))) for s in known}) != 1:
        return None
    found = [
        part
        for modulus in (None, *_moduli(known))
        if (part := _packed(known, modulus, num_owners, units, sharers)) is not None
    ]
    return min(found, key=lambda part: part.size, default=None)


def _split(access: Access, units: int, own_loops: set[str]) -> _SplitAccess | None:
    offset = access.slice.offset
    base: list[Term] = []
    rest: list[Term] = []
    for term in offset.terms:
        variables = set(term.expr.variables())
        if variables == {PID}:
            divided = _by_group(term, units)
            if divided is None:
                return None
            base.extend(divided[0].terms)
            rest.extend(divided[1].terms)
        elif PID in variables:
            return None
        elif variables <= own_loops:
            base.append(term)
        else:
            rest.append(term)
    return _SplitAccess(tuple(base), tuple(rest), int(offset.constant), access)


def _by_group(term: Term, units: int) -> tuple[Affine, Affine] | None:
    """A term of pid as (what is equal in a group of ``units``, the rest); None where it does not divide."""
    nothing = affine(0)
    if units == 1:
        return term.expr, nothing
    pid, c = var(PID), term.coeff
    group, unit = pid // units, pid % units
    if term.kind == "var":
        return group * (c * units), unit * c
    if str(term.inner) != str(pid):
        return None
    k = int(term.divisor)
    if k % units == 0:
        if term.kind == "floordiv":
            return term.expr, nothing
        return (group % (k // units)) * (c * units), unit * c
    if units % k == 0:
        if term.kind == "floordiv":
            return group * (c * units // k), (unit // k) * c
        return nothing, term.expr
    return None


def _text(term: Term) -> str:
    return str(term.expr)


def _moduli(splits: Sequence[_SplitAccess]) -> list[int]:
    """The numbers N worth trying: distances of rows, the largest first."""
    found: set[int] = set()
    for s in splits:
        found |= {abs(t.coeff) for t in (*s.base, *s.rest)} | {stride for _, stride in _sides(s.access.slice)}
    return sorted((n for n in found if n > 1), reverse=True)[:MAX_MODULI]


def _sides(piece: ISlice) -> list[tuple[int, int]]:
    """(extent, stride) of the axes that have more than one element."""
    sides = ((int(piece.rows), int(piece.row_stride)), (int(piece.cols), int(piece.col_stride)))
    return [side for side in sides if side[0] > 1]


@attrs.define
class _Interval:
    low: int = 0
    high: int = 0

    def add(self, low: int, high: int) -> None:
        self.low, self.high = self.low + low, self.high + high

    def join(self, other: _Interval) -> None:
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    @property
    def length(self) -> int:
        return self.high - self.low + 1


def _packed(
    splits: Sequence[_SplitAccess], modulus: int | None, num_owners: int, units: int, sharers: int
) -> PackedPart | None:
    boxes = [_box(s, modulus) for s in splits]
    high, low = _Interval(*attrs.astuple(boxes[0][0])), _Interval(*attrs.astuple(boxes[0][1]))
    for h, w in boxes[1:]:
        high.join(h)
        low.join(w)
    base_high, base_low = _bases(splits[0], modulus, num_owners, units)
    if modulus is not None and int(base_low.max() - base_low.min()) + low.length > modulus:
        return None  # a row would reach into the next
    # rows of their own for those who do not share
    height = high.length
    rows_of_all = -(-(int(base_high.max() - base_high.min()) + height) // height) * height
    base_high = base_high + np.arange(num_owners) // sharers * rows_of_all
    if not _disjoint(base_high, height, base_low, low.length):
        return None
    width = low.length
    slices = []
    for s in splits:
        offset = affine(0)
        for term in s.rest:
            offset = offset + _scaled(term, modulus, width)
        rows, rest = (0, s.constant) if modulus is None else divmod(s.constant, modulus)
        offset = offset + (rows - high.low) * width + (rest - low.low)
        piece = s.access.slice
        strides = tuple(
            _stride(int(stride), modulus, width) for stride in (piece.row_stride, piece.col_stride)
        )
        slices.append((offset, (strides[0], strides[1])))
    return PackedPart(high.length * width, slices)


def _scaled(term: Term, modulus: int | None, width: int) -> Affine:
    value = term.expr
    if modulus is None or term.coeff % modulus:
        return value
    return term.atom * (term.coeff // modulus * width)


def _stride(stride: int, modulus: int | None, width: int) -> int:
    return stride if modulus is None or stride % modulus else stride // modulus * width


def _box(s: _SplitAccess, modulus: int | None) -> tuple[_Interval, _Interval]:
    """Where the access reaches, apart from its base: the ranges of high and low."""
    high, low = _Interval(), _Interval()
    space = s.access.region.space

    def add(coefficient: int, first: int, last: int) -> None:
        whole = modulus is not None and coefficient % modulus == 0
        c = coefficient // modulus if whole and modulus is not None else coefficient
        (high if whole else low).add(min(c * first, c * last), max(c * first, c * last))

    for term in s.rest:
        first, last = space.range(term.atom)
        add(int(term.coeff), first, last)
    for extent, stride in _sides(s.access.slice):
        add(stride, 0, extent - 1)
    rows, rest = (0, s.constant) if modulus is None else divmod(s.constant, modulus)
    high.add(rows, rows)
    low.add(rest, rest)
    return high, low


def _bases(
    s: _SplitAccess, modulus: int | None, num_owners: int, units: int
) -> tuple[np.ndarray, np.ndarray]:
    """(high, low) of every owner's base; own loops, equal for all owners, stay out."""
    pid = np.arange(num_owners, dtype=np.int64) * units
    high, low = np.zeros_like(pid), np.zeros_like(pid)
    for term in s.base:
        if PID not in term.expr.variables():
            continue
        values = np.broadcast_to(term.atom.values({PID: pid}), pid.shape)
        if modulus is not None and term.coeff % modulus == 0:
            high = high + term.coeff // modulus * values
        else:
            low = low + term.coeff * values
    return high, low


def _disjoint(high: np.ndarray, height: int, low: np.ndarray, width: int) -> bool:
    """Whether boxes of one size at these corners do not meet."""
    if len(high) == 1:
        return True
    h, w = high - high.min(), low - low.min()
    if not (h % height).any() and not (w % width).any():
        return len(np.unique(np.stack([h // height, w // width]), axis=1).T) == len(high)
    if len(high) > MAX_PAIRS:
        return False
    near_h = np.abs(h[:, None] - h[None, :]) < height
    near_w = np.abs(w[:, None] - w[None, :]) < width
    return int((near_h & near_w).sum()) == len(high)
