# SPDX-License-Identifier: Apache-2.0
"""DRAM traffic of operators: what they must read at least."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..sizes.open_arithmetic import least, most
from .program import Op, Value


def _as_it_is(size: Any) -> Any:
    return size


def read_bytes(op: Op, of: Callable[[Any], Any] = _as_it_is) -> dict[Value, int]:
    """Bytes that an operator reads from each buffer: every element of a view once, numbers not at all.

    A gather reads of its table no more than it writes.

    Parameters
    ----------
    op : Op
    of : callable
        What is taken for a size that may be open: itself, or a number for an estimate.
    """
    found: dict[Value, int] = {}
    for index, view in enumerate(op.operands):
        if view.scalar is not None:
            continue
        if view.base.quantized is not None:
            found[view.base] = of(view.base.nbytes)
            continue
        whole, elements, size = of(view.base.nbytes), of(view.base.size), of(view.layout.size)
        width = whole // elements if elements else 0
        if op.kind.kind == "gather" and index == 0:
            size = least(size, of(op.results[0].size))
        found[view.base] = least(whole, found.get(view.base, 0) + size * width)
    return found


def kernel_reads(ops: Iterable[Op]) -> int:
    """Bytes that a kernel of several operators reads from outside of itself."""
    return sum(reads_of_kernel(ops).values())


def reads_of_kernel(ops: Iterable[Op], of: Callable[[Any], Any] = _as_it_is) -> dict[Value, int]:
    """The same for every buffer."""
    members = list(ops)
    own = {value for op in members for value in op.results}
    total: dict[Value, int] = {}
    for op in members:
        for value, size in read_bytes(op, of).items():
            if value not in own:
                total[value] = least(of(value.nbytes), most(total.get(value, 0), size))
    return total
