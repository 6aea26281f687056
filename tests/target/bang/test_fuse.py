# SPDX-License-Identifier: Apache-2.0
"""What is joined to one function keeps the roundings that the model asks for."""

from __future__ import annotations

import numpy as np
import pytest

from .kernels import check, parse

_COUNT = 512


def _chain(*steps: str) -> str:
    """A graph of unary iOps, one after another."""
    lines = [
        f"  x = iPointer(dram, fp32, {_COUNT}, in)",
        f"  y = iPointer(dram, fp32, {_COUNT}, out)",
        *(f"  t{k} = iPointer(reg, fp32, {_COUNT})" for k in range(len(steps) + 1)),
        f"  move.dram.reg.fp32 t0[0; (1,{_COUNT}); ({_COUNT},1)], x[0; (1,{_COUNT}); ({_COUNT},1)]",
    ]
    for k, step in enumerate(steps):
        name, _, params = step.partition(" ")
        place = f"[0; (1,{_COUNT}); ({_COUNT},1)]"
        lines.append(f"  unary.{name}.fp32 t{k + 1}{place}, t{k}{place} {params}".rstrip())
    lines.append(
        f"  move.reg.dram.fp32 y[0; (1,{_COUNT}); ({_COUNT},1)], t{len(steps)}[0; (1,{_COUNT}); ({_COUNT},1)]"
    )
    return "\n".join(lines)


def _inputs() -> np.ndarray:
    rng = np.random.default_rng(3)
    return (rng.standard_normal(_COUNT) * np.exp(rng.uniform(-40, 40, _COUNT))).astype("float32")


@pytest.mark.parametrize(
    "steps",
    [
        ("muls [0.5]", "adds [1000.0]", "adds [-1000.0]"),
        ("muls [1e+30]", "muls [1e-30]"),
        ("muls [3.0]", "adds [1.0]", "muls [7.0]"),
        ("adds [0.1]", "muls [10.0]", "adds [-1.0]", "muls [0.3]"),
        ("muls [0.3]", "muls [0.7]", "muls [1.1]"),
    ],
)
def test_numbers_of_the_model_stay_apart(steps: tuple[str, ...]) -> None:
    """Sums that cancel, products that overflow: every bit is the interpreter's (fused, it rounds twice)."""
    check(parse(_chain(*steps)), [_inputs()])


def test_numbers_of_a_function_fold_into_the_model_s() -> None:
    """log is a product with a number: what the model adds takes no operation of its own."""
    alone = check(parse(_chain("log")), [np.abs(_inputs())], rtol=6e-7)
    more = check(parse(_chain("log", "adds [1.0]")), [np.abs(_inputs())], rtol=6e-7)
    count = [kernel.source.count("  __bang_") for kernel in (alone, more)]
    assert count[1] <= count[0], more.source
