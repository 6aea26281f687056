# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` -> a recurrence for each layer and direction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx
from torch._C import DispatchKey
from torch._subclasses.fake_impls import get_fast_op_impls
from tvm import relax

from .recurrence import Direction, Recurrence, layer
from .relax_view import shape_of
from .rules.empty import reshape
from .torch_graph import arguments

aten = torch.ops.aten

#: Operator -> the cell of its steps (`recurrence.CELLS`).
CELLS = {
    "lstm.input": "lstm",
    "gru.input": "gru",
    "rnn_tanh.input": "rnn_tanh",
    "rnn_relu.input": "rnn_relu",
}
OPERATORS = {name: getattr(aten, name.removesuffix(".input")).input for name in CELLS}
NAMES = (
    "x",
    "states",
    "weights",
    "has_biases",
    "num_layers",
    "dropout",
    "train",
    "bidirectional",
    "batch_first",
)


@contextlib.contextmanager
def of_any_length(chosen: Sequence[Any] | None = None) -> Iterator[None]:
    """Let torch.export keep recurrent layers of open length inside: all, or those of some operators.

    It learns the shapes of their results by taking them apart, step by step, which fixes the length.
    """
    keys = DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd
    operators = OPERATORS.values() if chosen is None else chosen
    before = [{key: operator.py_kernels.get(key) for key in keys} for operator in operators]
    of_fakes: dict[Any, Any] = get_fast_op_impls()
    try:
        for operator in operators:
            of_fakes[operator] = _fake_shapes
            operator.py_kernels.update(dict.fromkeys(keys, _shapes))
            operator._dispatch_cache.clear()
        yield
    finally:
        for operator, kernels in zip(operators, before, strict=True):
            of_fakes.pop(operator, None)
            for key, kernel in kernels.items():
                operator.py_kernels.pop(key, None)
                if kernel is not None:
                    operator.py_kernels[key] = kernel
            operator._dispatch_cache.clear()


def _shapes(x: Tensor, states: Any, *given: Any) -> tuple[Tensor, ...]:
    """Tensors like the results of a recurrent operator: its rows, and its last states.

    Without steps there are no last states: PyTorch refuses that.
    """
    steps = x.shape[1 if given[NAMES.index("batch_first") - 2] else 0]
    if isinstance(steps, int) and steps == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    starts = states if isinstance(states, list | tuple) else [states]
    sides = 2 if given[NAMES.index("bidirectional") - 2] else 1
    return x.new_empty([*x.shape[:-1], starts[0].shape[-1] * sides]), *map(torch.empty_like, starts)


def _fake_shapes(mode: Any, *given: Any) -> tuple[Tensor, ...]:
    """The same among the tensors that only have shapes."""
    with mode:
        return _shapes(*given)


def is_plain(node: fx.Node) -> bool:
    """Whether a layer is one of `CELLS` as it stands: no projection of its states, no dropout."""
    given = arguments(node, *NAMES)
    directions = given["num_layers"] * (2 if given["bidirectional"] else 1)
    each = 4 if given["has_biases"] else 2
    return len(given["weights"]) == each * directions and not (given["train"] and given["dropout"])


def convert(cell: str, node: fx.Node, importer: Any) -> Any:
    """A recurrent layer of PyTorch -> its rows, and its last states."""
    emit = importer.block_builder.emit
    given = arguments(node, *NAMES)
    x = importer.env[given["x"]]
    states = given["states"] if cell == "lstm" else [given["states"]]
    starts = [importer.env[state] for state in states]
    weights = [importer.env[weight] for weight in given["weights"]]
    sides = 2 if given["bidirectional"] else 1
    each = 4 if given["has_biases"] else 2
    if given["batch_first"]:
        x = emit(relax.op.permute_dims(x, [1, 0, 2]))
    lasts: list[list[Any]] = [[] for _ in starts]
    both: list[Any] = []
    for number in range(given["num_layers"] * sides):
        side = number % sides
        own = [*weights[each * number : each * (number + 1)], None, None][:4]
        start = [_row(emit, value, number) for value in starts]
        direction = Direction(*own, *start)
        rows, *ends = layer(importer.block_builder, x, Recurrence(cell, side == 1), direction)
        for last, end in zip(lasts, ends, strict=False):
            batch, hidden = shape_of(end) or ()
            last.append(emit(reshape(end, (1, batch, hidden))))
        both = [rows] if side == 0 else [*both, rows]
        if side == sides - 1:
            x = emit(relax.op.concat(both, 2)) if sides == 2 else rows
    if given["batch_first"]:
        x = emit(relax.op.permute_dims(x, [1, 0, 2]))
    finals = [emit(relax.op.concat(last, 0)) if len(last) > 1 else last[0] for last in lasts]
    return relax.Tuple([x, *finals])


def _row(emit: Any, value: Any, number: int) -> Any:
    """The matrix at one place of the first axis."""
    _, batch, hidden = shape_of(value) or ()
    part = emit(relax.op.strided_slice(value, [0], [number], [number + 1]))
    return emit(reshape(part, (batch, hidden)))


RECURRENT: dict[str, Callable[[fx.Node, Any], Any]] = {
    name: partial(convert, cell) for name, cell in CELLS.items()
}


def kept(program: torch.export.ExportedProgram) -> list[Any]:
    """The recurrent operators of a program that need not be decomposed."""
    graphs = [module.graph for module in program.graph_module.modules() if isinstance(module, fx.GraphModule)]
    nodes = {
        name: [node for graph in graphs for node in graph.nodes if node.target is operator]
        for name, operator in OPERATORS.items()
    }
    return [OPERATORS[name] for name, found in nodes.items() if all(map(is_plain, found))]
