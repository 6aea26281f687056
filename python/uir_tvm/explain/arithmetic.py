# SPDX-License-Identifier: Apache-2.0
"""Operations that a kernel computes, by class: one per element of every iOp's valid box."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..igraph.dtypes import DTYPES, bytes_of, dtype_of
from ..verify.access import Program, Step
from .counting import Count, elements, total, volume

#: The classes, and what belongs to them.
CLASSES: Mapping[str, str] = {
    "add": "additions, subtractions, maxima, minima, signs",
    "mul": "multiplications",
    "divide": "divisions, remainders, square roots",
    "transcendental": "exponentials, logarithms, powers, trigonometry, hyperbolic functions, erf, sigmoid",
    "contract": "multiplications and additions of contractions: 2 M N K",
    "logic": "comparisons, choices, bits, tests for NaN and infinity",
    "convert": "casts, roundings to integers, copies between registers",
}

#: Class by the name of a unary, binary or reduce.
BY_NAME: Mapping[str, str] = {
    name: kind
    for kind, names in {
        "add": "adds subs rsubs maxs mins abs neg relu sign add sub max min",
        "mul": "muls leaky_relu mul",
        "divide": "divs rdivs recip sqrt rsqrt div floordiv mod truncdiv truncmod",
        "transcendental": "pows exp exp2 log log2 log1p sin cos tan asin acos atan sinh cosh tanh asinh "
        "acosh atanh erf sigmoid pow atan2",
        "logic": "not isnan isinf isfinite and or xor shl shr",
        "convert": "copy floor ceil round trunc",
    }.items()
    for name in names.split()
}
#: Class by the iOp, where its name does not matter.
BY_OP: Mapping[str, str] = {"compare": "logic", "select": "logic", "cast": "convert", "contract": "contract"}


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


def arithmetic(program: Program) -> Arithmetic:
    """The operations of a kernel, over all units and iterations.

    An elementwise iOp is one operation for each element of its target's box, a reduction one for each element
    that it reads (the partial results of a group among them), a contraction of (M, K) with (K, N) is 2 M N K.
    Moves, fills, broadcasts, transpositions, iota, gather and scatter compute nothing.
    """
    found: dict[tuple[str, str], list[Count]] = {}
    for step in program.steps:
        kind = class_of(step)
        if kind is not None:
            found.setdefault((kind, _dtype(step)), []).append(_count(step))
    order = list(CLASSES)
    rows = []
    for (kind, dtype), counts in sorted(
        found.items(), key=lambda item: (order.index(item[0][0]), list(DTYPES).index(item[0][1]))
    ):
        count = total(counts)
        if count.value:
            rows.append(Operations(kind, dtype, count.value, count.exact))
    return Arithmetic(tuple(rows))


def class_of(step: Step) -> str | None:
    """The class of an iOp; None where it computes nothing."""
    iop = step.iop
    if iop.op in ("unary", "binary", "reduce"):
        return BY_NAME[str(iop.name)]
    return BY_OP.get(str(iop.op))


def _dtype(step: Step) -> str:
    """The dtype that is computed in: of a contraction that of its factors."""
    return str(step.iop.sources[0].pointer.dtype if step.iop.op == "contract" else step.iop.dtype)


def _count(step: Step) -> Count:
    boxes = {operand: region for operand, _, region in step.operands}
    target = boxes["target"]
    if step.iop.op == "contract":
        axes = (target.rows, boxes["source0"].cols, target.cols)
        return volume(axes, step.extents).times(2)
    if step.iop.op == "reduce":
        (read,) = (a for a in step.accesses if a.operand == "source0")
        own = elements(read.region)
        # the leader combines one partial result of each unit
        return own + elements(attrs.evolve(target, every=1)) if step.leaders > 1 else own
    return elements(target)
