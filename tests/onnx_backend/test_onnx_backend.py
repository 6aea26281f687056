# SPDX-License-Identifier: Apache-2.0
"""The ONNX standard's own tests pass on uir-cpu, or are refused by a typed error.

``UIR_TEST_ALL=1`` runs all of them (as ``scripts/sweep_onnx.py``); without it those of `FAST`, in which each
mechanism of the importer has its case.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.onnx_backend import document
from tests.onnx_backend.cases import Case, load
from tests.onnx_backend.run import PASSED, REFUSED, difference, judge, sweep

#: What each is for.
FAST = {
    "test_attention_4d_gqa": "the standard's own body",
    "test_batchnorm_example_training_mode": "the batch's own mean",
    "test_cast_FLOAT_to_FLOAT8E4M3FN": "saturation and ties of narrow floats",
    "test_cast_FLOAT8E5M2_to_FLOAT": "subnormals and NaN of narrow floats",
    "test_cast_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ": "numbers beyond the range",
    "test_cumsum_1d_reverse_exclusive": "an axis as an input",
    "test_dynamicquantizelinear": "rounding to even",
    "test_if": "a branch decided at the call",
    "test_isinf_negative": "flags",
    "test_layer_normalization_2d_axis0": "outputs that the native converter lacks",
    "test_loop11": "a loop of known length",
    "test_lstm_with_peepholes": "steps over time",
    "test_mod_float_edge_cases_fmod_0_float32": "infinities and zeros",
    "test_qlinearmatmul_3D_int8_float32": "exact integers",
    "test_reduce_sum_negative_axes_keepdims_random": "axes as an input",
    "test_resize_upsample_scales_nearest": "scales as an input",
    "test_scan9_sum": "a scan",
    "test_sce_mean_weight_ii_4d": "functions in functions",
    "test_sequence_insert_at_back": "sequences as inputs are refused",
}
#: Of these, what is refused.
REFUSED_FAST = {"test_sequence_insert_at_back"}


def test_fast_cases_end_as_the_standard_says() -> None:
    outcomes = [judge(load()[name], "uir-cpu") for name in FAST]
    wrong = [o for o in outcomes if o.state != (REFUSED if o.name in REFUSED_FAST else PASSED)]
    assert not wrong, "\n".join(f"{o.state} {o.name}: {o.text[:300]}" for o in wrong)


@pytest.mark.skipif(not os.environ.get("UIR_TEST_ALL"), reason="takes half an hour: UIR_TEST_ALL=1")
def test_no_case_is_wrong_hangs_or_crashes() -> None:
    outcomes = list(sweep(list(load()), workers=2))
    faults = [o for o in outcomes if o.state not in (PASSED, REFUSED)]
    assert not faults, "\n".join(f"{o.state} {o.name}: {o.text[:300]}" for o in faults)
    assert sum(o.state == PASSED for o in outcomes) >= 1450


def test_the_comparison_finds_differences() -> None:
    """A wrong element, dtype or shape is told."""
    case: Case = load()["test_add"]
    (want,) = case.data[0][1]
    assert not difference(case, [want.copy()], [want])
    other = want.copy()
    other.flat[0] += 0.1
    for wrong in (other, want.astype(np.float64), want[1:]):
        assert difference(case, [wrong], [want])


def test_the_document_is_that_of_the_record() -> None:
    record = document.load_record()
    devices = document.load_devices()
    assert record and document.DOCUMENT.read_text() == document.rendered(record, devices)
    assert set(devices) == {"uir-cuda", "uir-ascend", "uir-bang"}
    states = {state for rows in (*record.values(), *devices.values()) for state, _ in rows.values()}
    assert states == {PASSED, REFUSED}
