# SPDX-License-Identifier: Apache-2.0
"""Fetch ahead what the next round of a loop reads and writes.

The prefetchers of processors follow addresses within a page of memory.  Where tiles are rows, every tile
begins in a page of its own: its first lines come late, and while a unit computes the exponentials of a row
nothing is on its way.  So the group of a nest that computes most, while it goes over the columns of a tile,
fetches the same columns of the next tile, and the lines that later groups are to write.  A fetch beyond the
end of a tensor is ignored.  Some processors are ahead by themselves of nests that move or add up one run of
memory, tile after tile (`runs`).

Where sizes decide how large tensors are, a kernel asks that at its launch, and has code with such fetches and
code without.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...igraph.affine import Affine, affine
from ...igraph.dtypes import bytes_of
from ...igraph.nodes import HardwareModel, IPointer
from .actions import MAP, Action
from .address import LoopScope, index
from .buffers import Buffers
from .code import Code
from .element_access import StridedAccess
from .groups import ColumnGroup, RowNest
from .llvm_text import LlvmText
from .processors import runs_ahead
from .runs import is_light, runs_on, step_of
from .values import OperandValues, Origin, is_cheap

#: What an iOp that is not cheap counts for where the group that computes most is looked for.
DEAR = 10


@attrs.frozen
class Fetch:
    """Lines to fetch, so many elements beyond those that an action accesses."""

    action: Action
    access: StridedAccess
    distance: Affine
    stores: bool
    #: into the first cache
    near: bool = True


def fetch_function(text: LlvmText, stores: bool, near: bool) -> str:
    """The name of a function of a pointer and a distance in bytes, which may lead out of the tensor.

    Parameters
    ----------
    text : LlvmText
        Gets the function.
    stores : bool
        Whether the line is going to be written.
    near : bool
        Into the first cache.
    """
    name = f"uir_fetch_{'write' if stores else 'read'}_{'near' if near else 'far'}"
    text.need("llvm.prefetch", _DECLARED)
    text.need(
        name,
        f"""
define linkonce_odr void @{name}(ptr %p, i64 %distance) alwaysinline {{
  %q = getelementptr i8, ptr %p, i64 %distance
  call void @llvm.prefetch.p0(ptr %q, i32 {int(stores)}, i32 {3 if near else 2}, i32 1)
  ret void
}}
""",
    )
    return name


_DECLARED = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"


class Prefetches:
    """What groups of nests fetch ahead: of tensors that a core's own caches do not hold.

    Parameters
    ----------
    hw : HardwareModel
    text : LlvmText
    units : int, optional
        Most units of a kernel, for code that runs where sizes make its tensors large (`large_enough`).
        Otherwise tensors whose size is not known yet are not fetched.
    """

    def __init__(self, hw: HardwareModel, text: LlvmText, units: int | None = None) -> None:
        self.own = int(hw.figures.get("l2_bytes", hw.reg_bytes))
        self.first = int(hw.figures.get("tile_bytes", 0))
        self.line = int(hw.figures.get("line_bytes", 64))
        self.text = text
        self.units = units
        #: vectors of half a line would fetch each line twice: on Zen 3 copies and sums of open sizes that do
        #: so are no faster for it, and some slower (scores and mask of 8 x 37 by a tenth)
        self.only_computed = units is not None and int(hw.vector_bytes) < self.line
        self.runs_ahead = runs_ahead(hw)
        #: fetched tensors of which sizes decide how large they are
        self.open: dict[str, IPointer] = {}

    def of_nest(self, nest: RowNest, values: OperandValues, loop: str | None) -> dict[int, list[Fetch]]:
        """By position of the group, what it fetches at each of its columns; ``loop`` is the innermost."""
        if loop is None or (self.only_computed and _only_moves(nest)):
            return {}
        host = max(range(len(nest.groups)), key=lambda k: _work(nest.groups[k]))
        cols = nest.groups[host].cols
        ahead = self.runs_ahead and is_light(nest)
        wanted = {
            (fetch.access, fetch.distance): fetch
            for fetch in (*_reads(nest, values, loop), *_writes(nest, values, loop, host))
            if fetch.action.cols == cols and fetch.access.col == fetch.access.times == 1
            if not (ahead and runs_on(fetch.access, fetch.action.rows, cols, loop))
            if self._large(fetch.access.pointer, nest.rows * cols)
        }
        size = sum(nest.rows * cols * bytes_of(fetch.access.pointer.dtype) for fetch in wanted.values())
        if not wanted or 4 * size > self.own:
            return {}
        pointers = (fetch.access.pointer for fetch in wanted.values())
        self.open |= {str(pointer.name): pointer for pointer in pointers if pointer.dims}
        return {host: [attrs.evolve(fetch, near=size <= self.first) for fetch in wanted.values()]}

    def _large(self, pointer: IPointer, tile: int) -> bool:
        """Whether a tensor, of which a round takes so many elements, is or may be more than caches hold."""
        if pointer.level != "dram" or pointer.size * bytes_of(pointer.dtype) <= self.own:
            return False
        if not pointer.dims:
            return True
        # a part of its own for every unit, but for what the last ones lack: what all read is soon held
        return self.units is not None and 2 * pointer.size >= self.units * tile

    def large_enough(self, scope: LoopScope) -> Expr | None:
        """Whether fetched tensors exceed a core's own caches together, asked at launch; None if none asks."""
        if not self.open:
            return None
        sizes = [scope.expr(p.elements) * bytes_of(p.dtype) for p in self.open.values()]
        return functools.reduce(operator.add, sizes) > index(self.own)

    def emit(
        self,
        code: Code,
        fetch: Fetch,
        memory: Buffers,
        scope: LoopScope,
        place: tuple[Expr, Expr],
        before: int,
    ) -> None:
        """The fetch at a row and a column; ``before``: elements from the last place with a fetch to there."""
        pointer = fetch.access.pointer
        size = bytes_of(pointer.dtype)
        if before * size % self.line:
            return
        name = fetch_function(self.text, fetch.stores, fetch.near)
        at = tirx.BufferLoad(memory.buffer(pointer), [memory.address(scope, fetch.access, *place)])
        # held apart, since TVM would make it narrower than the function says
        distance = code.bind(scope.expr(fetch.distance) * index(size))
        code.add(tirx.Evaluate(tirx.call_extern("void", name, tirx.address_of(at), distance)))


def _work(group: ColumnGroup) -> int:
    return group.cols * sum(1 if is_cheap(action.iop) else DEAR for action in group.actions)


def _only_moves(nest: RowNest) -> bool:
    """Whether a nest is so quick that the processor is at the next tile's loads before they are needed."""
    return all(action.kind == MAP and is_cheap(action.iop) for action in nest.actions)


def _reads(nest: RowNest, values: OperandValues, loop: str) -> Iterator[Fetch]:
    if _only_moves(nest):
        return
    for action in nest.actions:
        for read, source in zip(action.reads, values.sources[id(action)], strict=True):
            step = step_of(read.access, loop)
            if source.origin == Origin.MEMORY and read.guard is None and step != affine(0):
                yield Fetch(action, read.access, step, False)


def _writes(nest: RowNest, values: OperandValues, loop: str, host: int) -> Iterator[Fetch]:
    for action in nest.actions:
        if action.kind == MAP and values.stored(action):
            later = nest.group_of(action) > host
            step = affine(0) if later else step_of(action.write, loop)
            if later or step != affine(0):
                yield Fetch(action, action.write, step, True)
