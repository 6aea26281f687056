# SPDX-License-Identifier: Apache-2.0
"""Sets of units with consecutive pids, as memory and addresses see them (see `sharing`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..igraph.affine import Affine
from ..igraph.space import Size, Space
from .tree_nodes import Leaf, Tree

#: Extra variables of analyses: the set, and the unit within it that an iteration of the parallel loop is for.
OWNER, WITHIN = "owner ", "unit "


def owners(leaves: Iterable[Leaf], tree: Tree) -> int:
    """How many units share one copy of an sram buffer that these leaves touch."""
    return max([tree.set_size, *(leaf.group for leaf in leaves)])


def environment(tree: Tree, pid: Affine, extents: Mapping[str, int | Size]) -> dict[Any, Affine]:
    """What the parallel loop and the members' variables stand for; ``pid`` has variables of ``extents``."""
    space = Space(extents)
    out: dict[Any, Affine] = {}
    if tree.parallel is not None:
        out[tree.parallel.var] = space.floordiv(pid, tree.set_size)
    for size, variable in tree.members.variables.items():
        out[variable] = space.mod(pid, size)
    return out
