# SPDX-License-Identifier: Apache-2.0
"""Relax operators as TE, where TVM's own lowering is missing, inexact or slow."""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tvm
from tvm import relax, te, tirx, topi

from ..frontend.relax_view import axes_of, is_constant
from ..frontend.rules.rewriter import recall
from ..target_facts import Facts
from .attention import ATTENTION, Attention
from .band import BAND, Band
from .empty_stores import without_empty_stores
from .extrema import MAXIMUM, MINIMUM, legalize_average_pool, legalize_max_pool
from .offsets import without_offsets
from .op_kinds import PACKED_PRODUCT
from .program import Op
from .quantized_products import legalize_packed
from .row_expressions import RowReductions, group_norm, layer_norm, log_softmax, rms_norm, softmax, sum_dtype
from .scatter import legalize_scatter_elements
from .typed_rules import typed_rules
from .update_rows import UPDATE, legalize_update

#: Kind of hardware -> whether its tanh is made of exponentials: there a sigmoid takes fewer instructions.
BY_POWERS: Mapping[str, bool] = Facts("tanh_by_powers")
#: The same -> whether its vectors compare floats alone.
FLOAT_PLACES: Mapping[str, bool] = Facts("float_places")
_KEYS: contextvars.ContextVar[frozenset[str]] = contextvars.ContextVar("keys", default=frozenset())


@contextlib.contextmanager
def lowering_for(keys: Iterable[str]) -> Iterator[None]:
    """Lower operators inside as suits the target of these keys."""
    token = _KEYS.set(frozenset(keys))
    try:
        yield
    finally:
        _KEYS.reset(token)


def _holds(fact: Mapping[str, bool]) -> bool:
    """Whether a fact holds for the target that operators are lowered for."""
    return any(fact.get(key, False) for key in _KEYS.get())


def _axes(call: tvm.ir.Call) -> tuple[int, ...]:
    return axes_of(list(call.attrs.axes), call.args[0].ty.ndim)


def _legalize_softmax(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    return builder.call_te(softmax, call.args[0], int(call.attrs.axis), primfunc_name_hint="softmax")


def _legalize_log_softmax(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    axis = int(call.attrs.axis)
    return builder.call_te(log_softmax, call.args[0], axis, primfunc_name_hint="log_softmax")


def _legalize_group_norm(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """Of channels in the second dimension, over all that follow; else TVM's own."""
    x, gamma, beta = call.args
    attrs, rank = call.attrs, call.args[0].ty.ndim
    if int(attrs.channel_axis) % rank != 1 or axes_of(list(attrs.axes), rank) != tuple(range(2, rank)):
        return builder.call_te(
            topi.nn.group_norm,
            x,
            gamma,
            beta,
            attrs.num_groups,
            attrs.channel_axis,
            attrs.axes,
            attrs.epsilon,
        )

    groups, epsilon = int(attrs.num_groups), float(attrs.epsilon)
    return _legalize_norm(
        builder, call, lambda x, gamma, beta: group_norm(x, gamma, beta, groups, epsilon), "group_norm"
    )


def _legalize_layer_norm(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    axes, epsilon = _axes(call), float(call.attrs.epsilon)
    return _legalize_norm(
        builder, call, lambda x, gamma, beta: layer_norm(x, gamma, beta, axes, epsilon), "layer_norm"
    )


def _legalize_norm(
    builder: relax.BlockBuilder, call: tvm.ir.Call, norm: Callable[..., te.Tensor], name: str
) -> tvm.ir.Expr:
    """norm(x, gamma, beta), with None for what the operator is asked to leave out."""
    scale, center = bool(call.attrs.scale), bool(call.attrs.center)

    def compute(x: te.Tensor, gamma: te.Tensor, beta: te.Tensor) -> te.Tensor:
        return norm(x, gamma if scale else None, beta if center else None)

    return builder.call_te(compute, *call.args, primfunc_name_hint=name)


def _legalize_rms_norm(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    x, gamma = call.args
    epsilon = float(call.attrs.epsilon)
    return builder.call_te(
        lambda x, gamma: rms_norm(x, gamma, _axes(call), epsilon), x, gamma, primfunc_name_hint="rms_norm"
    )


def _legalize_extremum(reducer: Any, name: str) -> Callable[[relax.BlockBuilder, tvm.ir.Call], tvm.ir.Expr]:
    def legalize_call(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
        def compute(x: te.Tensor) -> te.Tensor:
            rows = RowReductions(x, axes_of(call.attrs.axis, len(x.shape)))
            return rows.reduce(lambda *i: x(*i), reducer, name, keepdims=bool(call.attrs.keepdims))

        return builder.call_te(compute, call.args[0], primfunc_name_hint=name)

    return legalize_call


def _legalize_take(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """Rows of a table; every index must be that of a row (the iGraph's gather reads nothing for others)."""
    data, indices = call.args
    axis = 0 if call.attrs.axis is None else int(call.attrs.axis) % data.ty.ndim
    if call.attrs.axis is None or str(call.attrs.mode) != "fast":
        return builder.call_te(topi.take, data, indices, call.attrs.axis, mode=call.attrs.mode)

    def compute(data: te.Tensor, indices: te.Tensor) -> te.Tensor:
        rank = len(indices.shape)

        def element(*i: Any) -> Any:
            return data(*i[:axis], indices(*i[axis : axis + rank]), *i[axis + rank :])

        return te.compute([*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]], element, name="take")

    return builder.call_te(compute, data, indices, primfunc_name_hint="take")


def _legalize_power(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """Powers of bfloat16 by float32, as TVM's power takes no other narrow float."""
    lowered = call.op.get_attr("FLegalize")
    dtype = str(call.ty.dtype)
    if dtype != "bfloat16":
        return lowered(builder, call)

    numbers = [_number(arg) for arg in call.args]  # a kernel holds numbers, not constant tensors
    tensors = [arg for arg, number in zip(call.args, numbers, strict=True) if number is None]

    def compute(*given: te.Tensor) -> te.Tensor:
        rest = iter(given)
        wide = [
            topi.cast(next(rest), "float32") if number is None else tirx.const(number, "float32")
            for number in numbers
        ]
        return topi.cast(topi.power(*wide), dtype)

    return builder.call_te(compute, *tensors, primfunc_name_hint="power")


def _gelu(value: Any, wide: str) -> Any:
    """0.5 x (1 + erf(x / sqrt(2)))."""
    return value * (tirx.erf(value * tirx.const(math.sqrt(0.5), wide)) * 0.5 + 0.5)


def _gelu_tanh(value: Any, wide: str) -> Any:
    """0.5 x (1 + tanh(u)), or the same as x * sigmoid(2 u) for targets of `BY_POWERS`."""
    first, third = (tirx.const(factor * math.sqrt(2 / math.pi), wide) for factor in (1.0, 0.044715))
    u = value * (value * value * third + first)
    if _holds(BY_POWERS):
        return value * tirx.sigmoid(u + u)
    return value * (tirx.tanh(u) * 0.5 + 0.5)


def _legalize_gelu(
    function: Callable[[Any, str], Any], name: str, by_powers: bool = False
) -> Callable[[relax.BlockBuilder, tvm.ir.Call], tvm.ir.Expr]:
    """Narrow floats in float32, rounded once, with ``by_powers`` all where tanh is made of powers."""

    def legalize_call(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
        dtype = str(call.ty.dtype)
        wide = sum_dtype(dtype)
        if wide == dtype and not (by_powers and _holds(BY_POWERS)):
            return call.op.get_attr("FLegalize")(builder, call)

        def compute(x: te.Tensor) -> te.Tensor:
            return te.compute(x.shape, lambda *i: function(x(*i).astype(wide), wide).astype(dtype), name=name)

        return builder.call_te(compute, call.args[0], primfunc_name_hint=name)

    return legalize_call


def _number(arg: tvm.ir.Expr) -> float | None:
    """The number that a constant argument of one element is; None for others."""
    if not is_constant(arg):
        return None
    array = arg.value.numpy()
    return float(array.reshape(-1)[0]) if array.size == 1 else None


def _legalize_where(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """A select on the condition itself (TVM's compares it as an integer)."""
    condition, *values = call.args
    same = all(tuple(arg.ty.shape.values) == tuple(call.ty.shape.values) for arg in call.args)
    if not same or str(condition.ty.dtype) != "bool":
        return builder.call_te(topi.where, *call.args)

    def compute(condition: te.Tensor, yes: te.Tensor, no: te.Tensor) -> te.Tensor:
        return te.compute(
            condition.shape, lambda *i: tirx.Select(condition(*i), yes(*i), no(*i)), name="where"
        )

    return builder.call_te(compute, condition, *values, primfunc_name_hint="where")


def _legalize_contraction(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """Products of narrow floats are summed in the wide dtype and rounded once."""
    lowered = call.op.get_attr("FLegalize")
    dtype = str(call.ty.dtype)
    wide = sum_dtype(dtype)
    if wide == dtype:
        return lowered(builder, call)
    product = builder.normalize(recall(call, call.args, out_dtype=wide))
    return builder.call_te(
        lambda x: topi.cast(x, dtype), builder.emit(lowered(builder, product)), primfunc_name_hint="cast"
    )


def _legalize_fma(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """a * b + c, for which TVM has no rule."""
    return builder.call_te(
        lambda a, b, c: topi.add(topi.multiply(a, b), c), *call.args, primfunc_name_hint="ewise_fma"
    )


def _legalize_arange(builder: relax.BlockBuilder, call: tvm.ir.Call) -> tvm.ir.Expr:
    """start + i * step, floats as NumPy has them; TVM's rule makes a constant, which no kernel holds."""
    start, _, step = call.args
    dtype = str(call.ty.dtype)
    wide = "float64" if "float" in dtype else dtype

    def compute() -> te.Tensor:
        first, distance = (number.astype(wide) for number in (start, step))
        return te.compute(
            call.ty.shape.values, lambda i: (first + i.astype(wide) * distance).astype(dtype), name="arange"
        )

    return builder.call_te(compute, primfunc_name_hint="arange")


#: Operators whose attributes say in which dtype they sum products.
SUMS_OF_PRODUCTS = (
    "relax.matmul",
    *(f"relax.nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")),
)

OVERRIDES: dict[str, Callable[[relax.BlockBuilder, tvm.ir.Call], tvm.ir.Expr]] = {
    "relax.arange": _legalize_arange,
    "relax.ewise_fma": _legalize_fma,
    **dict.fromkeys(SUMS_OF_PRODUCTS, _legalize_contraction),
    "relax.nn.softmax": _legalize_softmax,
    "relax.nn.log_softmax": _legalize_log_softmax,
    "relax.nn.group_norm": _legalize_group_norm,
    "relax.nn.layer_norm": _legalize_layer_norm,
    "relax.nn.rms_norm": _legalize_rms_norm,
    "relax.max": _legalize_extremum(MAXIMUM, "max"),
    "relax.min": _legalize_extremum(MINIMUM, "min"),
    "relax.take": _legalize_take,
    "relax.nn.gelu": _legalize_gelu(_gelu, "gelu"),
    "relax.nn.gelu_tanh": _legalize_gelu(_gelu_tanh, "gelu_tanh", by_powers=True),
    "relax.power": _legalize_power,
    "relax.where": _legalize_where,
    **{f"relax.nn.max_pool{rank}d": legalize_max_pool for rank in (1, 2, 3)},
    **{f"relax.nn.avg_pool{rank}d": legalize_average_pool for rank in (1, 2, 3)},
    "relax.scatter_elements": legalize_scatter_elements,
}


def with_operands(call: tvm.ir.Call, operands: list[tvm.ir.Expr]) -> tvm.ir.Call:
    """The call with other tensors."""
    rest = iter(operands)
    args: list[tvm.ir.Expr] = []
    for arg in call.args:
        if isinstance(arg.ty, relax.TensorType):
            args.append(next(rest))
        elif holds_tensors(arg):
            args.append(relax.Tuple([next(rest) for _ in arg.ty.fields]))
        else:
            args.append(arg)
    return relax.Call(call.op, args, call.attrs, call.ty_args)


def holds_tensors(arg: tvm.ir.Expr) -> bool:
    """A tuple of tensors (one of numbers is an attribute in disguise)."""
    return isinstance(arg.ty, relax.TupleType) and any(isinstance(f, relax.TensorType) for f in arg.ty.fields)


def _copy(builder: relax.BlockBuilder, op: Op, operands: list[tvm.ir.Expr]) -> tvm.ir.Expr:
    return builder.emit_te(topi.identity, operands[0], primfunc_name_hint="copy")


def _safe_softmax(builder: relax.BlockBuilder, op: Op, operands: list[tvm.ir.Expr]) -> tvm.ir.Expr:
    return builder.emit_te(
        lambda x: softmax(x, -1, safe=True), operands[0], primfunc_name_hint="safe_softmax"
    )


def _band(builder: relax.BlockBuilder, op: Op, operands: list[tvm.ir.Expr]) -> tvm.ir.Expr:
    band: Band = op.attrs["band"]
    in_floats = _holds(FLOAT_PLACES) and band.is_exact(*op.shape[-2:])
    return builder.emit_te(lambda x: band.tensor(x, in_floats), operands[0], primfunc_name_hint="band")


def _attention(builder: relax.BlockBuilder, op: Op, operands: list[tvm.ir.Expr]) -> tvm.ir.Expr:
    """Scores, softmax and sums in the wide dtype; the weights as narrow as the values."""
    found: Attention = op.attrs["attention"]
    query, key, value, *masks = operands
    narrow = str(value.ty.dtype)
    wide = sum_dtype(narrow)
    scores = builder.emit(relax.op.matmul(query, key, out_dtype=wide))
    rest = iter(masks)
    for step in found.steps:
        if step.band is not None:
            scores = builder.emit_te(step.band.tensor, scores, primfunc_name_hint="band")
            continue
        flowing = [scores if view is None else _widened(builder, next(rest), wide) for view in step.operands]
        if step.name != "astype":
            scores = builder.emit(with_operands(step.call, flowing))
    weights = builder.emit_te(lambda x: softmax(x, -1, found.safe), scores, primfunc_name_hint="softmax")
    result = builder.emit(relax.op.matmul(_cast(builder, weights, narrow), value, out_dtype=wide))
    result = _cast(builder, result, narrow)
    order = op.attrs["order"]
    return result if order == tuple(sorted(order)) else builder.emit(relax.op.permute_dims(result, order))


def _cast(builder: relax.BlockBuilder, value: tvm.ir.Expr, dtype: str) -> tvm.ir.Expr:
    return value if str(value.ty.dtype) == dtype else builder.emit(relax.op.astype(value, dtype))


def _widened(builder: relax.BlockBuilder, mask: tvm.ir.Expr, wide: str) -> tvm.ir.Expr:
    """A number or mask beside wide scores; conditions stay what they are."""
    return _cast(builder, mask, wide) if "float" in str(mask.ty.dtype) else mask


# Operators of the kernel graph that Relax does not have.
OWN_OPS: dict[str, Callable[[relax.BlockBuilder, Op, list[tvm.ir.Expr]], tvm.ir.Expr]] = {
    "copy": _copy,
    "uir.safe_softmax": _safe_softmax,
    ATTENTION: _attention,
    BAND: _band,
    UPDATE: legalize_update,
    PACKED_PRODUCT: legalize_packed,
}


def legalize(mod: tvm.IRModule, skip: Sequence[str] = ()) -> tvm.IRModule:
    """Lower every Relax operator of a module to call_tir, by `OVERRIDES` before TVM's own rules.

    Parameters
    ----------
    mod : tvm.IRModule
    skip : sequence of str
        Operators that stay, with their prefix.
    """
    with tvm.target.Target("llvm"):  # sorts are lowered for a target; the result runs on the host
        if _calls(mod, "relax.multinomial_from_uniform"):
            mod = relax.backend.DispatchSampling()(mod)
        mod = relax.backend.DispatchSortScan()(mod)
    mod = relax.transform.LegalizeOps({**typed_rules(), **OVERRIDES}, skip_ops=list(skip))(mod)
    return without_empty_stores(without_offsets(mod))


def _calls(mod: tvm.IRModule, name: str) -> bool:
    """Whether a binding of a module calls an operator."""
    return any(
        isinstance(binding.value, tvm.ir.Call) and getattr(binding.value.op, "name", "") == name
        for _, function in mod.functions_items()
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr)
        for block in function.body.blocks
        for binding in block.bindings
    )
