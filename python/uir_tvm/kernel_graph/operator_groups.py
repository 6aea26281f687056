# SPDX-License-Identifier: Apache-2.0
"""Groups of operators that become one kernel, and the space in which all of a group's operators run."""

from __future__ import annotations

from typing import Literal

import attrs

from ..frontend.relax_view import axes_of
from ..heroes import hero
from ..sizes.open_arithmetic import is_many, structure
from .program import Op, View
from .strided_views import Layout

Role = Literal["full", "row", "reduce"] | int  # an int: feeds that operand of a concat


@attrs.frozen
class IterationSpace:
    """Iteration space: the full shape, and the axes along which rows run (none for elementwise kernels)."""

    shape: tuple[int, ...] = attrs.field(eq=structure)
    axes: tuple[int, ...] = ()

    @property
    def row_shape(self) -> tuple[int, ...]:
        """One element for each row."""
        return tuple(1 if axis in self.axes else extent for axis, extent in enumerate(self.shape))

    @property
    def trailing(self) -> bool:
        """Whether a row is one run of memory: its axes are the innermost ones."""
        live = [axis for axis, extent in enumerate(self.shape) if is_many(extent)]
        along = [axis for axis in live if axis in self.axes]
        return along == live[len(live) - len(along) :]

    def shape_of(self, role: Role) -> tuple[int, ...]:
        """The shape in which an operator of this role runs."""
        return self.row_shape if role == "row" else self.shape

    def reading(self, writer: Role, reader: Role) -> Layout | None:
        """How a reader of the group must see a writer's buffer; None where it cannot."""
        if isinstance(writer, int) or isinstance(reader, int):
            return None  # the parts of a concat are compared on their own
        if writer == "full":
            return None if reader == "row" else Layout.contiguous(self.shape)
        if reader == "reduce":
            return None
        rows = Layout.contiguous(self.row_shape)
        if reader == "row":
            return rows
        return rows.broadcast(self.shape) if self.trailing else None


@attrs.define(eq=False)
class OperatorGroup:
    """Operators of one kernel.

    Attributes
    ----------
    ops : list of Op
        In program order.
    hero : str
        What decides the kernel's schedule (`uir_tvm.heroes`).
    space : IterationSpace
    roles : dict
        Role of every operator.
    """

    ops: list[Op]
    hero: str = attrs.field(converter=hero)
    space: IterationSpace
    roles: dict[Op, Role]

    @property
    def name(self) -> str:
        """The operators' names, joined."""
        return "_".join(op.name.split(".")[-1] for op in self.ops)

    def writer(self, view: View) -> Op | None:
        """The operator of the group that computes what is read, if there is one."""
        op = view.base.producer
        return op if op is not None and op in self.roles else None

    def writes(self, view: View) -> bool:
        """Whether the group computes what is read."""
        return self.writer(view) is not None

    def external(self) -> list[View]:
        """Readings of what the group does not compute."""
        return [view for op in self.ops for view in op.operands if not self.writes(view)]


def _reduction_space(op: Op) -> IterationSpace:
    source = op.operands[0].shape
    assert op.call is not None
    return IterationSpace(source, axes_of(op.call.attrs.axis, len(source)))


def _row_space(op: Op) -> IterationSpace:
    assert op.call is not None
    attributes = op.call.attrs
    axes = attributes.axes if hasattr(attributes, "axes") else [attributes.axis]
    return IterationSpace(op.shape, axes_of(list(axes), len(op.shape)))


def singleton(op: Op) -> OperatorGroup:
    """A group of one operator."""
    kind = op.kind.kind
    if kind == "reduction":
        return OperatorGroup([op], "reduction", _reduction_space(op), {op: "reduce"})
    if kind == "normalization":
        return OperatorGroup([op], "normalization", _row_space(op), {op: "full"})
    return OperatorGroup([op], kind, IterationSpace(op.shape), {op: "full"})


def final_hero(group: OperatorGroup) -> str:
    """The hero of a complete group: a chain over rows is a normalization, a strided copy a transpose."""
    if group.hero == "reduction" and any(
        group.roles[op] == "full" and any(_from_row(group, view) for view in op.operands) for op in group.ops
    ):
        return "normalization"
    if group.hero == "elementwise" and _moves_columns(group):
        return "transpose"
    return group.hero


def _from_row(group: OperatorGroup, view: View) -> bool:
    """Whether a full operator reads a row's result."""
    writer = group.writer(view)
    return writer is not None and group.roles[writer] in ("row", "reduce")


def _moves_columns(group: OperatorGroup) -> bool:
    """Whether a large operand's innermost memory axis is not the innermost axis of the kernel."""
    live = [axis for axis, extent in enumerate(group.space.shape) if is_many(extent)]
    if not live:
        return False
    last = live[-1]
    for view in group.external():
        if view.shape != group.space.shape or view.layout.broadcasts():
            continue
        dim = view.layout.dims[last]
        if dim and dim[-1][1] != 1 and any(d and d[-1][1] == 1 for d in view.layout.dims):
            return True
    return False
