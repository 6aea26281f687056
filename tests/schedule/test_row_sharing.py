# SPDX-License-Identifier: Apache-2.0
"""How many units share a reduction: the choice of modelled time, and that what is chosen runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.device import run_text as device_run
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.demo import from_relax
from uir_tvm.schedules.normalization.row_sharing import RowWork, column_seconds, members, seconds

from tests.extracted import extracted

from ..target.bang.kernels import PASSES, printed

MLU = hardware.get("mlu370-x8", "bang")
SOFTMAX = {"operations": 28.0, "bytes": 8.0, "reductions": 2, "walks": 3}
RMS = {"operations": 6.0, "bytes": 12.0, "reductions": 1, "walks": 2}
SUM = {"operations": 2.0, "bytes": 4.0, "reductions": 1, "walks": 1}


@pytest.mark.parametrize(
    "rows, columns, work, own, size",
    [
        (64, 65536, SOFTMAX, False, 4),
        (4, 32768, SOFTMAX, False, 4),
        (1, 4096, SOFTMAX, True, 4),
        (64, 4096, SOFTMAX, True, 1),
        (16, 1000, SOFTMAX, True, 1),
        (1, 4096, RMS, True, 4),
        (64, 4096, RMS, True, 1),
        (1, 64, RMS, True, 1),
        (16, 65536, SUM, False, 1),
        (1, 1 << 20, SUM, False, 4),
    ],
)
def test_clusters_share_few_long_rows(
    rows: int, columns: int, work: dict[str, Any], own: bool, size: int
) -> None:
    """As measured on the host model (docs/targets/bang.md)."""
    assert members(MLU, RowWork(rows, columns, **work), 18000, own) == size


def test_time_grows_with_what_is_done() -> None:
    """With rows, columns, operations, and pieces of a row that is walked again."""
    work = RowWork(16, 4096, **SOFTMAX)
    for size in (1, 4):
        base = seconds(MLU, work, size, 1)
        assert seconds(MLU, RowWork(32, 4096, **SOFTMAX), size, 1) > base
        assert seconds(MLU, RowWork(16, 8192, **SOFTMAX), size, 1) > base
        assert seconds(MLU, RowWork(16, 4096, **{**SOFTMAX, "operations": 60.0}), size, 1) > base
        assert seconds(MLU, work, size, 2) > base
    few = RowWork(128, 16384, **SUM)
    assert column_seconds(MLU, few, 128, 4, 32) < column_seconds(MLU, few, 128, 1, 128)


def test_no_figures_no_sharing() -> None:
    """Without a clock there is no time to choose by."""
    model = hardware.get("mlu370-x8", "bang")
    bare = type(model)(
        "bare",
        "bang",
        4,
        4,
        model.reg_bytes,
        model.sram_bytes,
        128,
        {k: v for k, v in model.figures.items() if k != "clock_hz"},
    )
    assert members(bare, RowWork(1, 1 << 20, **SUM), 18000, False) == 1


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gamma + beta


#: Name -> function, shapes, dtype, reference, units of a group that it takes.
CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], str, Callable[..., Any], int]] = {
    "softmax of few rows": (op.nn.softmax, [(3, 8192)], "float32", _softmax, 4),
    "softmax in fp16": (op.nn.softmax, [(2, 8192)], "float16", _softmax, 4),
    "softmax of ragged rows": (op.nn.softmax, [(5, 8003)], "float32", _softmax, 4),
    "softmax in pieces": (op.nn.softmax, [(1, 90112)], "float32", _softmax, 4),
    "layer norm": (
        lambda x, g, b: op.nn.layer_norm(x, g, b, axes=[-1]),
        [(2, 8192), (8192,), (8192,)],
        "float32",
        _layer_norm,
        4,
    ),
    "row sum": (lambda x: op.sum(x, axis=-1), [(1, 131072)], "float32", lambda x: x.sum(-1), 4),
    "column sum": (lambda x: op.sum(x, axis=0), [(4096, 128)], "float32", lambda x: x.sum(0), 4),
    "ragged column sum": (lambda x: op.sum(x, axis=0), [(5003, 48)], "float32", lambda x: x.sum(0), 4),
    "rows enough for all": (op.nn.softmax, [(32, 256)], "float32", _softmax, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_chosen_runs(name: str) -> None:
    """On the host model, without a finding, beside NumPy in double precision."""
    build, shapes, dtype, reference, units = CASES[name]
    example = from_relax(build, shapes, lambda *_: None, dtypes=[dtype] * len(shapes))
    kernel = printed(extracted(apply_default(example.func, MLU), MLU), PASSES)
    ran = device_run.run(kernel, example.inputs, max_seconds=60)
    assert not [finding for result in ran.results for finding in result.findings]
    assert max(launch.block for launch in kernel.launches) == units
    (got,) = ran.outputs.values()
    wanted = reference(*(a.astype(np.float64) for a in example.inputs))
    # sums of 8192 values, functions within some ULP; fp16 results are rounded once
    tolerance = 2e-5 if dtype == "float32" else 2e-3
    np.testing.assert_allclose(
        np.asarray(got, np.float64).reshape(wanted.shape), wanted, rtol=tolerance, atol=tolerance
    )
