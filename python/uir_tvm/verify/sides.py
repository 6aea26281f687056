# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison: something with parameters that can be run on field values or on numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from ..errors import InterpreterError
from ..igraph.domain import VALUES, Values
from ..igraph.interpreter import run_partly
from ..igraph.iops import head, spec_of
from ..igraph.iops_scalar import BINARY, UNARY
from ..igraph.nodes import IGraph
from .cases import FunctionBuffer
from .field_domain import FIELD
from .sample import SamplePlan, cost, plan

FIELD_METHOD, VALUES_METHOD = "field", "values"
DOMAINS: dict[str, Values] = {FIELD_METHOD: FIELD, VALUES_METHOD: VALUES}

#: Values of an output and a mask of the elements that were computed, both flat.
Output = tuple[np.ndarray, np.ndarray]


class UndecidedError(Exception):
    """A method does not apply, or takes longer than it may; the message says why."""


class Side(Protocol):
    """Something that is compared."""

    label: str
    parameters: list[FunctionBuffer]

    def run(self, method: str, arrays: Sequence[np.ndarray], roles: Sequence[str]) -> list[Output]:
        """The outputs (inout and out parameters) for flat arrays of all parameters.

        Raises
        ------
        UndecidedError
            The method is not for this side.
        """
        ...


class GraphSide:
    """An iGraph in the interpreter.

    Parameters
    ----------
    units : sequence of int, optional
        The pids to run; default: as `sample.plan` says within ``budget``.
    budget : float or None
        Seconds that one run should take; None = whatever it takes.
    """

    def __init__(self, graph: IGraph, units: Sequence[int] | None, budget: float | None) -> None:
        self.graph, self.budget = graph, budget
        self.label = f"iGraph `{graph.name}`"
        self.parameters = [FunctionBuffer(str(p.name), str(p.dtype), int(p.size)) for p in graph.params]
        if units is not None:
            self.plan = _of_units(graph, tuple(units))
        elif budget is None:
            self.plan = _of_units(graph, None)
        else:
            self.plan = plan(graph, budget)

    def run(self, method: str, arrays: Sequence[np.ndarray], roles: Sequence[str]) -> list[Output]:
        """As `Side.run`; a sample that proves to hand values on is given up for the whole graph.

        Raises
        ------
        UirError
            As the interpreter.
        UndecidedError
            The whole graph takes too long.
        """
        inputs = {
            p.name: a for p, a, role in zip(self.parameters, arrays, roles, strict=True) if role != "out"
        }
        if self.plan.iterations:
            try:
                return self._run(method, inputs)
            except InterpreterError:
                # an iteration relies on another one
                self.plan = _of_units(self.graph, self.plan.units)
        self.check_time()
        return self._run(method, inputs)

    def check_time(self) -> None:
        """Raise where what is to run takes too long.

        Raises
        ------
        UndecidedError
            It takes many times the budget.
        """
        if self.budget is not None and self.plan.seconds > PATIENCE * self.budget:
            raise UndecidedError(
                f"the interpreter would take about {self.plan.seconds:.0f} s for {self.plan}, "
                f"and no sample stands by itself"
            )

    def _run(self, method: str, inputs: dict[str, np.ndarray]) -> list[Output]:
        outputs = run_partly(
            self.graph,
            inputs,
            units=self.plan.units,
            iterations=self.plan.iterations,
            domain=DOMAINS[method],
        )
        if not self.plan.whole:
            return outputs
        roles = [p.role for p in self.graph.params if p.role != "in"]
        return [
            (values, np.ones_like(mask) if role == "inout" else mask)
            for (values, mask), role in zip(outputs, roles, strict=True)
        ]


def _of_units(graph: IGraph, units: tuple[int, ...] | None) -> SamplePlan:
    """Every iteration of some units."""
    share = 1.0 if units is None else len(units) / graph.num_parallel
    return SamplePlan(units, {}, cost(graph) * share)


#: How many times its budget a run may be estimated to take before it is not made.
PATIENCE = 5


@attrs.frozen
class Traits:
    """What the operators of a graph mean for its comparison on numbers.

    Parameters
    ----------
    sums : bool
        Something is summed, in an order that is not part of the meaning.
    approximate : bool
        A function or dtype whose last bits differ between correct implementations.
    converts : bool
        Floats become integers, which is undefined for what does not fit.
    overflows : bool
        There is an exponential, and nothing (a root, a contraction) whose error grows with the magnitudes:
        what keeps it from overflowing can be put to the test.
    closes : bool
        Exponentials of -inf are factors: what they are multiplied with may be left out, which only tells
        where it is no number.
    regroups : bool
        What a group of codes has once may be taken out of their sum (`quantized.PACKING`), which only tells
        where a factor is infinite.
    """

    sums: bool
    approximate: bool
    converts: bool
    overflows: bool
    closes: bool = False
    regroups: bool = False


def traits(graph: IGraph) -> Traits:
    """The traits of a graph."""
    sums = approximate = converts = exponential = grows = product = closed = False
    for iop, _ in graph.walk():
        sums |= spec_of(iop).is_product or head(iop) in ("reduce.add", "reduce.mul")
        table: Any = {"unary": UNARY, "binary": BINARY}.get(iop.op, {})
        approximate |= iop.name in table and table[iop.name].wide
        approximate |= any(p.pointer.dtype in _NARROW for p in iop.slices())
        converts |= spec_of(iop).converts and iop.name in _FLOATS and iop.dtype not in _FLOATS
        exponential |= head(iop) in ("unary.exp", "unary.exp2")
        product |= spec_of(iop).is_product
        closed |= iop.op == "fill" and iop.attrs.get("value") == -math.inf
        grows |= spec_of(iop).is_product or head(iop) in ("unary.sqrt", "unary.rsqrt")
    return Traits(sums, approximate, converts, exponential and not grows, exponential and product and closed)


_NARROW = frozenset({"fp16", "bf16", "fp8e4m3", "fp8e5m2"})
_FLOATS = _NARROW | {"fp32", "fp64"}
