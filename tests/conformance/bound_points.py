# SPDX-License-Identifier: Apache-2.0
"""Arguments over the whole range of a dtype, and one kernel that computes functions of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, ISlice, make
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.igraph.iops import BINARY, UNARY

#: Elements of the vectors.
POINTS = 2048
#: Of the functions that take one.
PARAMS = {"pows": [2.7], "leaky_relu": [0.125]}

_SPECIAL = (0.0, 0.5, 1.0, 2.0, 3.0, 5.9, 8.0, 10.0, 1e-3, 1e-6, 1e20, 0.7071, 0.41421356, 3.92, np.inf)


#: Near 2^22, where turns are taken off in another way, and floats that are very near a multiple of pi / 2.
_FAR = np.array([2.0**22, 2.0**23, 42781604.0, 2.19993846e10, 8.11762664e22, 16367173 * 2.0**72], np.float32)


def _neighbours(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.nextafter(x, x.dtype.type(0)), np.nextafter(x, x.dtype.type(np.inf))])


def arguments(dtype: str, seed: int = 0) -> np.ndarray:
    """`POINTS` numbers: every binade with denormals, both zeros, infinities, NaN, and where functions
    cancel.

    Those places are ±1 (log, acosh, atanh), multiples of pi / 2 (sine, cosine), the tails of exp, erf,
    tanh.
    """
    rng = np.random.default_rng(seed)
    row = np.finfo(numpy_of(dtype)) if dtype != "bf16" else None
    low, high = (-149, 128) if row is None or dtype == "fp32" else (-24, 16)
    if dtype == "bf16":
        low = -133
    binades = np.exp2(rng.uniform(low, high, 500))
    around_one = 1 + np.exp2(rng.uniform(-24, 0, 60)) * rng.choice([-1, 1], 60)
    turns = np.pi / 2 * np.concatenate([np.arange(1, 25), 2 ** np.arange(5, 17)])
    special = np.array(_SPECIAL)
    with np.errstate(over="ignore"):
        held = np.concatenate([binades, around_one, turns, special, rng.uniform(0, 12, 200)]).astype(
            np.float32
        )
        rest = rng.uniform(-110, 110, 300).astype(np.float32)
        ends = np.array([np.exp2(low), np.finfo(np.float32).max], np.float32)
        every = np.concatenate([held, -held, -rest, ends, -ends, [np.nan]])
        tricky = np.array([*_SPECIAL[:12], *turns[:8], 88.72, 103.9, -88.72, -103.9], np.float32)
        far = np.concatenate([_neighbours(_FAR), -_FAR])
        every = np.concatenate([every, _neighbours(tricky), far]).astype(numpy_of(dtype))
    assert len(every) <= POINTS
    return np.resize(every, POINTS)


def second_arguments(x: np.ndarray, seed: int = 1) -> np.ndarray:
    """The other operand: a third anything, a third small numbers (exponents), a third near the first."""
    rng = np.random.default_rng(seed)
    small = np.round(rng.uniform(-6, 6, len(x)) * 4) / 4
    with np.errstate(all="ignore"):
        near = x.astype(np.float32) * rng.choice([1, -1, 1.001, 0.3, -7.5], len(x))
    y = np.select(
        [np.arange(len(x)) % 3 == k for k in (0, 1)], [rng.permutation(x.astype(np.float32)), small], near
    )
    with np.errstate(over="ignore"):
        return np.asarray(y).astype(x.dtype)


def functions_of(dtype: str, binary: bool) -> list[str]:
    """Names of the functions that take floats."""
    return [n for n, row in (BINARY if binary else UNARY).items() if "float" in row.kinds and n != "copy"]


def graph_of(names: Sequence[str], binary: bool, dtype: str, hw: HardwareModel) -> IGraph:
    """One output for each function, over `POINTS` elements by one unit."""
    inputs = [IPointer(f"x{k}", "dram", dtype, POINTS, "in") for k in range(1 + binary)]
    chip = [IPointer(f"s{k}", "reg", dtype, POINTS, "tmp") for k in range(1 + binary)]
    shape = (1, POINTS)
    loaded = [ISlice(p, 0, shape) for p in chip]
    body = [make.move(s, ISlice(p, 0, shape)) for s, p in zip(loaded, inputs, strict=True)]
    temporary: dict[str, IPointer] = {}
    outputs = []
    for name in names:
        row = (BINARY if binary else UNARY)[name]
        result = "bool" if row.result == "bool" else dtype
        held = temporary.setdefault(result, IPointer(f"t_{result}", "reg", result, POINTS, "tmp"))
        out = IPointer(f"{name}_out", "dram", result, POINTS, "out")
        outputs.append(out)
        t = ISlice(held, 0, shape)
        params = PARAMS.get(name, [3.0] * row.n_params)
        made = make.binary(name, t, *loaded) if binary else make.unary(name, t, loaded[0], params)
        body += [made, make.move(ISlice(out, 0, shape), t)]
    pointers = [*inputs, *outputs, *chip, *temporary.values()]
    return IGraph("bounds", hw, 1, 1, pointers, body)
