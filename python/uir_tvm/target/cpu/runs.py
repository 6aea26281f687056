# SPDX-License-Identifier: Apache-2.0
"""Nests that walk one line of memory after another, and do next to nothing with it.

Some processors fetch such lines by themselves: fetches of ours only take places of loads.  Where a vector of
a whole line is computed in halves anyway, halves are loaded too if memory is what is waited for: two loads of
a line let the prefetchers run further ahead.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...hardware.last_cache import last_cache_bytes
from ...igraph.affine import Affine, affine, var
from ...igraph.dtypes import bytes_of
from ...igraph.nodes import HardwareModel, IPointer
from .actions import MAP, REDUCE_ROW, Action
from .element_access import StridedAccess
from .groups import RowNest
from .processors import splits_vectors
from .values import OperandValues, Origin, is_cheap

#: Bytes of an element that fills a whole line of a vector: narrower ones are widened, so that their loads are
#: less than a line as it is.
_WHOLE = 4


def is_light(nest: RowNest) -> bool:
    """Whether a nest moves or adds rows up, and does next to nothing else: it is at loads far ahead."""
    wide = (action for action in nest.actions if action.cols > 1)
    return all(action.kind == REDUCE_ROW or (action.kind == MAP and is_cheap(action.iop)) for action in wide)


def runs_on(access: StridedAccess, rows: int, cols: int, loop: str | None) -> bool:
    """Whether a tile is one run of memory, and the tile of the loop's next round begins where it ends."""
    if access.col != 1 or (rows > 1 and access.row != cols):
        return False
    return loop is None or step_of(access, loop) == affine(rows * cols)


def step_of(access: StridedAccess, loop: str) -> Affine:
    """How far an access is from itself in the next round of a loop."""
    return access.offset.substitute({loop: var(loop) + 1}) - access.offset


def vector_bytes_of(
    nest: RowNest, values: OperandValues, hw: HardwareModel, vector_bytes: int, loop: str | None
) -> int:
    """Bytes of a nest's vectors: half of them where that lets memory run ahead.

    That is where a processor takes a vector of a line as two, and where rows are added up of tensors that the
    last cache does not hold, one run of memory each, in vectors of whole lines.
    """
    line = int(hw.figures.get("line_bytes", 64))
    if vector_bytes != line or not splits_vectors(hw):
        return vector_bytes
    summed = summed_runs(nest, values, hw, loop)
    return vector_bytes // 2 if summed and min(bytes_of(p.dtype) for p in summed) >= _WHOLE else vector_bytes


def summed_runs(nest: RowNest, values: OperandValues, hw: HardwareModel, loop: str | None) -> list[IPointer]:
    """What a nest adds rows up of, if the last cache does not hold it and each is one run of memory."""
    if not is_light(nest) or not any(action.kind == REDUCE_ROW for action in nest.actions):
        return []
    walked = {str(access.pointer.name): (access, action) for access, action in _walked(nest, values)}
    for access, action in walked.values():
        if access.pointer.dims or not runs_on(access, action.rows, action.cols, loop):
            return []
    pointers = [access.pointer for access, _ in walked.values()]
    cache, size = last_cache_bytes(hw), sum(p.size * bytes_of(p.dtype) for p in pointers)
    return pointers if cache is not None and size > cache else []


def _walked(nest: RowNest, values: OperandValues) -> Iterator[tuple[StridedAccess, Action]]:
    """What a nest loads from tensors, and stores in them, column by column; not what every row reads."""
    for action in nest.actions:
        reads = zip(action.reads, values.sources[id(action)], strict=True)
        accesses = [read.access for read, source in reads if source.origin == Origin.MEMORY]
        if action.kind == MAP and values.stored(action):
            accesses.append(action.write)
        for access in accesses:
            if access.pointer.level == "dram" and action.cols > 1 and access.offset.variables():
                yield access, action
