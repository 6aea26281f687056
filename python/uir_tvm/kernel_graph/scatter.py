# SPDX-License-Identifier: Apache-2.0
"""The lowering of ``relax.scatter_elements``: writes and reductions at indices along an axis."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T


def _larger(old: Any, new: Any) -> Any:
    """The larger; NaN of either."""
    return _kept(old, new, new > old)


def _smaller(old: Any, new: Any) -> Any:
    """The smaller; NaN of either."""
    return _kept(old, new, new < old)


def _kept(old: Any, new: Any, taken: Any) -> Any:
    dtype = str(new.ty.dtype)
    if dtype.startswith(("float", "bfloat")):
        taken = tirx.any(taken, tirx.isnan(new if dtype == "float64" else new.astype("float32")))
    return tirx.Select(taken, new, old)


#: Reduction -> (the element so far, an update) -> the element.
REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "mean": lambda old, new: (old + new) / 2,
    "max": _larger,
    "min": _smaller,
}


def legalize_scatter_elements(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """Copy the data, then apply the updates in their order along the axis, rows beside each other at once.

    TVM's rule addresses the data by the place of an update among the updates, which is another where they
    are fewer than the data along two axes or more on one side; and of a NaN and a number its extremes take
    either.
    """
    rank = call.args[0].ty.ndim
    axis, reduce = int(call.attrs.axis) % rank, REDUCTIONS[str(call.attrs.reduction)]

    def compute(data: te.Tensor, indices: te.Tensor, updates: te.Tensor) -> te.Tensor:
        result = tirx.decl_buffer(data.shape, data.dtype, "result")
        return te.extern(
            [data.shape],
            [data, indices, updates],
            lambda ins, outs: _body(ins[0], ins[1], ins[2], outs[0], axis, reduce),
            out_buffers=[result],
            name="scatter_elements",
            tag="scatter_elements",
        )

    return builder.call_te(compute, *call.args, primfunc_name_hint="scatter_elements")


def _body(
    data: Any, indices: Any, updates: Any, result: Any, axis: int, reduce: Callable[[Any, Any], Any]
) -> tirx.Stmt:
    sizes = [int(extent) for extent in data.ty.shape]
    counts = [int(extent) for extent in indices.ty.shape]
    beside = [count for position, count in enumerate(counts) if position != axis]
    with IRBuilder() as ib:
        with T.seq_scope():
            with T.parallel(0, prod(sizes)) as flat:
                place = _coordinates(flat, sizes)
                T.buffer_store(result, data[tuple(place)], place)
            with T.parallel(0, prod(beside)) as row:
                with T.serial(0, counts[axis]) as step:
                    update = _coordinates(row, beside)
                    update.insert(axis, step)
                    index = indices[tuple(update)]
                    index = tirx.Select(index < 0, index + sizes[axis], index)
                    place = [*update[:axis], index, *update[axis + 1 :]]
                    new = reduce(result[tuple(place)], updates[tuple(update)])
                    T.buffer_store(result, new, place)
        return ib.get()


def _coordinates(flat: Any, sizes: list[int]) -> list[Any]:
    """The coordinates of an element by its number in row-major order."""
    found: list[Any] = []
    for size in reversed(sizes):
        found.append(tirx.indexmod(flat, size))
        flat = tirx.indexdiv(flat, size)
    return found[::-1]
