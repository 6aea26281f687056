# SPDX-License-Identifier: Apache-2.0
"""What a kernel with sizes moves and computes as expressions of its sizes: ``bytes = 8*n*d``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from ..errors import IGraphError
from ..igraph.affine import Affine, affine
from ..igraph.dtypes import bytes_of
from ..igraph.iops import WORK
from ..igraph.nodes import IGraph, IPointer
from ..sizes.symbolic_shapes import Size, in_terms_of
from ..verify.access import Access, GraphFacts, Step
from ..verify.region import Region
from .size_polynomials import polynomial, text_of
from .sized_counts import SizedDomain


@attrs.frozen
class SizedFigures:
    """Figures of a kernel for all of its sizes, as texts that Python reads; empty where there is none.

    Attributes
    ----------
    groups : str
        How many run.
    dram_bytes, read_bytes, written_bytes : str
        Between dram and the units, and each direction.
    operations : str
        Of all classes.
    pointers : mapping of str to str
        Bytes of each parameter.
    workspace_bytes : str
        Of dram that the kernel owns.
    exact : bool
        Otherwise what is moved is an upper bound: data decide (gather, scatter).
    """

    groups: str
    dram_bytes: str
    read_bytes: str
    written_bytes: str
    operations: str
    pointers: Mapping[str, str]
    workspace_bytes: str
    exact: bool

    def in_terms_of(self, values: Mapping[str, Size]) -> SizedFigures:
        """The same with what the sizes are at a call, in terms of other sizes."""

        def put(text: str) -> str:
            if not text:
                return text
            said = str(in_terms_of(text, values))
            return text_of(polynomial(said)) or said

        fields = attrs.asdict(self)
        pointers = {name: put(text) for name, text in fields.pop("pointers").items()}
        exact = fields.pop("exact")
        texts = {name: put(text) for name, text in fields.items()}
        return SizedFigures(**texts, pointers=pointers, exact=exact)


def sized_figures(graph: IGraph) -> SizedFigures | None:
    """The figures of a graph with sizes; None of one without."""
    if not graph.sizes:
        return None
    counts = _Counts(graph)
    read, written = counts.moved("read"), counts.moved("write")
    groups = affine(int(graph.num_groups)) if graph.groups is None else graph.groups
    own = [p for p in graph.pointers if p.level == "dram" and not p.is_param]
    return SizedFigures(
        text_of(groups),
        text_of(_sum([read, written])),
        text_of(read),
        text_of(written),
        text_of(counts.operations()),
        {str(p.name): text_of(_bytes(p)) for p in graph.params},
        text_of(_sum(map(_bytes, own))),
        counts.exact,
    )


def _bytes(pointer: IPointer) -> Affine | None:
    try:
        return pointer.elements * bytes_of(pointer.dtype)
    except IGraphError:
        return None


def _sum(values: Iterable[Affine | None]) -> Affine | None:
    found: Affine | None = affine(0)
    for value in values:
        found = None if value is None or found is None else found + value
    return found


class _Counts:
    """The counts of `traffic` and `arithmetic`, in terms of sizes."""

    def __init__(self, graph: IGraph) -> None:
        self._facts, self._domain = GraphFacts(graph), SizedDomain.of(graph)
        #: Whether nothing that was counted is an upper bound.
        self.exact = True

    def moved(self, kind: str) -> Affine | None:
        """Bytes between dram and the units, in one direction."""
        return _sum(
            self._touched(step, access) for step in self._facts.steps for access in self._of(step, kind)
        )

    def operations(self) -> Affine | None:
        """Of all classes."""
        return _sum(self._work(step) for step in self._facts.steps if step.spec.work_of(step.iop) in WORK)

    def _of(self, step: Step, kind: str) -> list[Access]:
        if not step.spec.touches:
            return []
        return [a for a in step.accesses if a.kind == kind and a.slice.pointer.level == "dram"]

    def _touched(self, step: Step, access: Access) -> Affine | None:
        boxes = {operand: region for operand, _, region in step.operands}
        rule = step.rule(access.operand)
        if access.operand == "buffer" or (rule is not None and rule.first):
            return None  # exchanges of a group in dram, and reads where another box has any element
        region: Region = access.region
        if access.operand == step.spec.by_data:
            self.exact = False
            region = boxes["source0" if access.operand == "target" else "target"]
        count = self._domain.elements(region)
        return None if count is None else count * bytes_of(access.slice.pointer.dtype)

    def _work(self, step: Step) -> Affine | None:
        """Operations of an iOp, as `arithmetic` counts them."""
        boxes = {operand: region for operand, _, region in step.operands}
        target, counts = boxes["target"], step.spec.counts
        if counts == "product":
            axes = (target.rows, boxes["source0"].cols, target.cols)
            found = self._domain.volume(axes, step.extents)
            return None if found is None else found * 2
        if counts == "source0":
            (read,) = (a for a in step.accesses if a.operand == "source0")
            parts = [self._domain.elements(read.region)]
            if step.leaders > 1:
                parts.append(self._domain.elements(attrs.evolve(target, every=1)))
            return _sum(parts)
        return self._domain.elements(target)
