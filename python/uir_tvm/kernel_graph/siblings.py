# SPDX-License-Identifier: Apache-2.0
"""Kernels that read the same tensor over one space, and not each other, as one kernel with all results.

Before::

    kernel 1: a = max(x, columns)
    kernel 2: b = sum(x * x, columns)

After::

    kernel 1: a = max(x, columns); b = sum(x * x, columns)     x is read once
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ..sizes.open_arithmetic import same
from .fusion_cost import SIBLINGS
from .operator_groups import OperatorGroup, final_hero
from .program import Value

if TYPE_CHECKING:
    from .fusion import Fusion

#: Heroes of kernels that may have further results.
JOINING = frozenset({"elementwise", "reduction", "normalization"})


def join_siblings(fusion: Fusion) -> None:
    """Join neighbours that read one tensor, each with the next."""
    for value in list(fusion.users):
        if value.constant is not None and value.size == 1:
            continue  # a number is part of the code
        groups = list(dict.fromkeys(fusion.groups[op] for op, _ in fusion.users[value]))
        groups = [group for group in groups if group.hero in JOINING]
        for first, second in pairwise(groups):
            # the first of them may have been joined to the one before it
            now = fusion.groups[first.ops[0]]
            if now is not second and _fits(fusion, now, second):
                _try(fusion, value, now, second)


def _fits(fusion: Fusion, group: OperatorGroup, other: OperatorGroup) -> bool:
    """Whether one kernel of both would be right, and of a kind that has several results."""
    elementwise = "elementwise" in (group.hero, other.hero)
    if group.space != other.space and not (elementwise and same(group.space.shape, other.space.shape)):
        return False
    if fusion.reads(group, other) or fusion.reads(other, group):
        return False
    if "transpose" in (final_hero(group), final_hero(other)):
        return False
    return fusion.joins(group, other) is None


def _try(fusion: Fusion, value: Value, group: OperatorGroup, other: OperatorGroup) -> None:
    """Make one kernel of two where that is cheaper."""
    if other.space.axes and not group.space.axes:
        group, other = other, group
    both = {*group.roles, *other.roles}
    apart = [fusion.cost.work(each, fusion.needed(each.ops, each.roles)) for each in (group, other)]
    whole = fusion.cost.work(group, fusion.needed(both, both), other.ops)
    decision = fusion.cost.decide(SIBLINGS, value.name, (group.name, other.name), apart, [whole], joins=False)
    fusion.note(decision)
    if decision.merged:
        fusion.absorb(group, other)
