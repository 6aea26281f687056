# SPDX-License-Identifier: Apache-2.0
"""Other decisions for a trace: mutations of what was chosen out of a list, and all nearest neighbours."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule
from tvm.s_tir.schedule import Trace

#: Share of mutations that move to the next number of the list, up or down; the others go anywhere.
NEAR = 0.75
#: Kinds of instructions that sample.
CATEGORICAL, TILE = "SampleCategorical", "SamplePerfectTile"


@derived_object
class MutateDecision(meta_schedule.mutator.PyMutator):
    """Mutator of MetaSchedule for ``sample_categorical``: most often to a neighbour in the list.

    Candidates are listed in order (`Decisions.choose`), so that a neighbour is the next smaller or larger
    tile, and makes a schedule much like this one.
    """

    def _initialize_with_tune_context(self, context: meta_schedule.TuneContext) -> None:
        """Nothing of the context is needed."""

    def apply(self, trace: Trace, seed: int) -> Trace | None:
        """See `mutated`; the seed is the random state of the search's thread."""
        return mutated(trace, int(seed))

    def clone(self) -> MutateDecision:
        """For another thread."""
        return MutateDecision()


def mutated(trace: Trace, seed: int) -> Trace | None:
    """The trace with one other number out of a list; None where it has none to change."""
    rng = random.Random(seed)
    chosen = [inst for inst in trace.insts if inst.kind.name == CATEGORICAL and options(inst, trace)]
    if not chosen:
        return None
    inst = rng.choice(chosen)
    decision = moved(int(trace.decisions[inst]), len(inst.attrs[0]), rng)
    return trace.with_decision(inst, decision, remove_postproc=True)


def moved(index: int, count: int, rng: random.Random) -> int:
    """Another index below a count of at least two, most often the next one up or down."""
    if rng.random() < NEAR:
        return rng.choice([i for i in (index - 1, index + 1) if 0 <= i < count])
    return rng.choice([i for i in range(count) if i != index])


def options(inst: Any, trace: Trace) -> list[Any]:
    """All decisions that a sampling instruction may take, in order; empty where there is no choice.

    Parameters
    ----------
    inst : Instruction
        Of the trace.
    trace : Trace
        Its decision tells how long a loop is that is tiled.

    Returns
    -------
    list
        Indices, or factors (outer, inner) of a tile by their inner one.
    """
    found: Sequence[Any] = ()
    if inst.kind.name == CATEGORICAL:
        found = range(len(inst.attrs[0]))
    elif inst.kind.name == TILE and int(inst.attrs[0]) == 2:
        outer, inner = (int(factor) for factor in trace.decisions[inst])
        extent, most = outer * inner, int(inst.attrs[1])
        found = [[extent // d, d] for d in range(1, min(extent, most) + 1) if extent % d == 0]
    return list(found) if len(found) > 1 else []


def decided(inst: Any, trace: Trace) -> Any:
    """The decision of an instruction, as `options` lists it."""
    value = trace.decisions[inst]
    return int(value) if inst.kind.name == CATEGORICAL else [int(factor) for factor in value]


def neighbours(trace: Trace) -> Iterator[Trace]:
    """Every trace that differs in one decision by one step."""
    for inst in trace.insts:
        answers = options(inst, trace)
        if not answers:
            continue
        now = decided(inst, trace)
        at = answers.index(now) if now in answers else 0
        for other in (at - 1, at + 1):
            if 0 <= other < len(answers):
                yield trace.with_decision(inst, answers[other], remove_postproc=True)
