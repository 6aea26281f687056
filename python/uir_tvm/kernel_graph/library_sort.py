# SPDX-License-Identifier: Apache-2.0
"""Sorts as calls of the library."""

from __future__ import annotations

from math import prod
from typing import Any

import tvm
from tvm import relax

from ..frontend.normalize import rewritten
from ..frontend.relax_view import dtype_of, op_name
from ..frontend.rules import Rewriter
from ..frontend.sorting import SortOrder, order_of, sort_call
from ..library.library_tables import LibraryTable
from ..library.sort_attrs import SortAttrs
from .op_kinds import LIBRARY_SORT
from .program import Op, Program, Value

#: In Relax.
SORTS = ("argsort", "sort", "topk")
#: Of the places that it writes.
INDEX_DTYPES = frozenset({"int32", "int64"})


def takes_sort(call: Any, table: LibraryTable) -> bool:
    """Whether a library computes the sort of a Relax call."""
    return table.takes(LIBRARY_SORT, dtype_of(call.args[1]))


def take_sorts(mod: tvm.IRModule, table: LibraryTable) -> tvm.IRModule:
    """Relax's own sorts as calls of the library.

    Before: v, i = topk(x, 3).  After: v, i = call_pure_packed("uir.sort", x, ...).

    Parameters
    ----------
    mod : tvm.IRModule
        Normalised.
    table : LibraryTable
    """
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    if LIBRARY_SORT not in table.functions or not any(op_name(each.value) in SORTS for each in bindings):
        return mod

    def rule(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
        x, order = call.args[0], _order(call)
        types = list(call.ty.fields) if isinstance(call.ty, relax.TupleType) else [call.ty]
        index_dtype = str(types[-1].dtype) if order.indices else "int64"
        if not table.takes(LIBRARY_SORT, dtype_of(x)) or index_dtype not in INDEX_DTYPES or not x.ty.ndim:
            return None
        return rewriter.emit(sort_call(x, order, types[0].shape.values[order.axis], index_dtype))

    return rewritten(mod, dict.fromkeys(SORTS, (rule,)))


def _order(call: tvm.ir.Call) -> SortOrder:
    """What an operator of Relax computes."""
    given, name = call.attrs, op_name(call)
    axis = int(given.axis) % max(call.args[0].ty.ndim, 1)
    if name == "topk":
        wanted = str(given.ret_type)
        return SortOrder(axis, bool(given.largest), wanted != "indices", wanted != "values")
    return SortOrder(axis, bool(given.descending), name == "sort", name == "argsort")


def library_sort(program: Program, op: Op, table: LibraryTable) -> tuple[str, SortAttrs, list[Value]]:
    """What the library is called with, as `library_call.library_call` says it."""
    assert op.call is not None
    order, shape = order_of(op.call), op.operands[0].shape
    attributes = SortAttrs(
        outer=prod(shape[: order.axis]),
        length=shape[order.axis],
        inner=prod(shape[order.axis + 1 :]),
        count=op.results[0].shape[order.axis],
        descending=order.descending,
        values=order.values,
        indices=order.indices,
    )
    return table.functions[LIBRARY_SORT], attributes, [op.operands[0].base]
