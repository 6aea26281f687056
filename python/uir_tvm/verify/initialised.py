# SPDX-License-Identifier: Apache-2.0
"""Initialisation: nothing is read from reg, sram or temporary dram that no iOp has written.

Every element that is read must have been written before: earlier in the iteration, in an earlier
iteration, or before the loop; in reg by the same unit, in sram by a unit of the group, in temporary dram
by any.  That a write of another unit comes before the read, and does not merely stand before it, is the
rule of races: where no two units race, the order of the loop tree is the order in which they touch an
element.  Most reads are settled by one write that covers them; the others by replaying the loop tree, or by
isl on its order where that is long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import islpy

from ..errors import VerifyError
from ..igraph.affine import affine
from ..igraph.coordinates import address
from ..igraph.iops import mnemonic
from . import isl, replay
from .access import Access, GraphFacts
from .describe import where, witness_of
from .region import PID, Region
from .written_ahead import by_rounds

#: Cost (see `replay.cost`) up to which a replay comes before isl, and above which it is given up.
CHEAP = 1 << 21
MAX_COST = 100_000_000
#: Bytes (see `replay.memory`) above which a replay is given up.
MAX_BYTES = 1 << 28


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every read of memory that nothing, or nothing before it, has written."""
    for pointer in facts.graph.pointers:
        if pointer.role in ("in", "inout"):
            continue
        accesses = facts.by_pointer[str(pointer.name)]
        share = {"reg": 1, "sram": int(facts.graph.num_units)}.get(pointer.level, facts.num_parallel)
        key, of = facts.same_of(str(pointer.name))
        kept: set[str] = facts.seen.find(("initialised", share, key), of, set)
        if kept:
            continue  # in an earlier graph too
        faults = list(_faults(accesses, str(pointer.name), share))
        yield from faults
        if not faults:
            kept.add("proved")


def _faults(accesses: Sequence[Access], name: str, share: int) -> Iterator[VerifyError]:
    """The faulty reads of one pointer, which so many consecutive units share."""
    writes = [a for a in accesses if a.kind == "write"]
    if not all(w.certain for w in writes):
        return  # the data decides what a scatter writes; the interpreter checks it
    reads = [a for a in accesses if a.kind == "read"]
    reads = [r for r in reads if not any(covers(w, r) for w in writes)]
    reads = [r for r in reads if not by_rounds(writes, r)]
    if reads and not writes:
        for read in reads:
            what = f"{mnemonic(read.iop)} reads '{name}', which nothing writes."
            yield _error(read, what, _sizes(read))
    elif reads:
        yield from _in_order(accesses, reads, writes, share)


def _in_order(
    accesses: Sequence[Access], reads: Sequence[Access], writes: Sequence[Access], share: int
) -> Iterator[VerifyError]:
    when = "no iOp has written before"
    size = int(accesses[0].slice.pointer.size)
    if not reads[0].region.launch.static:
        yield from _by_isl(reads, writes, share, when)
        return
    cost = replay.cost(accesses)
    too_much = cost > MAX_COST or replay.memory(accesses, size, share) > MAX_BYTES
    if cost > CHEAP or too_much:
        found = list(_by_isl(reads, writes, share, when))
        if too_much or all(f.witness for f in found):
            yield from found
            return
    for hole in replay.first_unwritten(accesses, size, share):
        yield _unwritten_error(hole.read, when, hole.values | {"element": hole.element})


def covers(write: Access, read: Access, within: str | None = None) -> bool:
    """Whether one write surely wrote, before the read, all that it reads.

    Parameters
    ----------
    within : str, optional
        A loop that encloses both: the write must be of the same iteration of it.  Without one, any
        write before the read serves.
    """
    w, r = write.region, read.region
    if not _stands_before(write, read) or not (w.every == 1 or w.every == r.every):
        return False
    common = _common(write, read)
    if within is not None and within not in common:
        return False
    fixed = {PID, *common, *w.launch.names}
    same = str(w.offset) == str(r.offset) and all(v in fixed for v in w.offset.variables())
    if same and _axis_within(w, r, "rows", fixed) and _axis_within(w, r, "cols", fixed):
        return True
    return _whole_pointer(write)


def _stands_before(write: Access, read: Access) -> bool:
    """Whether the write comes first within one iteration; an iOp reads before it writes, a group form its
    buffer after."""
    return (write.position, write.phase) < (read.position, read.phase)


def _axis_within(w: Region, r: Region, name: str, fixed: set[str]) -> bool:
    """Whether the writer's axis has every position of the reader's, both starting at the same offset."""
    a, b = getattr(w, name), getattr(r, name)
    if b.extent > a.extent or (a.step != b.step and b.extent > 1):
        return False
    theirs = {str(x) for x in (*b.lower, *b.upper)}
    return all(str(x) in theirs and set(x.variables()) <= fixed for x in (*a.lower, *a.upper))


def _whole_pointer(write: Access) -> bool:
    """Whether the write covers its pointer, whatever pid and loops are."""
    r = write.region
    if not r.whole or r.offset != 0 or r.dims:
        return False
    rows, cols = (r.rows.extent, r.rows.stride), (r.cols.extent, r.cols.stride)
    inner, outer = sorted((rows, cols), key=lambda a: (a[0] == 1, a[1]))
    dense = (inner[0] == 1 or inner[1] == 1) and (outer[0] == 1 or outer[1] == inner[0])
    return dense and inner[0] * outer[0] == int(write.slice.pointer.size)


def _common(a: Access, b: Access) -> list[str]:
    """The loops that enclose both, outermost first."""
    out = []
    for x, y in zip(a.loops, b.loops, strict=False):
        if x.var != y.var:
            break
        out.append(str(x.var))
    return out


def _by_isl(
    reads: Sequence[Access], writes: Sequence[Access], share: int, when: str
) -> Iterator[VerifyError]:
    for read in reads:
        try:
            witness = isl.bounded(partial(_unwritten, read, writes, share))
        except isl.Exhausted:
            name = read.slice.pointer.name
            yield _error(read, f"It is not proved that all of '{name}' is written before it is read.", {})
            continue
        if witness is not None:
            yield _unwritten_error(read, when, witness)


def _sizes(read: Access) -> dict[str, int]:
    """The least sizes at which something is read; none of a static graph, or where that is not known."""
    launch = read.region.launch
    if launch.static:
        return {}

    def least() -> dict[str, int]:
        found = isl.points(read.region, read.region.used)
        return {} if found.is_empty() else isl.least_sizes(found, launch)

    try:
        return isl.bounded(least)
    except isl.Exhausted:
        return {}


def is_written(read: Access, writes: Sequence[Access], share: int) -> bool:
    """Whether isl proves that all that is read was written before."""
    return isl.proved(lambda: _unwritten(read, writes, share) is None)


def _unwritten_error(read: Access, when: str, witness: dict[str, int]) -> VerifyError:
    what = f"{mnemonic(read.iop)} reads elements of '{read.slice.pointer.name}' that {when}."
    return _error(read, what, witness)


def _error(read: Access, what: str, witness: dict[str, int]) -> VerifyError:
    name = read.slice.pointer.name
    return VerifyError(
        what,
        rule="uninitialised",
        pointer=str(name),
        where=where(read.iop, read.slice),
        witness=witness,
        need=f"a write of what is read of '{name}' before this iOp, "
        + ("in the same unit" if read.slice.pointer.level == "reg" else "by a unit that shares it"),
        remedy=f"fill '{name}' first, move with pad so that the whole tile is written, or bound what is read "
        "by the valid rows and cols that were written",
    )


def _instances(read: Access) -> tuple[Region, list[str], islpy.Map]:
    """What each instance of the read touches: { [pid, loops...] -> [address] } over all enclosing loops."""
    variables = list(read.region.extents)
    return read.region, variables, isl.relation(read.region, variables)


def _unwritten(read: Access, writes: Sequence[Access], share: int) -> dict[str, int] | None:
    region, variables, touched = _instances(read)
    for write in writes:
        touched = touched.subtract(_written_before(write, read, variables, share))
        if touched.is_empty():
            return None
    unwritten = touched.wrap()
    sizes = isl.least_sizes(unwritten, region.launch)
    found = isl.sample(isl.at_sizes(unwritten, sizes))
    assert found is not None
    at = found[len(variables) :]
    if region.dims:
        element = address([affine(index) for index in at], region.dims).evaluate(sizes)
    else:
        (element,) = at
    return {**sizes, **_witness(region, variables, found), "element": element}


def _witness(region: Region, variables: Sequence[str], found: Sequence[int]) -> dict[str, int]:
    values = dict(zip(variables, found, strict=False))
    out = witness_of(region, values)
    del out["row"], out["col"]
    return out


def _written_before(write: Access, read: Access, variables: Sequence[str], share: int) -> islpy.Map:
    """{ [pid, loops of the read...] -> [address] }: what earlier instances of ``write`` wrote there."""
    ours, theirs = isl.IslNames(read.region), isl.IslNames(write.region, "w")
    common = _common(write, read)
    earlier = [
        " and ".join(
            [*(f"{theirs.of[v]} = {ours.of[v]}" for v in common[:k]), f"{theirs.of[v]} < {ours.of[v]}"]
        )
        for k, v in enumerate(common)
    ]
    if _stands_before(write, read):
        earlier.append(" and ".join(f"{theirs.of[v]} = {ours.of[v]}" for v in common) or "true")
    if not earlier:
        earlier.append("false")
    inner = list(write.region.extents)
    at, where = isl.placed(write.region, theirs)
    clauses = [
        *(f"0 <= {ours.of[v]} < {read.region.extents[v]}" for v in variables),
        *isl.constraints(write.region, theirs, inner),
        f"floor({theirs.of[PID]}/{share}) = floor({ours.of[PID]}/{share})",
        *where,
        "(" + " or ".join(f"({e})" for e in earlier) + ")",
    ]
    kept = ", ".join(ours.of[v] for v in variables)
    bound = ", ".join([*(theirs.of[v] for v in inner), theirs.row, theirs.col, *theirs.inner])
    pairs = f"[{kept}] -> [{', '.join(at)}]"
    text = f"{isl.header(read.region.launch)}{{ {pairs} : exists {bound} : {' and '.join(clauses)} }}"
    return isl.read_map(text)
