# SPDX-License-Identifier: Apache-2.0
"""What recipes take for the extent of a dimension that is known only at launch.

Tiles, numbers of units and forms are chosen for one representative size; what is made of them is right for
all sizes, for primitives cut such loops with guards, and the verifier proves the kernel.  An inner dimension
is taken at its greatest, which a tile must hold where it holds the whole of it.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import tvm
from tvm import tirx
from tvm_ffi.structural import structural_map, structural_walk

from ..igraph.space import USUAL, Size
from ..igraph.tir_sizes import MOST, sizes_of


def representative(size: Size) -> int:
    """The usual value of a size, but for 0: of nothing there are no tiles."""
    return max(size.usual, 1)


class _Numbers:
    """The representatives of a function's variables; of the last one that was asked for they are known."""

    def __init__(self) -> None:
        self._last = threading.local()

    def of(self, func: tirx.PrimFunc) -> dict[Any, int]:
        known = getattr(self._last, "known", None)
        if known is None or not func.same_as(known[0]):
            inner = inner_sizes(func)
            numbers = {
                variable: _bounded(size) if variable in inner else representative(size)
                for variable, size in sizes_of(func).items()
            }
            known = self._last.known = func, numbers
        return known[1]


_NUMBERS = _Numbers()


def extent_of(extent: Any, func: tirx.PrimFunc) -> int:
    """An extent, at the representatives of a function's sizes where they decide it; -1 where loops do."""
    if isinstance(extent, int | tirx.IntImm):
        return int(extent)
    return _extent_at(extent, _NUMBERS.of(func))


def most_of(extent: Any, func: tirx.PrimFunc) -> int:
    """The greatest that an extent may be; -1 where loops decide it."""
    if isinstance(extent, int | tirx.IntImm):
        return int(extent)
    return _extent_at(extent, {variable: int(size.high) for variable, size in sizes_of(func).items()})


def _extent_at(extent: Any, numbers: dict[Any, int]) -> int:
    def number(variable: Any) -> Any:
        known = numbers.get(variable)
        return variable if known is None else tirx.const(known, str(variable.ty.dtype))

    found = tvm.sym.Analyzer().simplify(structural_map(extent, (tvm.ir.Var, number)))
    return int(found) if isinstance(found, tirx.IntImm) else -1


def _bounded(size: Size) -> int:
    """The greatest value of a size; one without a bound of its own has its representative."""
    return max(int(size.high), 1) if size.high < MOST else representative(size)


def inner_sizes(func: tirx.PrimFunc) -> set[Any]:
    """The sizes in dimensions of parameters that others are outside of."""
    found: set[Any] = set()
    for param in func.params:
        dims = list(param.ty.shape) if tirx.is_buffer_var(param) else []
        outer = next((k for k, dim in enumerate(dims) if is_open(dim) or int(dim) != 1), len(dims))
        for dim in dims[outer + 1 :]:
            if is_open(dim):
                structural_walk(dim, (tvm.ir.Var, found.add))
    return found


def usual_elements(buffer: Any) -> int:
    """Elements of a buffer whose open sizes are `USUAL`."""

    def extent_at(extent: Any) -> int:
        if not is_open(extent):
            return int(extent)
        at = structural_map(extent, (tvm.ir.Var, lambda v: tirx.const(USUAL, str(v.ty.dtype))))
        return int(tvm.sym.Analyzer().simplify(at))

    return math.prod(map(extent_at, buffer.ty.shape))


def is_open(extent: Any) -> bool:
    """Whether an extent is no number."""
    return not isinstance(extent, int | tirx.IntImm)
