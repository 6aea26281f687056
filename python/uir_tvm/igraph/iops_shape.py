# SPDX-License-Identifier: Apache-2.0
"""Shape rules of the iOps: each says what is wrong with the shapes of one iOp, or None."""

from __future__ import annotations

from .nodes import IOp, ISlice


def _of(piece: ISlice) -> str:
    return f"{piece.pointer.name} ({piece.rows}, {piece.cols})"


def _expect(iop: IOp, wanted: list[tuple[ISlice, tuple[int, int]]]) -> str | None:
    for piece, shape in wanted:
        if piece.shape != shape:
            return f"{_of(piece)} must have the shape {shape}, since the target is {_of(iop.target)}"
    return None


def same(iop: IOp) -> str | None:
    """Every operand has the target's shape."""
    return _expect(iop, [(s, iop.target.shape) for s in iop.sources])


def same_pointer(iop: IOp) -> str | None:
    """Target and source are slices of one pointer (sync)."""
    t, s = iop.target.pointer, iop.sources[0].pointer
    return None if t == s else f"both slices must be of one pointer, not {t.name} and {s.name}"


def identity(iop: IOp) -> str | None:
    """All slices of one pointer, as many elements on each side."""
    names = sorted({s.pointer.name for s in (*iop.targets, *iop.sources)})
    if len(names) > 1:
        return f"all slices must be of one pointer, not of {', '.join(names)}"
    counts = [sum(s.rows * s.cols for s in side) for side in (iop.targets, iop.sources)]
    if counts[0] == counts[1]:
        return None
    return f"the targets have {counts[0]} elements, the sources {counts[1]}"


def _buffer(iop: IOp, elements: int) -> str | None:
    """The sram buffer of a group form holds ``elements`` elements."""
    if iop.attrs["scope"] != "group":
        return None
    buffer = iop.attrs["buffer"]
    if buffer.pointer.level != "sram":
        return f"the buffer {buffer.pointer.name} lies in {buffer.pointer.level}, but units share only sram"
    if iop.attrs["group_size"] < 1:
        return f"the group size {iop.attrs['group_size']} must be positive"
    held = buffer.rows * buffer.cols
    if held >= elements:
        return None
    return f"the buffer {_of(buffer)} holds {held} elements, but {elements} are needed"


def broadcast(iop: IOp) -> str | None:
    """row: (R,C) <- (R,1); col: (R,C) <- (1,C); a group's buffer holds the source once."""
    s, t = iop.sources[0], iop.target
    wanted = (t.rows, 1) if iop.attrs["axis"] == "row" else (1, t.cols)
    return _expect(iop, [(s, wanted)]) or _buffer(iop, s.rows * s.cols)


def reduce(iop: IOp) -> str | None:
    """row: (R,1) <- (R,C); col: (1,C) <- (R,C); a group's buffer holds the target of every unit."""
    s, t = iop.sources[0], iop.target
    wanted = (s.rows, 1) if iop.attrs["axis"] == "row" else (1, s.cols)
    if t.shape != wanted:
        return f"{_of(t)} must have the shape {wanted}, since the source is {_of(s)}"
    return _buffer(iop, t.rows * t.cols * iop.attrs.get("group_size", 1))


def transpose(iop: IOp) -> str | None:
    """(R,C) <- (C,R)."""
    return _expect(iop, [(iop.sources[0], (iop.target.cols, iop.target.rows))])


def gather(iop: IOp) -> str | None:
    """Whole rows: s (N,C), i (R,1); or elements: s (N,1), i (R,C)."""
    t, (s, i) = iop.target, iop.sources
    if i.shape == (t.rows, 1) and s.cols == t.cols:
        return None
    if i.shape == t.shape and s.cols == 1:
        return None
    return (
        f"{_of(s)} indexed by {_of(i)} does not fill {_of(t)}: the index must be ({t.rows}, 1) with "
        f"{t.cols} columns in the table, or ({t.rows}, {t.cols}) with one"
    )


def scatter(iop: IOp) -> str | None:
    """Whole rows: t (N,C), s (R,C), i (R,1); or elements: t (N,1), s (R,C), i (R,C)."""
    t, (s, i) = iop.target, iop.sources
    if i.shape == (s.rows, 1) and s.cols == t.cols:
        return None
    if i.shape == s.shape and t.cols == 1:
        return None
    return (
        f"{_of(s)} at the index {_of(i)} does not go into {_of(t)}: the index must be ({s.rows}, 1) with "
        f"{s.cols} columns in the target, or ({s.rows}, {s.cols}) with one"
    )


def contract(iop: IOp) -> str | None:
    """(M,N) <- (M,K), (K,N)."""
    t, (a, b) = iop.target, iop.sources
    if a.rows != t.rows or b.cols != t.cols or a.cols != b.rows:
        return f"{_of(a)} times {_of(b)} is no {_of(t)}: (M, K) times (K, N) gives (M, N)"
    return None
