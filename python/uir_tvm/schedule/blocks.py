# SPDX-License-Identifier: Apache-2.0
"""What primitives and recipes need to know about the blocks of a PrimFunc."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.s_tir import Schedule
from tvm_ffi.structural import WalkResult, structural_walk

from .representative import extent_of, is_open, most_of

# TVM checks the types of all arguments of an instruction, which takes ten times as long as these do.
_get, _children = inspect.unwrap(Schedule.get), inspect.unwrap(Schedule.get_child_blocks)

#: What a transcendental function counts for in `total_work`.
EXPENSIVE_WORK = 8
#: What an element counts for at least that is read and written, and for which nothing is computed.
MOVED_WORK = 3
SPATIAL, REDUCTION = tirx.IterVar.DataPar, tirx.IterVar.CommReduce

#: Calls that cost many instructions: an expression with one of them is not recomputed.
EXPENSIVE = frozenset(
    "exp exp2 exp10 log log2 log10 log1p tanh erf sigmoid sin cos tan pow sqrt rsqrt atan atan2 asin acos "
    "sinh cosh asinh acosh atanh".split()
)


@attrs.frozen
class BlockInfo:
    """One leaf block, as the schedule has it now."""

    name: str
    rv: Any = attrs.field(eq=False)
    stmt: Any = attrs.field(eq=False)
    #: Extents of the block's iteration variables and their kinds (SPATIAL, REDUCTION, other).
    extents: tuple[int, ...]
    kinds: tuple[int, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    #: Distinct calls in its body, by operator name.
    calls: frozenset[str]
    #: Arithmetic nodes in its body.
    flops: int

    def of(self, rv: Any, extents: tuple[int, ...]) -> BlockInfo:
        """The same of a block of a schedule."""
        return BlockInfo(
            self.name, rv, self.stmt, extents, self.kinds, self.reads, self.writes, self.calls, self.flops
        )

    @property
    def spatial(self) -> tuple[int, ...]:
        """Extents of the spatial iteration variables."""
        return tuple(e for e, k in zip(self.extents, self.kinds, strict=True) if k == SPATIAL)

    @property
    def reduction(self) -> tuple[int, ...]:
        """Extents of the reduction iteration variables."""
        return tuple(e for e, k in zip(self.extents, self.kinds, strict=True) if k == REDUCTION)

    @property
    def size(self) -> int:
        """Number of iterations."""
        return math.prod(self.extents)

    def writes_any(self, names: set[str]) -> bool:
        """Whether it writes one of these buffers."""
        return bool(names & set(self.writes))

    @property
    def is_reduction(self) -> bool:
        """Whether it reduces."""
        return REDUCTION in self.kinds

    @property
    def is_injective(self) -> bool:
        """It has iteration variables, all spatial."""
        return bool(self.kinds) and all(k == SPATIAL for k in self.kinds)

    @property
    def is_expensive(self) -> bool:
        """Whether recomputing it costs a transcendental function."""
        return bool(self.calls & EXPENSIVE)

    @property
    def is_copy(self) -> bool:
        """Whether its body only moves data (a reshape, a transpose, a slice, an expansion)."""
        return self.flops == 0 and not (self.calls - {"if_then_else"})


def _constant(extent: Any) -> int:
    return int(extent) if isinstance(extent, int | tirx.IntImm) else -1


_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min, tirx.Select, tirx.Cast)


def _body_facts(stmt: Any) -> tuple[frozenset[str], int]:
    """Calls and number of arithmetic nodes on values (index arithmetic does not count)."""
    calls: set[str] = set()
    flops = 0

    def visit(node: Any) -> Any:
        nonlocal flops
        if isinstance(node, TensorLoad | tvm.ir.Type):
            return WalkResult.SKIP
        if isinstance(node, tirx.BufferStore):
            structural_walk(node.value, (object, visit), order="pre")
            return WalkResult.SKIP
        if isinstance(node, Call):
            calls.add(str(getattr(node.op, "name", node.op)).rpartition(".")[2])
        elif isinstance(node, _ARITHMETIC):
            flops += 1
        return WalkResult.ADVANCE

    structural_walk(stmt.value if isinstance(stmt, tirx.BufferStore) else stmt, (object, visit), order="pre")
    return frozenset(calls), flops


def block_info(sch: Schedule, rv: Any) -> BlockInfo:
    """Facts about one block; extents that sizes decide are those of the representative sizes."""
    stmt = _get(sch, rv)
    facts, extents = _facts(stmt), None
    if -1 in facts.extents:
        func = prim_func(sch)
        extents = tuple(extent_of(iv.dom.extent, func) for iv in stmt.iter_vars)
    return facts.of(rv, extents or facts.extents)


# Recipes ask for all blocks again after every instruction, and few of them have changed; none does in place.
@functools.lru_cache(1024)
def _facts(stmt: Any) -> BlockInfo:
    calls, flops = _body_facts(stmt.body)
    return BlockInfo(
        name=stmt.name_hint,
        rv=None,
        stmt=stmt,
        extents=tuple(_constant(iv.dom.extent) for iv in stmt.iter_vars),
        kinds=tuple(int(iv.iter_type) for iv in stmt.iter_vars),
        reads=tuple(dict.fromkeys(r.source.name for r in stmt.reads)),
        writes=tuple(dict.fromkeys(w.source.name for w in stmt.writes)),
        calls=calls,
        flops=flops,
    )


def total_work(blocks: Sequence[BlockInfo], each: int = 1) -> int:
    """Elementary operations of all blocks, roughly; at least what moving the elements of one takes.

    ``each``: how many each of the blocks' operations takes.
    """
    points = [math.prod(b.extents) for b in blocks]
    operations = [1 + b.flops + (EXPENSIVE_WORK if b.is_expensive else 0) for b in blocks]
    work = sum(n * made for n, made in zip(points, operations, strict=True))
    return max(work * each, MOVED_WORK * max(points, default=0))


def leaf_blocks(sch: Schedule) -> list[BlockInfo]:
    """All blocks under the root, in program order."""
    return [block_info(sch, rv) for rv in _children(sch, root_block(sch))]


def reduction_blocks(sch: Schedule) -> list[BlockInfo]:
    """The blocks that reduce, in program order."""
    return [b for b in leaf_blocks(sch) if b.is_reduction]


def root_block(sch: Schedule) -> Any:
    """The root block of the function being scheduled."""
    return sch.get_sblock(prim_func(sch).body.block.name_hint)


def param_names(sch: Schedule) -> set[str]:
    """Names of the buffers that the caller owns."""
    return {p.name for p in prim_func(sch).params}


def prim_func(sch: Schedule) -> tirx.PrimFunc:
    """The function being scheduled."""
    return sch.mod[sch.func_working_on]


def loop_extent(sch: Schedule, loop: Any) -> int:
    """A loop's extent; what sizes decide at the representative sizes, -1 where other loops decide it."""
    extent = _get(sch, loop).extent
    return extent_of(extent, prim_func(sch)) if is_open(extent) else int(extent)


def most_iterations(sch: Schedule, loop: Any) -> int:
    """The greatest that a loop's extent may be; -1 where other loops decide it."""
    return most_of(_get(sch, loop).extent, prim_func(sch))


def is_open_loop(sch: Schedule, loop: Any) -> bool:
    """Whether a loop's extent is no number: sizes or other loops decide it."""
    return is_open(_get(sch, loop).extent)


def dtype_bytes(dtype: Any) -> int:
    """Bytes of one element."""
    return (tvm.runtime.DataType(str(dtype)).bits + 7) // 8


def collect(root: Any, kind: type) -> list[Any]:
    """Every node of a class under ``root``, children first.

    A list, because an exception raised inside the walk would lose its class on the way through C++.
    """
    found: list[Any] = []
    structural_walk(root, (kind, found.append))
    return found


def uses(expr: Any, variables: list[Any]) -> bool:
    """Whether any of the variables occurs in the expression."""
    return any(v.same_as(w) for v in collect(expr, tvm.ir.Var) for w in variables)


def conjuncts(condition: Any) -> list[Any]:
    """The parts of a condition that must all hold; none of one that is true."""
    if isinstance(condition, tirx.And):
        return conjuncts(condition.a) + conjuncts(condition.b)
    if isinstance(condition, tirx.IntImm) and condition.value:
        return []
    return [condition]


def bindings(sch: Schedule, rv: Any) -> list[Any]:
    """What each iteration variable of a block is bound to."""
    wanted = sch.get(rv)
    realizes = collect(prim_func(sch).body, tvm.s_tir.SBlockRealize)
    return next(list(r.iter_values) for r in realizes if r.block.same_as(wanted))


def reduction_loops(sch: Schedule, rv: Any) -> list[Any]:
    """The loops above a block that its reduction variables are bound to, outermost first."""
    stmt = sch.get(rv)
    reduced = [
        value
        for iv, value in zip(stmt.iter_vars, bindings(sch, rv), strict=True)
        if int(iv.iter_type) == REDUCTION
    ]
    return [lp for lp in sch.get_loops(rv) if any(uses(v, [sch.get(lp).loop_var]) for v in reduced)]


def own_loops(sch: Schedule, rv: Any) -> list[Any]:
    """The loops above a block that enclose nothing else, outermost first."""
    loops = list(sch.get_loops(rv))
    shared = 0
    for depth, loop in enumerate(loops):
        if len(sch.get_child_blocks(loop)) > 1:
            shared = depth + 1
    return loops[shared:]
