# SPDX-License-Identifier: Apache-2.0
"""Every case in symbolic form: each of its axes open in turn, then all; one kernel for all sizes.

A form is right where the target gives at every size what the interpreter gives, with the kernel that was
printed once; what a target refuses of it is listed in `refusals.py` too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs
import numpy as np
from uir_tvm import hardware
from uir_tvm.errors import CodegenError, UirError, VerifyError
from uir_tvm.igraph import interpreter
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify import ALL, verify

from tests.as_programs import build_igraph, run_igraph

from .cases import CASES, CLASSES, Case, CaseGraph, Operation
from .open_shapes import OpenShape, open_shapes
from .refusals import Refusal, Subject, refusal_of

#: As for the static cases: strides and boxes leave elements of the outputs out.
RULES = tuple(rule for rule in ALL if rule != "coverage")


@attrs.frozen
class OpenCase:
    """A case some of whose axes are open."""

    case: Case
    shape: OpenShape

    @property
    def name(self) -> str:
        """``CASE[SIZES]``."""
        return f"{self.case.name}[{','.join(str(size.name) for size in self.shape.sizes)}]"

    def subject(self, operation: Operation) -> Subject:
        """What the tables of refusals go by."""
        return attrs.evolve(operation.subject(self.case.kind), opened=self.shape.opened)

    def refused(self, target: str) -> list[tuple[Operation, Refusal]]:
        """The operations that a target must refuse, and why."""
        reasons = [(o, refusal_of(target, self.subject(o))) for o in self.case.operations]
        return [(operation, reason) for operation, reason in reasons if reason is not None]

    def of(self, operations: tuple[Operation, ...], target: str) -> CaseGraph:
        """The graph of some of its operations, for a target's hardware."""
        case = attrs.evolve(self.case, operations=operations)
        return CaseGraph(case, self.shape, hardware.get(None, TARGETS[target].kind))


def _open_cases() -> Iterator[OpenCase]:
    for case in CASES.values():
        if case.kind in CLASSES:
            for shape in open_shapes(case.shape, case.kind):
                yield OpenCase(case, shape)


#: By name.
OPEN_CASES: dict[str, OpenCase] = {one.name: one for one in _open_cases()}


def check_open_case(one: OpenCase, target: str, agree: Callable[..., None]) -> int:
    """One kernel agrees with the interpreter at every point, and what is listed is refused.

    Parameters
    ----------
    agree : callable
        ``agree(found, wanted, tolerances, names)`` raises where they differ.

    Returns
    -------
    int
        At how many sizes the kernel was called.
    """
    refused = one.refused(target)
    for operation, reason in refused:
        must_refuse(one.of((operation,), target), target, reason)
    kept = tuple(o for o in one.case.operations if o not in [operation for operation, _ in refused])
    if not kept:
        return 0
    made = one.of(kept, target)
    verify(made.graph, RULES)
    built = build_igraph(made.graph, target)
    case, called = attrs.evolve(one.case, operations=kept), 0
    for sizes in one.shape.points():
        arrays = made.arrays(sizes)
        found = run_igraph(made.graph, target, *arrays, sizes=sizes, built=built)
        wanted = interpreter.run(made.graph, *arrays, allow_unwritten=True, sizes=sizes)
        tolerances = [case.tolerance(n) for n in range(len(kept))]
        units = [_unit(w) if o.sums else 1.0 for o, w in zip(kept, wanted, strict=True)]
        agree(found, wanted, tolerances, [f"{o.name} at {sizes}" for o in kept], units)
        called += 1
    return called


def _unit(sums: np.ndarray) -> float:
    """The largest of some sums: each has terms as large, also where they cancel."""
    numbers = np.abs(sums.astype(np.float64))
    return max(1.0, float(numbers[np.isfinite(numbers)].max(initial=0)))


def must_refuse(made: CaseGraph, target: str, reason: Refusal) -> None:
    """A listed refusal occurs, with the reason that is listed: of the verifier, or of the target."""
    error: UirError | None = None
    try:
        verify(made.graph, RULES)
        build_igraph(made.graph, target)
    except UirError as caught:
        error = caught
    assert isinstance(error, CodegenError | VerifyError), error
    assert re.search(reason.says, str(error)), (reason.says, str(error))
