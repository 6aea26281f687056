# SPDX-License-Identifier: Apache-2.0
"""Reductions that go on from what their result holds: reduced by themselves, then added to it.

Before::

    for i, j, k in grid(M, N, K): C[i, j] = C[i, j] + A[i, k] * B[k, j]     # no init: C holds values

After::

    for i, j, k in grid(M, N, K):
      init: S[i, j] = 0
      S[i, j] = S[i, j] + A[i, k] * B[k, j]
    for i, j in grid(M, N): C[i, j] = C[i, j] + S[i, j]

So every recipe of reductions fits; the update is the elementwise work after one.  Sums are rounded in another
order, as wherever a reduction is shared out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir.analysis import get_sblock_access_region
from tvm_ffi.structural import structural_equal

from .blocks import REDUCTION, SPATIAL, collect
from .make_tir import changed, sequence, with_body


def _least(dtype: str) -> Any:
    return _infinite(dtype, -1) if "float" in dtype else tirx.min_value(dtype)


def _greatest(dtype: str) -> Any:
    return _infinite(dtype, 1) if "float" in dtype else tirx.max_value(dtype)


def _infinite(dtype: str, sign: int) -> Any:
    return tirx.const(sign * float("inf"), dtype)


#: What reductions may be made of, with the number that changes nothing.
IDENTITIES: dict[type, Callable[[str], Any]] = {
    tirx.Add: lambda dtype: tirx.const(0, dtype),
    tirx.Mul: lambda dtype: tirx.const(1, dtype),
    tirx.Max: _least,
    tirx.Min: _greatest,
}


@attrs.frozen
class _Update:
    """``buffer[indices] = kind(buffer[indices], value)`` in a block that has no init."""

    block: Any
    buffer: Any
    indices: tuple[Any, ...]
    kind: type
    value: Any


def reduce_apart(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with such reductions apart from what they update; itself where there is none."""
    realize = func.body
    if not isinstance(realize, SBlockRealize):
        return func
    root = realize.block
    stmts = list(root.body.seq) if isinstance(root.body, tirx.SeqStmt) else [root.body]
    made: list[Any] = []
    held: list[Any] = []
    for stmt in stmts:
        update = _update_of(stmt)
        if update is None:
            made.append(stmt)
            continue
        sums = tirx.decl_buffer(
            list(update.buffer.ty.shape), str(update.buffer.ty.dtype), name=f"{update.buffer.name}_reduced"
        )
        held.append(sums)
        made += [_reduced(stmt, update, sums), _updated(update, sums)]
    if not held:
        return func
    block = changed(root, body=sequence(made), alloc_buffers=[*root.alloc_buffers, *held])
    return func.with_body(SBlockRealize(realize.iter_values, realize.predicate, block))


def _update_of(stmt: Any) -> _Update | None:
    """The update that a statement of the root is, if it is one block of them."""
    inner = stmt
    while isinstance(inner, tirx.For):
        inner = inner.body
    if not isinstance(inner, SBlockRealize) or not isinstance(inner.predicate, tirx.IntImm):
        return None
    block = inner.block
    kinds = [int(iv.iter_type) for iv in block.iter_vars]
    store = block.body
    if (
        not inner.predicate.value
        or block.init is not None
        or REDUCTION not in kinds
        or set(kinds) - {SPATIAL, REDUCTION}
        or not isinstance(store, tirx.BufferStore)
        or type(store.value) not in IDENTITIES
    ):
        return None
    spatial = [iv.var for iv, kind in zip(block.iter_vars, kinds, strict=True) if kind == SPATIAL]
    if not _each_once(store.indices, spatial):
        return None
    sides = [store.value.a, store.value.b]
    own = [side for side in sides if _loads(side, store)]
    others = [side for side in sides if not _loads(side, store)]
    if len(own) != 1 or any(load.source.same_as(store.buffer) for load in collect(others[0], TensorLoad)):
        return None
    return _Update(block, store.buffer, tuple(store.indices), type(store.value), others[0])


def _loads(expr: Any, store: Any) -> bool:
    """Whether an expression is what the store writes to."""
    return (
        isinstance(expr, TensorLoad)
        and expr.source.same_as(store.buffer)
        and all(structural_equal(a, b) for a, b in zip(expr.indices, store.indices, strict=True))
    )


def _each_once(indices: Any, spatial: list[Any]) -> bool:
    """Whether the indices are these variables, each once, and numbers: no element is updated twice."""
    variables = [index for index in indices if not isinstance(index, tirx.IntImm)]
    return len(variables) == len(spatial) and all(
        sum(index.same_as(var) for index in variables) == 1 for var in spatial
    )


def _reduced(stmt: Any, update: _Update, sums: Any) -> Any:
    """The nest of the reduction, into a buffer of its own."""
    identity = IDENTITIES[update.kind](str(update.buffer.ty.dtype))
    value = update.kind(tirx.BufferLoad(sums, list(update.indices)), update.value)
    block = with_body(
        update.block,
        tirx.BufferStore(sums, value, list(update.indices)),
        tirx.BufferStore(sums, identity, list(update.indices)),
    )

    def around(node: Any) -> Any:
        if isinstance(node, tirx.For):
            return tirx.For(
                node.loop_var,
                node.min,
                node.extent,
                node.kind,
                around(node.body),
                annotations=node.annotations,
            )
        return SBlockRealize(node.iter_values, node.predicate, block)

    return around(stmt)


def _updated(update: _Update, sums: Any) -> Any:
    """The nest that adds what was reduced to what the buffer holds."""
    spatial = [iv for iv in update.block.iter_vars if int(iv.iter_type) == SPATIAL]
    fresh = [
        tirx.IterVar(iv.dom, tvm.ir.Var(str(iv.var.name), str(iv.var.ty.dtype)), SPATIAL) for iv in spatial
    ]
    places = [
        next((new.var for old, new in zip(spatial, fresh, strict=True) if index.same_as(old.var)), index)
        for index in update.indices
    ]
    value = update.kind(tirx.BufferLoad(update.buffer, places), tirx.BufferLoad(sums, places))
    store, name = tirx.BufferStore(update.buffer, value, places), f"{update.block.name_hint}_update"
    buffers = {buffer: buffer for buffer in (update.buffer, sums)}
    reads, writes, _ = get_sblock_access_region(SBlock(fresh, [], [], name, store), buffers)
    block = SBlock(fresh, reads, writes, name, store)
    loops = [tvm.ir.Var(f"{iv.var.name}_u", str(iv.var.ty.dtype)) for iv in spatial]
    body: Any = SBlockRealize(list(loops), True, block)
    for var, iv in reversed(list(zip(loops, spatial, strict=True))):
        body = tirx.For(var, iv.dom.min, iv.dom.extent, tirx.ForKind.SERIAL, body)
    return body
