# SPDX-License-Identifier: Apache-2.0
"""An operator's place in a group: how it would join, what is against it, and whether it is worth it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from ..sizes.open_arithmetic import is_found, representative
from ..time_text import time_text
from .fusion_cost import FEW_ROWS, REPEATED
from .nodes import FusionDecision
from .operator_groups import OperatorGroup, Role
from .program import Op, View

if TYPE_CHECKING:
    from .fusion import Fusion


@frozen
class Fit:
    """How an operator joins a group: operands and shape there, role, and the reading that it moves behind.

    ``decision`` has the prices, where they decided.
    """

    operands: list[View]
    shape: tuple[int, ...]
    role: Role
    reader: tuple[Op, int] | None = None
    decision: FusionDecision | None = None


@frozen
class Obstacle:
    """What keeps an operator out of a group.

    Attributes
    ----------
    reason : str
    of_groups : bool
        Whether it is about which kernel has the operator, not about what is between their elements.
    decision : FusionDecision, optional
        The prices, where they decided.
    """

    reason: str
    of_groups: bool = False
    decision: FusionDecision | None = None


def priced(fusion: Fusion, group: OperatorGroup, op: Op, fit: Fit) -> Fit | Obstacle:
    """A place that costs what a kernel of the operator's own would not: taken where that is less.

    Elements that a view repeats are computed each time; a kernel of few rows has few units.
    """
    if is_found(*group.space.shape, *fit.shape, op.results[0].size):
        return fit  # nothing stands for what only a call finds
    computed, held = prod(map(representative, fit.shape)), representative(op.results[0].size)
    if computed > held:
        candidate = REPEATED
    elif fit.role == "full" and fusion.cost.loses_units(group.space):
        candidate = FEW_ROWS
    else:
        return fit
    own, both = fusion.groups[op], {*group.roles, op}
    alone = fusion.cost.work(own, fusion.needed([op], own.roles))
    rest = fusion.cost.work(group, fusion.needed(group.ops, group.roles))
    reads = any(view.base.producer is op for view in group.external())
    whole = fusion.cost.work(group, fusion.needed([*group.ops, op], both), [op], {op: computed})
    decision = fusion.cost.decide(
        candidate,
        op.results[0].name,
        (own.name, group.name),
        (alone, rest) if reads else (rest, alone),
        (whole,),
        joins=candidate != REPEATED or not op.kind.dear,
    )
    if decision.merged:
        return evolve(fit, decision=decision)
    why = {
        REPEATED: f", which would be computed {computed // held} times,",
        FEW_ROWS: f", which would run on {whole.units} of {alone.units} units,",
    }
    apart, together = time_text(decision.apart.seconds), time_text(decision.together.seconds)
    told = f"{op.name}{why[candidate]} beside {group.hero}: modelled {apart} apart, {together} as one"
    return Obstacle(told, False, decision)
