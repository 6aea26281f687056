# SPDX-License-Identifier: Apache-2.0
"""Whether an iGraph computes what a PrimFunc, or another iGraph, computes.

Two methods, both on a few random inputs (docs/verification.md says what each can see):

field
    Both sides run in exact arithmetic of residues (`field`), in which neither rounding nor the order of a sum
    shows, but every other difference does.
values
    Both sides run on numbers, special ones among them, and are compared bit by bit, or within a tolerance
    where sums or functions may round differently.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ..errors import EquivalenceError, UirError
from ..igraph import finite_field as field
from ..igraph.dtypes import dtype_of
from ..igraph.nodes import IGraph
from ..igraph.sizes import at
from .agreement import TOLERANCE, relative_errors
from .cases import Specials, field_arrays, value_arrays
from .sides import FIELD_METHOD, VALUES_METHOD, GraphSide, Output, Side, Traits, UndecidedError, traits
from .some_sizes import MAX_ELEMENTS, some_sizes

METHODS = (FIELD_METHOD, VALUES_METHOD)
#: Seconds that one run of the interpreter should take where a sample is allowed.
BUDGET = 0.4


@attrs.frozen
class Equivalence:
    """Two functions were found to compute the same.

    Parameters
    ----------
    methods : tuple of str
        Out of `METHODS`; none where neither could decide.
    cases : int
        Inputs that were compared.
    units : str
        What ran of the graph: all units, or which, and which iterations.
    elements, total : int
        Elements of the outputs that were compared, and that there are.
    exact : bool
        Whether the numbers agreed bit by bit.
    seconds : float
        What it took.
    reason : str
        Why a method was not used.
    """

    methods: tuple[str, ...]
    cases: int
    units: str
    elements: int
    total: int
    exact: bool
    seconds: float
    reason: str = ""

    @property
    def method(self) -> str:
        """The methods in one word: ``field+values``, or ``none``."""
        return "+".join(self.methods) or "none"

    def __bool__(self) -> bool:
        return bool(self.methods)

    def __str__(self) -> str:
        head = f"equivalent by {self.method}" if self.methods else "not decided"
        bits = " (bit by bit)" if self.exact and VALUES_METHOD in self.methods else ""
        text = (
            f"{head}{bits}: {self.cases} cases, {self.units}, {self.elements} of {self.total} elements, "
            f"{self.seconds * 1e3:.0f} ms"
        )
        return f"{text}; {self.reason}" if self.reason else text


class EquivalenceReference:
    """What graphs are compared with; holds its results, for several graphs.

    Parameters
    ----------
    source : PrimFunc, IGraph
        The function that is right by definition.
    full : bool
        Whether all of a graph runs, whatever it takes.
    """

    def __init__(self, source: Any, *, full: bool = False, units: Sequence[int] | None = None) -> None:
        self.source, self.full = source, full
        self.units = units
        self._known: dict[tuple[Any, ...], list[Output] | str] = {}
        self._at: dict[tuple[int, ...], EquivalenceReference] = {}

    def at(self, sizes: Mapping[str, int]) -> EquivalenceReference:
        """The same at given sizes."""
        key = tuple(sizes.values())
        if key not in self._at:
            self._at[key] = EquivalenceReference(_source_at(self.source, sizes), full=self.full)
        return self._at[key]

    @cached_property
    def side(self) -> Side:
        """What runs."""
        if isinstance(self.source, IGraph):
            return GraphSide(self.source, self.units, None if self.full else BUDGET)
        from .function_side import FunctionSide

        return FunctionSide(self.source, self.full)

    def outputs(
        self, method: str, seed: int, specials: Specials, arrays: list[np.ndarray], roles: Sequence[str]
    ) -> list[Output]:
        """The outputs on a case.

        Raises
        ------
        UndecidedError
            The method does not apply.
        """
        key = (method, seed, specials, tuple(roles))
        known = self._known.get(key)
        if known is None:
            try:
                known = self.side.run(method, arrays, roles)
            except UndecidedError as error:
                known = str(error)
            except UirError as error:
                known = f"{self.side.label} does not run: {error.what}"
            self._known[key] = known
        if isinstance(known, str):
            raise UndecidedError(known)
        return known


def equivalent(
    reference: Any,
    graph: IGraph,
    *,
    units: Sequence[int] | None = None,
    seed: int = 0,
    cases: int = 1,
    methods: Sequence[str] = METHODS,
    full: bool = False,
    bits: bool = False,
) -> Equivalence:
    """Compare a graph with what it stands for.

    Parameters
    ----------
    reference : PrimFunc, IGraph or EquivalenceReference
        What is right: the function (scheduled or not) that the graph was extracted from, or the graph before
        a pass.  A `EquivalenceReference` keeps its results for further graphs.
    graph : IGraph
        With the same parameters in the same order.
    units : sequence of int, optional
        The pids to run; default: all, or a sample where all take longer than `BUDGET`.
    seed, cases : int
        Of the inputs: seeds ``seed .. seed + cases - 1``, for each method.
    methods : sequence of str
        Out of `METHODS`.
    full : bool
        Run all units and iterations, whatever that takes; of a graph with sizes, at the sizes that are
        chosen.
    bits : bool
        Hold numbers to the bit, also where sums or functions may round differently: for two graphs of which
        one was made of the other by a rewriting that keeps the order of arithmetic.

    Raises
    ------
    EquivalenceError
        They differ (``rule`` is ``equivalence``), or the graph does not run; with output, element, both
        values, method and seed.
    """
    start = time.perf_counter()
    made = (
        reference
        if isinstance(reference, EquivalenceReference)
        else EquivalenceReference(reference, full=full, units=units)
    )
    if graph.sizes:
        return _at_some_sizes(made, graph, seed, cases, methods, full, bits)
    side = GraphSide(graph, units, None if full or made.full else BUDGET)
    comparison = _Comparison(made, side, graph, bits)
    comparison.check_parameters()
    used: list[str] = []
    reasons: list[str] = []
    for method in methods:
        try:
            for case in range(cases):
                comparison.case(method, seed + case)
            used.append(method)
        except UndecidedError as error:
            reasons.append(f"{method} not used: {error}")
    return Equivalence(
        tuple(used),
        cases * len(used),
        str(side.plan),
        comparison.compared,
        sum(p.size for p in graph.params if p.role != "in"),
        comparison.exact,
        time.perf_counter() - start,
        "; ".join(reasons),
    )


def _at_some_sizes(
    reference: EquivalenceReference,
    graph: IGraph,
    seed: int,
    cases: int,
    methods: Sequence[str],
    full: bool,
    bits: bool,
) -> Equivalence:
    """A graph with sizes at a handful of them; errors say which."""
    found: list[Equivalence] = []
    chosen = some_sizes(graph)
    for sizes in chosen:
        try:
            static = reference.at(sizes)
            one = equivalent(
                static, at(graph, sizes), seed=seed, cases=cases, methods=methods, full=full, bits=bits
            )
        except EquivalenceError as error:
            raise _at_sizes(error, sizes) from error
        found.append(one)
    if not found:
        raise EquivalenceError(
            f"`{graph.name}` is compared at no size.",
            need=f"sizes at which all parameters have {MAX_ELEMENTS} elements at most",
            remedy="give the sizes lower least values",
        )
    return Equivalence(
        tuple(m for m in methods if all(m in one.methods for one in found)),
        sum(one.cases for one in found),
        f"{len(found)} sizes, {found[-1].units}",
        sum(one.elements for one in found),
        sum(one.total for one in found),
        all(one.exact for one in found),
        sum(one.seconds for one in found),
        next((one.reason for one in found if one.reason), ""),
    )


def _at_sizes(error: EquivalenceError, sizes: Mapping[str, int]) -> EquivalenceError:
    """The same, with the sizes at which it is so."""
    return EquivalenceError(
        error.what,
        method=error.method,
        seed=error.seed,
        output=error.output,
        element=error.element,
        sizes=sizes,
        need=error.need,
        limit=error.limit,
        remedy=error.remedy,
    )


def _source_at(source: Any, sizes: Mapping[str, int]) -> Any:
    """What is compared with, at given sizes."""
    if isinstance(source, IGraph):
        return at(source, sizes) if source.sizes else source
    from .function_side import function_at

    return function_at(source, sizes)


class _Comparison:
    """One reference, one graph."""

    def __init__(
        self, reference: EquivalenceReference, side: GraphSide, graph: IGraph, bits: bool = False
    ) -> None:
        self.reference, self.side, self.graph = reference, side, graph
        self.roles = [str(p.role) for p in graph.params]
        self.outputs = [p for p, role in zip(side.parameters, self.roles, strict=True) if role != "in"]
        self.traits = _traits(reference, graph)
        self.exact = bits or not (self.traits.sums or self.traits.approximate)
        # elsewhere the order of a sum decides what becomes of the largest numbers
        self.extreme = (bits or not self.traits.sums) and not self.traits.converts
        self.compared = 0

    def check_parameters(self) -> None:
        """Both have the same number of parameters, sizes and dtypes."""
        ours, theirs = self.side.parameters, self.reference.side.parameters
        if [(p.size, p.dtype) for p in ours] != [(p.size, p.dtype) for p in theirs]:
            raise EquivalenceError(
                f"`{self.graph.name}` has not the parameters of {self.reference.side.label}.",
                need=", ".join(f"{p.name} ({p.size} x {p.dtype})" for p in theirs),
                limit=", ".join(f"{p.name} ({p.size} x {p.dtype})" for p in ours),
                remedy="compare it with the function that it was extracted from",
            )

    def case(self, method: str, seed: int) -> None:
        """Compare on one input."""
        self.side.check_time()
        between_graphs = isinstance(self.reference.source, IGraph)
        infinite = not (self.traits.converts or self.traits.closes or self.traits.regroups)
        shifted = self.extreme or self.traits.overflows
        specials = Specials(infinite, self.extreme, between_graphs, shifted)
        parameters = self.reference.side.parameters
        if method == FIELD_METHOD:
            arrays = field_arrays(parameters, seed)
        else:
            arrays = value_arrays(parameters, seed, specials)
        want = self.reference.outputs(method, seed, specials, arrays, self.roles)
        try:
            got = self.side.run(method, arrays, self.roles)
        except UirError as error:
            raise EquivalenceError(
                f"`{self.graph.name}` does not run: {error.what}",
                method=method,
                seed=seed,
                where=error.where,
                need=error.need,
                limit=error.limit,
                remedy=error.remedy,
            ) from error
        compared = 0
        for output, ours, theirs in zip(self.outputs, got, want, strict=True):
            compared += self._compare(method, seed, output, ours, theirs)
        if not compared:
            raise UndecidedError(f"the samples of both sides ({self.side.plan}) have no element in common")
        self.compared = max(self.compared, compared)

    def _compare(self, method: str, seed: int, output: Any, ours: Output, theirs: Output) -> int:
        (got, written), (want, wanted) = ours, theirs
        got, want = got.reshape(-1), want.reshape(-1)
        if self.side.plan.whole and (missing := wanted & ~written).any():
            at = int(np.flatnonzero(missing)[0])
            raise EquivalenceError(
                f"`{self.graph.name}` never writes element {at} of {output.name}.",
                method=method,
                seed=seed,
                output=output.name,
                element=at,
                need=f"{int(missing.sum())} more elements, as {self.reference.side.label} writes them",
            )
        both = written & wanted
        differs = (_differs_field if method == FIELD_METHOD else self._differs)(got, want, output.dtype, both)
        if differs.any():
            at = int(np.flatnonzero(differs)[0])
            raise EquivalenceError(
                f"`{self.graph.name}` computes another {output.name} than {self.reference.side.label}: "
                f"{int(differs.sum())} of {int(both.sum())} elements compared differ.",
                method=method,
                seed=seed,
                output=output.name,
                element=at,
                need=f"{output.name}[{at}] = {_shown(want[at], method, output.dtype)}",
                limit=f"it is {_shown(got[at], method, output.dtype)}",
                remedy=f"run both on the same inputs: equivalent(reference, graph, seed={seed}, "
                f"methods=['{method}'])",
            )
        return int(both.sum())

    def _differs(self, got: np.ndarray, want: np.ndarray, dtype: str, both: np.ndarray) -> np.ndarray:
        if dtype_of(dtype).kind != "float":
            return both & (got != want)
        least = 1.0
        if self.traits.sums:  # what cancels has the error of the largest number
            sizes = np.abs(want[both].astype(np.float64))
            least = float(sizes[np.isfinite(sizes)].max(initial=least))
        return both & (relative_errors(got, want, least) > (0.0 if self.exact else TOLERANCE[dtype]))


def _differs_field(got: np.ndarray, want: np.ndarray, dtype: str, both: np.ndarray) -> np.ndarray:
    if dtype_of(dtype).kind != "float":
        return both & (got != want)
    # of what went through an exponential only u is known
    return both & np.where((got < 0) | (want < 0), got != want, (got >> field.SHIFT) != (want >> field.SHIFT))


def _traits(reference: EquivalenceReference, graph: IGraph) -> Traits:
    ours = traits(graph)
    if not isinstance(reference.source, IGraph):
        side = reference.side
        sums, regroups = (getattr(side, name, False) for name in ("sums", "regroups"))
        return attrs.evolve(ours, sums=ours.sums or sums, regroups=regroups)
    theirs = traits(reference.source)
    return Traits(
        ours.sums or theirs.sums,
        ours.approximate or theirs.approximate,
        ours.converts or theirs.converts,
        ours.overflows and theirs.overflows,
        ours.closes or theirs.closes,
    )


def _shown(value: Any, method: str, dtype: str) -> str:
    if method != FIELD_METHOD or dtype_of(dtype).kind != "float":
        return str(value)
    special = {field.POS_INF: "inf", field.NEG_INF: "-inf", field.NAN: "nan"}
    return special.get(int(value), f"residue {int(value) >> field.SHIFT} modulo {field.P}")
