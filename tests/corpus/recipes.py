# SPDX-License-Identifier: Apache-2.0
"""Every recipe on several shapes, for hardware with one unit in a group and with several."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.demo import Example, from_relax

from tests.extracted import extracted

from .entry import Entry

KIB = 1024

#: Fixed models, so that the corpus is the same on every machine: one unit in a group, several units that
#: share sram, and one unit with so little memory that rows are walked in chunks.
HARDWARE: dict[str, HardwareModel] = {
    "cpu": hardware.get("avx512-2core"),
    "grid": HardwareModel(
        "grid", "cpu", 4, 4, 64 * KIB, 64 * KIB, 32, {"tile_bytes": 16 * KIB, "line_bytes": 64}
    ),
    "narrow": HardwareModel("narrow", "cpu", 2, 1, 6 * KIB, 0, 16, {"tile_bytes": 2 * KIB, "line_bytes": 64}),
}


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def _logsumexp(x: Any) -> Any:
    return np.log(np.exp(x).sum(-1, keepdims=True))


def _relu_of_product(a: Any, b: Any, c: Any) -> Any:
    return np.maximum(a @ b + c, 0)


#: Operator -> (build, reference, shapes of the inputs per case, dtypes or None).
OPERATORS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[list[tuple[int, ...]]], Any]] = {
    "product": (
        lambda a, b, c: op.nn.relu(op.add(op.matmul(a, b), c)),
        _relu_of_product,
        [[(48, 100), (100, 72), (72,)], [(7, 5), (5, 3), (3,)], [(33, 65), (65, 17), (17,)]],
        None,
    ),
    "batched product": (op.matmul, lambda a, b: a @ b, [[(3, 20, 30), (3, 30, 40)]], None),
    "softmax": (
        lambda x: op.nn.softmax(x, axis=-1),
        _softmax,
        [[(32, 128)], [(5, 1000)], [(7, 1)], [(197, 3)]],
        None,
    ),
    "log softmax": (
        lambda x: op.nn.log_softmax(x, axis=-1),
        lambda x: x - _logsumexp(x),
        [[(3, 4096)]],
        None,
    ),
    "layer norm": (
        lambda x, g, b: op.nn.layer_norm(x, g, b, axes=[-1]),
        _layer_norm,
        [[(16, 96), (96,), (96,)], [(2, 13, 37), (37,), (37,)]],
        None,
    ),
    "row sum": (
        lambda x: op.sum(op.multiply(x, x), axis=-1),
        lambda x: (x * x).sum(-1),
        [[(60, 128)], [(33, 77)], [(1, 7)]],
        None,
    ),
    "mean of all": (op.mean, lambda x: x.mean(), [[(33, 77)]], None),
    "variance": (lambda x: op.variance(x, axis=[-1]), lambda x: x.var(-1), [[(12, 50)]], None),
    "column mean": (
        lambda x: op.mean(x, axis=1),
        lambda x: x.mean(1),
        [[(4, 32, 96)], [(3, 21, 70)]],
        None,
    ),
    "softmax over channels": (
        lambda x: op.nn.softmax(x, axis=1),
        lambda x: _softmax(x, 1),
        [[(3, 21, 70)]],
        None,
    ),
    "transpose": (
        lambda x: op.permute_dims(op.exp(x), [0, 2, 1]),
        lambda x: np.exp(x).transpose(0, 2, 1),
        [[(4, 64, 48)], [(3, 33, 65)]],
        None,
    ),
    "embedding": (
        lambda table, ids, more: op.add(op.take(table, ids, axis=0), more),
        lambda table, ids, more: table[ids] + more,
        [[(50, 64), (4, 16), (16, 64)], [(50, 33), (3, 7), (7, 33)]],
        ["float32", "int64", "float32"],
    ),
    "concat": (
        lambda a, b: op.concat([a, b], axis=1),
        lambda a, b: np.concatenate([a, b], axis=1),
        [[(1, 1, 96), (1, 49, 96)], [(3, 5, 7), (3, 2, 7)]],
        None,
    ),
    "swish": (
        lambda x, b: op.nn.silu(op.add(x, b)),
        lambda x, b: (x + b) / (1 + np.exp(-(x + b))),
        [[(64, 192), (192,)], [(17, 33), (33,)]],
        None,
    ),
    "flat": (
        lambda x, y: op.tanh(op.multiply(x, y)),
        lambda x, y: np.tanh(x * y),
        [[(96, 128), (96, 128)], [(1009,), (1009,)], [(1,), (1,)]],
        None,
    ),
    "mean of means": (
        lambda x: op.mean(op.mean(x, axis=-1), axis=0),
        lambda x: x.mean(-1).mean(0),
        [[(60, 50)]],
        None,
    ),
}

#: (operator, number of its case) by name.
CASES: dict[str, tuple[str, int]] = {
    f"{name} {' '.join('x'.join(map(str, shape)) for shape in shapes)}": (name, number)
    for name, (_, _, cases, _) in OPERATORS.items()
    for number, shapes in enumerate(cases)
}

#: What runs on the narrow model: the chunks are the point, the other recipes do not change.
NARROW = ("softmax", "log softmax", "layer norm")


@functools.cache
def example(case: str) -> Example:
    """The function of a case, inputs, and what NumPy says."""
    name, number = CASES[case]
    build, reference, cases, dtypes = OPERATORS[name]
    made: Callable[..., relax.Expr] = build
    return from_relax(made, cases[number], reference, dtypes=dtypes, high=lambda shapes: shapes[0][0])


@functools.cache
def graph(case: str, machine: str) -> IGraph:
    """The graph that the default recipe and extraction make of a case for a hardware model."""
    hw = HARDWARE[machine]
    return extracted(apply_default(example(case).func, hw), hw, name=_identifier(case))


def pairs() -> Iterator[tuple[str, str]]:
    """(case, hardware model) of every entry."""
    for case, (name, _) in CASES.items():
        for machine in HARDWARE:
            if machine != "narrow" or name in NARROW:
                yield case, machine


def entries() -> Iterator[Entry]:
    """Every case on every hardware model that it is for."""
    for case, machine in pairs():
        yield Entry(f"{case} on {machine}", example(case).func, graph(case, machine), "recipe")


def _identifier(text: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in text)
