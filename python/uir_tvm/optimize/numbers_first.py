# SPDX-License-Identifier: Apache-2.0
"""Numbers that no memory decides are computed before all else, beside the first loads, each once.

Before::

    move t, x;  reduce.add s, t;  iota i [base=n];  cast f, i;  binary.div m, s, f;  ...
    iota j [base=n];  cast g, j;  binary.div v, w, g

After::

    move t, x;  iota i [base=n];  cast f, i;  reduce.add s, t;  binary.div m, s, f;  ...  binary.div v, w, f

So is the length of rows that a size decides, of which a mean is a part: while the first load is on its way a
core has nothing else to do, and behind it such a chain of short instructions makes all others wait.  Out of
loops they are taken too.  Loads that stand at the front stay there: they are to begin at once.

Exact: such an iOp writes one element of reg that nothing else writes, reads none but those of others like it,
and depends on no loop.  Equal ones make the same number, so one of them is enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..igraph.affine import Affine
from ..igraph.nodes import IGraph, IOp, ISlice, Loop
from ..verify.access import GraphFacts
from .edit import Change, edited, with_slices
from .flow import facts_of
from .slices import UNBOUNDED

#: What computes such numbers: element by element, of reg alone.
COMPUTED = frozenset({"iota", "fill", "cast", "unary", "binary"})


def run(graph: IGraph) -> IGraph:
    """The graph with such numbers behind its first loads; itself where there is nothing to move."""
    facts = facts_of(graph)
    numbers = _numbers(facts)
    first: dict[str, IOp] = {}
    renamed: dict[str, ISlice] = {}
    for position in numbers:
        iop = _with_own(facts.steps[position].iop, renamed)
        other = first.setdefault(_key(iop), iop)
        if other is not iop:
            renamed[str(iop.target.pointer.name)] = other.target
    loads = _first_loads(graph)
    there = numbers == list(range(loads, loads + len(numbers)))
    if there and not renamed and not any(facts.steps[k].loops for k in numbers):
        return graph
    changes: dict[int, Change] = dict.fromkeys(numbers)
    for step in facts.steps:
        if step.position not in changes and (made := _with_own(step.iop, renamed)) is not step.iop:
            changes[step.position] = made
    rest = edited(graph, changes, graph.pointers)
    moved = list(first.values())
    names = {str(pointer.name) for pointer in rest.pointers}
    names |= {str(piece.pointer.name) for iop in moved for piece in iop.slices()}
    kept = [pointer for pointer in graph.pointers if str(pointer.name) in names]
    return rest.replace(body=[*rest.body[:loads], *moved, *rest.body[loads:]], pointers=kept)


def _first_loads(graph: IGraph) -> int:
    """How many loads stand before all else."""
    loads = itertools.takewhile(lambda node: isinstance(node, IOp) and _is_load(node), graph.body)
    return sum(1 for _ in loads)


def _is_load(iop: IOp) -> bool:
    levels = (str(iop.target.pointer.level), str(iop.sources[0].pointer.level)) if iop.op == "move" else ()
    return levels == ("reg", "dram")


def _numbers(facts: GraphFacts) -> list[int]:
    """The positions of iOps that compute such numbers, in order."""
    found: list[int] = []
    names: set[str] = set()
    for step in facts.steps:
        iop = step.iop
        if iop.op not in COMPUTED or iop.attrs.get("scope", "unit") != "unit":
            continue
        if not all(_is_number(piece) for piece in iop.slices()) or _depends(iop, step.loops):
            continue
        own = str(iop.target.pointer.name)
        writes = [a for a in facts.by_pointer[own] if a.kind == "write"]
        if len(writes) != 1 or any(str(source.pointer.name) not in names for source in iop.sources):
            continue
        found.append(step.position)
        names.add(own)
    return found


def _is_number(piece: ISlice) -> bool:
    """Whether a slice is the first and only element of a reg pointer."""
    single = int(piece.rows) == int(piece.cols) == 1 and piece.valid == UNBOUNDED
    return single and str(piece.pointer.level) == "reg" and int(piece.pointer.size) == 1


def _depends(iop: IOp, loops: Sequence[Loop]) -> bool:
    """Whether what an iOp computes depends on a loop around it, or on the unit."""
    variables = {str(loop.var) for loop in loops} | {"pid"}
    values = [value for value in iop.attrs.values() if isinstance(value, Affine)]
    return any(variables & set(map(str, value.variables())) for value in values)


def _with_own(iop: IOp, renamed: dict[str, ISlice]) -> IOp:
    """The iOp with the first of equal numbers in the place of others."""
    changes = {
        f"source{k}": source.replace(pointer=renamed[str(source.pointer.name)].pointer)
        for k, source in enumerate(iop.sources)
        if str(source.pointer.name) in renamed
    }
    return with_slices(iop, changes) if changes else iop


def _key(iop: IOp) -> str:
    """Equal for iOps that make the same number."""
    sources = [str(source.pointer.name) for source in iop.sources]
    attributes = sorted((str(key), str(value)) for key, value in iop.attrs.items())
    return repr((iop.op, iop.name, iop.dtype, str(iop.target.pointer.dtype), sources, attributes))


__all__ = ["COMPUTED", "run"]
