# SPDX-License-Identifier: Apache-2.0
"""What a pipelined loop loads and what it stores get pointers of their own.

Before::

    for k in 8 [pipeline=2] {
      move t, a[k];  unary.exp u, t;  move t, b[k];  binary.mul t, u, t;  move c[k], t
    }

After::

    for k in 8 [pipeline=2] {
      move t, a[k];  unary.exp u, t;  move t_1, b[k];  binary.mul t_2, u, t_1;  move c[k], t_2
    }

A temporary that serves in turn for an operand, another operand and the result ties them together: the second
load waits until the first operand is used, and no load can run ahead of the store before it.  Where pipes run
at the same time that costs more than the memory saves, and the memory is not even saved: addresses are
given by what is alive (`allocate`).

Exact: values are told apart by which writes each read may see (`flow`), and a read keeps all of its writes in
one pointer.  As long as the loop still fits with a place for every iteration in flight.
"""

from __future__ import annotations

import attrs

from ..errors import PassError
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, IPointer
from . import multibuffer
from .edit import edited, fresh_name, with_slices
from .examples import HARDWARE
from .figures import peak_bytes
from .flow import Flow
from .program import flow_of, program_of

_HEAD = f"""{HARDWARE}
igraph example on toy parallel (2, 1) {{
  a = iPointer(dram, fp32, 512, in)
  b = iPointer(dram, fp32, 512, in)
  c = iPointer(dram, fp32, 512, out)
  t = iPointer(reg, fp32, 32)
  u = iPointer(reg, fp32, 32)
"""

BEFORE = f"""{_HEAD}
  for k in 8 [pipeline=2] {{
    move.dram.reg.fp32 t[0; (1,32); (32,1)], a[32*k + 256*pid; (1,32); (32,1)]
    unary.exp.fp32 u[0; (1,32); (32,1)], t[0; (1,32); (32,1)]
    move.dram.reg.fp32 t[0; (1,32); (32,1)], b[32*k + 256*pid; (1,32); (32,1)]
    binary.mul.fp32 t[0; (1,32); (32,1)], u[0; (1,32); (32,1)], t[0; (1,32); (32,1)]
    move.reg.dram.fp32 c[32*k + 256*pid; (1,32); (32,1)], t[0; (1,32); (32,1)]
  }}
}}
"""

AFTER = f"""{_HEAD}
  t_1 = iPointer(reg, fp32, 32)
  t_2 = iPointer(reg, fp32, 32)
  for k in 8 [pipeline=2] {{
    move.dram.reg.fp32 t[0; (1,32); (32,1)], a[32*k + 256*pid; (1,32); (32,1)]
    unary.exp.fp32 u[0; (1,32); (32,1)], t[0; (1,32); (32,1)]
    move.dram.reg.fp32 t_1[0; (1,32); (32,1)], b[32*k + 256*pid; (1,32); (32,1)]
    binary.mul.fp32 t_2[0; (1,32); (32,1)], u[0; (1,32); (32,1)], t_1[0; (1,32); (32,1)]
    move.reg.dram.fp32 c[32*k + 256*pid; (1,32); (32,1)], t_2[0; (1,32); (32,1)]
  }}
}}
"""


@attrs.define(eq=False)
class _Value:
    """One value of a pointer: the iOps that write it, and the operands (position, name) that read it."""

    pointer: str
    writes: set[int] = attrs.field(factory=set)
    reads: set[tuple[int, str]] = attrs.field(factory=set)


def run(graph: IGraph) -> IGraph:
    """The graph with values parted; ``graph`` itself where there is nothing to part, or no room."""
    moved = {
        position
        for position, (iop, loops) in enumerate(graph.walk())
        if _is_transfer(iop) and any(multibuffer.PIPELINE in loop.attrs for loop in loops)
    }
    if not moved:
        return graph
    parted = _parted(graph, moved)
    every = _renamed(graph, parted)
    if every is graph or _has_room(every):
        return every
    kept: list[_Value] = []
    for value in parted:
        if _has_room(_renamed(graph, [*kept, value])):
            kept.append(value)
    return _renamed(graph, kept)


def _is_transfer(iop: IOp) -> bool:
    """Whether an iOp loads from dram, or stores there."""
    if not spec_of(iop).touches:
        return False
    levels = [str(piece.pointer.level) for piece in iop.slices()]
    return iop.op in ("move", "gather") and "dram" in levels and "reg" in levels


def _has_room(graph: IGraph) -> bool:
    """Whether a graph fits once its loops have stages; the hardware model may keep room for other things."""
    try:
        made = multibuffer.run(graph)
    except PassError:
        return False
    return peak_bytes(made, "reg") <= int(graph.hardware.figures.get("tile_bytes", graph.hardware.reg_bytes))


def _parted(graph: IGraph, moved: set[int]) -> list[_Value]:
    """The values that get pointers of their own; of a pointer that holds no others one keeps its name."""
    flow = flow_of(graph)
    out: list[_Value] = []
    for pointer in graph.pointers:
        if str(pointer.level) != "reg":
            continue
        values = _values(flow, str(pointer.name))
        chosen = [
            value for value in values if moved & (value.writes | {position for position, _ in value.reads})
        ]
        out += chosen if len(chosen) < len(values) else chosen[1:]
    return out


def _values(flow: Flow, name: str) -> list[_Value]:
    """The values of a pointer in program order; one where they cannot be told apart."""
    accesses = flow.program.by_pointer.get(name, ())
    whole = [_Value(name)]
    if any(a.operand != "target" and not str(a.operand).startswith("source") for a in accesses):
        return whole
    group: dict[int, _Value] = {}
    for access in accesses:
        if access.kind == "write":
            group[access.position] = _Value(name, {access.position})
    seen: dict[tuple[int, str], list[int]] = {}
    for position in group:
        for use in flow.uses.get(position, ()):
            seen.setdefault((use.access.position, str(use.access.operand)), []).append(position)
    for access in accesses:
        if access.kind != "read":
            continue
        key = (access.position, str(access.operand))
        if key not in seen:
            return whole  # something that no iOp wrote
        origins = [*seen[key], *([access.position] if access.operand == "target" else [])]
        merged = group[origins[0]]
        for origin in origins[1:]:
            other = group[origin]
            if other is not merged:
                merged.writes |= other.writes
                merged.reads |= other.reads
                group |= dict.fromkeys(other.writes, merged)
        if access.operand != "target":
            merged.reads.add(key)
    values = {id(value): value for _, value in sorted(group.items())}
    return list(values.values())


def _renamed(graph: IGraph, values: list[_Value]) -> IGraph:
    """The graph with a new pointer for each value."""
    program = program_of(graph)
    changes: dict[int, IOp] = {}
    pointers = list(graph.pointers)
    taken: set[str] = set()
    for value in values:
        old = graph.pointer(value.pointer)
        new = IPointer(fresh_name(graph, value.pointer, taken), old.level, old.dtype, old.size, "tmp")
        pointers.append(new)
        for position, operand in [*((at, "target") for at in value.writes), *value.reads]:
            iop = changes.get(position, program.steps[position].iop)
            piece = iop.target if operand == "target" else iop.sources[int(operand.removeprefix("source"))]
            changes[position] = with_slices(iop, {operand: piece.replace(pointer=new)})
    return edited(graph, changes, pointers) if changes else graph
