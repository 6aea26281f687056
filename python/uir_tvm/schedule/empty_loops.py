# SPDX-License-Identifier: Apache-2.0
"""Loops without iterations: what a reduction over nothing is, is said; everything else in them is left out.

Before::

    for j, r in grid(6, 0): init: S[j] = 0; S[j] += A[r, j]

After::

    for j in range(6): S[j] = 0

TVM initialises a reduction in its first iteration, of which there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.ir import Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi.structural import structural_walk

NOTHING = tirx.Evaluate(tirx.const(0, "int32"))


def without_empty_loops(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function without such loops; itself where it has none."""
    found: list[tirx.For] = []
    structural_walk(func.body, (tirx.For, lambda loop: found.append(loop) if _is_empty(loop) else None))
    return func.with_body(_without(func.body)) if found else func


def _is_empty(loop: tirx.For) -> bool:
    return isinstance(loop.extent, tirx.IntImm) and int(loop.extent.value) == 0


def _without(stmt: Any) -> Any:
    """A statement without loops that have no iterations."""
    if isinstance(stmt, tirx.SeqStmt):
        kept = [made for each in stmt.seq if (made := _without(each)) is not NOTHING]
        return NOTHING if not kept else kept[0] if len(kept) == 1 else tirx.SeqStmt(kept)
    if isinstance(stmt, SBlockRealize):
        return SBlockRealize(list(stmt.iter_values), stmt.predicate, _with_body(stmt.block))
    if not isinstance(stmt, tirx.For):
        return stmt
    loops, inner = [stmt], stmt.body
    while isinstance(inner, tirx.For):
        loops.append(inner)
        inner = inner.body
    if not any(map(_is_empty, loops)):
        return _nest(loops, _without(inner))
    return _initialised(loops, inner) or stmt


def _with_body(block: SBlock) -> SBlock:
    return SBlock(
        list(block.iter_vars),
        list(block.reads),
        list(block.writes),
        block.name_hint,
        _without(block.body),
        block.init,
        list(block.alloc_buffers),
        list(block.match_buffers),
        block.annotations,
    )


def _nest(loops: Sequence[tirx.For], body: Any) -> Any:
    """A statement in loops, the outermost first."""
    for loop in reversed(loops):
        body = tirx.For(
            loop.loop_var,
            loop.min,
            loop.extent,
            loop.kind,
            body,
            loop.thread_binding,
            loop.annotations,
            loop.step,
        )
    return body


def _initialised(loops: Sequence[tirx.For], inner: Any) -> Any:
    """What loops do some of which have no iterations; None where that is not known."""
    reductions: list[SBlock] = []
    structural_walk(
        inner, (SBlock, lambda block: reductions.append(block) if block.init is not None else None)
    )
    if not reductions:
        return NOTHING
    if not isinstance(inner, SBlockRealize) or not inner.block.same_as(reductions[0]):
        return None
    if not isinstance(inner.predicate, tirx.IntImm):
        return None
    pairs = zip(inner.block.iter_vars, inner.iter_values, strict=True)
    kept = [(axis, value) for axis, value in pairs if axis.iter_type == tirx.IterVar.DataPar]
    used = {variable for _, value in kept for variable in _variables(value)}
    around = [loop for loop in loops if loop.loop_var in used]
    if any(map(_is_empty, around)):
        return NOTHING
    block = SBlock(
        [axis for axis, _ in kept], [], list(inner.block.writes), inner.block.name_hint, inner.block.init
    )
    return _nest(around, SBlockRealize([value for _, value in kept], True, block))


def _variables(expr: Any) -> set[Any]:
    found: set[Any] = set()
    structural_walk(expr, (Var, found.add))
    return found
