# SPDX-License-Identifier: Apache-2.0
"""One model on every target: each computes it, and says in the same words what that takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from uir_tvm.target import registry

from scripts.four_targets import TARGETS, Row, compiled, figures, table

ROWS, WIDTH = 6, 40


def model() -> tuple[tvm.IRModule, list[np.ndarray], np.ndarray]:
    """softmax(x w + b) and its value by NumPy."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype("float32") for shape in ((ROWS, 16), (16, WIDTH), (WIDTH,)))
    builder = relax.BlockBuilder()
    data = relax.Var("x", relax.TensorType(x.shape, "float32"))
    with builder.function("main", [data]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(data, relax.const(w)))
            scores = builder.emit(relax.op.add(product, relax.const(b)))
            result = builder.emit_output(relax.op.nn.softmax(scores))
        builder.emit_func_output(result)
    weights = np.exp(x @ w + b - (x @ w + b).max(-1, keepdims=True))
    return builder.get(), [x], weights / weights.sum(-1, keepdims=True)


def test_every_target_has_a_row() -> None:
    assert set(TARGETS) == set(registry.TARGETS)


@pytest.mark.parametrize("row", TARGETS.values(), ids=list(TARGETS))
def test_a_target_computes_the_model_and_says_what_it_takes(row: Row) -> None:
    """fp32, sums of 16 and 40 terms: a few ulp of the largest; bytes and times as the host model counts."""
    program, inputs, expected = model()
    exe = compiled(row, program)
    found = figures(row, exe, inputs, expected, repeat=1)
    assert found["max error"] < 2e-6
    assert found["kernels"] == 1 and found["library"] == 1
    least = 4 * (ROWS * WIDTH * 2) / 1024
    assert found["on host"] or (found["lines"] > 5 and found["KiB moved"] >= least)
    assert found["time"] in ("measured", "modelled", "modelled in part", "not counted")
    assert (found["us"] is None) == (found["time"] == "not counted")
    if found["time"] == "modelled":
        times = exe.modelled(*inputs)
        assert found["us"] == pytest.approx(1e6 * times.seconds, abs=0.06)
        assert found["KiB moved"] == pytest.approx(times.bytes / 1024, abs=0.06), "counted on two ways"


@pytest.mark.parametrize("target", ["uir-ascend", "uir-bang"])
def test_what_a_text_holds_is_what_its_printer_says(target: str) -> None:
    """Waits, and bytes of the core's memory with work buffers, by the printer's own report."""
    program, inputs, expected = model()
    exe = compiled(TARGETS[target], program)
    (kernel,) = exe.info.kernels
    (said,) = kernel.code["printer"].values()
    found = figures(TARGETS[target], exe, inputs, expected)
    assert found["syncs"] == sum(line.startswith("sync ") for line in said) > 0
    sizes = [int(line.split()[1]) for line in said if line.startswith(("UB: ", "NRAM: "))]
    assert found["peak KiB on chip"] == round(sum(sizes) / 1024, 1) > 0


def test_the_table_has_a_line_for_each_target() -> None:
    rows: list[dict[str, Any]] = [
        {"target": "a", "us": None, "max error": 1e-7},
        {"target": "bb", "us": 2.5, "max error": 0.5},
    ]
    first, *lines = table(rows).splitlines()
    assert first.split() == ["target", "us", "max", "error"]
    assert [line.split() for line in lines] == [["a", "-", "1.0e-07"], ["bb", "2.5", "0.5"]]
