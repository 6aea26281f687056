# SPDX-License-Identifier: Apache-2.0
"""Scheduled functions written from scratch: loops, blocks and buffers of S-TIR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir.analysis import get_sblock_access_region

from .blocks import collect

#: Of a block, in the order in which it is made of them.
FIELDS = "iter_vars reads writes name_hint body init alloc_buffers match_buffers annotations".split()
#: Of every loop variable: TVM's shapes are int64.
INDEX = "int64"


def index(value: int) -> Any:
    """A constant index."""
    return tirx.IntImm(INDEX, value)


def loop(
    name: str, extent: int, body: Callable[[Any], Any], annotations: Mapping[str, Any] | None = None
) -> Any:
    """``for name in extent: body(name)``; a loop of one iteration is its body."""
    if extent == 1 and not annotations:
        return body(index(0))
    var = tvm.ir.Var(name, INDEX)
    return tirx.For(
        var, index(0), index(extent), tirx.ForKind.SERIAL, body(var), annotations=dict(annotations or {})
    )


def loop_like(other: tirx.For, body: Any) -> tirx.For:
    """A loop with all that another has, around this body."""
    return tirx.For(
        other.loop_var,
        other.min,
        other.extent,
        other.kind,
        body,
        other.thread_binding,
        other.annotations,
        other.step,
        other.span,
    )


def nest(loops: Sequence[tuple[str, int]], body: Callable[..., Any]) -> Any:
    """Loops around ``body(variables)``, outermost first."""

    def inside(left: Sequence[tuple[str, int]], done: tuple[Any, ...]) -> Any:
        if not left:
            return body(*done)
        (name, extent), *rest = left
        return loop(name, extent, lambda var: inside(rest, (*done, var)))

    return inside(list(loops), ())


def store(buffer: Any, indices: Sequence[Any], value: Any) -> Any:
    """``buffer[indices] = value``."""
    return tirx.BufferStore(buffer, value, list(indices))


def load(buffer: Any, *indices: Any) -> Any:
    """``buffer[indices]``."""
    return tirx.BufferLoad(buffer, list(indices))


def when(condition: Any | None, stmt: Any) -> Any:
    """The statement under a condition; None: always."""
    return stmt if condition is None else tirx.IfThenElse(condition, stmt, None)


def block(
    name: str,
    body: Any,
    annotations: Mapping[str, Any] | None = None,
    allocated: Sequence[Any] = (),
) -> Any:
    """A block without iteration variables around a statement, with the regions that it touches."""
    bare = SBlock([], [], [], name, body, None, list(allocated))
    touched = [n.source for n in collect(body, TensorLoad)] + [
        n.buffer for n in collect(body, tirx.BufferStore)
    ]
    reads, writes, _ = get_sblock_access_region(bare, {buffer: buffer for buffer in touched})
    made = SBlock([], reads, writes, name, body, None, list(allocated), [], dict(annotations or {}))
    return SBlockRealize([], True, made)


def sequence(stmts: Sequence[Any]) -> Any:
    """Statements one after the other."""
    return stmts[0] if len(stmts) == 1 else tirx.SeqStmt(list(stmts))


def function(like: tirx.PrimFunc, body: Any, allocated: Sequence[Any]) -> tirx.PrimFunc:
    """A function with the parameters and attributes of another, and this body."""
    root = SBlockRealize([], True, SBlock([], [], [], "root", body, None, list(allocated)))
    return tirx.PrimFunc(like.params, root, like.ret_type, like.attrs)


def guarded(realize: SBlockRealize, condition: Any) -> SBlockRealize:
    """The block where a condition holds too."""
    old = realize.predicate
    always = isinstance(old, tirx.IntImm) and old.value
    predicate = condition if always else tirx.And(old, condition)
    return SBlockRealize(list(realize.iter_values), predicate, realize.block)


def outermost_changed(stmt: Any, change: Callable[[SBlockRealize], SBlockRealize | None]) -> Any:
    """A statement with its outermost blocks changed; None where one is not, or stands under a condition."""
    if isinstance(stmt, tirx.For):
        body = outermost_changed(stmt.body, change)
        return None if body is None else loop_like(stmt, body)
    if isinstance(stmt, tirx.SeqStmt):
        parts = [outermost_changed(part, change) for part in stmt.seq]
        return None if any(part is None for part in parts) else tirx.SeqStmt(parts)
    return change(stmt) if isinstance(stmt, SBlockRealize) else None


def changed(stmt: SBlock, **fields: Any) -> SBlock:
    """The block with some of its fields replaced, by their names."""
    return SBlock(*(fields.get(name, getattr(stmt, name)) for name in FIELDS))


def with_body(stmt: SBlock, body: Any, init: Any = None) -> SBlock:
    """The block with another body (and start) and the regions that it now reads and writes."""
    init = stmt.init if init is None else init
    bare = SBlock(stmt.iter_vars, [], [], stmt.name_hint, body, init, stmt.alloc_buffers)
    buffers = {buffer: buffer for buffer in _buffers(body)}
    reads, writes, _ = get_sblock_access_region(bare, buffers)
    written = {w.source.name for w in writes}
    reads = [r for r in reads if r.source.name not in written]
    return changed(stmt, reads=reads, writes=writes, body=body, init=init, match_buffers=[])


def _buffers(body: Any) -> list[Any]:
    return [n.source for n in collect(body, TensorLoad)] + [n.buffer for n in collect(body, tirx.BufferStore)]
