# SPDX-License-Identifier: Apache-2.0
"""Attention as a library operator: over keys kept from call to call, and where the library has better units.

Keys that are kept have room for more tokens than there are, and a mask says which count: the library reads no
others, where a kernel for all of them reads the whole room.  Many rows are the library's where it multiplies
them with units of the CPU that kernels of ours do not use.
"""

from __future__ import annotations

import math
from typing import Any

from ..library.attention_attrs import AttentionAttrs
from ..library.attrs import OperandLayout
from ..library.library_tables import LibraryTable, TiledAttention
from ..options import ATTENTIONS
from ..sizes.open_arithmetic import is_one, is_open, representative
from .attention import ATTENTION, Attention
from .band import Band
from .geometry import BATCH_AXES, common_atoms
from .op_kinds import LIBRARY_ATTENTION
from .program import Op, Program, Value, View
from .strided_views import Layout
from .update_rows import is_updated

#: What `CompileOptions.attention` says where a kernel of ours computes all of it.
KERNEL = ATTENTIONS[1]


def match_attention(program: Program, table: LibraryTable) -> None:
    """Give the library the attentions whose keys are rows of state, and those that it computes sooner.

    Before: o = uir.attention(q, k, v, mask), where k = uir.update(...).  After: o = library.attention(...),
    whose attribute ``attributes`` is what the library is called with.

    Parameters
    ----------
    program : Program
        Changed in place; after `kept_state.keep_state`.
    table : LibraryTable
        Its ``tiled_attention`` says what the library computes sooner, one or the other; nothing where
        kernels are asked for.
    """
    for op in program.ops if table.attends != KERNEL else ():
        if op.name != ATTENTION or not table.takes("attention", op.result.dtype):
            continue
        sooner = any(_is_sooner(op, tiled) for tiled in table.tiled_attention)
        if not (is_updated(op.operands[1].base) or sooner):
            continue
        attributes = _attributes(op)
        if attributes is not None:
            op.operands = [view for view in op.operands if view.scalar is None]  # factors are attributes
            op.name, op.attrs = LIBRARY_ATTENTION, {"attributes": attributes, "epilogue": ()}


def _is_sooner(op: Op, tiled: TiledAttention) -> bool:
    """Whether rows and keys are as many as the library's units want; of open ones their representatives."""
    if op.result.dtype not in tiled.dtypes:
        return False
    found: Attention = op.attrs["attention"]
    rows, keys = representative(found.query.shape[-2]), representative(found.key.shape[-1])
    return rows >= tiled.min_rows and keys >= tiled.min_keys


def attention_call(program: Program, op: Op, table: LibraryTable) -> tuple[str, AttentionAttrs, list[Value]]:
    """What the library is called with, as `library_call.library_call` says it."""
    return table.functions["attention"], op.attrs["attributes"], [view.base for view in op.operands]


def _attributes(op: Op) -> AttentionAttrs | None:
    """None where it computes something else between the products, or lies as the library does not read it."""
    found: Attention = op.attrs["attention"]
    query, key, value, *masks = op.operands
    steps = _steps(found)
    if steps is None or len({view.base.dtype for view in op.operands} | {op.result.dtype}) != 1:
        return None
    order = op.attrs["order"]
    back = [order.index(axis) for axis in range(len(order))]
    layouts = [query.layout, _turned(key.layout), value.layout, op.result.view().layout.permute(back)]
    layouts += [view.layout for view in masks if view.scalar is None]
    masked = len(layouts) == 5
    batch = common_atoms([[atom for dim in layout.dims[:-2] for atom in dim] for layout in layouts])
    if batch is None or len(batch) > BATCH_AXES:
        return None
    made = []
    for number, layout in enumerate(layouts):
        rows, columns = (_stride(layout, axis) for axis in (-2, -1))
        if rows is None or columns is None or not (is_one(columns) or is_one(layout.shape[-1])):
            return None
        made.append(OperandLayout([*(axis.strides[number] for axis in batch), rows, 1], layout.offset))
    nothing = OperandLayout([0] * (len(batch) + 2))
    return AttentionAttrs(
        batch=[axis.extent for axis in batch],
        m=query.shape[-2],
        n=key.shape[-1],
        d=query.shape[-1],
        e=value.shape[-1],
        query=made[0],
        key=made[1],
        value=made[2],
        out=made[3],
        mask=made[4] if masked else nothing,
        scale=steps[0],
        masked=masked,
        safe=found.safe,
        first=steps[1].first,
        last=steps[1].last,
    )


def _steps(found: Attention) -> tuple[float, Band] | None:
    """The factor of scores to which at most a mask is added, and which keys are open; None of other steps."""
    scale, band, added = 1.0, Band(), False
    for step in found.steps:
        if step.band is not None:
            band = band.both(step.band)
            continue
        others: list[View] = [view for view in step.operands if view is not None]
        number: Any = others[0].scalar if len(others) == 1 else None
        if added or len(others) != 1:
            return None
        if step.name == "add" and number is None:
            added = True
        elif step.name in ("multiply", "divide") and isinstance(number, float) and step.operands[0] is None:
            if number == 0:
                return None
            scale = scale * number if step.name == "multiply" else scale / number
        else:
            return None
    # what is closed must stay so: -inf times a negative factor opens it
    if is_open((band.first, band.last)):
        return None  # the library takes numbers
    return (scale, band) if math.isfinite(scale) and (scale > 0 or band == Band()) else None


def _turned(layout: Layout) -> Layout:
    axes = list(range(len(layout.dims)))
    return layout.permute([*axes[:-2], axes[-1], axes[-2]])


def _stride(layout: Layout, axis: int) -> Any:
    """The stride of a dimension that has one (1 where its extent is 1, as any will do)."""
    dim = layout.dims[axis]
    return None if len(dim) > 1 else dim[0][1] if dim else 1
