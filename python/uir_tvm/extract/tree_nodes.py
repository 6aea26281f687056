# SPDX-License-Identifier: Apache-2.0
"""A PrimFunc taken apart: serial loops over leaf nests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from tvm import tirx

from ..igraph.affine import Affine
from ..igraph.space import Size

#: Scope of a buffer -> level of memory.
LEVELS = {"global": "dram", "shared": "sram", "shared.dyn": "sram", "local": "reg", "": "dram"}


@attrs.define(eq=False)
class TreeLoop:
    """One loop of the PrimFunc: ``var`` runs over ``[start, start + extent)``.

    ``serial`` says that a schedule wants it as a loop of the loop tree; ``raw`` that it lies inside
    of its block, so that no iteration variable vouches for its iterations' independence; ``pipeline``
    how many of its iterations are to be in flight (0: nothing is asked); ``group`` above 1 that the
    units of a set of that size run one iteration each.
    """

    var: Any
    start: int
    extent: int
    serial: bool = False
    raw: bool = False
    pipeline: int = 0
    group: int = 1


@attrs.define(eq=False)
class Guarded:
    """One statement (BufferStore, or Bind whose value is computed once) under conditions."""

    stmt: Any
    conditions: tuple[Any, ...] = ()


@attrs.frozen
class GroupForm:
    """The iOp of group scope that a leaf becomes.

    Attributes
    ----------
    kind : ``reduce`` or ``broadcast``.
    op : the operation of a reduce.
    size : how many units it joins.
    everyone : whether all units have the result, or the first of each set only.
    """

    kind: str
    op: str
    size: int
    everyone: bool


@attrs.define(eq=False)
class Leaf:
    """Straight-line statements under loops, outermost first.

    ``group`` above 1 says that each unit of a set of that size does a part of it.
    """

    block: str
    stmts: list[Guarded]
    loops: list[TreeLoop] = attrs.field(factory=list)
    annotations: dict[str, Any] = attrs.field(factory=dict)
    in_block: bool = False
    group: int = 1
    form: GroupForm | None = None

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


class Members:
    """The variables that number the units within sets: one for each size of set."""

    def __init__(self) -> None:
        self.variables: dict[int, Any] = {}

    def of(self, size: int) -> Any:
        """The TIR variable that stands for ``pid % size``."""
        if size not in self.variables:
            self.variables[size] = tirx.Var(f"member{size}", "int32")
        return self.variables[size]


@attrs.define(eq=False)
class Tree:
    """A PrimFunc taken apart.

    Attributes
    ----------
    set_size : how many units one iteration of the parallel loop belongs to.
    members : the variables that number the units of sets.
    levels : levels of buffers that are not those of their scopes.
    vector_bytes : bytes of a unit's vectors; 0: as the hardware has them.
    little_work : up to so much one thread does alone, where sizes decide how many units there are; 0: none.
    sizes : what is known of the variables in the parameters' shapes.
    groups : the number of groups where sizes decide it; ``num_groups`` is then the greatest.
    """

    body: list[Any]
    bindings: dict[Any, Any]
    buffers: list[Any]
    parallel: TreeLoop | None
    num_groups: int
    num_units: int
    set_size: int = 1
    members: Members = attrs.field(factory=Members)
    levels: dict[Any, str] = attrs.field(factory=dict)
    vector_bytes: int = 0
    little_work: int = 0
    sizes: Mapping[Any, Size] = attrs.field(factory=dict)
    groups: Affine | None = None

    def level(self, buffer: Any) -> str | None:
        """The level of a buffer; None for a scope that no level has."""
        return self.levels.get(buffer) or LEVELS.get(str(buffer.scope()))


def pipeline_attrs(stages: int) -> dict[str, int]:
    """The attributes of a loop of the graph of which that many iterations are to be in flight."""
    return {"pipeline": stages} if stages else {}
