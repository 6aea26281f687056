# SPDX-License-Identifier: Apache-2.0
"""How many rounds of a loop do something, where sizes or the unit decide it.

A unit's loop has as many rounds for all sizes and all units, the most that any needs: in those beyond the end
of what it walks all boxes are empty.  Who prints the loop may end it there; bounds that only say that a round
is one of those that do something are then needless.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .affine import Affine, Term, affine, var
from .all_positive import parts_of
from .dealt import AHEAD, DEALT
from .iops import spec_of
from .nodes import JOINT, ROUNDS, IGraph, IOp, ISlice, Loop, walk_body
from .points import extremes
from .rewrite import FreshNames, map_slices
from .space import Size, Space

#: Rounds that a unit may walk for all sizes, where it cannot leave out those beyond the end.
MOST_ROUNDS = 1 << 13
PID = "pid"


def open_rounds(graph: IGraph) -> dict[str, Affine]:
    """Loops of whose rounds only so many do something, an expression of sizes, pid and loops around.

    It may be negative, where none does, and more than the loop has.
    """
    return {name: _count(end, name) for name, end in _all_ends(graph).items()}


def limited(graph: IGraph) -> tuple[IGraph, dict[str, Affine]]:
    """The graph without the bounds that say no more than how many rounds loops have, and these rounds.

    Neighbours that the same expression empties become a loop of one round, or none.
    """
    ends = _all_ends(graph)
    freed = _Freed(graph, ends, space_of(graph))
    body = freed.body(graph.body, frozenset(), {PID, *(str(size.name) for size in graph.sizes)})
    counts = {name: _count(end, name) for name, end in ends.items()} | freed.guards
    return (graph.replace(body=body), counts) if counts else (graph, {})


def ended_by_unit(graph: IGraph) -> IGraph:
    """The graph whose loops around products end where the unit, or its turn, decides it, and without bounds
    that say no more.

    Every unit has a round of such a loop, and none has more than its extent, so that what runs ahead of it or
    behind it need not ask.  A loop without products in its own body stays: its rounds are short beside what a
    device waits for at their end.
    """
    extents, sizes = _extents(graph), {str(size.name) for size in graph.sizes}

    def in_all_units(loop: Loop, rounds: Affine) -> bool:
        low, high = extremes(rounds, extents)
        return 1 <= low and high <= int(loop.extent)

    ends = {name: end for name, end in _all_ends(graph).items() if not sizes & set(end.variables())}
    loops = {str(loop.var): loop for loop, _ in _loops(graph.body, set())}
    ends = {name: end for name, end in ends.items() if in_all_units(loops[name], _count(end, name))}
    ends = {name: end for name, end in ends.items() if _has_product(loops[name])}
    if not ends:
        return graph
    body = _Freed(graph, ends, Space(extents), guarded=False).body(graph.body, frozenset(), set())
    return graph.replace(
        body=_saying(body, {name: _count(end, name) for name, end in ends.items()}, in_all_units)
    )


def _has_product(loop: Loop) -> bool:
    """Whether a product stands in a loop's own body."""
    return any(isinstance(node, IOp) and spec_of(node).is_product for node in loop.body)


def with_rounds(graph: IGraph) -> IGraph:
    """The graph whose loops say how many of their rounds do something, for printers that end them there.

    Before: ``for k in 128 { move t, x[64*k; cols :n - 64*k] }``.  After: the loop has the attribute
    ``rounds = (n + 63) / 64``.  Loops whose copies run ahead of their computation stay whole: what is ordered
    there is counted in rounds.  So do loops with products, where the unit decides: several units make one
    together.
    """
    rounds = open_rounds(graph) if graph.sizes else {}
    return graph.replace(body=_saying(graph.body, rounds, _may_end)) if rounds else graph


def ended(graph: IGraph, chosen: Callable[[Loop], bool]) -> IGraph:
    """The graph whose chosen loops say how many of their rounds do something, in the place of bounds.

    Before: ``for k in 8 { fill t[..; rows :n - 64*k]; sync.sram s, s }``.  After: the loop has the attribute
    ``rounds = (n + 63) / 64``, and the fill no bound.  Units of a group may meet there: a loop ends where it
    has a round for all units and sizes, and where all units of a group have as many.  Nothing that units
    share on chip is used after it: which of the places that rounds take in turn was the last depends on their
    number.  What is in dram keeps its bounds: loads may run ahead of the rounds, where they find zeros.
    """
    space, units = space_of(graph), int(graph.num_units)
    last = _last_loops(graph)
    ends = {}
    for loop, end in _found_ends(graph, lambda end: _is_of_groups(end, units)):
        name = str(loop.var)
        least = space.range(_count(end, name))[0]
        if chosen(loop) and name in last and _is_of_groups(end, units) and least >= 1:
            ends[name] = end

    def freed(nodes: Sequence[Any], positive: frozenset[Affine]) -> list[Any]:
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, Loop):
                end = ends.get(str(node.var))
                told = {} if end is None else {ROUNDS: _count(end, str(node.var)), JOINT: 1}
                body = freed(node.body, positive if end is None else positive | {end})
                out.append(Loop(node.var, node.extent, body, {**node.attrs, **told}))
            elif positive:
                out.append(_freed_in(node, positive, space))
            else:
                out.append(node)
        return out

    return graph.replace(body=freed(graph.body, frozenset())) if ends else graph


def _freed_in(iop: IOp, positive: frozenset[Affine], space: Space) -> IOp:
    """An iOp of a loop that ends, without the bounds that say where it does, but for those in dram."""
    new = _without(iop, positive, space)
    if all(piece.pointer.level != "dram" for piece in iop.slices()):
        return new
    if not spec_of(iop).copies or iop.target.pointer.level == "dram" or new.target == iop.target:
        return iop
    return IOp(iop.op, iop.name, iop.dtype, new.targets, iop.sources, {"pad": 0, **iop.attrs})


def _last_loops(graph: IGraph) -> set[str]:
    """Loops that run once, after which nothing touches sram."""
    found: set[str] = set()

    def look(body: Sequence[Any], after: bool) -> bool:
        """Whether anything in the body touches it."""
        touched = False
        for node in reversed(body):
            if isinstance(node, Loop):
                if not (after or touched):
                    found.add(str(node.var))
                touched |= look(node.body, after or touched or int(node.extent) > 1)
            else:
                touched |= any(piece.pointer.level == "sram" for piece in node.slices())
        return touched

    look(graph.body, False)
    return found


def _is_of_groups(end: Affine, units: int) -> bool:
    """Whether an expression is the same for all units of a group, by its form."""

    def same(term: Term) -> bool:
        if term.kind in ("var", "product"):
            return PID not in term.expr.variables()
        whole = term.kind == "floordiv" and int(term.divisor) % units == 0
        return (whole and term.argument == var(PID)) or _is_of_groups(term.argument, units)

    return units == 1 or all(map(same, end.terms))


def ended_where_many(graph: IGraph) -> IGraph:
    """The graph whose loops end where its units would else walk more than `MOST_ROUNDS` needless rounds.

    To end a loop costs a device with pipes more than some empty rounds: what is on the way is waited for at
    the end of each round.  Units that meet, or whose products another core makes, walk all rounds.
    """
    alone = int(graph.num_units) == 1 and not any(spec_of(iop).is_product for iop, _ in graph.walk())
    return with_rounds(graph) if alone and needless_rounds(graph) > MOST_ROUNDS else graph


def _saying(
    nodes: Sequence[Any], rounds: Mapping[str, Affine], may_end: Callable[[Loop, Affine], bool]
) -> list[Any]:
    out: list[Any] = []
    for node in nodes:
        if isinstance(node, Loop):
            own = rounds.get(str(node.var))
            told = {} if own is None or not may_end(node, own) else {ROUNDS: own}
            node = Loop(node.var, node.extent, _saying(node.body, rounds, may_end), {**node.attrs, **told})
        out.append(node)
    return out


def _may_end(loop: Loop, rounds: Affine) -> bool:
    products = any(spec_of(iop).is_product for iop, _ in walk_body(loop.body))
    dealt = DEALT in loop.attrs or AHEAD in loop.attrs
    return not dealt and not _is_staged(loop) and not (products and PID in rounds.variables())


def _is_staged(loop: Loop) -> bool:
    inside = [node for node in loop.body if isinstance(node, Loop)]
    return "stages" in loop.attrs or any(map(_is_staged, inside))


def needless_rounds(graph: IGraph) -> int:
    """How many rounds a unit walks at the greatest sizes, in loops that sizes would end.

    Of loops around one iOp the product, of neighbours the greatest; loops that say their rounds do not count.
    """
    ends = open_rounds(graph) if graph.sizes else {}

    def most(nodes: Sequence[Any]) -> int:
        loops = [node for node in nodes if isinstance(node, Loop)]
        return max((_rounds_of(loop, ends) * most(loop.body) for loop in loops), default=1)

    return most(graph.body)


def _rounds_of(loop: Loop, ends: Mapping[str, Affine]) -> int:
    told = ROUNDS in loop.attrs or DEALT in loop.attrs
    return int(loop.extent) if str(loop.var) in ends and not told else 1


def _all_ends(graph: IGraph) -> dict[str, Affine]:
    """By loop the expression, without a common factor, that is positive in the rounds that do something."""
    return {str(loop.var): end for loop, end in _found_ends(graph)}


def _found_ends(
    graph: IGraph, meets: Callable[[Affine], bool] = lambda end: False
) -> Iterator[tuple[Loop, Affine]]:
    """Loops with such an expression; ``meets`` says of one whether units of a group may meet in the loop."""
    space = space_of(graph)
    everywhere = Counter(name for iop, _ in graph.walk() for name in _names(iop))
    for loop, inside in _loops(graph.body, {PID, *(str(size.name) for size in graph.sizes)}):
        end = _end(loop, inside, space, everywhere, meets)
        if end is not None:
            yield loop, end


def space_of(graph: IGraph) -> Space:
    """What is known of pid, all loops and the sizes."""
    return Space(_extents(graph))


def _extents(graph: IGraph) -> dict[str, int | Size]:
    loops = {str(loop.var): int(loop.extent) for loop, _ in _loops(graph.body, set())}
    units = {PID: int(graph.num_groups * graph.num_units)}
    return {**units, **loops, **{str(size.name): size for size in graph.sizes}}


def _count(end: Affine, name: str) -> Affine:
    step = -end.coefficient(name)
    return (end.without([name]) + (step - 1)) // step


def _loops(body: Sequence[Any], known: set[str]) -> Iterator[tuple[Loop, set[str]]]:
    """Every loop, with the names that its number of rounds may speak of."""
    for node in body:
        if isinstance(node, Loop):
            yield node, known
            yield from _loops(node.body, {*known, str(node.var)})


def _end(
    loop: Loop,
    known: set[str],
    space: Space,
    everywhere: Counter[str],
    meets: Callable[[Affine], bool],
) -> Affine | None:
    name, sizes = str(loop.var), {str(size.name) for size in space.sizes}
    iops = [iop for iop, _ in walk_body(loop.body)]
    own = Counter(other for iop in iops for other in _names(iop))
    common: dict[Affine, None] | None = None
    met = False
    for iop in iops:
        if spec_of(iop).barrier or iop.attrs.get("scope") == "group":
            met = True
            if iop.attrs.get("scope") == "dram":
                return None
        if spec_of(iop).barrier:
            continue
        own_ends = _ends(iop, name, known, space)
        ends = [end for end, whole in own_ends if whole or sizes & set(end.variables())]
        if ends:
            common = {end: None for end in ends if common is None or end in common}
        elif any(p.level != "reg" or own[p.name] < everywhere[p.name] for p in _written(iop)):
            return None  # what it leaves behind is there after the loop
    return next((end for end in common or () if not met or meets(end)), None)


def _ends(iop: IOp, name: str, known: set[str], space: Space) -> Iterator[tuple[Affine, bool]]:
    """What is positive in the rounds in which the box of what an iOp writes is not empty.

    With it whether the box is the whole side where all that it asks for is positive.
    """
    for side, limit in _sides(iop.target) if iop.targets else ():
        primitive, factor = _parted(side)
        parts = parts_of(primitive, space)
        for end in parts:
            if not end.is_linear_in(name) or end.coefficient(name) >= 0:
                continue
            rest = set(end.without([name]).variables())
            if rest and rest <= known:
                yield end, factor >= limit


def _sides(piece: ISlice) -> Iterator[tuple[Affine, int]]:
    """What is positive where a slice's box is not empty, by bound, and the extent of its axis.

    Such an expression is at least the extent where the bound leaves its side whole.
    """
    for begin, end, extent in (
        (piece.row_begin, piece.row_end, int(piece.rows)),
        (piece.col_begin, piece.col_end, int(piece.cols)),
    ):
        if end is not None:
            yield end, extent
        if begin is not None:
            yield extent - begin, extent


def _parted(end: Affine) -> tuple[Affine, int]:
    """An expression as a positive number times one whose terms have no common factor."""
    factor = math.gcd(int(end.constant), *(int(term.coeff) for term in end.terms))
    if factor <= 1:
        return end, 1
    made = affine(int(end.constant) // factor)
    for term in end.terms:
        made = made + term.atom * (int(term.coeff) // factor)
    return made, factor


#: Fewest neighbours that are worth a condition of their own.
LEAST_RUN = 4


class _Freed:
    """One walk of a loop tree whose loops end where they do nothing: bounds that this makes needless go.

    ``guards`` has the loops of one round that it makes, where it is to: their names, and what is positive
    where they run.
    """

    def __init__(self, graph: IGraph, ends: Mapping[str, Affine], space: Space, guarded: bool = True) -> None:
        self.ends, self.space, self.guarded = ends, space, guarded
        self.names = FreshNames(graph)
        self.guards: dict[str, Affine] = {}

    def body(self, nodes: Sequence[Any], inside: frozenset[Affine], known: set[str]) -> list[Any]:
        """The nodes, with what is positive around them and the variables that conditions may speak of."""
        out: list[Any] = []
        run: list[IOp] = []
        common: frozenset[Affine] = frozenset()

        def close() -> None:
            if self.guarded and common and len(run) >= LEAST_RUN:
                end = min(common, key=str)
                name = self.names.like("only")
                self.guards[name] = end
                out.append(Loop(name, 1, [_without(iop, inside | {end}, self.space) for iop in run]))
            else:
                out.extend(_without(iop, inside, self.space) if inside else iop for iop in run)
            run.clear()

        for node in nodes:
            if isinstance(node, Loop):
                close()
                common = frozenset()
                end = self.ends.get(str(node.var))
                deeper = inside if end is None else inside | {end}
                made = self.body(node.body, deeper, {*known, str(node.var)})
                out.append(Loop(node.var, node.extent, made, node.attrs))
                continue
            own = frozenset(_whole_ends(node, known)) - inside
            if run and not (common & own):
                close()
                common = frozenset()
            if not run:
                common = own
            common = common & own
            run.append(node)
            if not own:
                close()
                common = frozenset()
        close()
        return out


def _whole_ends(iop: IOp, known: set[str]) -> Iterator[Affine]:
    """What is positive exactly where an iOp does something, and then leaves a side of its target whole."""
    if not iop.targets or spec_of(iop).barrier or iop.attrs.get("scope") == "group":
        return
    target = iop.target
    for end, limit in ((target.row_end, target.rows), (target.col_end, target.cols)):
        if end is not None and not end.is_constant and set(end.variables()) <= known:
            primitive, factor = _parted(end)
            if factor >= int(limit):
                yield primitive


def _without(iop: IOp, positive: frozenset[Affine], space: Space) -> IOp:
    """The iOp without bounds that say nothing where some expressions are positive."""

    def needless(side: Affine, extent: int) -> bool:
        primitive, factor = _parted(side)
        return factor >= extent and positive.issuperset(parts_of(primitive, space))

    def kept(begin: Affine | None, end: Affine | None, extent: int) -> tuple[Affine | None, Affine | None]:
        begin = None if begin is None or needless(extent - begin, extent) else begin
        return begin, None if end is None or needless(end, extent) else end

    def piece(s: ISlice) -> ISlice:
        if s.valid == (None, None, None, None):
            return s
        rows, cols = kept(s.row_begin, s.row_end, int(s.rows)), kept(s.col_begin, s.col_end, int(s.cols))
        return s.replace(rows=rows, cols=cols)

    return map_slices(iop, piece)


def _written(iop: IOp) -> list[Any]:
    return [piece.pointer for piece in iop.targets]


def _names(iop: IOp) -> Iterator[str]:
    return (str(piece.pointer.name) for piece in iop.slices())
