# SPDX-License-Identifier: Apache-2.0
"""A dozen kernels that the recipes of tiles make schedules of, small enough for the interpreter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx
from tvm.relax import op
from uir_tvm.schedules.demo import Example, from_relax

#: On what: a kind of hardware and the model of a device of it; None = this host.
HARDWARE = {
    "uir-cpu": ("cpu", None),
    "uir-cuda:h100": ("cuda", "h100"),
    "uir-ascend:910b2": ("ascend", "910b2"),
    "uir-bang:mlu370-x8": ("bang", "mlu370-x8"),
}


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _channels(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _row_bias(x: Any, bias: Any) -> Any:
    return np.maximum(x + bias, 0)


#: By name: the Relax expression, shapes of its operands, what NumPy says, what `from_relax` takes besides.
KERNELS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], Callable[..., Any], dict[str, Any]]] = {
    "softmax": (lambda x: op.nn.softmax(x), [(2, 12, 24)], _softmax, {}),
    "long_softmax": (lambda x: op.nn.softmax(x), [(3, 1200)], _softmax, {}),
    "layer_norm": (
        lambda x, g, b: op.nn.layer_norm(x, g, b, axes=[-1]),
        [(18, 40), (40,), (40,)],
        _layer_norm,
        {},
    ),
    "mean": (lambda x: op.mean(x, axis=-1), [(6, 8, 30)], lambda x: x.mean(-1), {}),
    "reduce_all": (
        lambda x: op.sum(op.multiply(x, x), keepdims=True),
        [(24, 50)],
        lambda x: (x * x).sum(keepdims=True),
        {},
    ),
    "to_a_scalar": (
        lambda x: op.sum(op.astype(x, "int64")),
        [(7, 64)],
        lambda x: x.astype("int64").sum(),
        {"dtypes": ["int32"]},
    ),
    "silu": (lambda x: op.nn.silu(x), [(16, 96)], lambda x: x * _sigmoid(x), {}),
    "row_bias": (lambda x, b: op.nn.relu(op.add(x, b)), [(24, 96), (96,)], _row_bias, {}),
    "transpose": (
        lambda x: op.permute_dims(x, [0, 2, 1]),
        [(3, 20, 34)],
        lambda x: x.transpose(0, 2, 1),
        {},
    ),
    "gather": (
        lambda table, ids: op.take(table, ids, axis=0),
        [(50, 24), (2, 9)],
        lambda table, ids: table[ids],
        {"dtypes": ["float32", "int64"], "high": 50},
    ),
    "column_mean": (lambda x: op.mean(x, axis=1), [(4, 48, 64)], lambda x: x.mean(1), {}),
    "channel_softmax": (lambda x: op.nn.softmax(x, axis=1), [(2, 6, 5, 16)], _channels, {}),
    "concat": (
        lambda x, y: op.concat([x, y], axis=1),
        [(4, 2, 24), (4, 6, 24)],
        lambda x, y: np.concatenate([x, y], axis=1),
        {},
    ),
    "split": (
        lambda x: op.strided_slice(x, axes=[1], begin=[8], end=[40]),
        [(12, 64)],
        lambda x: x[:, 8:40],
        {},
    ),
}


@functools.cache
def example(name: str) -> Example:
    """A kernel, random inputs, and what it makes of them."""
    build, shapes, reference, more = KERNELS[name]
    return from_relax(build, shapes, reference, **more)


def kernel(name: str) -> tirx.PrimFunc:
    """A kernel, unscheduled."""
    return example(name).func
