# SPDX-License-Identifier: Apache-2.0
"""Loops that the units of a group share: annotated ``uir.group``, or of a block that is.

A set is ``k`` units with consecutive pids.  Inside the parallel loop, a loop annotated ``uir.group = k``
stands for its members: unit ``pid`` runs iteration ``pid % k`` of it, and the loop is gone.  A block
annotated so says it of the loop that its first stored dimension is bound to (`group_reduce` cannot name the
loop, which moves).

Where the parallel loop itself is annotated ``uir.group = k``, its iterations are those of sets: iteration
``p`` belongs to the units ``k*p .. k*p + k - 1``.  What stands under no shared loop each of them does; but
memory that others see only the leader writes.  Without that annotation every unit has an iteration of its
own, and what members share must be the same for all units of the set: a tile that all of them read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tvm import tirx

from ..igraph.affine import Affine, var
from ..igraph.space import Space
from ..schedule.annotations import GROUP
from .affine_from_tir import AffineConverter, NotAffineError
from .box import NotABoxError, conjunction
from .leaf_access import accesses_of
from .refusals import refuse
from .sets import OWNER, WITHIN
from .tree_nodes import Leaf, Tree, TreeLoop


def group_of(annotations: Any) -> int:
    """The size of set that annotations ask for; 1 without."""
    return int(annotations[GROUP]) if GROUP in annotations else 1


def shared_loop(block: Any, values: Sequence[Any], loops: Iterable[TreeLoop]) -> TreeLoop:
    """The loop that the first stored dimension of a block annotated ``uir.group`` is bound to.

    Raises
    ------
    uir_tvm.errors.ExtractionError
        It is bound to no loop by itself.
    """
    wanted = block.writes[0].region[0].min
    for iter_var, value in zip(block.iter_vars, values, strict=True):
        if iter_var.var.same_as(wanted):
            for loop in loops:
                if loop.var.same_as(value):
                    return loop
    refuse(
        "No loop of this block numbers the units of a set.",
        str(block.name_hint),
        need="a loop of its own for the first dimension of what it stores",
        remedy="do not fuse, split or reorder across the loop that group_reduce made",
    )


def check_loop(loop: TreeLoop, has_end: bool, num_units: int, block: str) -> None:
    """A shared loop has an iteration for each member, and groups have whole sets.

    Raises
    ------
    uir_tvm.errors.ExtractionError
        It has not.
    """
    if loop.extent != loop.group or loop.start != 0 or has_end:
        refuse(
            f"The loop '{loop.var.name}' is shared by sets of {loop.group} units, but has {loop.extent} "
            "iterations.",
            block,
            need=f"{loop.group} iterations from 0",
        )
    if num_units % loop.group:
        refuse(
            f"A group of {num_units} units has no sets of {loop.group}.",
            block,
            need="a size of set that divides the units of a group",
            limit=f"{num_units} units in a group",
            remedy="map to more units per group, or share by fewer",
        )


def check_sizes(leaves: Iterable[Leaf], set_size: int) -> None:
    """Where iterations belong to sets, all sharing is among the members of these.

    Raises
    ------
    uir_tvm.errors.ExtractionError
        A loop is shared by sets of another size.
    """
    for leaf in leaves:
        if set_size > 1 and leaf.group not in (1, set_size):
            refuse(
                f"A loop is shared by sets of {leaf.group} units inside a loop over sets of {set_size}.",
                leaf.block,
                need="one size of set",
                remedy="use the same group_size for map_to_units and for what is shared",
            )


def leaders_only(leaves: Iterable[Leaf], tree: Tree) -> None:
    """What every member of a set does, and others see, only the leader does."""
    if tree.set_size == 1:
        return
    first = tree.members.of(tree.set_size) < 1
    for leaf in leaves:
        for guarded in leaf.stmts if leaf.group == 1 else ():
            stmt = guarded.stmt
            if isinstance(stmt, tirx.BufferStore) and tree.level(stmt.buffer) != "reg":
                guarded.conditions = (first, *guarded.conditions)


def check_same_for_set(leaf: Leaf, tree: Tree, loops: Sequence[TreeLoop]) -> None:
    """What members share is the same for all units of the set, since each does its part for all of them.

    Raises
    ------
    uir_tvm.errors.ExtractionError
        An index or a condition tells units of a set apart by more than their number within it.
    """
    if leaf.group == 1 or tree.set_size > 1 or tree.parallel is None:
        return
    size = leaf.group
    units = tree.num_groups * tree.num_units
    env: dict[Any, Affine] = {tree.parallel.var: var(OWNER) * size + var(WITHIN)}
    extents = {OWNER: units // size, WITHIN: size, "member ": size}
    env[tree.members.of(size)] = var("member ")
    for k, loop in enumerate((*loops, *leaf.loops)):
        env[loop.var], extents[f"loop {k}"] = var(f"loop {k}") + loop.start, loop.extent
    env |= {variable: size.expr for variable, size in tree.sizes.items()}
    space = Space(extents | {str(size.name): size for size in tree.sizes.values()})
    converter = AffineConverter(env, tree.bindings, space)
    parts = [index for _, indices, _ in accesses_of(leaf) for index in indices]
    if not any(_tells_apart(part, converter) for part in parts) and not any(
        _condition_tells_apart(c, converter) for g in leaf.stmts for c in g.conditions
    ):
        return
    refuse(
        f"Sets of {size} units share work that differs from unit to unit.",
        leaf.block,
        leaf.stmts[0].stmt,
        need=f"indices that depend on the parallel loop only by its quotient by {size}",
        remedy="give map_to_units the same group_size, or share what all units of the group read alike",
    )


def _tells_apart(index: Any, converter: AffineConverter) -> bool:
    try:
        return WITHIN in converter.convert(index).variables()
    except NotAffineError:
        # an index that is data: the index's own indices are among the accesses
        return False


def _condition_tells_apart(condition: Any, converter: AffineConverter) -> bool:
    try:
        return any(WITHIN in atom.expr.variables() for atom in conjunction(condition, converter))
    except NotABoxError:
        return True
