# SPDX-License-Identifier: Apache-2.0
"""Stores that bypass the caches.

A tensor that exceeds the last-level cache and is only written would be read into it line by line first,
only to be evicted again.  Non-temporal stores spare that third of the traffic.  TIR has no such store; a
function of LLVM's own language, inlined where it is called, holds it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from tvm import tirx
from tvm.ir import Expr

from ...hardware.last_cache import last_cache_bytes
from ...igraph.dtypes import bytes_of, dtype_of
from ...igraph.nodes import IGraph, IPointer
from .actions import MAP, Action
from .address import LoopScope, index
from .buffers import Buffers
from .code import Code
from .element_access import StridedAccess
from .elements import element, lanes_of
from .groups import RowNest
from .llvm_text import LlvmText

#: TIR dtype -> type of LLVM.
LLVM_TYPES = {
    "float64": "double",
    "float32": "float",
    "float16": "half",
    "uint64": "i64",
    "uint32": "i32",
    "uint16": "i16",
    "uint8": "i8",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
}

#: A result is large where it is one part in so many of what a kernel moves, or more, and that exceeds caches.
PART = 4
#: Fewest vectors of a row that is streamed from its first whole line on, wherever it begins.
LEAST_RAGGED = 64
#: The same of a row that repeats each element side by side: rows that follow it have other elements, so that
#: tiles are single rows.
LEAST_REPEATED = 16

ADDRESS = "uir_address"
_ADDRESS_TEXT = f"""
define linkonce_odr i64 @{ADDRESS}(ptr %p) alwaysinline {{
  %a = ptrtoint ptr %p to i64
  ret i64 %a
}}
"""


def definition(dtype: str, lanes: int) -> tuple[str, str]:
    """Name and LLVM text of the store of ``lanes`` elements of a TIR dtype at an address aligned to them."""
    kind = LLVM_TYPES[dtype]
    size = int(tirx.const(0, dtype).ty.dtype.bits) // 8 * lanes
    name = f"uir_stream_{dtype}x{lanes}"
    text = f"""
define linkonce_odr void @{name}(ptr %p, <{lanes} x {kind}> %v) alwaysinline {{
  store <{lanes} x {kind}> %v, ptr %p, align {size}, !nontemporal !0
  ret void
}}
"""
    return name, text


class Streams:
    """Which stores of a kernel bypass the caches; ``used`` once one was emitted.

    Where sizes decide how large a pointer is, the kernel asks that when it runs (`large_enough`).
    """

    def __init__(self, graph: IGraph, text: LlvmText, allowed: bool = True) -> None:
        self.width = graph.hardware.vector_bytes
        self.line = int(graph.hardware.figures.get("line_bytes", 64))
        self.cache = last_cache_bytes(graph.hardware)
        self.read = {s.pointer.name for iop, _ in graph.walk() for s in iop.sources}
        self.moved = graph.params
        self.text = text
        self.used = False
        self.possible = allowed and str(graph.hardware.figures.get("machine", "")) == "x86_64"
        self._enabled = False

    def wanted(self, action: Action, rows: int, lanes: int) -> bool:
        """Whether the action's stores should bypass the caches and can, given an aligned first row."""
        iop, pointer, write = action.iop, action.write.pointer, action.write
        only_written = pointer.role == "out" and pointer.name not in self.read
        if not self.possible or action.kind != MAP or not only_written or write.col != 1:
            return False
        size = bytes_of(pointer.dtype)
        hinted = iop.attrs.get("hint") == "stream"
        large = self.cache is not None and self._exceeds(
            pointer.size * size, sum(p.size * bytes_of(p.dtype) for p in self.moved), self.cache
        )
        fits = size * lanes >= 16 and size * lanes <= self.width and dtype_of(pointer.dtype).kind != "bool"
        # a pitch that sizes decide is asked for at the launch (`aligned`)
        rows_aligned = rows == 1 or write.pitches[0] is not None or write.row % lanes == 0
        return (hinted or large) and fits and rows_aligned and action.cols >= lanes

    @staticmethod
    def _exceeds(own: Any, moved: Any, cache: Any) -> Any:
        """Whether a result of ``own`` bytes, of all that a kernel reads and writes, does not stay in a cache.

        Where more is moved than the cache holds, part of the result has left it at the end: its lines were
        read for nothing, and a reader finds few of them.  A small part of what is moved costs little.
        """
        return (own > cache) | ((moved > cache) & (own * PART >= moved))

    def of_nest(self, nest: RowNest, lanes: Iterable[int]) -> list[tuple[StridedAccess, int]]:
        """(access, bytes of a vector) of the stores of a nest that should bypass the caches."""
        return [
            (action.write, bytes_of(action.write.pointer.dtype) * n)
            for group, n in zip(nest.groups, lanes, strict=True)
            for action in group.actions
            if self.wanted(action, nest.rows, n)
        ]

    def large_enough(self, scope: LoopScope, pointer: IPointer) -> Expr | None:
        """Whether a pointer is large, asked at launch; None where that is known now."""
        if not pointer.dims or self.cache is None:
            return None

        def nbytes(each: IPointer) -> Expr:
            return scope.expr(each.elements) * bytes_of(each.dtype)

        moved = functools.reduce(operator.add, map(nbytes, self.moved))
        return self._exceeds(nbytes(pointer), moved, index(self.cache))

    def enable(self, enabled: bool) -> None:
        """From now on emit such stores, or plain ones."""
        self._enabled = enabled

    def active(self, action: Action, rows: int, lanes: int) -> bool:
        """Whether to emit this store as one."""
        return self._enabled and self.wanted(action, rows, lanes)

    def use(self) -> None:
        """Note that stores bypass the caches, where `aligned` asks for an address."""
        self.text.need(ADDRESS, _ADDRESS_TEXT)
        self.used = True

    def store(self, buffer: tirx.Buffer, address: Expr, value: Expr, dtype: str) -> tirx.Stmt:
        """A non-temporal store of a vector of iGraph dtype ``dtype`` at an aligned address."""
        return self.put(buffer, address, element(dtype).store(value), dtype)

    def put(self, buffer: tirx.Buffer, address: Expr, stored: Expr, dtype: str) -> tirx.Stmt:
        """The same of what memory holds of that dtype."""
        name, text = definition(element(dtype).storage, lanes_of(stored))
        self.text.need(name, text)
        self.use()
        where = tirx.address_of(tirx.BufferLoad(buffer, [address]))
        return tirx.Evaluate(tirx.call_extern("void", name, where, stored))


def begins_anywhere(nest: RowNest, stores: Sequence[tuple[StridedAccess, int]]) -> bool:
    """Whether a nest is one long row whose first element lies anywhere in a vector, from tile to tile.

    Not where sizes decide how large the result is: whether to stream is then asked for every tile.
    """
    if nest.rows != 1 or len(stores) != 1 or stores[0][0].pointer.dims:
        return False
    access, size = stores[0]
    lanes = size // bytes_of(access.pointer.dtype)
    group = next(g for g in nest.groups if any(action.write is access for action in g.actions))
    if lanes % group.times:
        return False
    least = LEAST_RAGGED if group.times == 1 else LEAST_REPEATED
    steps = [int(access.offset.constant), *(int(term.coeff) for term in access.offset.terms)]
    return group.cols >= least * lanes and any(step % lanes for step in steps)


def to_alignment(
    memory: Buffers, scope: LoopScope, store: tuple[StridedAccess, int], row: Expr, col: Expr
) -> Expr:
    """How many elements there are from a place of a store to the first that is aligned to its vectors."""
    access, size = store
    element_size = bytes_of(access.pointer.dtype)
    bits = _bits(memory, scope, access, row, col)
    return tirx.floordiv(tirx.bitwise_and(index(0) - bits, index(size - 1)), index(element_size))


def _bits(memory: Buffers, scope: LoopScope, access: StridedAccess, row: Expr, col: Expr) -> Expr:
    at = memory.address(scope, access, row, col)
    pointer = tirx.address_of(tirx.BufferLoad(memory.buffer(access.pointer), [at]))
    return tirx.call_extern("int64", ADDRESS, pointer)


def aligned(
    memory: Buffers,
    scope: LoopScope,
    stores: Iterable[tuple[StridedAccess, int]],
    row: Expr,
    cols: Iterable[Expr],
) -> Expr:
    """Whether every store's first vector (at ``row`` and its first column) is aligned to its size.

    Where sizes decide how far rows are apart: in all rows.
    """
    places = []
    for (access, size), col in zip(stores, cols, strict=True):
        places.append((_bits(memory, scope, access, row, col), size))
        if access.pitches[0] is not None:
            places.append((scope.expr(access.pitches[0]) * bytes_of(access.pointer.dtype), size))
    here = [tirx.EQ(tirx.bitwise_and(place, index(size - 1)), index(0)) for place, size in places]
    return functools.reduce(tirx.And, here)


def fence(code: Code) -> None:
    """Make streamed stores visible before what follows them."""
    code.add(tirx.Evaluate(tirx.call_llvm_intrin("void", "llvm.x86.sse.sfence")))
