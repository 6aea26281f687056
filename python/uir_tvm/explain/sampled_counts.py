# SPDX-License-Identifier: Apache-2.0
"""What every iOp of a graph does on some of its units: what cost models are computed from.

`uir_tvm.explain` counts every element of a graph that was compiled.  A search asks for many graphs that
never are, and needs proportions rather than exact sums: here slices with bounds are looked at on some units
and in some iterations (`slice_sizes`), which takes a millisecond.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..hardware.machine_model import (
    LOAD,
    ONCHIP,
    STORE,
    VECTOR,
    GraphCounts,
    IOpCounts,
    Transfer,
)
from ..igraph.affine import Affine, var
from ..igraph.dtypes import bytes_of, dtype_of
from ..igraph.nodes import ROUNDS, IGraph, ISlice
from ..optimize.multibuffer import PIPELINE
from ..schedule.annotations import VECTOR_ATTR
from ..verify.access import GraphFacts, Step, facts_of
from ..verify.live_ranges import STAGED
from .at_sizes import at_sizes
from .slice_sizes import SliceSizes, axis

#: Of moves, by the levels that they go between; others are between sram and reg.
_MOVES = {
    ("dram", "reg"): LOAD,
    ("dram", "sram"): LOAD,
    ("dram", "dram"): LOAD,
    ("reg", "dram"): STORE,
    ("sram", "dram"): STORE,
    ("reg", "reg"): VECTOR,
}


_last = threading.local()


def counts_of(graph: IGraph) -> GraphCounts:
    """The counts of a well-formed graph; this thread's last one is kept for who asks next.

    Those of a graph with sizes are counted at usual ones (`at_sizes`).
    """
    if getattr(_last, "graph", None) is not graph:
        _last.counts = _counted(at_sizes(graph)[0])
        _last.graph = graph
    found: GraphCounts = _last.counts
    return found


def _counted(graph: IGraph) -> GraphCounts:
    facts = facts_of(graph)
    sizes_of = SliceSizes(facts.num_parallel)
    own = max(int(graph.hardware.vector_bytes), 1)
    rows = tuple(_row(step, sizes_of) for step in facts.steps)
    return GraphCounts(
        facts.num_parallel,
        int(graph.num_groups),
        int(graph.num_units),
        sizes_of.weights,
        rows,
        *_memory(facts),
        {str(p.name): int(p.size) * bytes_of(p.dtype) for p in graph.pointers if p.level == "dram"},
        len({str(loop.var) for step in facts.steps for loop in step.loops}),
        float(graph.attrs.get(VECTOR_ATTR, own)) / own,
    )


def _rows_of(piece: ISlice) -> tuple[Any, Any]:
    return piece.row_begin, piece.row_end


def _cols_of(piece: ISlice) -> tuple[Any, Any]:
    return piece.col_begin, piece.col_end


def _row(step: Step, sizes_of: SliceSizes) -> IOpCounts:
    iop = step.iop
    op = str(iop.op)
    loops = {str(loop.var): int(loop.extent) for loop in step.loops}
    pieces = {f"source{k}": piece for k, piece in enumerate(iop.sources)}
    pieces["target"] = iop.targets[0] if len(iop.targets) else iop.sources[0]
    width = bytes_of(iop.dtype)
    float_like = dtype_of(str(iop.dtype)).kind == "float"
    elements, present, transfers, read, written = _touched(step, pieces, sizes_of, loops)
    biggest = max(pieces.values(), key=lambda p: int(p.rows) * int(p.cols))
    category = step.spec.pipe
    if category == "move":
        levels = (str(pieces["source0"].pointer.level), str(pieces["target"].pointer.level))
        category = _MOVES.get(levels, ONCHIP)
    return IOpCounts(
        op,
        str(iop.name),
        category,
        str(iop.attrs["axis"]) if "axis" in step.spec.attrs else "",
        step.spec.work_of(iop) or "",
        math.prod(loops.values()),
        present,
        elements,
        (int(biggest.rows), int(biggest.cols)),
        float(width),
        (max(width, 4) if float_like else width) / 4,
        *_in_flight(step),
        len(loops),
        step.leaders,
        transfers,
        (read, written),
    )


def _in_flight(step: Step) -> tuple[str, int, int]:
    """(loop, stages, trips) of `IOpCounts`."""
    for loop in reversed(step.loops):
        for name in (PIPELINE, STAGED):
            if name in loop.attrs and int(loop.attrs[name]) > 1:
                return str(loop.var), int(loop.attrs[name]), int(loop.extent)
    return "", 1, 1


def _touched(
    step: Step, pieces: Mapping[str, ISlice], sizes_of: SliceSizes, loops: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray, tuple[Transfer, ...], float, float]:
    """Elements and share of runs, transfers, bytes read from reg and written to it."""
    spec, target = step.spec, pieces["target"]
    if not spec.touches:
        nothing, present, _ = sizes_of.sizes([axis(1, *_in_rounds(step, 1))], loops)
        return 0 * nothing, present, (), 0.0, 0.0
    found: list[Transfer] = []
    local = {False: 0.0, True: 0.0}
    inside = _in_rounds(step, int(target.rows))
    box = (axis(int(target.rows), _rows_of(target), *inside), axis(int(target.cols), _cols_of(target)))
    elements, present, count = sizes_of.sizes(box, loops)

    def note(piece: ISlice, write: bool, sizes: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        width = bytes_of(piece.pointer.dtype)
        level = str(piece.pointer.level)
        moved = sizes[0] * width
        if level == "reg":
            local[write] += float(moved @ sizes_of.weights / sizes_of.weights.sum())
        else:
            found.append(_transfer(piece, level, write, moved, sizes, width))

    for k, rule in enumerate(spec.reads(step.iop)):
        piece = pieces[f"source{k}"]
        axes = []
        for which, origin, extent in ((_rows_of, rule.rows, piece.rows), (_cols_of, rule.cols, piece.cols)):
            bounds = [which(piece), *_in_rounds(step, int(extent))]
            if origin is not None:
                other = pieces[origin[0]]
                bounds.append(_rows_of(other) if origin[1] == "rows" else _cols_of(other))
            axes.append(axis(int(extent), *bounds))
        # a gather takes from its table as much as it gives
        sizes = sizes_of.sizes(axes, loops) if rule.certain else (elements, present, count)
        note(piece, False, sizes)
        if k == 0 and (spec.counts == "source0" or spec.by_data == "target"):
            elements, present = sizes[:2]
    if spec.reads_target(step.iop):
        note(target, False, (elements, present, count))
    note(target, True, sizes_of.sizes(box, loops) if spec.by_data != "target" else (elements, present, count))
    if "buffer" in step.iop.attrs:
        piece = step.iop.attrs["buffer"]
        rows = axis(int(piece.rows), _rows_of(piece), *_in_rounds(step, int(piece.rows)))
        axes = [rows, axis(int(piece.cols), _cols_of(piece))]
        for write in (True, False):
            note(piece, write, sizes_of.sizes(axes, loops))
    if spec.is_product:
        first = pieces["source0"]
        axes = [box[0], axis(int(first.cols), _cols_of(first)), box[1]]
        elements, present, _ = sizes_of.sizes(axes, loops)
    return elements, present, tuple(found), local[False], local[True]


def _in_rounds(step: Step, extent: int) -> list[tuple[None, Affine]]:
    """Bounds of an axis that say that the loops around have the round."""
    told = [(loop.attrs[ROUNDS], str(loop.var)) for loop in step.loops if ROUNDS in loop.attrs]
    return [(None, (rounds - var(name)) * extent) for rounds, name in told]


def _transfer(
    piece: ISlice,
    level: str,
    write: bool,
    moved: np.ndarray,
    sizes: tuple[np.ndarray, np.ndarray, np.ndarray],
    width: int,
) -> Transfer:
    """How a box lies in memory: rows of a matrix that is as wide are one piece."""
    row_stride, col_stride = abs(int(piece.row_stride)), abs(int(piece.col_stride))
    some = sizes[1] > 0
    share = np.maximum(sizes[1], 1e-9)
    full = float((sizes[0] / share)[some].mean()) if some.any() else 0.0
    rows = float(sizes[2][some].mean()) if some.any() else 0.0
    cols = full / rows if rows else 0.0
    if int(piece.cols) == 1 and row_stride == 1 or col_stride != 1 and row_stride == 1:
        rows, cols, row_stride, col_stride = cols, rows, col_stride, row_stride
    if full <= 0:
        segments, contiguous = 0.0, 0.0
    elif col_stride != 1 and cols > 1:
        segments, contiguous = full, float(width)
    elif rows <= 1 or row_stride == cols:
        segments, contiguous = 1.0, full * width
    else:
        segments, contiguous = rows, cols * width
    return Transfer(level, write, str(piece.pointer.name), moved, segments, contiguous)


def _memory(facts: GraphFacts) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of reg and sram, side by side and at the fullest moment."""
    spans: dict[str, list[int]] = {}
    loops: dict[str, list[int]] = {}
    around: dict[str, set[str]] = {}
    for step in facts.steps:
        names = {str(loop.var) for loop in step.loops}
        for name in names:
            loops.setdefault(name, [step.position, step.position])[1] = step.position
        for piece in step.iop.slices():
            name = str(piece.pointer.name)
            spans.setdefault(name, [step.position, step.position])[1] = step.position
            # loops that hold some of its accesses, not all: it is alive in all of such a loop
            around.setdefault(name, set()).update(names)
    held, live = {}, {}
    for level in ("reg", "sram"):
        change = np.zeros(len(facts.steps) + 1, np.int64)
        total = 0
        for pointer in facts.graph.pointers:
            name = str(pointer.name)
            if pointer.level != level or name not in spans:
                continue
            size = int(pointer.size) * bytes_of(pointer.dtype)
            total += size
            first, last = spans[name]
            for begin, end in (loops[loop] for loop in around[name]):
                if begin < first <= end < last or first < begin <= last < end:
                    first, last = min(first, begin), max(last, end)
            change[first] += size
            change[last + 1] -= size
        held[level], live[level] = total, int(np.cumsum(change).max(initial=0))
    return held, live
