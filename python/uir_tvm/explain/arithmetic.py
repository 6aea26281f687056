# SPDX-License-Identifier: Apache-2.0
"""Operations that a kernel computes, by class: one per element of every iOp's valid box."""

from __future__ import annotations

import attrs

from ..igraph.dtypes import DTYPES, bytes_of, dtype_of
from ..igraph.iops import WORK
from ..verify.access import GraphFacts, Step
from .counting import Count, elements, total, volume


@attrs.frozen
class Operations:
    """So many operations of one class on one dtype."""

    kind: str
    dtype: str
    count: int
    exact: bool

    @property
    def words(self) -> float:
        """How wide one is to a vector unit, in words of 4 bytes; narrow floats compute in fp32."""
        row = dtype_of(self.dtype)
        return max(bytes_of(self.dtype), 4) / 4 if row.kind == "float" else bytes_of(self.dtype) / 4


@attrs.frozen
class Arithmetic:
    """All operations of a kernel, by class and dtype."""

    operations: tuple[Operations, ...]

    def count(self, kind: str) -> int:
        """Operations of one class."""
        return sum(o.count for o in self.operations if o.kind == kind)

    @property
    def total(self) -> int:
        """Operations of all classes, one each; a multiplication with an addition is two."""
        return sum(o.count for o in self.operations)

    @property
    def exact(self) -> bool:
        """Whether all counts are exact; otherwise they are upper bounds."""
        return all(o.exact for o in self.operations)

    def intensity(self, moved_bytes: int) -> float | None:
        """Operations per byte moved; None where nothing is moved."""
        return self.total / moved_bytes if moved_bytes else None


def arithmetic(facts: GraphFacts) -> Arithmetic:
    """The operations of a kernel, over all units and iterations.

    An elementwise iOp is one operation for each element of its target's box, a reduction one for each element
    that it reads (the partial results of a group among them), a contraction of (M, K) with (K, N) is 2 M N K.
    Moves, fills, broadcasts, transpositions, iota, gather and scatter compute nothing.
    """
    found: dict[tuple[str, str], list[Count]] = {}
    for step in facts.steps:
        kind = step.spec.work_of(step.iop)
        if kind is not None:
            found.setdefault((kind, _dtype(step)), []).append(_count(step))
    order = list(WORK)
    rows = []
    for (kind, dtype), counts in sorted(
        found.items(), key=lambda item: (order.index(item[0][0]), list(DTYPES).index(item[0][1]))
    ):
        count = total(counts)
        if count.value:
            rows.append(Operations(kind, dtype, count.value, count.exact))
    return Arithmetic(tuple(rows))


def _dtype(step: Step) -> str:
    """The dtype that is computed in: of a contraction that of its factors."""
    by_factors = step.spec.is_product
    return str(step.iop.sources[0].pointer.dtype if by_factors else step.iop.dtype)


def _count(step: Step) -> Count:
    boxes = {operand: region for operand, _, region in step.operands}
    target = boxes["target"]
    counts = step.spec.counts
    if counts == "product":
        axes = (target.rows, boxes["source0"].cols, target.cols)
        return volume(axes, step.extents).times(2)
    if counts == "source0":
        (read,) = (a for a in step.accesses if a.operand == "source0")
        own = elements(read.region)
        # the leader combines one partial result of each unit
        return own + elements(attrs.evolve(target, every=1)) if step.leaders > 1 else own
    return elements(target)
