# SPDX-License-Identifier: Apache-2.0
"""The steps of a recurrent layer as one call, which a library computes or `expand` takes apart.

PyTorch's and ONNX's layers become such calls: `layer` computes what the inputs add to the gates of all steps
as one product, and calls `FUNCTION` once for each direction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import tvm
from tvm import relax

from ..errors import UnsupportedOperatorError
from ..sizes.open_arithmetic import is_open
from .call_expander import expand_calls
from .relax_view import dtype_of, op_name, shape_of
from .rules.empty import reshape

#: The name that a call has in Relax; nothing is registered under it.
FUNCTION = "uir.recurrence"
#: Steps that are taken apart at most: each is some ten operators.
LONGEST = 1024


@attrs.frozen
class Recurrence:
    """What follows from a state.

    Attributes
    ----------
    cell : str
        A key of `CELLS`.
    reverse : bool
        Whether the last step comes first.
    """

    cell: str
    reverse: bool = False

    def to_json(self) -> str:
        """As the last argument of a call."""
        return json.dumps(attrs.asdict(self))


@attrs.frozen
class Direction:
    """The weights of one direction of a layer, as expressions.

    Attributes
    ----------
    weight : Expr
        [gates * hidden, inputs]; gates as `CELLS` says.
    recurrent : Expr
        [gates * hidden, hidden].
    bias, recurrent_bias : Expr or None
        [gates * hidden].
    state : Expr
        [batch, hidden], before the first step.
    cell : Expr or None
        LSTM: [batch, hidden].
    """

    weight: Any
    recurrent: Any
    bias: Any
    recurrent_bias: Any
    state: Any
    cell: Any = None


@attrs.frozen
class Cell:
    """A kind of recurrent layer.

    Attributes
    ----------
    gates : tuple of str
        In the order in which they lie side by side.
    step : callable
        (emit, what the inputs add, products of the state, the function that takes gates apart, the cell or
        bias, the state) -> the next state and cell.
    """

    gates: tuple[str, ...]
    step: Callable[..., tuple[Any, Any]]


def is_recurrence(call: Any) -> bool:
    """Whether an expression is the call of a recurrence."""
    return op_name(call) == "call_pure_packed" and str(call.args[0].global_symbol) == FUNCTION


def recurrence_of(call: Any) -> Recurrence:
    """What a call computes."""
    return Recurrence(**json.loads(str(call.args[-1].value)))


def layer(
    builder: relax.BlockBuilder, x: Any, recurrence: Recurrence, direction: Direction
) -> tuple[Any, Any, Any]:
    """One direction of a layer.

    Parameters
    ----------
    builder : relax.BlockBuilder
    x : Expr
        [steps, batch, inputs].
    recurrence, direction

    Returns
    -------
    rows : Expr
        [steps, batch, hidden]: the state after each step, in the order of time.
    state, cell : Expr
        [batch, hidden], after the last step; the cell is None but for an LSTM.
    """
    emit = builder.emit
    steps, batch, inputs = shape_of(x) or ()
    wide, hidden = shape_of(direction.recurrent) or ()
    flat = emit(reshape(x, (steps * batch, inputs)))
    product = emit(relax.op.matmul(flat, emit(relax.op.permute_dims(direction.weight))))
    bias, last = _biases(emit, recurrence, direction, hidden)
    if bias is not None:
        product = emit(relax.op.add(product, bias))
    product = emit(reshape(product, (steps, batch, wide)))
    rest = direction.cell if recurrence.cell == "lstm" else last
    operands = [product, emit(relax.op.permute_dims(direction.recurrent)), direction.state]
    operands += [rest] if rest is not None else []
    dtype = dtype_of(x)
    rows_type = relax.TensorType((steps, batch, hidden), dtype)
    lstm = recurrence.cell == "lstm"
    found = emit(
        relax.op.call_pure_packed(
            FUNCTION,
            *operands,
            tvm.ir.StringImm(recurrence.to_json()),
            ty_args=relax.TupleType([rows_type, relax.TensorType((batch, hidden), dtype)])
            if lstm
            else rows_type,
        )
    )
    rows = emit(relax.TupleGetItem(found, 0)) if lstm else found
    if isinstance(steps, int) and steps == 0:
        return rows, direction.state, direction.cell
    end = 0 if recurrence.reverse else steps - 1
    within = is_open((steps,))
    state = emit(relax.op.strided_slice(rows, [0], [end], [end + 1], assume_inbound=within))
    state = emit(reshape(state, (batch, hidden)))
    return rows, state, emit(relax.TupleGetItem(found, 1)) if lstm else None


def _biases(emit: Any, recurrence: Recurrence, direction: Direction, hidden: int) -> tuple[Any, Any]:
    """What is added to the product of the inputs, and a GRU's bias within its gate n."""
    bias, recurrent = direction.bias, direction.recurrent_bias
    if recurrence.cell != "gru":
        both = [value for value in (bias, recurrent) if value is not None]
        return (emit(relax.op.add(*both)) if len(both) == 2 else both[0] if both else None), None
    dtype = dtype_of(direction.state)
    zeros = emit(relax.op.zeros((hidden,), dtype))
    if recurrent is None:
        return bias, zeros
    first = emit(relax.op.strided_slice(recurrent, [0], [0], [2 * hidden]))
    outer = emit(relax.op.concat([first, zeros], 0))
    last = emit(relax.op.strided_slice(recurrent, [0], [2 * hidden], [3 * hidden]))
    return (outer if bias is None else emit(relax.op.add(bias, outer))), last


def expand(mod: tvm.IRModule, taken: Callable[[Any], bool] = lambda call: False) -> tvm.IRModule:
    """Write the calls of recurrences in ``main`` as operators, step by step.

    Before: r = call_pure_packed("uir.recurrence", x, w, h, c, ...).  After: for each step,
    gates = x[t] + h @ w, and the elementwise operators of the next h and c; r = (the states side by side, c).

    Parameters
    ----------
    mod : tvm.IRModule
        ``main`` is one dataflow block.
    taken : callable
        Of a call: whether it stays.

    Raises
    ------
    UnsupportedOperatorError
        For more than `LONGEST` steps.
    """

    def chosen(call: Any) -> bool:
        return is_recurrence(call) and not taken(call)

    def write(builder: relax.BlockBuilder, call: Any, operands: list[Any]) -> Any:
        return _steps(builder, recurrence_of(call), operands)

    return expand_calls(mod, chosen, write)


def _steps(builder: relax.BlockBuilder, recurrence: Recurrence, operands: Sequence[Any]) -> Any:
    """The results of a call, by operators."""
    emit = builder.emit
    product, weight, state, *rest = operands
    steps, batch, _ = shape_of(product) or ()
    hidden = (shape_of(state) or ())[-1]
    if steps > LONGEST:
        raise UnsupportedOperatorError(
            f"a recurrent layer has {steps} steps",
            need=f"at most {LONGEST}, where no library computes it: steps are operators",
            remedy="give the layer a part of the steps at a time, with the state that it returned",
        )
    cell = CELLS[recurrence.cell]
    other = rest[0] if rest else None
    rows: dict[int, Any] = {}

    def parts(whole: Any) -> list[Any]:
        if len(cell.gates) == 1:
            return [whole]
        places = range(len(cell.gates))
        return [emit(relax.op.strided_slice(whole, [1], [n * hidden], [(n + 1) * hidden])) for n in places]

    for time in range(steps - 1, -1, -1) if recurrence.reverse else range(steps):
        now = emit(relax.op.strided_slice(product, [0], [time], [time + 1]))
        now = emit(relax.op.reshape(now, (batch, len(cell.gates) * hidden)))
        sums = emit(relax.op.matmul(state, weight))
        state, other = cell.step(emit, now, sums, parts, other, state)
        rows[time] = emit(relax.op.reshape(state, (1, batch, hidden)))
    whole = emit(relax.op.concat([rows[time] for time in range(steps)], 0))
    return relax.Tuple([whole, other]) if recurrence.cell == "lstm" else whole


def _lstm(emit: Any, now: Any, sums: Any, parts: Any, cell: Any, state: Any) -> tuple[Any, Any]:
    """c' = sigmoid(f) * c + sigmoid(i) * tanh(g); h' = sigmoid(o) * tanh(c')."""
    op = relax.op
    i, f, g, o = parts(emit(op.add(now, sums)))
    kept = emit(op.multiply(emit(op.sigmoid(f)), cell))
    cell = emit(op.add(kept, emit(op.multiply(emit(op.sigmoid(i)), emit(op.tanh(g))))))
    return emit(op.multiply(emit(op.sigmoid(o)), emit(op.tanh(cell)))), cell


def _gru(emit: Any, now: Any, sums: Any, parts: Any, bias: Any, state: Any) -> tuple[Any, Any]:
    """n = tanh(x_n + sigmoid(r) * (s_n + b)); h' = n + sigmoid(z) * (h - n)."""
    op = relax.op
    (r, z, n), (state_r, state_z, state_n) = parts(now), parts(sums)
    reset, update = (emit(op.sigmoid(emit(op.add(*pair)))) for pair in ((r, state_r), (z, state_z)))
    inner = emit(op.multiply(reset, emit(op.add(state_n, bias))))
    new = emit(op.tanh(emit(op.add(n, inner))))
    return emit(op.add(new, emit(op.multiply(update, emit(op.subtract(state, new)))))), bias


def _rnn(activation: Callable[[Any], Any]) -> Callable[..., tuple[Any, Any]]:
    def step(emit: Any, now: Any, sums: Any, parts: Any, other: Any, state: Any) -> tuple[Any, Any]:
        """h' = f(x + s)."""
        return emit(activation(emit(relax.op.add(now, sums)))), other

    return step


#: Name -> cell; the names are also the library's.
CELLS: Mapping[str, Cell] = {
    "lstm": Cell(("i", "f", "g", "o"), _lstm),
    "gru": Cell(("r", "z", "n"), _gru),
    "rnn_tanh": Cell(("h",), _rnn(relax.op.tanh)),
    "rnn_relu": Cell(("h",), _rnn(relax.op.nn.relu)),
}
