# SPDX-License-Identifier: Apache-2.0
"""Live ranges: between which iOps of the loop tree a reg or sram pointer holds a value that is still read.

A pointer is alive from its first access to its last in the order of the loop tree.  Where it is used
inside a loop and outside, or carries a value from one iteration to the next, it is alive in the whole loop.
So are the buffers of a loop in stages (`optimize.multibuffer`) that have a place for each of several
iterations: a pipe may still store from one place when the next iteration has begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial

import attrs
import islpy

from ..igraph.dtypes import bytes_of
from ..igraph.nodes import IPointer
from ..igraph.text import print_slice
from . import isl
from .access import Access, GraphFacts
from .initialised import covers
from .region import PID

#: The attribute of a loop whose iterations overlap: how many of them are in flight.
STAGED = "stages"

#: Positions of the first and last iOp of every loop, by its variable.
Spans = dict[str, tuple[int, int]]


@attrs.frozen(eq=False)
class Live:
    """A pointer with the positions of iOps, first to last, between which it is alive.

    Attributes
    ----------
    accesses : sequence of Access
        All its accesses, in program order.
    first, last : int
        Positions as in `Access.position`.
    born : int or None
        The iOp that writes it first; None where the range starts with a loop that it is carried around.
    dying : int or None
        The iOp that reads it last (the input dies there); None where the range ends with such a loop.
    """

    pointer: IPointer
    accesses: Sequence[Access]
    first: int
    last: int
    born: int | None
    dying: int | None

    @property
    def name(self) -> str:
        """The pointer's name."""
        return str(self.pointer.name)

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        return int(self.pointer.size) * bytes_of(self.pointer.dtype)

    @property
    def largest(self) -> Access:
        """The access with the most elements."""
        return max(self.accesses, key=lambda a: a.slice.rows * a.slice.cols)

    def __str__(self) -> str:
        return f"{print_slice(self.largest.slice)} {self.bytes} bytes"


def loop_spans(facts: GraphFacts) -> Spans:
    """Positions of the first and last iOp of every loop."""
    out: Spans = {}
    for step in facts.steps:
        for loop in step.loops:
            first, _ = out.get(str(loop.var), (step.position, 0))
            out[str(loop.var)] = (first, step.position)
    return out


def lives(facts: GraphFacts, level: str) -> list[Live]:
    """The live ranges of the pointers of one level (``reg`` or ``sram``) that some iOp touches."""
    spans = loop_spans(facts)
    staged = {str(n.var) for step in facts.steps for n in step.loops if STAGED in n.attrs}
    units = int(facts.graph.num_units)
    return [
        _life(pointer, accesses, spans, units, staged)
        for pointer in facts.graph.pointers
        if pointer.level == level and (accesses := facts.by_pointer[str(pointer.name)])
    ]


def _life(
    pointer: IPointer, accesses: Sequence[Access], spans: Spans, num_units: int, staged: AbstractSet[str]
) -> Live:
    first, last = accesses[0].position, accesses[-1].position
    born: int | None = first
    dying: int | None = last if accesses[-1].kind == "read" else None
    around = {str(loop.var) for a in accesses for loop in a.loops}
    for var in sorted(around, key=lambda v: spans[v][1] - spans[v][0]):
        begin, end = spans[var]
        inside = [a for a in accesses if begin <= a.position <= end]
        rotates = var in staged and any(var in a.region.offset.variables() for a in inside)
        if len(inside) == len(accesses) and not rotates and not carries(inside, var, num_units):
            continue
        if begin <= first:
            first, born = begin, None
        if end >= last:
            last, dying = end, None
    return Live(pointer, accesses, first, last, born, dying)


def carries(accesses: Sequence[Access], var: str, num_units: int) -> bool:
    """Whether a value may pass from one iteration of the loop to the next (always right when it says no).

    Parameters
    ----------
    accesses : sequence of Access
        Those of one pointer inside the loop over ``var``, in program order.
    num_units : int
        Units of a group, which share sram.
    """
    return not all(made_within(a, accesses, var, num_units) for a in accesses if a.kind == "read")


def made_within(read: Access, accesses: Sequence[Access], var: str, num_units: int) -> bool:
    """Whether all that is read was written before in the same iteration of a loop, as far as it is proved.

    Of reg the unit itself must have written it, of sram the units of its group, each its part.
    """
    if read.operand == "buffer":
        return True  # the very iOp writes it before, and it holds nothing after
    writes = [w for w in accesses if w.kind == "write" and w.certain and w.position < read.position]
    if any(covers(w, read, within=var) for w in writes):
        return True
    # in a loop around both inside of this one, a write of a later iteration is none before the read
    writes = [w for w in writes if _innermost_common(w, read) == var]
    return bool(writes) and isl.proved(partial(_together, read, writes, var, num_units))


def by_owner(access: Access, var: str, units: int) -> islpy.Map:
    """``{ [pid // units, loops up to var...] -> [address] }``: what the owner's units touch together."""
    names = [str(n.var) for n in access.loops]
    loops = names[: names.index(var) + 1]
    relation = isl.relation(access.region, [PID, *loops])
    kept = "".join(f", x{k}" for k in range(len(loops)))
    text = f"{{ [p{kept}] -> [floor(p/{units}){kept}] }}"
    return relation.apply_domain(isl.read_map(text))


def _together(read: Access, writes: Sequence[Access], var: str, num_units: int) -> bool:
    """Whether the writes of one iteration, by all units that share the memory, cover the read."""
    units = num_units if read.slice.pointer.level == "sram" else 1
    rest = by_owner(read, var, units)
    for write in writes:
        rest = rest.subtract(by_owner(write, var, units))
    return bool(rest.is_empty())


def _innermost_common(a: Access, b: Access) -> str:
    shared = [str(x.var) for x, y in zip(a.loops, b.loops, strict=False) if x.var == y.var]
    return shared[-1] if shared else ""
