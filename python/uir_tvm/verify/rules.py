# SPDX-License-Identifier: Apache-2.0
"""Shapes and dtypes: every iOp keeps the rules of its row in the iOp table."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import VerifyError
from ..igraph.iops import IOPS
from ..igraph.text import print_iop
from .access import GraphFacts

REMEDIES = {
    "shape": "make the shapes agree, with a broadcast, reduce or transpose where they must differ",
    "dtype": "put a cast between them, or give the pointers the dtype of the iOp",
}


def check_shape(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every iOp whose slices' shapes do not fit together."""
    yield from _check(facts, "shape")


def check_dtype(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every iOp on pointers of other dtypes than it takes."""
    yield from _check(facts, "dtype")


def _check(facts: GraphFacts, rule: str) -> Iterator[VerifyError]:
    for step in facts.steps:
        for found, sentence in step.problems:
            if found == rule:
                yield VerifyError(
                    f"{step.iop.op} breaks its {rule} rule: {sentence}.",
                    rule=rule,
                    where=print_iop(step.iop),
                    need=IOPS[step.iop.op].summary,
                    remedy=REMEDIES[rule],
                )
