# SPDX-License-Identifier: Apache-2.0
"""DRAM traffic of operators: what they must read at least."""

from __future__ import annotations

from collections.abc import Iterable

from ..open_arithmetic import least, most
from .program import Op, Value


def read_bytes(op: Op) -> dict[Value, int]:
    """Bytes that an operator reads from each buffer: every element of a view once, numbers not at all.

    A gather reads of its table no more than it writes.
    """
    found: dict[Value, int] = {}
    for index, view in enumerate(op.operands):
        if view.scalar is not None:
            continue
        if view.base.quantized is not None:
            found[view.base] = view.base.nbytes
            continue
        width = view.base.nbytes // view.base.size if view.base.size else 0
        size = view.layout.size
        if op.kind.kind == "gather" and index == 0:
            size = least(size, op.results[0].size)
        found[view.base] = least(view.base.nbytes, found.get(view.base, 0) + size * width)
    return found


def kernel_reads(ops: Iterable[Op]) -> int:
    """Bytes that a kernel of several operators reads from outside of itself."""
    return sum(reads_of_kernel(ops).values())


def reads_of_kernel(ops: Iterable[Op]) -> dict[Value, int]:
    """The same for every buffer."""
    members = list(ops)
    own = {value for op in members for value in op.results}
    total: dict[Value, int] = {}
    for op in members:
        for value, size in read_bytes(op).items():
            if value not in own:
                total[value] = least(value.nbytes, most(total.get(value, 0), size))
    return total
