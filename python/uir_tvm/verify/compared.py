# SPDX-License-Identifier: Apache-2.0
"""Equivalence as the compiler asks it of every kernel: after extraction, and after every pass."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs

from ..errors import EquivalenceError
from ..igraph.nodes import IGraph
from .equivalent import METHODS, Equivalence, EquivalenceReference, equivalent
from .sides import VALUES_METHOD

log = logging.getLogger(__name__)


@attrs.frozen
class PassChecks:
    """What is asked of the graphs that passes make; None: nothing.

    Parameters
    ----------
    kept : callable or None
        Of a pass that keeps every bit.
    reordered : callable or None
        Of one that adds sums up in another order (`optimize.passes.Pass.reorders`).
    """

    kept: Callable[[IGraph], None] | None
    reordered: Callable[[IGraph], None] | None


class Comparer:
    """The comparisons of one kernel.

    Parameters
    ----------
    level : str
        ``none``, ``sampled`` or ``full`` (see `options.CompileOptions`).
    results : list
        Where (what was compared, result) is noted.
    """

    def __init__(self, level: str, results: list[tuple[str, Equivalence]]) -> None:
        self.level, self.results = level, results

    def compare(
        self, what: str, reference: Any, graph: IGraph, *, bits: bool = False, fast_math: bool = False
    ) -> None:
        """Compare a graph with what it stands for, at this level.

        Parameters
        ----------
        what : str
            The occasion, for the record.
        bits, fast_math : bool
            Whether every bit must be the same; whether even constants may be others.

        Raises
        ------
        EquivalenceError
            They differ, or no method could decide at the level ``full``.
        """
        if self.level == "none":
            return
        # a pass that may change constants changes what is exact
        methods = (VALUES_METHOD,) if fast_math else METHODS
        try:
            found = equivalent(reference, graph, methods=methods, full=self.level == "full", bits=bits)
            if self.level == "full" and not found:
                raise EquivalenceError(
                    f"It is not decided whether `{graph.name}` computes what it stands for ({what}).",
                    where=found.reason,
                    need="a method that applies: of the level full, every graph is compared",
                    remedy="compile with the level sampled, or let TVM lower this kernel",
                )
        except EquivalenceError as error:
            log.warning("kernel %s, %s: %s", graph.name, what, error)
            raise
        log.info("kernel %s, %s: %s", graph.name, what, found)
        self.results.append((what, found))

    def after_passes(
        self, graph: IGraph, check: Callable[[IGraph], None] | None, fast_math: bool
    ) -> PassChecks:
        """``check`` of the graphs that passes make, then their comparison with the one before them all.

        Passes keep every bit, unless ``fast_math`` lets them change the rounding.  What a pass makes that
        adds sums up in another order agrees within the tolerance of sums, and in exact arithmetic altogether;
        later passes keep the bits of that graph.
        """
        if self.level == "none":
            return PassChecks(check, check)
        reference = EquivalenceReference(graph, full=self.level == "full")

        def compared(made: IGraph, what: str, bits: bool) -> None:
            if check is not None:
                check(made)
            self.compare(what, reference, made, bits=bits, fast_math=fast_math)

        def kept(made: IGraph) -> None:
            compared(made, "after a pass", not fast_math)

        def reordered(made: IGraph) -> None:
            nonlocal reference
            compared(made, "after a pass that adds sums up in another order", False)
            reference = EquivalenceReference(made, full=self.level == "full")

        return PassChecks(kept, reordered)
