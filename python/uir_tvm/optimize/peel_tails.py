# SPDX-License-Identifier: Apache-2.0
"""Tail specialisation: full tiles without masks, and the rest of a loop by itself.

Before::

    for k in 4 { move.dram.reg r[.. rows :14 - 4*k], x[.. rows :14 - 4*k];  ... }

After::

    for k in 3 { move.dram.reg r[..], x[..];  ... }
    move.dram.reg r[.. rows :2], x[.. rows :2];  ...

A valid bound that is the side of the shape for every pid and iteration is dropped; an iOp whose target's
box is always empty goes, and a padded move that never has a source becomes a fill.  Then a loop of which
only the first or the last iterations have bounds is split there.  The order of all iterations stays.

A bound that pid decides stays a mask: all units run the same loop tree, so that there is no place in it for
what only some of them do.  So do bounds within a loop that asks for `pipeline`: its prologue and epilogue
are cut by `multibuffer`, which wants the loop whole.

Code grows: every segment is a copy of the body.  A loop is split only where at least half of its iterations
lose their bounds, and where the graph then has at most `MAX_GROWTH` times the iOps that it had, or `SMALL`
of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..igraph import make
from ..igraph.affine import Affine, affine, var
from ..igraph.dealt import DEALT
from ..igraph.iops import spec_of
from ..igraph.nodes import ROUNDS, IGraph, IOp, ISlice, Loop, walk_body
from ..igraph.points import extremes_along
from ..igraph.rewrite import FreshNames, loop_variables, substituted
from .needless_bounds import without_needless
from .step_domain import StepDomain
from .webs import rename

#: How many times the iOps a graph may have after splitting, and the number up to which that does not matter.
MAX_GROWTH = 3
SMALL = 64


def run(graph: IGraph) -> IGraph:
    """The graph with masks only where they are needed; ``graph`` itself where nothing changes."""
    walk = _Peeling(graph)
    body = walk.body(graph.body, StepDomain.of(graph))
    # a register that several copies of a body use would be alive from the first of them to the last
    return rename(graph.replace(body=body)) if walk.changed else graph


class _Peeling:
    """One walk of the loop tree, outermost loops first."""

    def __init__(self, graph: IGraph) -> None:
        self.names = FreshNames(graph)
        self.count = sum(1 for _ in graph.walk())
        self.limit = max(MAX_GROWTH * self.count, SMALL)
        self.changed = False

    def body(self, nodes: Sequence[Any], domain: StepDomain) -> list[Any]:
        """The nodes, each simplified, and split where it is a loop that can be."""
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, Loop):
                out.extend(self._loop(node, domain))
                continue
            simpler = _simplified(node, domain)
            self.changed |= simpler is not node
            if simpler is not None:
                out.append(simpler)
        return out

    def _loop(self, loop: Loop, domain: StepDomain) -> list[Any]:
        variable, extent = str(loop.var), int(loop.extent)
        inside = domain.inside(variable, extent)
        head, tail = (0, 0) if {"pipeline", DEALT, ROUNDS} & set(loop.attrs) else _segments(loop, inside)
        copies = sum(1 for _ in walk_body(loop.body)) * ((head > 0) + (tail > 0))
        middle = extent - head - tail
        if not copies or 2 * middle < extent or self.count + copies > self.limit:
            body = self.body(loop.body, inside)
            return [Loop(loop.var, loop.extent, body, loop.attrs)] if body else []
        self.count += copies
        self.changed = True
        first = self._segment(loop, 0, head, domain, True) if head else []
        last = self._segment(loop, head + middle, tail, domain, True) if tail else []
        return [*first, *self._segment(loop, head, middle, domain, False), *last]

    def _segment(self, loop: Loop, start: int, extent: int, domain: StepDomain, is_copy: bool) -> list[Any]:
        """The iterations ``start`` to ``start + extent`` of a loop, as a loop of their own or without one."""
        variable = str(loop.var)
        names = self.names.of(loop_variables(loop.body)) if is_copy else {}
        env: dict[str, Any] = {old: var(new) for old, new in names.items()}
        if extent == 1:
            env[variable] = affine(start)
            return self.body([substituted(n, env, names) for n in loop.body], domain)
        name = self.names.like(variable) if is_copy else variable
        env[variable] = var(name) + start
        body = self.body([substituted(n, env, names) for n in loop.body], domain.inside(name, extent))
        return [Loop(name, extent, body, loop.attrs)] if body else []


# --- bounds over the whole domain ------------------------------------------------------------------


def _simplified(iop: IOp, domain: StepDomain) -> IOp | None:
    """An iOp without the bounds that say nothing; None where it writes nothing; itself where all matter."""
    if not any(b is not None for piece in iop.slices() for b in piece.valid):
        return iop
    if spec_of(iop).touches and iop.attrs.get("scope", "unit") == "unit":
        # where data decides what is written, nothing is if there is no data
        decides = iop.sources[0] if spec_of(iop).by_data == "target" else iop.target
        if _is_empty(iop.target, domain) or _is_empty(decides, domain):
            return None
    new = without_needless(iop, domain)
    if spec_of(new).copies and "pad" in new.attrs:
        new = _without_pad(new, domain)
    return new


def _is_empty(piece: ISlice, domain: StepDomain) -> bool:
    """Whether the valid box of a slice is empty for every pid and iteration, one side alone deciding."""
    for begin, end, limit in ((*piece.valid[:2], piece.rows), (*piece.valid[2:], piece.cols)):
        if end is not None and domain.extremes(end)[1] <= 0:
            return True
        if begin is not None and domain.extremes(begin)[0] >= limit:
            return True
        if begin is not None and end is not None and domain.extremes(end - begin)[1] <= 0:
            return True
    return False


def _without_pad(iop: IOp, domain: StepDomain) -> IOp:
    """A padded move as a plain one where its source is whole, as a fill where it is always empty."""
    source = iop.sources[0]
    if source.valid == (None, None, None, None):
        rest = {key: value for key, value in iop.attrs.items() if key != "pad"}
        return IOp(iop.op, iop.name, iop.dtype, iop.targets, iop.sources, rest)
    if _is_empty(source, domain) and iop.target.pointer.level == "reg":
        return make.fill(iop.target, iop.attrs["pad"])
    return iop


# --- where to cut a loop ---------------------------------------------------------------------------


def _segments(loop: Loop, domain: StepDomain) -> tuple[int, int]:
    """How many iterations at the start and at the end of a loop have bounds that the others have not.

    (0, 0) where no bound depends on the loop, or where they matter in the middle too.
    """
    extent = int(loop.extent)
    masked = np.zeros(extent, bool)
    for full in _full_iterations(loop, domain):
        masked |= ~full
    if not masked.any() or masked.all():
        return 0, 0
    head, tail = int(masked.argmin()), int(masked[::-1].argmin())
    return (0, 0) if masked[head : extent - tail].any() else (head, tail)


def _full_iterations(loop: Loop, domain: StepDomain) -> Iterator[np.ndarray]:
    """For each bound that depends on the loop: in which iterations it says nothing, for every pid.

    A bound that matters in every iteration is neither a reason to split nor an obstacle, and left out.
    """
    variable = str(loop.var)
    seen = set()
    for iop, inner in walk_body(loop.body):
        variables = {**domain.variables, **{str(n.var): int(n.extent) for n in inner}}
        for bound, is_end, limit in _sides(iop):
            key = (str(bound), is_end, limit)
            if key in seen or variable not in bound.variables():
                continue
            seen.add(key)
            ranges = extremes_along(bound, variable, variables)
            if ranges is not None:
                full = ranges[0] >= limit if is_end else ranges[1] <= 0
                if full.any():
                    yield full


def _sides(iop: IOp) -> Iterator[tuple[Affine, bool, int]]:
    """(bound, whether it is an end, the side of the shape) of every bound of an iOp's slices."""
    for piece in iop.slices():
        for k, bound in enumerate(piece.valid):
            if bound is not None:
                yield bound, k % 2 == 1, int(piece.rows if k < 2 else piece.cols)
