# SPDX-License-Identifier: Apache-2.0
"""Models of float32 computed in float16 or bfloat16.

What takes and gives a model stays float32. Contractions read narrow operands, sum in float32 and round once;
what moves values, adds, activates or scales them down follows its operands; all other operators (norms,
softmax, sums, powers, quotients) compute in float32. A value that several operators read is narrow in memory,
and wide again where it is read.
"""

from __future__ import annotations

import attrs
import ml_dtypes
import numpy as np
import tvm
from tvm import relax

from ..frontend.normalize import count_uses, replace_main
from ..frontend.relax_view import address_of, array_of, dtype_of, is_constant, op_name
from ..frontend.rules.rewriter import recall
from ..function_scope import function_scope
from ..options import PRECISIONS

WIDE = "float32"
#: They read narrow operands.
CONTRACTIONS = frozenset(
    ("matmul", *(f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")))
)
#: Narrow where an operand is.
FOLLOWING = frozenset(
    "add broadcast_to concat dynamic_strided_slice expand_dims flatten flip gather_elements gather_nd "
    "negative nn.gelu nn.gelu_tanh nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.pad nn.relu nn.silu "
    "permute_dims repeat reshape sigmoid squeeze strided_slice take tanh tile where".split()
)


@attrs.define(eq=False)
class _Value:
    """A float32 value of the model: as it is computed, and as it lies in memory."""

    wide: tvm.ir.Expr | None
    narrow: tvm.ir.Expr | None
    uses: int


class _Narrowing:
    """Rebuilds a function operator by operator."""

    def __init__(self, builder: relax.BlockBuilder, dtype: str, uses: dict[int, int]) -> None:
        self._builder, self._dtype, self._uses = builder, dtype, uses
        self._values: dict[int, _Value] = {}
        self._others: dict[int, tvm.ir.Expr] = {}

    def bind(self, var: tvm.ir.Var, made: tvm.ir.Expr, exact: bool = False) -> None:
        """Enter the value of an old variable; an exact one is never rounded for its readers of float32."""
        if not _is_wide(var):
            self._others[address_of(var)] = made
            return
        uses = 1 if exact else self._uses.get(address_of(var), 0)
        narrow = dtype_of(made) == self._dtype
        self._values[address_of(var)] = _Value(None if narrow else made, made if narrow else None, uses)

    def wide(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        """An operand in float32."""
        if not _is_wide(expr):
            return self._other(expr)
        if not isinstance(expr, tvm.ir.Var):
            return expr
        value = self._values[address_of(expr)]
        if value.wide is None or value.uses > 1:
            # what several read is rounded for all of them, and lies narrow in memory
            value.wide, value.uses = self._cast(self.narrow(expr), WIDE), 1
        return value.wide

    def narrow(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        """An operand in the narrow dtype."""
        if not _is_wide(expr):
            return self._other(expr)
        if is_constant(expr):
            return relax.const(rounded(array_of(expr), self._dtype), self._dtype)
        value = self._values[address_of(expr)]
        if value.narrow is None:
            value.narrow = self._cast(value.wide, self._dtype)
        return value.narrow

    def call(self, call: tvm.ir.Call) -> tvm.ir.Expr:
        """An operator in its own precision."""
        name = op_name(call)
        follows = name in FOLLOWING or (name == "multiply" and any(map(_shrinks, call.args)))
        narrow = follows and any(self._is_narrow(arg) for arg in _flat(call.args))
        operand = self.narrow if narrow or name in CONTRACTIONS and self._fits(call) else self.wide
        args = [self._each(arg, operand) for arg in call.args]
        if operand == self.wide or name not in CONTRACTIONS:
            return relax.Call(call.op, args, call.attrs, call.ty_args)
        return recall(call, args, out_dtype=self._dtype)

    def other(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        """A tuple, a part of one, a result: in float32."""
        return self._each(expr, self.wide)

    def _fits(self, call: tvm.ir.Call) -> bool:
        """Whether a contraction is of float32, and no finite constant is beyond the narrow dtype."""
        if not all(_is_wide(each) for each in (*call.args, call)):
            return False
        limit = _greatest(self._dtype)
        return all(_largest(arg) <= limit for arg in call.args if is_constant(arg))

    def _is_narrow(self, expr: tvm.ir.Expr) -> bool:
        """Whether a value lies in the narrow dtype already, and is not known in float32."""
        value = self._values.get(address_of(expr)) if isinstance(expr, tvm.ir.Var) else None
        return value is not None and value.wide is None

    def _each(self, expr: tvm.ir.Expr, operand: object) -> tvm.ir.Expr:
        if isinstance(expr, tvm.ir.Tuple):
            return relax.Tuple([self._each(field, operand) for field in expr.fields])
        if isinstance(expr, tvm.ir.TupleGetItem):
            return relax.TupleGetItem(self._each(expr.tuple_value, operand), expr.index)
        return operand(expr)  # type: ignore[operator]

    def _other(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        return self._others.get(address_of(expr), expr) if isinstance(expr, tvm.ir.Var) else expr

    def _cast(self, expr: tvm.ir.Expr | None, dtype: str) -> tvm.ir.Expr:
        return self._builder.emit(relax.op.astype(expr, dtype))


def narrowed(mod: tvm.IRModule, precision: str) -> tvm.IRModule:
    """A normalised model whose contractions of float32 are of a narrower dtype.

    Before: y = matmul(x, w); z = softmax(y).  After, for float16: y = matmul(astype(x, float16), w'), of
    float16; z = softmax(astype(y, float32)).

    Parameters
    ----------
    mod : tvm.IRModule
        ``main`` is one dataflow block.
    precision : str
        One of `PRECISIONS`; ``float32`` changes nothing.
    """
    if precision == WIDE:
        return mod
    assert precision in PRECISIONS, precision
    main = mod["main"]
    bindings = [binding for block in main.body.blocks for binding in block.bindings]
    builder = relax.BlockBuilder()
    params = [relax.Var(param.name, param.ty) for param in main.params]
    made = _Narrowing(builder, precision, count_uses(main))
    with function_scope(builder, "main", params, main.attrs):
        with builder.dataflow():
            for old, new in zip(main.params, params, strict=True):
                made.bind(old, new, exact=True)
            for binding in bindings:
                value = binding.value
                found = made.call(value) if isinstance(value, tvm.ir.Call) else made.other(value)
                if isinstance(binding, relax.MatchCast):
                    found = builder.match_cast(builder.emit(found), binding.ty)
                made.bind(binding.var, builder.emit(found))
            output = builder.emit_output(made.other(main.body.body))
        builder.emit_func_output(output)
    return replace_main(mod, builder.get()["main"])


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """Constants in a narrow dtype: finite ones stay finite, as the largest of their sign."""
    limit = _greatest(dtype)
    return np.where(np.isfinite(array), np.clip(array, -limit, limit), array).astype(dtype)


def _greatest(dtype: str) -> float:
    """The greatest finite number of a narrow dtype. TVM's `max_value` says float32's for bfloat16."""
    return float(ml_dtypes.finfo(dtype).max)


def _largest(constant: tvm.ir.Expr) -> float:
    """The largest finite magnitude of a constant."""
    array = np.abs(array_of(constant))
    return float(np.max(array, where=np.isfinite(array), initial=0.0))


def _shrinks(expr: tvm.ir.Expr) -> bool:
    """Whether a factor is one number that makes no value larger."""
    return is_constant(expr) and array_of(expr).size == 1 and bool(abs(array_of(expr)).item() <= 1)


def _is_wide(expr: tvm.ir.Expr) -> bool:
    return isinstance(expr.ty, relax.TensorType) and dtype_of(expr) == WIDE


def _flat(args: object) -> list[tvm.ir.Expr]:
    found: list[tvm.ir.Expr] = []
    for arg in args:  # type: ignore[attr-defined]
        found += _flat(arg.fields) if isinstance(arg, tvm.ir.Tuple) else [arg]
    return found
