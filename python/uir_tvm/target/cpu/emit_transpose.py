# SPDX-License-Identifier: Apache-2.0
"""Emit an elementwise nest some of whose operands are contiguous along rows: block by block, transposed.

Each block of such an operand is transposed into scratch memory of a few cache lines, whence the group reads
it as any other operand.  A nest that only copies transposes straight into its target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from ...igraph.iops import spec_of
from . import transpose
from .actions import MAP, Action
from .address import index
from .buffers import scratch
from .code import Code
from .element_access import StridedAccess
from .elements import element
from .groups import ColumnGroup, RowNest
from .values import OperandValues, Origin

if TYPE_CHECKING:
    from .emit_nest import NestEmitter


@attrs.frozen
class Staged:
    """A block of an operand where its columns are contiguous, and which of its rows is meant."""

    buffer: tirx.Buffer
    row: Expr


def staged_accesses(nest: RowNest, values: OperandValues, lanes: int) -> list[StridedAccess]:
    """The operands of a nest that blocks should be transposed of; none where the nest has no such form."""
    if len(nest.groups) != 1 or min(nest.rows, nest.groups[0].cols) < lanes:
        return []
    found: list[StridedAccess] = []
    written = {action.write.pointer.name for action in nest.actions}
    for action in nest.actions:
        if action.kind != MAP or action.box != (None,) * 4 or any(read.guard for read in action.reads):
            return []
        for read, source in zip(action.reads, values.sources[id(action)], strict=True):
            access = read.access
            across = access.row == 1 and access.col not in (-1, 0, 1)
            kind = access.pointer.dtype
            if source.origin != Origin.MEMORY or not across or kind == "bool":
                continue
            if access.pointer.name not in written and transpose.supported(8 * bytes_of(kind), lanes):
                found.append(access)
    return list(dict.fromkeys(found))


def emit_blocks(
    emitter: NestEmitter, code: Code, nest: RowNest, accesses: list[StridedAccess], lanes: int
) -> None:
    """The loops over blocks, then over the columns and rows that fill no block."""
    group = nest.groups[0]
    direct = _copied_to(nest, emitter.values, accesses)
    blocks: dict[StridedAccess, tirx.Buffer] = {}
    if direct is None:
        for access in accesses:
            storage = element(access.pointer.dtype).storage
            blocks[access] = scratch(code, "block", storage, lanes * lanes)
    whole_rows, whole_cols = nest.rows // lanes, group.cols // lanes

    def band(inner: Code, row: Expr) -> None:
        def block(innermost: Code, col: Expr) -> None:
            for access in accesses:
                if direct is not None:
                    _transpose(emitter, innermost, access, row, col, lanes, direct)
                else:
                    _transpose(emitter, innermost, access, row, col, lanes, blocks[access])
            if direct is None:
                _lines(emitter, innermost, nest, group, row, col, lanes, blocks)

        inner.loop(index(0), index(whole_cols), lanes, block, "c")
        if group.cols % lanes:
            begin, end = index(whole_cols * lanes), index(group.cols)
            inner.loop(row, index(lanes), 1, lambda x, r: emitter.columns(x, nest, r, begin, end), "r")

    code.loop(index(0), index(whole_rows), lanes, band, "r")
    begin, end = index(0), index(group.cols)
    code.loop(
        index(whole_rows * lanes),
        index(nest.rows % lanes),
        1,
        lambda x, r: emitter.columns(x, nest, r, begin, end),
        "r",
    )


def _lines(
    emitter: NestEmitter,
    code: Code,
    nest: RowNest,
    group: ColumnGroup,
    row: Expr,
    col: Expr,
    lanes: int,
    blocks: dict[StridedAccess, tirx.Buffer],
) -> None:
    def line(inner: Code, i: Expr) -> None:
        staged = {access: Staged(buffer, i) for access, buffer in blocks.items()}
        emitter.vector(inner, nest, row + i, col, lanes, staged)

    code.loop(index(0), index(lanes), 1, line, "i")


def _transpose(
    emitter: NestEmitter,
    code: Code,
    access: StridedAccess,
    row: Expr,
    col: Expr,
    lanes: int,
    target: tirx.Buffer | StridedAccess,
) -> None:
    scope, memory = emitter.kernel.scope, emitter.kernel.memory
    bits = 8 * bytes_of(access.pointer.dtype)
    emitter.kernel.text.need(transpose.name_of(bits, lanes), transpose.definition(bits, lanes))
    at = memory.address(scope, access, row, col)
    if isinstance(target, StridedAccess):
        to, buffer, stride = (
            memory.address(scope, target, row, col),
            memory.buffer(target.pointer),
            memory.strides(target)[0],
        )
    else:
        to, buffer, stride = index(0), target, lanes
    source = memory.buffer(access.pointer)
    code.add(transpose.transpose(bits, source, at, memory.strides(access)[1], buffer, to, stride, lanes))


def _copied_to(nest: RowNest, values: OperandValues, accesses: list[StridedAccess]) -> StridedAccess | None:
    """Where the one operand goes, if the nest only copies it to one place with contiguous columns."""
    stored: list[Action] = [action for action in nest.actions if values.stored(action)]
    copies = all(spec_of(action.iop).rearranges for action in nest.actions)
    if len(stored) != 1 or len(accesses) != 1 or not copies or stored[0].write.col != 1:
        return None
    action = stored[0]
    while True:
        source = values.sources[id(action)][0]
        if source.origin == Origin.MEMORY:
            return stored[0].write if action.reads[0].access == accesses[0] else None
        if source.maker is None or source.maker not in nest.actions:
            return None
        action = source.maker
