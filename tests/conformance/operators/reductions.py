# SPDX-License-Identifier: Apache-2.0
"""Cases of reductions, scans, orders and normalisations."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import numpy as np
from tvm import relax

from .case import EMPTY, FLOATS, NUMBERS, POSITIVE, RANKS, Case, Input, Shape, chosen, shuffled, spread, text
from .elementwise import function

op = relax.op
REDUCE = {
    **dict.fromkeys("sum max min prod".split(), NUMBERS),
    **dict.fromkeys("mean variance std".split(), FLOATS),
}
SMALL = spread(-2, 2)


def _reductions() -> Iterator[Case]:
    for name, dtypes in REDUCE.items():
        f = function(name)
        for dtype in dtypes:
            for shape in RANKS:
                x = (Input(shape, dtype, SMALL),)
                yield Case(name, f"{dtype}-{text(shape)}-all", x, f)
                if not shape:
                    continue
                last = len(shape) - 1
                yield Case(name, f"{dtype}-{text(shape)}-last", x, lambda x, f=f: f(x, axis=-1))
                yield Case(
                    name, f"{dtype}-{text(shape)}-first", x, lambda x, f=f: f(x, axis=0, keepdims=True)
                )
                if last > 1:
                    axes = [0, last]
                    yield Case(name, f"{dtype}-{text(shape)}-two", x, lambda x, f=f, a=axes: f(x, axis=a))
        if name in ("sum", "prod"):  # stock TVM leaves the extremes of nothing unwritten
            kept = (Input((0, 3), "float32"),)
            yield Case(name, "float32-0x3-empty-kept", kept, lambda x, f=f: f(x, axis=1))
            yield Case(name, "float32-0x3-empty-reduced", kept, lambda x, f=f: f(x, axis=0))
        edges = (Input((4, 4), "float32", chosen(1.0, nan, inf, 2.0, -inf, -inf, -inf, -inf, 0, 1, 2, 3)),)
        # stock TVM loses NaN
        numpy = {"max": lambda x: x.max(1), "min": lambda x: x.min(1)}.get(name)
        yield Case(name, "float32-edges", edges, lambda x, f=f: f(x, axis=1), reference=numpy)


def _places() -> Iterator[Case]:
    for name in ("argmax", "argmin"):
        f = function(name)
        for dtype in NUMBERS:
            for shape in RANKS[1:]:
                x = (Input(shape, dtype, shuffled),)
                yield Case(name, f"{dtype}-{text(shape)}-last", x, lambda x, f=f: f(x, axis=-1))
                yield Case(
                    name, f"{dtype}-{text(shape)}-first", x, lambda x, f=f: f(x, axis=0, keepdims=True)
                )
            yield Case(name, f"{dtype}-all", (Input((3, 7), dtype, shuffled),), f)
            ties = (Input((3, 7), dtype, chosen(1, 2, 2, 0, 0)),)
            yield Case(name, f"{dtype}-ties", ties, lambda x, f=f: f(x, axis=1))
    for shape in RANKS[1:5]:
        for dtype in NUMBERS:
            yield from _orders(shape, dtype)


def _orders(shape: Shape, dtype: str) -> Iterator[Case]:
    """Orders of one tensor; NumPy's are wanted, as TVM's sort reads the bytes of dtypes that it lacks."""
    x, tag = (Input(shape, dtype, shuffled),), f"{dtype}-{text(shape)}"
    for name in ("argsort", "sort"):
        f, wanted = function(name), _REFERENCES[name]
        yield Case(
            name, f"{tag}-last", x, lambda x, f=f: f(x, axis=-1), reference=lambda x, w=wanted: w(x, -1)
        )
        yield Case(
            name,
            f"{tag}-first",
            x,
            lambda x, f=f: f(x, axis=0, descending=True),
            reference=lambda x, w=wanted: np.flip(w(x, 0), 0),
        )
    yield Case(
        "topk",
        tag,
        x,
        lambda x: op.topk(x, 2),
        reference=lambda x: tuple(np.flip(w(x, -1), -1)[..., :2] for w in (_sorted, _order)),
    )
    yield Case(
        "topk",
        f"{tag}-values",
        x,
        lambda x: op.topk(x, 1, 0, "values", largest=False),
        reference=lambda x: _sorted(x, 0)[:1],
    )
    middle = (shape[-1] - 1) // 2
    yield Case(
        "median",
        tag,
        x,
        lambda x: op.median(x, -1),
        reference=lambda x: tuple(
            w(x, -1)[..., middle].astype(t) for w, t in ((_sorted, x.dtype), (_order, "int64"))
        ),
    )


def _order(x: np.ndarray, axis: int) -> np.ndarray:
    """Where the elements are in their order."""
    known = x if x.dtype.isbuiltin == 1 else x.astype("float32")
    return np.argsort(known, axis, kind="stable").astype("int32")


def _sorted(x: np.ndarray, axis: int) -> np.ndarray:
    return np.take_along_axis(x, _order(x, axis), axis)


_REFERENCES = {"argsort": _order, "sort": _sorted}


def _scans() -> Iterator[Case]:
    for name in ("cumsum", "cumprod"):
        f = function(name)
        for dtype in NUMBERS:
            for shape in RANKS[1:]:
                x = (Input(shape, dtype, SMALL),)
                yield Case(name, f"{dtype}-{text(shape)}-last", x, lambda x, f=f: f(x, len(x.ty.shape) - 1))
                yield Case(name, f"{dtype}-{text(shape)}-first", x, lambda x, f=f: f(x, 0, exclusive=True))
            yield Case(name, f"{dtype}-flat", (Input((3, 4), dtype, SMALL),), f)
        yield Case(name, "bool-to-int", (Input((9,), "bool"),), lambda x, f=f: f(x, 0, "int32"))
        yield Case(name, "float32-empty", (Input((3, 0)),), lambda x, f=f: f(x, 1))


def _centred(x: np.ndarray, *_: np.ndarray) -> np.ndarray:
    """(x - mean) / deviation of the last axis."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    return (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)


def _norms() -> Iterator[Case]:
    for dtype in FLOATS:
        for shape in RANKS[1:]:
            x, channel = Input(shape, dtype), Input(shape[-1:], dtype)
            tag = f"{dtype}-{text(shape)}"
            for name in ("nn.softmax", "nn.log_softmax"):
                f = function(name)
                yield Case(name, f"{tag}-last", (x,), f)
                yield Case(name, f"{tag}-first", (x,), lambda x, f=f: f(x, 0))
            yield Case(
                "nn.layer_norm", tag, (x, channel, channel), lambda x, g, b: op.nn.layer_norm(x, g, b, [-1])
            )
            yield Case(
                "nn.layer_norm",
                f"{tag}-plain",
                (x, channel, channel),
                lambda x, g, b: op.nn.layer_norm(x, g, b, [-1], center=False, scale=False),
                reference=_centred,  # stock TVM scales and shifts all the same
            )
            single = 1e4 if dtype == "float64" else 1.0  # stock TVM computes it in float32
            yield Case("nn.rms_norm", tag, (x, channel), lambda x, g: op.nn.rms_norm(x, g, [-1]), single)
        for shape in ((2, 4, 5), (2, 4, 3, 5), (1, 4, 2, 2, 3)):
            x, channel = Input(shape, dtype), Input((4,), dtype)
            axes, tag = list(range(2, len(shape))), f"{dtype}-{text(shape)}"
            three = (x, channel, channel)
            if dtype != "bfloat16":  # which it does not take
                yield Case(
                    "nn.group_norm", tag, three, lambda x, g, b, a=axes: op.nn.group_norm(x, g, b, 2, 1, a)
                )
            yield Case(
                "nn.instance_norm", tag, three, lambda x, g, b, a=axes: op.nn.instance_norm(x, g, b, 1, a)
            )
            five = (*three, channel, Input((4,), dtype, POSITIVE))
            for training in (False, True):
                yield Case(
                    "nn.batch_norm",
                    f"{tag}-{'training' if training else 'inference'}",
                    five,
                    lambda x, g, b, m, v, t=training: op.nn.batch_norm(x, g, b, m, v, 1, training=t),
                )
    edges = (Input((3, 4), "float32", chosen(-inf, -inf, -inf, -inf, 1, nan, 2, 3, 0, inf, 1, 2)),)
    yield Case("nn.softmax", "float32-edges", edges, op.nn.softmax)
    for shape in EMPTY[1:2]:
        yield Case("nn.softmax", f"float32-{text(shape)}", (Input(shape),), op.nn.softmax)


def cases() -> Iterator[Case]:
    """All of this file."""
    yield from _reductions()
    yield from _places()
    yield from _scans()
    yield from _norms()
