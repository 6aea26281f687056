# SPDX-License-Identifier: Apache-2.0
"""Loops without iterations: what a reduction over nothing is, is said; everything else in them is left out.

Before::

    for j, r in grid(6, 0): init: S[j] = 0; S[j] += A[r, j]

After::

    for j in range(6): S[j] = 0

TVM initialises a reduction in its first iteration, of which there is none.  Of several blocks in one nest
each gets what it begins with; of conditions those parts stay that no loop of a reduction decides.  A nest
of which that cannot be told is a `ShapeError`: nothing would write its result.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi.structural import structural_map

from ..errors import ShapeError
from .blocks import collect, conjuncts, uses
from .make_tir import changed, loop_like, sequence, with_body

NOTHING = tirx.Evaluate(tirx.const(0, "int32"))


def without_empty_loops(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function without such loops; itself where it has none.

    Raises
    ------
    ShapeError
        Of a reduction in such loops whose start is not known.
    """
    if not any(map(_is_empty, collect(func.body, tirx.For))):
        return func
    body = _without(func.body)
    for loop in filter(_is_empty, collect(body, tirx.For)):
        for block in filter(_begins, collect(loop, SBlock)):
            raise _refused(
                block.name_hint, "the loop without iterations is within a statement of another kind"
            )
    return func.with_body(body)


def _is_empty(loop: tirx.For) -> bool:
    return isinstance(loop.extent, tirx.IntImm) and int(loop.extent.value) == 0


def _begins(block: SBlock) -> bool:
    return block.init is not None


def _without(stmt: Any) -> Any:
    """A statement without loops that have no iterations."""
    if isinstance(stmt, tirx.SeqStmt):
        return _sequence([_without(each) for each in stmt.seq])
    if isinstance(stmt, SBlockRealize):
        block = changed(stmt.block, body=_without(stmt.block.body))
        return SBlockRealize(list(stmt.iter_values), stmt.predicate, block)
    if isinstance(stmt, tirx.IfThenElse):
        then, other = _without(stmt.then_case), NOTHING
        if stmt.else_case is not None:
            other = _without(stmt.else_case)
        if then is NOTHING and other is NOTHING:
            return NOTHING
        return tirx.IfThenElse(stmt.condition, then, None if other is NOTHING else other)
    if not isinstance(stmt, tirx.For):
        return stmt
    loops, inner = [stmt], stmt.body
    while isinstance(inner, tirx.For):
        loops.append(inner)
        inner = inner.body
    if any(map(_is_empty, loops)):
        return _started(inner, _Surroundings(tuple(loops)))
    return _nest(loops, _without(inner))


def _sequence(stmts: Sequence[Any]) -> Any:
    """Those of some statements that do something, one after the other."""
    kept = [stmt for stmt in stmts if stmt is not NOTHING]
    return sequence(kept) if kept else NOTHING


def _nest(loops: Sequence[tirx.For], body: Any) -> Any:
    """A statement in loops, the outermost first; nothing of nothing."""
    if body is NOTHING:
        return NOTHING
    for loop in reversed(loops):
        body = loop_like(loop, body)
    return body


@attrs.frozen
class _Surroundings:
    """What stands around a statement: loops, the outermost first, and conditions."""

    loops: tuple[tirx.For, ...] = ()
    conditions: tuple[Any, ...] = ()


def _started(stmt: Any, around: _Surroundings) -> Any:
    """What reductions begin with in loops some of which have no iterations."""
    if not any(map(_begins, collect(stmt, SBlock))):
        return NOTHING
    if isinstance(stmt, tirx.SeqStmt):
        parts = [_started(each, around) for each in stmt.seq]
        _check_apart(parts)
        return _sequence([_with_own_loops(part) for part in parts])
    if isinstance(stmt, tirx.For):
        return _started(stmt.body, attrs.evolve(around, loops=(*around.loops, stmt)))
    if isinstance(stmt, tirx.IfThenElse) and stmt.else_case is None:
        conditions = (*around.conditions, *conjuncts(stmt.condition))
        return _started(stmt.then_case, attrs.evolve(around, conditions=conditions))
    if not isinstance(stmt, SBlockRealize):
        name = next(filter(_begins, collect(stmt, SBlock))).name_hint
        raise _refused(name, f"it is within a statement of another kind ({type(stmt).__name__})")
    return _started_block(stmt, around)


def _started_block(realize: SBlockRealize, around: _Surroundings) -> Any:
    """A reduction's block as what it begins with; one that holds reductions with what these begin with."""
    block, name = realize.block, realize.block.name_hint
    if block.match_buffers:
        raise _refused(name, "it names parts of buffers")
    if _begins(block) and any(map(_begins, collect(block.body, SBlock))):
        raise _refused(name, "it holds reductions with starts of their own")
    body = block.init if _begins(block) else _started(block.body, _Surroundings())
    pairs = list(zip(block.iter_vars, realize.iter_values, strict=True))
    kept = [(axis, value) for axis, value in pairs if axis.iter_type == tirx.IterVar.DataPar]
    gone = [(axis, value) for axis, value in pairs if axis.iter_type != tirx.IterVar.DataPar]
    walked = [loop for loop in around.loops if _in_any(loop.loop_var, kept)]
    others = [loop.loop_var for loop in around.loops if not _in_any(loop.loop_var, kept)]
    empty = [loop.loop_var for loop in walked if _is_empty(loop)]
    for var in empty if all(_has_elements(axis) for axis, _ in kept) else []:
        if _in_any(var, gone):
            raise _refused(name, f"loop '{var.name}' walks both its elements and what is summed")
    if empty or body is NOTHING:
        return NOTHING
    if uses(body, [axis.var for axis, _ in gone] + others):
        raise _refused(name, "what it begins with depends on what is reduced")
    made = with_body(changed(block, iter_vars=[axis for axis, _ in kept], init=None), body)
    predicate: Any = True
    for part in _of_elements((*around.conditions, *conjuncts(realize.predicate)), others, name):
        predicate = part if predicate is True else tirx.And(predicate, part)
    return _nest(walked, SBlockRealize([value for _, value in kept], predicate, made))


def _with_own_loops(stmt: Any) -> Any:
    """The statement with loop variables that no other has."""
    if stmt is NOTHING:
        return NOTHING
    loops = [loop.loop_var for loop in collect(stmt, tirx.For)]
    own = {var: tvm.ir.Var(str(var.name), var.ty) for var in loops}
    return structural_map(stmt, (tvm.ir.Var, lambda var: own.get(var, var)))


def _in_any(variable: Any, pairs: Sequence[tuple[tirx.IterVar, Any]]) -> bool:
    return any(uses(value, [variable]) for _, value in pairs)


def _has_elements(axis: tirx.IterVar) -> bool:
    return not (isinstance(axis.dom.extent, tirx.IntImm) and int(axis.dom.extent.value) == 0)


def _of_elements(conditions: Sequence[Any], reduced: Sequence[Any], name: str) -> list[Any]:
    """The conditions that say which elements there are; those of what is reduced alone are left out."""
    kept = []
    for condition in conditions:
        if not uses(condition, list(reduced)):
            kept.append(condition)
        elif not all(uses(variable, list(reduced)) for variable in collect(condition, tvm.ir.Var)):
            raise _refused(name, f"{condition} decides both its elements and what is reduced")
    return kept


def _check_apart(parts: Sequence[Any]) -> None:
    """Refuse parts of which one writes what another touches: their order in the nest may matter."""
    written = [[store.buffer for store in collect(part, tirx.BufferStore)] for part in parts]
    read = [[load.source for load in collect(part, TensorLoad)] for part in parts]
    for one, other in itertools.permutations(range(len(parts)), 2):
        for buffer in written[one]:
            if any(map(buffer.same_as, written[other] + read[other])):
                raise _refused(buffer.name, "several blocks of one nest begin it")


def _refused(name: str, why: str) -> ShapeError:
    return ShapeError(
        f"'{name}' reduces over no elements, and what it is then is not known: {why}.",
        where=f"block {name}, in a loop without iterations",
        remedy="reduce in a nest of its own, with a loop for each axis; or leave the call out at this size",
    )
