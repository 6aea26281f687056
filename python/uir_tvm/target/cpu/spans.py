# SPDX-License-Identifier: Apache-2.0
"""Vectors of which a span of lanes exists, beside others that stand for what does not: of pads and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm import tirx
from tvm.ir import Expr

from . import first_lanes
from .actions import Action
from .address import index
from .buffers import EVERY_SECOND, keeps_still, second_of_two
from .code import Code
from .elements import element
from .emit_value import Point, parameter
from .values import Origin

if TYPE_CHECKING:
    from .emit_group import GroupEmitter

#: Lanes of a vector at most, whose mask is made in a register of 64 bits.
MOST_LANES = 32


def takes_spans(emitter: GroupEmitter) -> bool:
    """Whether columns of a group need not exist, and what need not is loaded from memory under masks.

    Columns one by one beside vectors shift these, and what is stored by vectors at other places is not there
    when it is loaded again.
    """
    group, values, kernel = emitter.group, emitter.values, emitter.kernel
    if not kernel.avx512 or not 1 < emitter.lanes <= MOST_LANES or group.cols < emitter.lanes:
        return False
    if emitter.nest.unaligned is not None:
        return False
    found = False
    for action in group.actions:
        if action.tables or action.indexed_rows:
            return False
        for read, source in zip(action.reads, values.sources[id(action)], strict=True):
            if source.origin == Origin.AGAIN:
                return False
            if read.guard is None:
                continue
            pointer, kind = read.access.pointer, element(read.access.pointer.dtype)
            whole = kind.storage == kind.compute and first_lanes.supported(pointer.dtype, kernel.masked)
            steps = read.access.col == 1 or (read.access.col == EVERY_SECOND and keeps_still(pointer))
            if source.origin != Origin.MEMORY or not whole or not steps or read.access in emitter.staged:
                return False
            found = found or read.guard[2:] != (None, None)
    return found


def spanned(emitter: GroupEmitter, code: Code, action: Action, number: int, point: Point) -> Expr:
    """A vector of memory, and what stands for lanes that do not exist, or whose elements do not."""
    read, memory, kernel = action.reads[number], emitter.kernel.memory, emitter.kernel
    lanes, access = point.lanes, read.access
    begin, end = point.span or (_count(0), _count(lanes))
    outside: Expr = parameter(0, access.pointer.dtype, lanes)
    if read.guard is not None:
        outside = parameter(read.outside, access.pointer.dtype, lanes)
        first = emitter.group.actions[0]
        r0, r1 = emitter.nest.bounds(read.guard[:2], first.rows)
        c0, c1 = emitter.nest.bounds(read.guard[2:], first.cols)
        begin = tirx.max(begin, tirx.Cast(first_lanes.COUNT, c0 - point.col))
        end = tirx.min(end, tirx.Cast(first_lanes.COUNT, c1 - point.col))
        there = tirx.And(point.row >= r0, point.row < r1)
        end = tirx.Select(there, end, _count(0))
    begin, end, outside = code.bind(begin), code.bind(end), code.bind(outside)
    address = memory.address(kernel.scope, access, point.row, point.col)
    buffer = memory.buffer(access.pointer)

    def load(at: Expr, first_lane: Expr, last: Expr) -> Expr:
        return code.bind(first_lanes.load_span(kernel.text, buffer, at, first_lane, last, outside))

    if access.col == 1:
        return element(access.pointer.dtype).load(load(address, begin, end))
    # of two vectors side by side, the second of which ends with the last element
    low, high = EVERY_SECOND * begin, EVERY_SECOND * end - (EVERY_SECOND - 1)
    parts = [
        load(address, low, high),
        load(address + index(lanes - 1), low - (lanes - 1), high - (lanes - 1)),
    ]
    return element(access.pointer.dtype).load(second_of_two(parts, lanes))


def _count(number: int) -> Expr:
    return tirx.const(number, first_lanes.COUNT)
