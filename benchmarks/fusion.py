# SPDX-License-Identifier: Apache-2.0
"""Decisions of fusion that a price takes, measured: both ways of each, in turns, beside the two prices.

    PYTHONPATH=. python benchmarks/fusion.py [PATTERN]

Each row is a program with one trade (`uir_tvm.kernel_graph.fusion_cost`), compiled with all candidates merged
and with none; the price decides in a third compilation, which is not timed.  Times are medians of a call.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
import tvm
from tvm.relax import op
from uir_tvm import CompileOptions, compile

from tests.kernel_graph.programs import Spec, constant, module

#: Rounds of turns, seconds of one turn, and the difference below which both ways are as good.
ROUNDS, TURN, ALIKE = 7, 0.04, 0.03
F32, F16 = "float32", "float16"


@attrs.frozen
class Trade:
    """A program in which one candidate of fusion is a trade.

    Attributes
    ----------
    candidate, name : str
        Of which sort it is, and what is computed.
    inputs : mapping of str to Spec
    body : callable
        As of `tests.kernel_graph.programs.module`.
    """

    candidate: str
    name: str
    inputs: Mapping[str, Spec]
    body: Callable[..., Any]


def _sum_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A row's sum of a function."""
    return lambda emit, x: emit(op.sum(emit(function(x)), axis=[1]))


def _gated_norm(emit: Any, x: Any, y: Any) -> Any:
    gated = emit(op.multiply(emit(op.nn.silu(x)), y))
    return emit(op.nn.rms_norm(gated, constant(4096), axes=[-1]))


def _row_added(emit: Any, row: Any, x: Any) -> Any:
    return emit(op.add(emit(op.sin(row)), x))


def _two_ways(of: Callable[..., Any]) -> Callable[..., Any]:
    """A value that is summed along rows and along columns."""

    def body(emit: Any, *given: Any) -> Any:
        value = emit(of(*given))
        return emit(op.sum(value, axis=[1])), emit(op.sum(value, axis=[0]))

    return body


def _two_norms(emit: Any, x: Any) -> Any:
    width = int(x.ty.shape[-1])
    rows = [constant(width, seed=seed) for seed in range(4)]
    return tuple(emit(op.nn.layer_norm(x, *rows[at : at + 2], axes=[-1])) for at in (0, 2))


def _two_sums(emit: Any, row: Any, x: Any, y: Any) -> Any:
    return emit(op.add(x, row)), emit(op.add(y, row))


LARGE = ((4096, 2048), F32)
TRADES = (
    Trade("few rows", "exp, then the sum of 1 row of 4 M", {"x": ((1, 1 << 22), F32)}, _sum_of(op.exp)),
    Trade("few rows", "sin, then the sum of 1 row of 4 M", {"x": ((1, 1 << 22), F32)}, _sum_of(op.sin)),
    Trade(
        "few rows",
        "silu(x) * y, then an RMS norm of 1 row of 4096",
        {"x": ((1, 4096), F32), "y": ((1, 4096), F32)},
        _gated_norm,
    ),
    Trade(
        "repeated",
        "sin of a row, added to 2 rows of 64",
        {"r": ((64,), F32), "x": ((2, 64), F32)},
        _row_added,
    ),
    Trade("repeated", "the same, 4096 rows of 2048", {"r": ((2048,), F32), "x": LARGE}, _row_added),
    Trade(
        "recomputed",
        "a column plus a row, 4096 x 2048, summed both ways",
        {"c": ((4096, 1), F32), "r": ((2048,), F32)},
        _two_ways(op.add),
    ),
    Trade(
        "recomputed",
        "float16 as float32, 4096 x 2048, summed both ways",
        {"x": ((4096, 2048), F16)},
        _two_ways(lambda x: op.astype(x, F32)),
    ),
    Trade("recomputed", "tan, 4096 x 2048, summed both ways", {"x": LARGE}, _two_ways(op.tan)),
    Trade("siblings", "2 layer norms of 4096 x 2048", {"x": LARGE}, _two_norms),
    Trade(
        "siblings",
        "a row added to 2 tensors of 1024 x 2048",
        {"r": ((2048,), F32), "x": ((1024, 2048), F32), "y": ((1024, 2048), F32)},
        _two_sums,
    ),
)


def arrays(inputs: Mapping[str, Spec]) -> list[tvm.runtime.Tensor]:
    """Numbers between 0.1 and 1."""
    rng = np.random.default_rng(1)
    return [tvm.runtime.tensor(rng.uniform(0.1, 1, shape).astype(dtype)) for shape, dtype in inputs.values()]


def measured(ways: Mapping[str, Any], given: list[tvm.runtime.Tensor]) -> dict[str, float]:
    """Median seconds of a call of each executable; they take turns."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for exe in ways.values():
        exe(*given)
    for _ in range(ROUNDS):
        for way, exe in ways.items():
            exe(*given)
            end = time.perf_counter() + TURN
            while time.perf_counter() < end:
                start = time.perf_counter()
                exe(*given)
                times[way].append(time.perf_counter() - start)
    return {way: statistics.median(each) for way, each in times.items()}


def row(trade: Trade) -> str:
    """A row of the table."""
    mod = module(trade.inputs, trade.body)
    ways = {way: compile(mod, options=CompileOptions(fusion=way)) for way in ("apart", "merged", "priced")}
    found = [each for each in ways["priced"].kernel_graph.fusion if each.candidate == trade.candidate]
    decision = found[-1]
    given = arrays(trade.inputs)
    for one, other in zip(_results(ways["apart"], given), _results(ways["merged"], given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    took = measured({way: ways[way] for way in ("apart", "merged")}, given)
    gain = took["apart"] / took["merged"]
    alike = abs(gain - 1) < ALIKE
    right = "alike" if alike else "yes" if (gain > 1) == decision.merged else "no"
    cells = [
        trade.candidate,
        trade.name,
        *(f"{price.seconds * 1e6:.4g}" for price in (decision.apart, decision.together)),
        "one" if decision.merged else "apart",
        *(f"{took[way] * 1e6:.4g}" for way in ("apart", "merged")),
        f"{gain:.2f}",
        right,
    ]
    return "| " + " | ".join(cells) + " |"


def _results(exe: Any, given: list[tvm.runtime.Tensor]) -> list[np.ndarray]:
    out = exe(*given)
    return [np.asarray(each) for each in (out if isinstance(out, tuple | list) else [out])]


def main() -> None:
    """The table, for the trades whose text a pattern is found in."""
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    print(
        "| candidate | program | priced apart, us | as one | chosen "
        "| measured apart, us | as one | apart over one | right |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for trade in TRADES:
        if re.search(pattern, f"{trade.candidate} {trade.name}"):
            print(row(trade), flush=True)


if __name__ == "__main__":
    main()
