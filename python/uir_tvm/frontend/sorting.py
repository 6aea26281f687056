# SPDX-License-Identifier: Apache-2.0
"""Sorts as one call, which a library computes or `expand_sorts` writes as operators of TVM.

Equal elements keep their order, and NaN is the largest number, as in PyTorch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import tvm
import tvm_ffi
from tvm import relax

from .call_expander import expand_calls
from .relax_view import dtype_of, op_name, shape_of

#: The name that a call has in Relax; nothing is registered under it.
FUNCTION = "uir.sort"
#: In float64, beyond every float32: what stands for an infinity, and for NaN.
INFINITE, MISSING = 1e299, 1e300


@attrs.frozen
class SortOrder:
    """What a call computes: sorted elements along an axis, as many as its result has.

    Attributes
    ----------
    axis : int
    descending : bool
    values, indices : bool
        Which results there are, in this order.
    """

    axis: int
    descending: bool = False
    values: bool = True
    indices: bool = True

    def to_json(self) -> str:
        """As the last argument of a call."""
        return json.dumps(attrs.asdict(self))


def is_sort(call: Any) -> bool:
    """Whether an expression is the call of a sort."""
    return op_name(call) == "call_pure_packed" and str(call.args[0].global_symbol) == FUNCTION


def order_of(call: Any) -> SortOrder:
    """What a call computes."""
    return SortOrder(**json.loads(str(call.args[-1].value)))


def sort_call(x: Any, order: SortOrder, count: Any = None, index_dtype: str = "int64") -> Any:
    """The call.

    Parameters
    ----------
    x : Expr
    order : SortOrder
    count : int or PrimExpr, optional
        How many of the sorted elements; None: all.
    index_dtype : str
        ``int32`` or ``int64``.

    Returns
    -------
    Expr
        A tuple where there are values and indices.
    """
    shape = list(shape_of(x) or ())
    if count is not None:
        shape[order.axis] = count
    dtypes = [dtype_of(x)] * order.values + [index_dtype] * order.indices
    types = [relax.TensorType(shape, dtype) for dtype in dtypes]
    made = relax.TupleType(types) if len(types) > 1 else types[0]
    return relax.op.call_pure_packed(FUNCTION, x, tvm.ir.StringImm(order.to_json()), ty_args=made)


def expand_sorts(mod: tvm.IRModule, taken: Callable[[Any], bool] = lambda call: False) -> tvm.IRModule:
    """Write the calls of sorts in ``main`` as operators of TVM.

    Before: v, i = call_pure_packed("uir.sort", x, ...).  After: i = argsort(x) whose NaN are replaced,
    v = gather_elements(x, i).

    Parameters
    ----------
    mod : tvm.IRModule
        ``main`` is one dataflow block.
    taken : callable
        Of a call: whether it stays.
    """
    return expand_calls(mod, lambda call: is_sort(call) and not taken(call), _written)


def _written(builder: relax.BlockBuilder, call: Any, operands: list[Any]) -> Any:
    """The results of a call, by operators."""
    (x,), order, emit = operands, order_of(call), builder.emit
    types = list(call.ty.fields) if isinstance(call.ty, relax.TupleType) else [call.ty]
    index_dtype = str(types[-1].dtype) if order.indices else "int64"
    index = _indices(emit, x, order, index_dtype)
    count, length = types[0].shape.values[order.axis], x.ty.shape.values[order.axis]
    if not tvm_ffi.structural_equal(count, length):
        index = emit(relax.op.strided_slice(index, [order.axis], [0], [count]))
    results = [emit(relax.op.gather_elements(x, index, order.axis))] if order.values else []
    results += [index] if order.indices else []
    return relax.Tuple(results) if len(results) > 1 else results[0]


def _indices(emit: Any, x: Any, order: SortOrder, index_dtype: str) -> Any:
    """Indices that sort.

    TVM's sorts compare by ``<`` and leave a row that holds a NaN in any order.  Narrower floats are sorted as
    float64, where a finite number beyond all of theirs stands for an infinity and one further for NaN;
    float64 is sorted twice, at last by whether an element is NaN.
    """
    axis = order.axis

    def ordered(key: Any) -> Any:
        return emit(relax.op.argsort(key, axis, order.descending, index_dtype))

    dtype = dtype_of(x)
    if dtype == "bool":
        return ordered(emit(relax.op.astype(x, "int32")))
    if "float" not in str(dtype):
        return ordered(x)
    missing = emit(relax.op.isnan(x))
    if dtype == "float64":
        first = ordered(emit(relax.op.where(missing, relax.const(float("inf"), "float64"), x)))
        flags = emit(relax.op.astype(missing, "int32"))
        last = ordered(emit(relax.op.gather_elements(flags, first, axis)))
        return emit(relax.op.gather_elements(first, last, axis))
    wide = emit(relax.op.astype(x, "float64"))
    low, high, none = (relax.const(number, "float64") for number in (-INFINITE, INFINITE, MISSING))
    finite = emit(relax.op.maximum(emit(relax.op.minimum(wide, high)), low))
    return ordered(emit(relax.op.where(missing, none, finite)))
