# SPDX-License-Identifier: Apache-2.0
"""Operators with sizes that are known only when they are called: outermost ones, one operator of each recipe,
and several, with strides that are products of sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import tvm
from tvm import te, tirx, topi
from uir_tvm import CompileOptions
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording

#: A dimension: a number, or the name of a size.
Dim = int | str


@attrs.frozen
class OpenFunction:
    """One operator.

    Parameters
    ----------
    hero : str
        The recipe that schedules it.
    shapes : sequence of tuple
        Of its inputs; what is named is open.
    compute : callable
        Tensors -> tensor expression.
    reference : callable
        NumPy arrays -> array.
    integers : dict of int to int or str
        Inputs of int64, by position, and below what they lie: a number, or a size.
    ranges : dict of str to (int, int)
        The least and the greatest value of sizes of which something is known.
    """

    hero: str
    shapes: Sequence[tuple[Dim, ...]]
    compute: Callable[..., Any]
    reference: Callable[..., np.ndarray]
    integers: dict[int, Dim] = attrs.field(factory=dict)
    ranges: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    @property
    def sizes(self) -> list[str]:
        """Names of its sizes, in order."""
        return list(dict.fromkeys(d for shape in self.shapes for d in shape if isinstance(d, str)))

    def func(self) -> tirx.PrimFunc:
        """As a PrimFunc of its inputs and its result."""
        variables = {name: tirx.Var(name, "int64") for name in self.sizes}
        inputs = [
            te.placeholder([variables.get(d, d) for d in shape], self._dtype(k), f"x{k}")
            for k, shape in enumerate(self.shapes)
        ]
        func = te.create_prim_func([*inputs, self.compute(*inputs)])
        known = {name: Size(name, *ends) for name, ends in self.ranges.items()}
        return with_sizes(func, known) if known else func

    def inputs(self, sizes: dict[str, int]) -> list[np.ndarray]:
        """Random inputs at some sizes."""
        rng = np.random.default_rng(7)
        out = []
        for k, shape in enumerate(self.shapes):
            numbers = tuple(sizes.get(d, d) for d in shape)  # type: ignore[call-overload]
            if k in self.integers:
                most = self.integers[k]
                out.append(rng.integers(0, sizes.get(most, most), numbers))  # type: ignore[call-overload]
            else:
                out.append(rng.uniform(-2, 2, numbers).astype("float32"))
        return out

    def _dtype(self, position: int) -> str:
        return "int64" if position in self.integers else "float32"


def _sum(x: Any, axis: int) -> Any:
    return topi.sum(x, axis)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True, initial=-9.0))
    return e / e.sum(-1, keepdims=True)


def normalized(x: np.ndarray, gain: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Rows of mean 0 and variance 1, times a gain, and shifted."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gain + shift


def _layer_norm_of(axis: int) -> Callable[..., Any]:
    return lambda x, gain, shift: topi.nn.layer_norm(x, gain, shift, [axis], 1e-5)


def _map(function: Callable[..., Any]) -> Callable[..., Any]:
    """Elementwise over inputs of one shape."""

    def compute(*inputs: Any) -> Any:
        return te.compute(inputs[0].shape, lambda *at: function(*(x[at] for x in inputs)), "y")

    return compute


OPEN: dict[str, OpenFunction] = {
    "flat": OpenFunction("elementwise", [("n", 96), ("n", 96)], _map(lambda a, b: a * b), np.multiply),
    "line": OpenFunction("elementwise", [("n",)], _map(te.exp), np.exp),
    "rows": OpenFunction(
        "elementwise",
        [("n", 96), (96,)],
        lambda x, b: te.compute(x.shape, lambda i, j: te.tanh(x[i, j] + b[j]), "y"),
        lambda x, b: np.tanh(x + b),
    ),
    "two sizes": OpenFunction(
        "elementwise", [("n", "m", 24), ("n", "m", 24)], _map(lambda a, b: a + b), np.add
    ),
    "softmax": OpenFunction("normalization", [("n", 3, 50)], lambda x: topi.nn.softmax(x, -1), _softmax),
    "layer norm": OpenFunction("normalization", [("n", 96), (96,), (96,)], _layer_norm_of(1), normalized),
    "layer norm of two sizes": OpenFunction(
        "normalization", [("n", "m", 40), (40,), (40,)], _layer_norm_of(2), normalized
    ),
    "sum of rows": OpenFunction("reduction", [("n", 100)], lambda x: _sum(x, 1), lambda x: x.sum(1)),
    "maxima of windows": OpenFunction(
        "reduction",
        [("n", 3, 8, 8)],
        lambda x: topi.nn.pool2d(x, [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "max"),
        lambda x: x.reshape(-1, 3, 4, 2, 4, 2).max((3, 5)),
    ),
    "sum of columns": OpenFunction(
        "column reduction", [("n", 20, 64)], lambda x: _sum(x, 1), lambda x: x.sum(1)
    ),
    "transpose": OpenFunction(
        "transpose",
        [("n", 30, 40)],
        lambda x: topi.transpose(x, (0, 2, 1)),
        lambda x: x.transpose(0, 2, 1),
    ),
    "product": OpenFunction(
        "contraction",
        [("n", 32), (32, 24)],
        topi.matmul,
        np.matmul,
    ),
    "concat": OpenFunction(
        "concat",
        [("n", 30), ("n", 50)],
        lambda a, b: topi.concatenate([a, b], 1),
        lambda a, b: np.concatenate([a, b], 1),
    ),
    "gather": OpenFunction(
        "gather",
        [(100, 64), ("n",)],
        lambda table, at: topi.take(table, at, 0, mode="clip"),
        lambda table, at: table[at],
        {1: 100},
    ),
}


#: The greatest length of a row, and of few rows.
LONGEST, FEW = 300, 18
#: The greatest number of keys: two blocks of them.
KEYS = 140


def _with_mask(x: Any, mask: Any) -> Any:
    return te.compute(x.shape, lambda b, h, i, j: x[b, h, i, j] * 0.25 + mask[b, 0, 0, j], "y")


def attention_of(causal: bool) -> Callable[..., Any]:
    """Of heads of batches; all keys, or those up to a query."""

    def compute(q: Any, k: Any, v: Any) -> Any:
        heads, group = q.shape[1], q.shape[1] // k.shape[1]
        r = te.reduce_axis((0, q.shape[3]), "r")
        shape = (q.shape[0], heads, q.shape[2], k.shape[2])
        score = te.compute(
            shape, lambda b, h, i, j: te.sum(q[b, h, i, r] * k[b, h // group, j, r], axis=r), "score"
        )
        lowest = tirx.const(float("-inf"), "float32")
        masked = te.compute(
            shape, lambda b, h, i, j: tirx.Select(j <= i, score[b, h, i, j], lowest), "masked"
        )
        weight = topi.nn.softmax(masked if causal else score, -1)
        s = te.reduce_axis((0, k.shape[2]), "s")
        return te.compute(
            (*q.shape[:3], v.shape[3]),
            lambda b, h, i, c: te.sum(weight[b, h, i, s] * v[b, h // group, s, c], axis=s),
            "out",
        )

    return compute


def attended(causal: bool) -> Callable[..., np.ndarray]:
    def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        k, v = (x.repeat(q.shape[1] // k.shape[1], 1) for x in (k, v))
        x = q.astype("float64") @ k.swapaxes(-1, -2)
        if causal:
            x = np.where(np.tri(*x.shape[-2:], dtype=bool), x, -np.inf)
        return _softmax(x) @ v

    return reference


#: One query of six heads to the valid part of a cache of two, whose keys units share.
CACHED = OpenFunction(
    "attention",
    [(1, 6, 1, 16), (1, 2, "s", 16), (1, 2, "s", 16)],
    attention_of(causal=False),
    attended(causal=False),
    ranges={"s": (1, 2000)},
)
#: Operators whose sums go on where others begin: rounded once more where the cube core makes each product.
ROUNDED = ("attention", "attention to a prefix")
#: Operators with several open sizes, of which products are strides.
INNER: dict[str, OpenFunction] = {
    "bias of open length": OpenFunction(
        "elementwise",
        [("n", "m"), ("m",)],
        lambda x, b: te.compute(x.shape, lambda i, j: te.tanh(x[i, j] + b[j]), "y"),
        lambda x, b: np.tanh(x + b),
        ranges={"m": (1, LONGEST)},
    ),
    "mask of open length": OpenFunction(
        "elementwise",
        [("b", 1, 1, "s")],
        _map(lambda a: (1.0 - a) * -10000.0),
        lambda x: (1 - x) * np.float32(-10000),
        ranges={"s": (1, LONGEST)},
    ),
    "masked scores": OpenFunction(
        "elementwise",
        [("b", 3, "s", "s"), ("b", 1, 1, "s")],
        _with_mask,
        lambda x, mask: x * np.float32(0.25) + mask,
        ranges={"s": (1, FEW)},
    ),
    "heads first": OpenFunction(
        "transpose",
        [("b", "s", 3, 8)],
        lambda x: topi.transpose(x, (0, 2, 1, 3)),
        lambda x: x.transpose(0, 2, 1, 3),
        ranges={"s": (1, LONGEST)},
    ),
    "heads last": OpenFunction(
        "transpose",
        [("b", 3, "s", 8)],
        lambda x: topi.transpose(x, (0, 2, 1, 3)),
        lambda x: x.transpose(0, 2, 1, 3),
        ranges={"s": (1, LONGEST)},
    ),
    "transpose of two open dimensions": OpenFunction(
        "transpose",
        [("n", "m")],
        lambda x: topi.transpose(x, (1, 0)),
        lambda x: x.transpose(1, 0),
        ranges={"n": (1, LONGEST), "m": (1, LONGEST)},
    ),
    "softmax of open rows": OpenFunction(
        "normalization",
        [("n", 3, "m")],
        lambda x: topi.nn.softmax(x, -1),
        _softmax,
        ranges={"m": (1, LONGEST)},
    ),
    "softmax of masked scores": OpenFunction(
        "normalization",
        [("b", 3, "s", "s"), ("b", 1, 1, "s")],
        lambda x, mask: topi.nn.softmax(_with_mask(x, mask), -1),
        lambda x, mask: _softmax(x * np.float32(0.25) + mask),
        ranges={"s": (1, FEW)},
    ),
    "layer norm of open rows": OpenFunction(
        "normalization",
        [("n", "m"), ("m",), ("m",)],
        _layer_norm_of(1),
        normalized,
        ranges={"m": (1, LONGEST)},
    ),
    "sum of open rows": OpenFunction(
        "reduction", [("n", "m")], lambda x: _sum(x, 1), lambda x: x.sum(1), ranges={"m": (1, LONGEST)}
    ),
    "attention": OpenFunction(
        "attention",
        [("b", 4, "s", 16), ("b", 2, "s", 16), ("b", 2, "s", 16)],
        attention_of(causal=True),
        attended(causal=True),
        ranges={"s": (1, KEYS)},
    ),
    "attention to a prefix": OpenFunction(
        "attention",
        [("b", 3, 3, 16), ("b", 1, "s", 16), ("b", 1, "s", 16)],
        attention_of(causal=False),
        attended(causal=False),
        ranges={"s": (1, KEYS)},
    ),
    "sum of an open axis": OpenFunction(
        "column reduction",
        [("b", "s", 48)],
        lambda x: _sum(x, 1),
        lambda x: x.sum(1),
        ranges={"s": (1, LONGEST)},
    ),
    "gather of open rows": OpenFunction(
        "gather",
        [("n",), ("m", 24)],
        lambda at, table: topi.take(table, at, 0, mode="fast"),
        lambda at, table: table[at],
        {0: "m"},
        {"m": (1, LONGEST)},
    ),
    "gather of elements": OpenFunction(
        "gather",
        [("n", 3), ("m",)],
        lambda at, table: topi.take(table, at, 0, mode="fast"),
        lambda at, table: table[at],
        {0: "m"},
        {"m": (1, LONGEST)},
    ),
}


#: Open dimensions behind closed ones, in one size.
LED = {
    "softmax of scores of heads": OpenFunction(
        "normalization",
        [(3, "s", "s")],
        lambda x: topi.nn.softmax(x, -1),
        _softmax,
        ranges={"s": (1, LONGEST)},
    ),
    "softmax of rows": OpenFunction(
        "normalization",
        [(2, "s", 24)],
        lambda x: topi.nn.softmax(x, -1),
        _softmax,
        ranges={"s": (1, LONGEST)},
    ),
    "sum of rows": OpenFunction(
        "reduction", [(2, 3, "s", 40)], lambda x: _sum(x, 3), lambda x: x.sum(3), ranges={"s": (1, LONGEST)}
    ),
}


def kernel_of(func: tirx.PrimFunc, target: str, recipe: str = "") -> Callable[..., Any]:
    """A function's kernel for a target: from an iGraph with sizes, and by the recipe that is named."""
    with recording(CompileOptions(faults="raise")) as records:
        built = tvm.build(tvm.IRModule({"main": func}), target=target)
    (record,) = records.values()
    assert record.refusal is None, record.refusal
    assert record.optimized is not None and record.optimized.sizes
    assert record.recipe == (recipe or record.recipe)
    return built["main"]


def run_at(
    kernel: Callable[..., Any], inputs: Sequence[np.ndarray], want: np.ndarray, target: str
) -> tuple[np.ndarray, np.ndarray]:
    """What a kernel gives for these inputs, beside what is wanted."""
    device = tvm.cpu() if target == "uir-cpu" else tvm.ext_dev(0)
    out = tvm.runtime.tensor(np.full(want.shape, np.nan, "float32"), device)
    kernel(*(tvm.runtime.tensor(a, device) for a in inputs), out)
    return out.numpy(), want
