# SPDX-License-Identifier: Apache-2.0
"""Recurrences as calls of the library."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from ..frontend.recurrence import recurrence_of
from ..frontend.relax_view import dtype_of
from ..library.attrs import OperandLayout
from ..library.cpu import pack_recurrence
from ..library.library_tables import LibraryTable
from ..library.recurrence import RecurrenceAttrs
from .program import Op, Program, Value


def takes(call: Any, table: LibraryTable) -> bool:
    """Whether a library computes the recurrence of a Relax call."""
    return table.takes("recurrence", dtype_of(call.args[1]))


def recurrence_call(
    program: Program, op: Op, table: LibraryTable
) -> tuple[str, RecurrenceAttrs, list[Value]]:
    """What the library is called with, as `library_call.library_call` says it.

    Parameters
    ----------
    program : Program
        Gets the packed weight as a constant.
    op : Op
        ``recurrence``, after `storage.place`.
    table : LibraryTable
    """
    found = recurrence_of(op.call)
    weight = op.operands[1]
    steps, batch, hidden = op.shape
    strides = weight.layout.strides()
    assert strides is not None, op
    attributes = RecurrenceAttrs(
        cell=found.cell,
        steps=steps,
        batch=batch,
        hidden=hidden,
        reverse=found.reverse,
        weight=OperandLayout(strides, weight.layout.offset),
    )
    value = weight.base
    if table.packs and value.constant is not None:
        value = program.constant(pack_recurrence(value.array, attributes), "packed")
        attributes = evolve(attributes, packed=True)
    operands = [op.operands[0].base, value, *(view.base for view in op.operands[2:])]
    return table.functions["recurrence"], attributes, operands
