# SPDX-License-Identifier: Apache-2.0
"""What a kernel touches, by running through every unit and iteration with the iOp table's own rules."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

from uir_tvm.igraph import IGraph, IOp, ISlice, iops_reads
from uir_tvm.igraph.iops import IOPS, Box
from uir_tvm.igraph.iops_meaning import extent


def instances(graph: IGraph) -> Iterator[tuple[IOp, dict[str, int]]]:
    """Every iOp at every unit and iteration."""
    for iop, loops in graph.walk():
        for pid in range(graph.num_parallel):
            for values in itertools.product(*(range(loop.extent) for loop in loops)):
                yield iop, {"pid": pid, **{str(n.var): v for n, v in zip(loops, values, strict=True)}}


def boxes(iop: IOp, env: dict[str, int]) -> tuple[Box, list[Box]]:
    """The target's box, and the box that is read of each source."""
    target = iop.target.valid_box(env)
    return target, iops_reads.boxes(IOPS[iop.op].reads(iop), target, [s.valid_box(env) for s in iop.sources])


def addresses(piece: ISlice, box: Box, env: dict[str, int]) -> Iterator[int]:
    """The addresses of a box's elements."""
    base = piece.offset.evaluate(env)
    for i in range(box[0], box[1]):
        for j in range(box[2], box[3]):
            yield base + i * piece.row_stride + j * piece.col_stride


def touched(graph: IGraph) -> tuple[Counter[tuple[str, str]], dict[tuple[str, str], set[int]]]:
    """How many elements are read and written of every pointer, and which: by (pointer, read or write)."""
    counts: Counter[tuple[str, str]] = Counter()
    which: dict[tuple[str, str], set[int]] = defaultdict(set)
    for iop, env in instances(graph):
        target, sources = boxes(iop, env)
        operands = [("read", s, box) for s, box in zip(iop.sources, sources, strict=True)]
        operands.append(("write", iop.target, target))
        if IOPS[iop.op].reads_target(iop):
            operands.append(("read", iop.target, target))
        for kind, piece, box in operands:
            key = (str(piece.pointer.name), kind)
            found = list(addresses(piece, box, env))
            counts[key] += len(found)
            which[key].update(found)
    return counts, which


def operations(graph: IGraph) -> Counter[str]:
    """Elements that every elementwise iOp writes and every reduction reads, by iOp class and name."""
    counts: Counter[str] = Counter()
    for iop, env in instances(graph):
        target, sources = boxes(iop, env)
        rows, cols = extent(sources[0] if iop.op == "reduce" else target)
        if iop.op == "contract":
            counts["contract"] += 2 * rows * cols * extent(sources[0])[1]
        else:
            counts[f"{iop.op}.{iop.name}" if iop.name else str(iop.op)] += rows * cols
    return counts
