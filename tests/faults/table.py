# SPDX-License-Identifier: Apache-2.0
"""The table of faults: every kind, what it does, and the mutator that plants it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import attrs
from uir_tvm.igraph import IGraph

from . import memory_faults as memory
from . import slice_faults as slices
from . import sync_faults as syncs
from . import value_faults as values
from .edit import Plant


@attrs.frozen
class Fault:
    """One kind of fault.

    Attributes
    ----------
    kind, summary : str
        Its name on the command line, and what it does.
    plant : Callable[[IGraph, random.Random], Iterator[Plant]]
        (description, graph with one fault) for every place, in a random order; graphs that are equal to
        the original may be among them.
    ordering : bool
        Whether what goes wrong is the order of units, which no run of one unit after the other shows.
    """

    kind: str
    summary: str
    plant: Callable[[IGraph, random.Random], Iterator[Plant]]
    ordering: bool = False


#: Every kind by its name.
FAULTS: dict[str, Fault] = {
    fault.kind: fault
    for fault in (
        Fault("drop-sync", "a sync is missing", syncs.drop_sync, ordering=True),
        Fault("lower-sync", "a sync has a narrower scope", syncs.lower_sync, ordering=True),
        Fault("move-sync", "a sync stands across an iOp", syncs.move_sync, ordering=True),
        Fault("shift-row", "an offset is off by a row", slices.shift_row),
        Fault("shift-element", "an offset is off by an element", slices.shift_element),
        Fault("wrong-coefficient", "an offset follows a variable wrongly", slices.wrong_coefficient),
        Fault("widen", "a slice reaches past its valid range", slices.widen),
        Fault("narrow", "a slice ends early", slices.narrow),
        Fault("swap-strides", "row and column strides are exchanged", slices.swap_strides),
        Fault("shrink-pointer", "a pointer is too small", memory.shrink_pointer),
        Fault("reuse-register", "a register is written while it is live", memory.reuse_live_register),
        Fault("stale-register", "an operand is read from another register", memory.stale_register),
        Fault("single-buffer", "buffers of a pipeline are one, or off by one", memory.single_buffer),
        Fault("group-size", "a group has another size", memory.group_size),
        Fault("drop-init", "an initial value is missing", values.drop_init),
        Fault("wrong-pad", "padding or a fill has another value", values.wrong_pad),
        Fault("drop-iop", "an iOp is missing", values.drop_iop),
        Fault("wrong-op", "another operator, parameter or rounding", values.wrong_op),
        Fault("wrong-axis", "a reduction or broadcast along the other axis", values.wrong_axis),
        Fault("swap-operands", "operands in the wrong order", values.swap_operands),
        Fault("swap-iops", "two iOps in the wrong order", values.swap_iops),
        Fault("loop-extent", "a loop runs once more or less", values.loop_extent),
    )
}
