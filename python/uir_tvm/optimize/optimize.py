# SPDX-License-Identifier: Apache-2.0
"""Runs passes over a graph, verifies what each makes, and keeps a record of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import attrs

from ..errors import PassError, UirError
from ..igraph.nodes import IGraph
from ..igraph.text import print_igraph
from ..verify import verify
from .figures import Figures, figures
from .kept_step import KeptStep
from .passes import Pass, select

log = logging.getLogger(__name__)

#: Raises a UirError where a graph is refused.
Checker = Callable[[IGraph], None]


@attrs.frozen(slots=False, eq=False)
class PassRecord:
    """What one pass did.

    Attributes
    ----------
    name : str
        The pass.
    changed : bool
        Whether the graph after it is another one.
    graph_before, graph_after : IGraph
        The same object where it changed nothing, or was refused.
    seconds : float
        Of the pass and of the check of its result.
    fault : str
        Why its result was refused, if it was.
    rule : str
        The rule of the verifier that refused it, if one did.
    """

    name: str
    graph_before: IGraph = attrs.field(repr=False)
    graph_after: IGraph = attrs.field(repr=False)
    seconds: float
    fault: str = ""
    rule: str = ""

    @property
    def changed(self) -> bool:
        """Whether the graph after it is another one."""
        return self.graph_before is not self.graph_after

    @cached_property
    def before(self) -> Figures:
        """iOps, bytes, syncs and peak memory of the graph that it got."""
        return figures(self.graph_before)

    @cached_property
    def after(self) -> Figures:
        """The same of the graph that it left."""
        return figures(self.graph_after) if self.changed else self.before

    def to_json(self) -> dict[str, Any]:
        """What a saved executable keeps of the step."""
        note = self.before.difference(self.after) if self.changed else ""
        return {"pass": self.name, "changed": self.changed, "note": note, "fault": self.fault}

    def line(self) -> str:
        """The step in one line."""
        if self.fault:
            return f"{self.name}: refused ({self.fault.splitlines()[0]})"
        if not self.changed:
            return f"{self.name}: nothing to do"
        return f"{self.name}: {self.before.difference(self.after)}"


@attrs.frozen(eq=False)
class Optimized:
    """A graph, and how it came about: one step per pass that ran."""

    graph: IGraph
    steps: tuple[PassRecord | KeptStep, ...] = ()

    @property
    def faults(self) -> tuple[PassRecord | KeptStep, ...]:
        """The passes whose result was refused."""
        return tuple(step for step in self.steps if step.fault)

    def __str__(self) -> str:
        """The text of the graph, under the passes that changed it (as comments)."""
        lines = [f"# {step.line()}" for step in self.steps if step.changed or step.fault]
        return "\n".join([*lines, print_igraph(self.graph)])


def optimize(
    graph: IGraph,
    passes: Sequence[str] | None = None,
    *,
    fast_math: bool = False,
    check: Checker | None = verify,
    reordered: Checker | None = None,
    keep_going: bool = False,
) -> Optimized:
    """Run passes over a graph.

    Parameters
    ----------
    graph : IGraph
        A verified graph.
    passes : sequence of str, optional
        Names out of `PASSES`, in the order in which they are to run; default: all.
    fast_math : bool
        Whether passes may change the rounding of floats.
    check : callable, optional
        Asked of every graph that a pass made; None asks nothing.
    reordered : callable, optional
        Asked in its place of what a pass made that adds sums up in another order (`Pass.reorders`).
    keep_going : bool
        Whether the graph before a pass takes the place of a result that is refused, with a warning; the step
        says why.

    Returns
    -------
    Optimized
        The graph and a step per pass.

    Raises
    ------
    PassError
        There is no pass of that name; or a pass failed, or its result was refused (without ``keep_going``).
    """
    steps: list[PassRecord] = []
    for row in select(passes):
        start = time.perf_counter()
        fault, rule, made = "", "", graph
        try:
            made = ran(row, graph, fast_math, reordered if row.reorders and reordered is not None else check)
        except PassError as error:
            if not keep_going:
                raise
            fault = str(error.__cause__ or error)
            rule = getattr(error.__cause__, "rule", "")
            log.warning("%s: the pass %s is left out (%s)", graph.name, row.name, fault.splitlines()[0])
        steps.append(PassRecord(row.name, graph, made, time.perf_counter() - start, fault, rule))
        graph = made
    return Optimized(graph, tuple(steps))


def ran(row: Pass, graph: IGraph, fast_math: bool = False, check: Checker | None = None) -> IGraph:
    """What a pass makes of a graph, checked; its errors name the pass."""
    try:
        made = row.run(graph, fast_math)
        if made is not graph and check is not None:
            check(made)
    except UirError as error:
        raise PassError(
            f"What the pass '{row.name}' made of `{graph.name}` is refused: {error.what}",
            name=row.name,
            where=error.where,
            need=error.need,
            limit=error.limit,
            remedy="compile without it (--passes), and report it with the graph",
        ) from error
    except Exception as error:  # a fault of ours must not cost the user the kernel
        raise PassError(
            f"The pass '{row.name}' failed on `{graph.name}`: {type(error).__name__}: {error}",
            name=row.name,
            remedy="compile without it (--passes), and report it with the graph",
        ) from error
    return made
