# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM as recurrences, or as steps over time.

What PyTorch's layers compute too is a node of our own for each direction (`uir_tvm.frontend.recurrence`).
The rest (other activations, peepholes, rows of several lengths) is steps: the product of the inputs of all
steps with their weights is one; each step adds the product of the state. Steps are nodes, so that gates fuse
into one kernel. Layouts, gates and their order are those of the ONNX standard's operators RNN, GRU and LSTM
(version 22). ONNX Runtime's DynamicQuantizeLSTM is an LSTM whose products are of bytes: operands are
quantised as the standard's DynamicQuantizeLinear does, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ...errors import OpenSizeError
from ...sizes.open_arithmetic import is_open
from ...sizes.open_size import AnySize
from ..recurrence import LONGEST
from .converters.recurrence import DOMAIN, OPERATOR
from .known import VersionedNode, attributes_of, of_sizes

if TYPE_CHECKING:
    from .simplifier import Simplifier

#: Activations as (operator, the attributes alpha and beta that it takes).
ACTIVATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Affine": ("Affine", ("alpha", "beta")),
    "Elu": ("Elu", ("alpha",)),
    "HardSigmoid": ("HardSigmoid", ("alpha", "beta")),
    "LeakyRelu": ("LeakyRelu", ("alpha",)),
    "Relu": ("Relu", ()),
    "ScaledTanh": ("ScaledTanh", ("alpha", "beta")),
    "Sigmoid": ("Sigmoid", ()),
    "Softplus": ("Softplus", ()),
    "Softsign": ("Softsign", ()),
    "Tanh": ("Tanh", ()),
    "ThresholdedRelu": ("ThresholdedRelu", ("alpha",)),
}
#: The version of the standard whose operators the steps are.
VERSION = 20


@attrs.frozen
class OnnxDirection:
    """One direction's weights and start, by name: the parts of the operands along their first axis."""

    weight: str
    recurrence: str
    input_bias: str
    state_bias: str
    hidden: str
    cell: str
    peepholes: str
    activations: list[Callable[[str], str]]


class Cells:
    """Nodes of a recurrent node's steps, by short forms."""

    def __init__(self, step: VersionedNode, simplifier: Simplifier) -> None:
        self.step, self.simplifier = step, simplifier
        self.attributes: dict[str, Any] = attributes_of(step)
        node = step.node
        self.names = [*node.input, *[""] * (8 - len(node.input))]
        #: Whether the weights are bytes.
        self.bytes = node.op_type == "DynamicQuantizeLSTM"
        #: Of a weight of bytes: its scale and zero point.
        self.scales: dict[str, tuple[str, str]] = {}
        self.dtype = helper.tensor_dtype_to_np_dtype(simplifier.known.element(node.input[0]))

    def op(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node's result."""
        return self.simplifier.emit(operator, list(inputs), self.step, version=VERSION, **attributes)

    def product(self, value: str, weight: str) -> str:
        """Value times weight; of bytes, where the weight is."""
        if weight not in self.scales:
            return self.op("MatMul", value, weight)
        scale, zero = self.scales[weight]
        small, step, middle = self.simplifier.emit_all(
            "DynamicQuantizeLinear", [value], self.step, 3, version=VERSION
        )
        total = self.op("Cast", self.op("MatMulInteger", small, weight, middle, zero), to=TensorProto.FLOAT)
        return self.op("Mul", total, self.op("Mul", step, scale))

    def numbers(self, *values: AnySize) -> str:
        """A constant of integers."""
        return self.simplifier.constant(of_sizes(values))

    def zeros(self, *shape: AnySize) -> str:
        """Zeros in the node's dtype."""
        if not is_open(shape):
            return self.simplifier.constant(np.zeros(shape, self.dtype))
        zero = numpy_helper.from_array(np.zeros(1, self.dtype))
        return self.op("ConstantOfShape", self.numbers(*shape), value=zero)

    def part(self, name: str, axis: int, start: int, end: int) -> str:
        """A slice along one axis."""
        return self.op("Slice", name, self.numbers(start), self.numbers(end), self.numbers(axis))

    def scalar(self, value: float) -> str:
        """A constant of rank 0 in the node's dtype."""
        return self.simplifier.constant(np.array(value, self.dtype))

    def clipped(self, name: str) -> str:
        """The argument of an activation, within the node's ``clip``."""
        limit = self.attributes.get("clip")
        return name if not limit else self.op("Clip", name, self.scalar(-limit), self.scalar(limit))

    def activation(self, name: str, alpha: float | None, beta: float | None) -> Callable[[str], str]:
        """A function of one value."""
        found = {key.lower(): row for key, row in ACTIVATIONS.items()}.get(name.lower())
        if found is None:
            self.simplifier.refuse(self.step, f"has the activation {name!r}", ", ".join(ACTIVATIONS))
        operator, takes = found
        given = {"alpha": alpha, "beta": beta}
        chosen = {key: value for key in takes if (value := given[key]) is not None}

        def apply(value: str) -> str:
            value = self.clipped(value)
            if operator == "Affine":
                scaled = self.op("Mul", value, self.scalar(chosen.get("alpha", 1.0)))
                return self.op("Add", scaled, self.scalar(chosen.get("beta", 0.0)))
            if operator == "ScaledTanh":
                inner = self.op("Tanh", self.op("Mul", value, self.scalar(chosen.get("beta", 1.0))))
                return self.op("Mul", inner, self.scalar(chosen.get("alpha", 1.0)))
            return self.op(operator, value, **chosen)

        return apply


def _gate(cells: Cells, value: str, number: int, hidden: int) -> str:
    return cells.part(value, 1, number * hidden, (number + 1) * hidden)


def rnn_step(cells: Cells, d: OnnxDirection, x: str, h: str, c: str, hidden: int) -> tuple[str, str]:
    """H = f(X W + H R + biases)."""
    total = cells.op("Add", cells.op("Add", x, cells.product(h, d.recurrence)), d.state_bias)
    return d.activations[0](total), c


def gru_step(cells: Cells, d: OnnxDirection, x: str, h: str, c: str, hidden: int) -> tuple[str, str]:
    """Gates z, r and h; ``linear_before_reset`` says whether r is applied before or after the product."""
    gates = 2 * hidden
    weight = cells.part(d.recurrence, 1, 0, gates)
    bias = cells.part(d.state_bias, 0, 0, gates)
    both = cells.op("Add", cells.product(h, weight), bias)
    both = cells.op("Add", both, cells.part(x, 1, 0, gates))
    update, reset = (d.activations[0](_gate(cells, both, number, hidden)) for number in range(2))
    weight, bias = (
        cells.part(d.recurrence, 1, gates, 3 * hidden),
        cells.part(d.state_bias, 0, gates, 3 * hidden),
    )
    if cells.attributes.get("linear_before_reset", 0):
        inner = cells.op("Mul", reset, cells.op("Add", cells.product(h, weight), bias))
    else:
        inner = cells.op("Add", cells.product(cells.op("Mul", reset, h), weight), bias)
    new = d.activations[1](cells.op("Add", inner, cells.part(x, 1, gates, 3 * hidden)))
    # (1 - z) * new + z * h
    kept = cells.op("Mul", update, cells.op("Sub", h, new))
    return cells.op("Add", new, kept), c


def lstm_step(cells: Cells, d: OnnxDirection, x: str, h: str, c: str, hidden: int) -> tuple[str, str]:
    """Gates i, o, f and c, with peepholes to the cell."""
    total = cells.op("Add", cells.op("Add", x, cells.product(h, d.recurrence)), d.state_bias)
    i, o, f, g = (_gate(cells, total, number, hidden) for number in range(4))

    def peeped(value: str, cell: str, number: int) -> str:
        if not d.peepholes:
            return value
        weight = cells.part(d.peepholes, 0, number * hidden, (number + 1) * hidden)
        return cells.op("Add", value, cells.op("Mul", weight, cell))

    inner, outer, last = d.activations
    i = inner(peeped(i, c, 0))
    forget = (
        cells.op("Sub", cells.scalar(1.0), i)
        if cells.attributes.get("input_forget", 0)
        else inner(peeped(f, c, 2))
    )
    cell = cells.op("Add", cells.op("Mul", forget, c), cells.op("Mul", i, outer(g)))
    return cells.op("Mul", inner(peeped(o, cell, 1)), last(cell)), cell


@attrs.frozen
class RecurrentOperator:
    """A recurrent operator: how many gates, its step, the default activations of one direction."""

    gates: int
    step: Callable[[Cells, OnnxDirection, str, str, str, int], tuple[str, str]]
    activations: tuple[str, ...]
    #: Activations -> the cell of a recurrence (`uir_tvm.frontend.recurrence.CELLS`).
    cells: Mapping[tuple[str, ...], str]
    #: The places of a recurrence's gates among the standard's.
    order: tuple[int, ...]


KINDS = {
    "DynamicQuantizeLSTM": RecurrentOperator(4, lstm_step, ("Sigmoid", "Tanh", "Tanh"), {}, (0, 2, 3, 1)),
    "GRU": RecurrentOperator(3, gru_step, ("Sigmoid", "Tanh"), {("sigmoid", "tanh"): "gru"}, (1, 0, 2)),
    "LSTM": RecurrentOperator(
        4, lstm_step, ("Sigmoid", "Tanh", "Tanh"), {("sigmoid", "tanh", "tanh"): "lstm"}, (0, 2, 3, 1)
    ),
    "RNN": RecurrentOperator(1, rnn_step, ("Tanh",), {("tanh",): "rnn_tanh", ("relu",): "rnn_relu"}, (0,)),
}


def recurrent(step: VersionedNode, simplifier: Simplifier) -> bool:
    """A recurrent node -> its steps."""
    kind, cells, known = KINDS[step.node.op_type], Cells(step, simplifier), simplifier.known
    shape, weights = known.shape(cells.names[0]), known.shape(cells.names[2])
    if shape is None or weights is None:
        return False
    batch_first = bool(cells.attributes.get("layout", 0))
    x = cells.op("Transpose", cells.names[0], perm=[1, 0, 2]) if batch_first else cells.names[0]
    length, batch = (shape[1], shape[0]) if batch_first else (shape[0], shape[1])
    # weights of bytes lie as they are multiplied, others the other way round
    count, hidden = weights[0], weights[1 if cells.bytes else 2]
    found = [_cell(cells, kind, number) for number in range(count)]
    if all(found):
        sides = [
            _recurrence(cells, kind, cell, number, x, (length, batch, hidden), batch_first)
            for number, cell in enumerate(found)
        ]
        finals = [list(values) for values in zip(*(side[1:] for side in sides), strict=True)]
        _results(cells, [side[0] for side in sides], finals, batch_first)
        return True
    if is_open((length,)):
        raise OpenSizeError(
            f"{step.operator} goes step by step over a length that is open.",
            where=step.text,
            need="what PyTorch's layers compute too, or a number as length",
            remedy="leave the model to be imported for each shape",
        )
    if length > LONGEST:
        simplifier.refuse(step, f"has {length} steps", f"at most {LONGEST} steps")
    flat = cells.op("Reshape", x, cells.numbers(length * batch, shape[2]))
    rows: list[str] = []
    hiddens: list[str] = []
    cell_states: list[str] = []
    for number in range(count):
        d = _direction(cells, kind, number, batch, hidden, batch_first)
        product = cells.op("Add", cells.product(flat, d.weight), d.input_bias)
        product = cells.op("Reshape", product, cells.numbers(length, batch, kind.gates * hidden))
        reverse = _is_reverse(cells, number)
        found, h, c = _steps(cells, kind, d, product, length, hidden, reverse)
        rows.append(_stack(cells, found, 0) if found else cells.zeros(0, batch, hidden))
        hiddens.append(h)
        cell_states.append(c)
    _results(cells, rows, [hiddens, cell_states], batch_first)
    return True


def _is_reverse(cells: Cells, number: int) -> bool:
    return number == 1 or cells.attributes.get("direction") == b"reverse"


def _words(cells: Cells, kind: RecurrentOperator, number: int) -> list[str]:
    """The activations of one direction."""
    used = len(kind.activations)
    words = [word.decode() for word in cells.attributes.get("activations") or ()]
    return words[number * used : (number + 1) * used] or list(kind.activations)


def _cell(cells: Cells, kind: RecurrentOperator, number: int) -> str:
    """The recurrence that one direction is; empty where it is none."""
    attributes, names = cells.attributes, cells.names
    special = attributes.get("clip") or attributes.get("input_forget", 0) or names[4] or names[7]
    if special or (kind.order == (1, 0, 2) and not attributes.get("linear_before_reset", 0)):
        return ""
    return kind.cells.get(tuple(word.lower() for word in _words(cells, kind, number)), "")


def _recurrence(
    cells: Cells,
    kind: RecurrentOperator,
    cell: str,
    number: int,
    x: str,
    sizes: tuple[int, int, int],
    batch_first: bool,
) -> list[str]:
    """One direction's rows (time, batch, hidden), last state and cell, by a node of our own."""
    length, batch, hidden = sizes
    simplifier, names = cells.simplifier, cells.names
    direction = cells.numbers(number)

    def part(name: str, axis: int = 0) -> str:
        one = cells.op("Gather", name, direction, axis=axis)
        return cells.op("Squeeze", one, cells.numbers(axis))

    def gates(value: str, shape: tuple[int, ...]) -> str:
        """The gates in the recurrence's order."""
        apart = cells.op("Reshape", value, cells.numbers(kind.gates, hidden, *shape))
        sorted_ = cells.op("Gather", apart, cells.numbers(*kind.order), axis=0)
        return cells.op("Reshape", sorted_, cells.numbers(kind.gates * hidden, *shape))

    def start(name: str) -> str:
        return part(name, 1 if batch_first else 0) if name else cells.zeros(batch, hidden)

    biases = ["", ""]
    if names[3]:
        both, wide = part(names[3]), kind.gates * hidden
        biases = [gates(cells.part(both, 0, n * wide, (n + 1) * wide), ()) for n in range(2)]
    inputs = simplifier.known.shape(x)
    assert inputs is not None
    operands = [x, gates(part(names[1]), inputs[2:]), gates(part(names[2]), (hidden,)), *biases]
    operands += [start(name) for name in names[5 : 7 if cell == "lstm" else 6]]
    prefix = simplifier.prefix()
    results = [f"{prefix}{name}" for name in ("rows", "state", "cell")]
    element = simplifier.known.element(names[0])
    shapes = [(length, batch, hidden), (batch, hidden), (batch, hidden)]
    for name, shape in zip(results, shapes, strict=True):
        simplifier.known.add_type(name, element, shape)
    node = helper.make_node(
        OPERATOR, operands, results, domain=DOMAIN, cell=cell, reverse=int(_is_reverse(cells, number))
    )
    simplifier.run(VersionedNode(node, 1))
    return results


def _steps(
    cells: Cells,
    kind: RecurrentOperator,
    d: OnnxDirection,
    product: str,
    length: int,
    hidden: int,
    reverse: bool,
) -> tuple[list[str], str, str]:
    """States after each step, in the order of time, and the last ones."""
    h, c, found = d.hidden, d.cell, {}
    lengths = cells.names[4]
    for time in range(length - 1, -1, -1) if reverse else range(length):
        x = cells.op("Gather", product, cells.simplifier.constant(np.array(time, np.int64)), axis=0)
        new_h, new_c = kind.step(cells, d, x, h, c, hidden)
        row = new_h
        if lengths:
            # rows that have ended keep their state, and their output is zero
            limit = cells.simplifier.constant(np.array(time, np.int32))
            alive = cells.op("Unsqueeze", cells.op("Greater", lengths, limit), cells.numbers(1))
            row = cells.op("Where", alive, new_h, cells.scalar(0.0))
            new_h = cells.op("Where", alive, new_h, h)
            new_c = cells.op("Where", alive, new_c, c) if new_c != c else c
        h, c, found[time] = new_h, new_c, row
    return [found[time] for time in range(length)], h, c


def _direction(
    cells: Cells, kind: RecurrentOperator, number: int, batch: int, hidden: int, batch_first: bool
) -> OnnxDirection:
    """The operands' parts for one direction."""
    names, gates = cells.names, kind.gates * hidden

    def part(name: str, axis: int = 0) -> str:
        return cells.op("Gather", name, cells.simplifier.constant(np.array(number, np.int64)), axis=axis)

    def start(name: str) -> str:
        if name:
            return part(name, 1 if batch_first else 0)
        return cells.zeros(batch, hidden)

    if names[3]:
        both = part(names[3])
        biases = [cells.part(both, 0, 0, gates), cells.part(both, 0, gates, 2 * gates)]
    else:
        biases = [cells.simplifier.constant(np.zeros(gates, cells.dtype))] * 2
    used, chosen = len(kind.activations), _words(cells, kind, number)
    # numbers are taken by the activations that need them, in order
    places = range(number * used, number * used + len(chosen))
    alphas, betas = (list(cells.attributes.get(key) or ()) for key in ("activation_alpha", "activation_beta"))
    activations = [
        cells.activation(
            word,
            alphas[place] if place < len(alphas) else None,
            betas[place] if place < len(betas) else None,
        )
        for word, place in zip(chosen, places, strict=True)
    ]

    def weight(place: int) -> str:
        if not cells.bytes:
            return cells.op("Transpose", part(names[place]), perm=[1, 0])
        found = part(names[place])
        cells.scales[found] = (part(names[2 * place + 6]), part(names[2 * place + 7]))
        return found

    return OnnxDirection(
        weight(1),
        weight(2),
        biases[0],
        biases[1],
        start(names[5]),
        start(names[6]),
        part(names[7]) if names[7] else "",
        activations,
    )


def _stack(cells: Cells, values: list[str], axis: int) -> str:
    axes = cells.numbers(axis)
    return cells.op("Concat", *[cells.op("Unsqueeze", value, axes) for value in values], axis=axis)


def _results(cells: Cells, rows: list[str], finals: list[list[str]], batch_first: bool) -> None:
    """Y (time, direction, batch, hidden) and the last states (direction, batch, hidden), in the layout."""
    node = cells.step.node
    outputs = [*node.output, *[""] * (3 - len(node.output))]

    def give(value: str, name: str) -> None:
        cells.simplifier.run(VersionedNode(helper.make_node("Identity", [value], [name]), VERSION))

    if outputs[0]:
        whole = _stack(cells, rows, 1)
        give(cells.op("Transpose", whole, perm=[2, 0, 1, 3]) if batch_first else whole, outputs[0])
    for values, name in zip(finals, outputs[1:], strict=True):
        if name:
            give(_stack(cells, values, 1 if batch_first else 0), name)


RECURRENT: dict[str, Callable[[VersionedNode, Simplifier], bool]] = dict.fromkeys(
    ("GRU", "LSTM", "RNN"), recurrent
)
