# SPDX-License-Identifier: Apache-2.0
"""A PrimFunc taken apart: serial loops over leaf nests."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.define(eq=False)
class TreeLoop:
    """One loop of the PrimFunc: ``var`` runs over ``[start, start + extent)``.

    ``serial`` says that a schedule wants it as a loop of the loop tree; ``raw`` that it lies inside
    of its block, so that no iteration variable vouches for its iterations' independence.
    """

    var: Any
    start: int
    extent: int
    serial: bool = False
    raw: bool = False


@attrs.define(eq=False)
class Guarded:
    """One statement (BufferStore, or Bind whose value is computed once) under conditions."""

    stmt: Any
    conditions: tuple[Any, ...] = ()


@attrs.define(eq=False)
class Leaf:
    """Straight-line statements under loops, outermost first."""

    block: str
    stmts: list[Guarded]
    loops: list[TreeLoop] = attrs.field(factory=list)
    annotations: dict[str, Any] = attrs.field(factory=dict)
    in_block: bool = False

    def guard(self, condition: Any) -> None:
        """Put all statements under one more condition."""
        for guarded in self.stmts:
            guarded.conditions = (condition, *guarded.conditions)


@attrs.define(eq=False)
class Serial:
    """A loop of the loop tree."""

    loop: TreeLoop
    body: list[Any]


@attrs.define(eq=False)
class Pair:
    """An init and its update, which a loop outside of both may be distributed over."""

    init: Leaf
    update: Any


@attrs.define(eq=False)
class Tree:
    """A PrimFunc taken apart."""

    body: list[Any]
    bindings: dict[Any, Any]
    buffers: list[Any]
    parallel: TreeLoop | None
    num_groups: int
    num_units: int
