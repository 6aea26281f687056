# SPDX-License-Identifier: Apache-2.0
"""The verifier: faults of an iGraph, decided before anything is emitted.

`RULES` lists the rules in order; a rule relies on those before it, so that it is only asked of a graph
in which they found nothing.  A rule that cannot prove a graph right says so as a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..errors import VerifyError
from ..igraph.nodes import IGraph
from . import (
    addresses,
    alignment,
    bounds,
    capacity,
    coverage,
    form,
    initialised,
    races,
    rules,
    same_elements,
    valid,
)
from .access import Access, GraphFacts, accesses, facts_of
from .equivalent import Equivalence, EquivalenceReference, equivalent

#: The rules by name.  Those of one set do not rely on each other; the next set relies on all of them.
RULE_SETS: Sequence[Mapping[str, Sequence[Callable[[GraphFacts], Iterator[VerifyError]]]]] = (
    {"form": (form.check,)},
    {"shape": (rules.check_shape,), "dtype": (rules.check_dtype,)},
    {
        "bounds": (bounds.check, valid.check),
        "identity": (same_elements.check,),
        "alignment": (alignment.check,),
    },
    {
        "coverage": (coverage.check,),
        "uninitialised": (initialised.check,),
        "capacity": (capacity.check,),
        "addresses": (addresses.check,),
        "race": (races.check,),
    },
)

#: Every rule's name, in order.
ALL: tuple[str, ...] = tuple(name for rule_set in RULE_SETS for name in rule_set)


def verify(graph: IGraph, rules: Sequence[str] = ALL) -> None:
    """Raise the first fault of a graph.

    Parameters
    ----------
    rules : sequence of str
        Names out of `ALL`; a rule left out is not asked.

    Raises
    ------
    VerifyError
        The fault, with iOp, slice, witness and remedy.
    """
    for fault in _faults(graph, rules):
        raise fault


def check(graph: IGraph, rules: Sequence[str] = ALL) -> list[VerifyError]:
    """All faults of a graph; those of a rule hide those of the rules that rely on it."""
    return list(_faults(graph, rules))


def _faults(graph: IGraph, rules: Sequence[str]) -> Iterator[VerifyError]:
    unknown = [name for name in rules if name not in ALL]
    if unknown:
        raise ValueError(f"no such rule: {', '.join(unknown)} (there are {', '.join(ALL)})")
    facts = facts_of(graph)
    kept: set[str] = facts.memo.setdefault("rules kept", set())
    for rule_set in RULE_SETS:
        clean = True
        for name, checks in rule_set.items():
            if name not in rules or name in kept:
                continue
            faults = 0
            for fault in (fault for run in checks for fault in run(facts)):
                faults += 1
                yield fault
            if not faults:
                kept.add(name)
            clean = clean and not faults
        if not clean:
            return


__all__ = [
    "ALL",
    "RULE_SETS",
    "Access",
    "Equivalence",
    "EquivalenceReference",
    "accesses",
    "check",
    "equivalent",
    "verify",
]
