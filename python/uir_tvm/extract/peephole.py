# SPDX-License-Identifier: Apache-2.0
"""An accumulator that is filled and then updated once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..igraph import IOp, ISlice, Loop, make, walk_body
from ..igraph.dtypes import dtype_of
from ..igraph.iops_scalar import BINARY, REDUCE

#: Unary forms of accumulations, where the other operand is the number that was filled.
_SCALAR = {name: str(BINARY[name].scalar_forms[0]) for name in REDUCE}


def fold_inits(body: Sequence[Any]) -> list[Any]:
    """Fold ``fill a [x]; ...; binary.op a, a, p`` into what p is.

    Before::

        fill a [0.0]
        reduce.add.row.unit p, x
        binary.add a, a, p

    After, where x is the identity of the operation::

        reduce.add.row.unit a, x

    and ``unary.adds a, p [x]`` in place of the binary otherwise.  Only where both iOps stand in one
    body, a is not touched in between, and both write the same slice.
    """
    nodes: list[Any] = [
        Loop(n.var, n.extent, fold_inits(n.body), n.attrs) if isinstance(n, Loop) else n for n in body
    ]
    at = 0
    while at < len(nodes):
        if isinstance(nodes[at], IOp) and nodes[at].op == "fill":
            other = _accumulation(nodes, at)
            if other is not None:
                nodes = _folded(nodes, at, other)
                continue
        at += 1
    return nodes


def _accumulation(nodes: Sequence[Any], at: int) -> int | None:
    """The position of the update of what ``nodes[at]`` fills."""
    target = nodes[at].target
    for k in range(at + 1, len(nodes)):
        node = nodes[k]
        if isinstance(node, Loop):
            if _touches(node, target):
                return None
        elif any(piece.pointer.name == target.pointer.name for piece in node.slices()):
            same = (
                node.op == "binary" and node.target == node.sources[0] and _same_elements(node.target, target)
            )
            once = same and node.sources[1].pointer.name != target.pointer.name and node.name in _SCALAR
            return k if once and dtype_of(node.dtype).kind != "bool" else None
    return None


def _same_elements(a: ISlice, b: ISlice) -> bool:
    """Whether two slices are the same elements in the same order, be they a row or a column."""
    return a == b or (_vector(a) is not None and _vector(a) == _vector(b))


def _vector(piece: ISlice) -> tuple[Any, ...] | None:
    """(pointer, offset, length, stride, begin, end) of a slice with one row or one column."""
    row_begin, row_end, col_begin, col_end = piece.valid
    if piece.rows == 1 and row_begin is None and row_end is None:
        line = (piece.cols, piece.col_stride, str(col_begin), str(col_end))
    elif piece.cols == 1 and col_begin is None and col_end is None:
        line = (piece.rows, piece.row_stride, str(row_begin), str(row_end))
    else:
        return None
    return (str(piece.pointer.name), str(piece.offset), *line)


def _touches(loop: Loop, piece: ISlice) -> bool:
    name = piece.pointer.name
    return any(s.pointer.name == name for iop, _ in walk_body(loop.body) for s in iop.slices())


def _folded(nodes: list[Any], fill: int, update: int) -> list[Any]:
    value, iop = nodes[fill].attrs["value"], nodes[update]
    before = nodes[update - 1]
    rest = nodes[:fill] + nodes[fill + 1 : update]
    neutral = value == REDUCE[iop.name].identity(iop.dtype)
    made_here = (
        isinstance(before, IOp)
        and before.op == "reduce"
        and before.target == iop.sources[1]
        and update - 1 > fill
    )
    if neutral and made_here:
        # the partial result is a temporary of this leaf, read nowhere else
        attrs = dict(before.attrs)
        direct = IOp("reduce", before.name, before.dtype, [iop.target], before.sources, attrs)
        return [*rest[:-1], direct, *nodes[update + 1 :]]
    scalar = make.unary(_SCALAR[iop.name], iop.target, iop.sources[1], [value])
    return [*rest, scalar, *nodes[update + 1 :]]
