# SPDX-License-Identifier: Apache-2.0
"""TVM's rules of operators, held to the dtypes that the operators declare."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tvm
from tvm import relax, topi


@functools.cache
def typed_rules() -> dict[str, Callable[[relax.BlockBuilder, tvm.ir.Call], tvm.ir.Expr]]:
    """TVM's rules of all operators, their results in the dtypes that the operators declare.

    Some compute in float32 and leave the result so (batch normalisation of half precision).
    """
    names = [name for name in tvm.ir.Op.list_op_names() if str(name).startswith("relax.")]
    rules = {str(name): tvm.ir.Op.get(name).get_attr("FLegalize") for name in names}
    return {name: _typed(rule) for name, rule in rules.items() if rule is not None}


def _typed(
    rule: Callable[[relax.BlockBuilder, tvm.ir.Call], tvm.ir.Expr],
) -> Callable[[relax.BlockBuilder, tvm.ir.Call], tvm.ir.Expr]:
    def lower(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
        result = builder.normalize(rule(builder, call))
        wanted, made = _dtypes(call.ty), _dtypes(result.ty)
        if made == wanted or len(made) != len(wanted):
            return result
        value = builder.emit(result)
        if not isinstance(call.ty, relax.TupleType):
            return _cast_te(builder, value, wanted[0])
        fields = [builder.emit(relax.TupleGetItem(value, index)) for index in range(len(wanted))]
        return relax.Tuple(
            [builder.emit(_cast_te(builder, f, d)) for f, d in zip(fields, wanted, strict=True)]
        )

    return lower


def _dtypes(type_: tvm.ir.Type) -> tuple[str, ...]:
    """The dtypes of a tensor or of the tensors of a tuple."""
    fields = type_.fields if isinstance(type_, relax.TupleType) else [type_]
    return tuple(str(field.dtype) if isinstance(field, relax.TensorType) else "" for field in fields)


def _cast_te(builder: relax.BlockBuilder, value: tvm.ir.Expr, dtype: str) -> tvm.ir.Expr:
    if str(value.ty.dtype) == dtype:
        return value
    return builder.call_te(lambda x: topi.cast(x, dtype), value, primfunc_name_hint="cast")
