# SPDX-License-Identifier: Apache-2.0
"""An accumulator that is filled and then updated once is made at once.

Before::

    fill a [0.0];  reduce.add.row.unit p, x;  binary.add a, a, p

After, where the number is the identity of the operation::

    reduce.add.row.unit a, x

and ``unary.adds a, p [number]`` in place of the binary otherwise.  So is a product that is added to zeros,
where the hardware's matrix unit has a memory of its own (figure ``wram_bytes``) and what it makes is brought
to the accumulator: ``fill a [0.0]; contract a, x, y [accumulate=true]`` becomes ``contract a, x, y
[accumulate=false]``.  Only where both iOps stand in one body, a
is not touched in between, and both write the same elements; a bound that no size sets on an only row or
column is none.  A sum of zeros may lose the sign of the zero that was filled; all else keeps every bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..igraph import make
from ..igraph.affine import Affine
from ..igraph.dtypes import dtype_of
from ..igraph.iops import spec_of
from ..igraph.iops_scalar import BINARY, REDUCE
from ..igraph.nodes import IGraph, IOp, ISlice, Loop, walk_body
from ..igraph.rewrite import pointers_of
from .step_domain import StepDomain

#: The figure of hardware whose matrix unit has a memory of its own.
PRODUCTS_APART = "wram_bytes"
#: Unary forms of accumulations, where the other operand is the number that was filled.
_SCALAR = {name: str(BINARY[name].scalar_forms[0]) for name in REDUCE}


def run(graph: IGraph) -> IGraph:
    """The graph with accumulators made at once; ``graph`` itself where there is none."""
    named = Counter(str(piece.pointer.name) for iop, _ in graph.walk() for piece in iop.slices())
    apart = PRODUCTS_APART in graph.hardware.figures
    body = _folded(graph.body, named, StepDomain.of(graph), apart)
    if body is None:
        return graph
    used = pointers_of(body)
    kept = [p for p in graph.pointers if p.is_param or str(p.name) in used or str(p.name) not in named]
    return graph.replace(body=body, pointers=kept)


def _folded(
    body: Sequence[Any], named: Mapping[str, int], domain: StepDomain, apart: bool
) -> list[Any] | None:
    """The body with its accumulators made at once; None where there is none."""
    nodes, changed = list(body), False
    for at, node in enumerate(nodes):
        if isinstance(node, Loop):
            inner = _folded(node.body, named, domain.inside(str(node.var), int(node.extent)), apart)
            if inner is not None:
                nodes[at], changed = Loop(node.var, node.extent, inner, node.attrs), True
    at = 0
    while at < len(nodes):
        update = _update(nodes, at, domain, apart)
        if update is None:
            at += 1
        else:
            nodes, changed = _merged(nodes, at, update, named), True
    return nodes if changed else None


def _update(nodes: Sequence[Any], at: int, domain: StepDomain, apart: bool) -> int | None:
    """The position of the update of what ``nodes[at]`` fills; of products where they are made ``apart``."""
    if not isinstance(nodes[at], IOp) or not spec_of(nodes[at]).constant:
        return None
    target = nodes[at].target
    for k in range(at + 1, len(nodes)):
        node = nodes[k]
        if not _names(node, str(target.pointer.name)):
            continue
        if apart and not isinstance(node, Loop) and _adds_product(node, nodes[at]):
            return k
        if isinstance(node, Loop) or spec_of(node).names is not BINARY or node.name not in _SCALAR:
            return None
        same = node.target == node.sources[0] and _same_elements(node.target, target, domain)
        once = same and node.sources[1].pointer.name != target.pointer.name
        return k if once and dtype_of(node.dtype).kind != "bool" else None
    return None


def _adds_product(node: IOp, fill: IOp) -> bool:
    """Whether an iOp adds a product to the zeros that another filled."""
    pointer = str(fill.target.pointer.name)
    return (
        spec_of(node).is_product
        and bool(node.attrs.get("accumulate", False))
        and node.target == fill.target
        and fill.attrs["value"] == 0
        and all(str(piece.pointer.name) != pointer for piece in node.sources)
    )


def _names(node: Any, pointer: str) -> bool:
    """Whether an iOp, or one in a loop, names a pointer."""
    return any(piece.pointer.name == pointer for iop, _ in walk_body([node]) for piece in iop.slices())


def _same_elements(a: ISlice, b: ISlice, domain: StepDomain) -> bool:
    """Whether two slices are the same elements in the same order, be they a row or a column."""
    return a == b or (_vector(a, domain) is not None and _vector(a, domain) == _vector(b, domain))


def _vector(piece: ISlice, domain: StepDomain) -> tuple[Any, ...] | None:
    """(pointer, offset, length, stride, begin, end) of a slice with one row or one column."""
    row_begin, row_end, col_begin, col_end = piece.valid
    if piece.rows == 1 and _exists(row_begin, row_end, domain):
        line = (piece.cols, piece.stride[1], str(col_begin), str(col_end))
    elif piece.cols == 1 and _exists(col_begin, col_end, domain):
        line = (piece.rows, piece.stride[0], str(row_begin), str(row_end))
    else:
        return None
    return (str(piece.pointer.name), str(piece.offset), *line)


def _exists(begin: Affine | None, end: Affine | None, domain: StepDomain) -> bool:
    """Whether the only row or column between two bounds is there for all sizes, pids and iterations."""
    starts = begin is None or domain.range(begin)[1] <= 0
    return starts and (end is None or domain.range(end)[0] >= 1)


def _merged(nodes: list[Any], fill: int, update: int, named: Mapping[str, int]) -> list[Any]:
    value, iop, before = nodes[fill].attrs["value"], nodes[update], nodes[update - 1]
    rest = nodes[:fill] + nodes[fill + 1 : update]
    if spec_of(iop).is_product:
        attributes = {**dict(iop.attrs), "accumulate": False}
        alone = IOp(iop.op, iop.name, iop.dtype, list(iop.targets), list(iop.sources), attributes)
        return [*rest, alone, *nodes[update + 1 :]]
    partial = iop.sources[1]
    # the partial result is made right here, and read nowhere else
    made_here = isinstance(before, IOp) and spec_of(before).names is REDUCE and before.target == partial
    if made_here and named[str(partial.pointer.name)] == 2 and value == REDUCE[iop.name].identity(iop.dtype):
        direct = IOp("reduce", before.name, before.dtype, [iop.target], before.sources, dict(before.attrs))
        return [*rest[:-1], direct, *nodes[update + 1 :]]
    return [*rest, make.unary(_SCALAR[iop.name], iop.target, partial, [value]), *nodes[update + 1 :]]
