# SPDX-License-Identifier: Apache-2.0
"""Softmax over rows that do not fit on chip, in two passes over the data instead of three.

Before: the maximum of the row, then the sum of exponentials, which needs it::

    M[i] = max_k f(i, k)
    S[i] = sum_k exp(f(i, k) - M[i])

After: both over one chunk at a time, so that a chunk is loaded once for both, then combined by
``exp(f - M) = exp(f - m) * exp(m - M)``::

    for c:  m[i, c] = max_k f(i, c*K + k);  s[i, c] = sum_k exp(f(i, c*K + k) - m[i, c])
    M[i] = max_c m[i, c]
    S[i] = sum_c s[i, c] * exp(m[i, c] - M[i])

Source: the blocked form of online normaliser calculation (Milakov, Gimelshein: Online normalizer
calculation for softmax, arXiv 1805.02867).  The result differs from the first form by rounding only.
"""

from __future__ import annotations

from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.s_tir import SBlock, Schedule
from tvm_ffi.structural import structural_equal, structural_map
from uir_tvm.schedule.blocks import BlockInfo, leaf_blocks, loop_extent, prim_func, reduction_loops
from uir_tvm.schedule.make_tir import with_body


@attrs.frozen
class Pair:
    """The maximum and the sum of exponentials that reads it."""

    maximum: BlockInfo
    total: BlockInfo

    @property
    def maximum_buffer(self) -> str:
        """The buffer of the row maxima."""
        return self.maximum.writes[0]


def find_pair(sch: Schedule) -> Pair | None:
    """The two reductions, once the exponential is inlined into the sum; None when there are none."""
    reductions = [b for b in leaf_blocks(sch) if b.is_reduction]
    for maximum in reductions:
        if not isinstance(_value(maximum), tirx.Max):
            continue
        for total in reductions:
            if (
                maximum.writes[0] in total.reads
                and total.extents == maximum.extents
                and _is_exp_sum(total, maximum)
            ):
                return Pair(maximum, total)
    return None


def _value(block: BlockInfo) -> Any:
    """What a block stores; None where it stores several things (a reduction of pairs)."""
    return block.stmt.body.value if isinstance(block.stmt.body, tirx.BufferStore) else None


def _is_exp_sum(total: BlockInfo, maximum: BlockInfo) -> bool:
    """S + exp(f - M), where f is what the maximum is taken of."""
    value = _value(total)
    if not isinstance(value, tirx.Add) or not isinstance(value.b, Call) or _name(value.b) != "tirx.exp":
        return False
    (argument,) = value.b.args
    if not isinstance(argument, tirx.Sub) or not isinstance(argument.b, TensorLoad):
        return False
    if argument.b.source.name != maximum.writes[0]:
        return False
    renamed = {a.var: b.var for a, b in zip(maximum.stmt.iter_vars, total.stmt.iter_vars, strict=True)}
    of_maximum = structural_map(
        maximum.stmt.body.value.b,
        (tvm.ir.Var, lambda v: next((w for u, w in renamed.items() if u.same_as(v)), v)),
    )
    return structural_equal(of_maximum, argument.a)


def _name(call: Call) -> str:
    return call.op.name if isinstance(call.op, tvm.ir.Op) else ""


def chunk_of(extent: int, limit: int) -> int | None:
    """The longest divisor of a row up to ``limit`` and not much shorter (None: there is none)."""
    return next((c for c in range(min(limit, extent), max(0, limit // 8), -1) if extent % c == 0), None)


@attrs.frozen
class Chunked:
    """The rewritten function, and the names of the two blocks that share their chunks."""

    func: tirx.PrimFunc
    maximum: str
    total: str


def rewrite(sch: Schedule, pair: Pair, chunk: int) -> Chunked:
    """The function with both reductions in chunks (see the module's text)."""
    partial_max = _factor(sch, pair.maximum, chunk)
    partial_sum = _factor(sch, pair.total, chunk)
    maxima = sch.get(partial_max).writes[0].source
    chunked = Chunked(prim_func(sch), sch.get(partial_max).name_hint, sch.get(partial_sum).name_hint)

    def block(stmt: SBlock) -> SBlock:
        if stmt.name_hint == chunked.total:
            return _shifted(stmt, pair.maximum_buffer, maxima)
        if stmt.name_hint == pair.total.name:
            return _rescaled(stmt, pair, maxima)
        return stmt

    return attrs.evolve(chunked, func=structural_map(chunked.func, (SBlock, block)))


def share_chunks(sch: Schedule, chunked: Chunked) -> Any:
    """One loop over chunks around both partial blocks, once they are attached; returns it.

    Attached last first, each directly before its first consumer, they stand side by side: the maximum
    of the row comes after the partial sums, which do not need it.
    """
    loops = [sch.get_loops(sch.get_sblock(name))[-2] for name in (chunked.maximum, chunked.total)]
    return sch.merge(*loops)


def _factor(sch: Schedule, block: BlockInfo, chunk: int) -> Any:
    (loop,) = reduction_loops(sch, block.rv)
    assert loop_extent(sch, loop) % chunk == 0
    outer, _ = sch.split(loop, [None, chunk])
    return sch.rfactor(outer, len(block.spatial))


def _shifted(stmt: SBlock, row_maxima: str, maxima: Any) -> SBlock:
    """s[.., c] += exp(f - M[..]) becomes s[.., c] += exp(f - m[.., c])."""
    position = stmt.body.indices[-1]

    def load(node: TensorLoad) -> TensorLoad:
        if node.source.name != row_maxima:
            return node
        return tirx.BufferLoad(maxima, [*node.indices, position])

    return with_body(stmt, structural_map(stmt.body, (TensorLoad, load)))


def _rescaled(stmt: SBlock, pair: Pair, maxima: Any) -> SBlock:
    """S[..] += s[.., c] becomes S[..] += s[.., c] * exp(m[.., c] - M[..])."""
    store = stmt.body
    part = store.value.b
    row = next(r.source for r in pair.total.stmt.reads if r.source.name == pair.maximum_buffer)
    shift = tirx.exp(tirx.BufferLoad(maxima, part.indices) - tirx.BufferLoad(row, store.indices))
    return with_body(stmt, tirx.BufferStore(store.buffer, store.value.a + part * shift, store.indices))
