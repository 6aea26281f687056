# SPDX-License-Identifier: Apache-2.0
"""Relax operators against stock TVM: one case of each; all dtypes and ranks with ``UIR_TEST_ALL=1``.

What a target does not take through an iGraph it leaves to the host, whatever stock TVM builds;
`docs/operators.md` says which, and is current.
"""

from __future__ import annotations

import logging
import os
import random

import numpy as np
import pytest
import uir_tvm
from uir_tvm.errors import UnsupportedOperatorError
from uir_tvm.target.registry import TARGETS

from . import operators
from .operators import CASES, QUICK, groups, representative
from .operators.case import module
from .operators.check import check, expected, placed
from .operators.document import DOCUMENT, listed, load, rendered, why_uncovered

ALL = bool(os.environ.get("UIR_TEST_ALL"))
#: Operators in a model of its own; a model of all takes the virtual machine's registers.
TOGETHER = 12
BATCHES = [QUICK[start : start + TOGETHER] for start in range(0, len(QUICK), TOGETHER)]
#: Batches that are compared kernel by kernel, which doubles their time (and takes minutes of roi_align); all
#: with ``UIR_TEST_ALL=1``.
COMPARED = (7, 11)
#: What stock TVM computes wrongly or not at all, and what once crashed.
MENDED = (
    "argmax-float8_e4m3fn-2x1x3x4-last",
    "argsort-uint64-3x7-last",
    "arange-bfloat16",
    "clip-float8_e5m2-2x3x5",
    "isfinite-bfloat16-5",
    "median-int16-2x1x3x4",
    "sort-bfloat16-3x7-first",
    "topk-float8_e5m2-5",
)
#: Cases that run on the host of a device, by extern calls, loops without blocks and scatters.
ON_HOST = (
    "topk-float32-3x7",
    "sort-int32-5-first",
    "cumsum-float32-3x7-last",
    "scatter_elements-float32-int64-add-1",
    "scatter_elements-int32-int32-max-0",
    "vision.non_max_suppression-float32",
)
GROUPS = groups()
#: Rows of the document that are compiled again on each target.
SAMPLE = 6
#: What stock TVM gives; what it does not build and we do; what neither builds.
FINE = ("right", "ours", "unbuilt")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are left to the host are what is looked at here."""
    monkeypatch.setattr(logging.getLogger("uir_tvm.pipeline"), "disabled", True)


def expect_right(cases: list[operators.Case], target: str) -> None:
    """What stock TVM builds is built, with its numbers."""
    found = check(cases, target, expected(cases))
    wrong = [f"{o.status}: {o.case.name}: {o.detail}" for o in found if o.status not in FINE]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("batch", range(len(BATCHES)))
def test_one_case_of_every_operator(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against stock TVM's numbers; in some batches each iGraph against its function too."""
    if not ALL and batch not in COMPARED:
        monkeypatch.setenv("UIR_EQUIVALENCE", "none")
    expect_right(BATCHES[batch], "uir-cpu")


def test_what_stock_tvm_computes_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    # TVM's lowering, the reference of a comparison, reads subnormal float8 as normal numbers
    monkeypatch.setenv("UIR_EQUIVALENCE", "none")
    cases = [CASES[name] for name in MENDED]
    found = check(cases, "uir-cpu", expected(cases))
    assert [f"{o.case.name}: {o.detail}" for o in found if o.status not in ("right", "ours")] == []


#: TVM sums no bools.
NOT_LOWERED = "collapse_sum_to-bool-5"


@pytest.mark.parametrize("target", ["uir-ascend", "uir-bang"])
def test_what_tvm_does_not_lower_is_refused_in_words(target: str) -> None:
    """An error names the kernel that a device leaves to it."""
    with pytest.raises(UnsupportedOperatorError, match="collapse_sum"):
        uir_tvm.compile(module([CASES[NOT_LOWERED]]), target)


@pytest.mark.parametrize("target", ["uir-cpu", "uir-cuda"])
def test_what_tvm_does_not_lower_a_recipe_may(target: str) -> None:
    """There is nothing to compare it with; a recipe makes a kernel of it nevertheless."""
    case = CASES[NOT_LOWERED]
    (given,) = case.arrays()
    np.testing.assert_array_equal(uir_tvm.compile(module([case]), target)(given), given.any())


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "uir-cpu"])
def test_what_a_device_leaves_to_the_host(target: str) -> None:
    expect_right([CASES[name] for name in ON_HOST], target)


# thousands of skipped tests would take seconds
@pytest.mark.skipif(not ALL, reason="takes an hour; UIR_TEST_ALL=1")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("group", GROUPS if ALL else (), ids="-".join)
def test_all_dtypes_and_ranks(group: tuple[str, str], target: str) -> None:
    expect_right(GROUPS[group], target)


def test_every_operator_has_a_case_or_a_reason() -> None:
    covered = {case.operator for case in CASES.values()}
    assert [name for name in operators.operators() if name not in covered and not why_uncovered(name)] == []


def test_the_document_lists_every_operator_in_every_dtype() -> None:
    """`python scripts/sweep_operators.py --document` makes the record and the document."""
    text = DOCUMENT.read_text()
    assert text == rendered(load())
    assert listed(text) == set(GROUPS)


def test_a_document_without_a_row_is_found_out() -> None:
    record = load()
    del record["sort"]["bfloat16"]
    assert set(GROUPS) - listed(rendered(record)) == {("sort", "bfloat16")}


@pytest.mark.parametrize("target", TARGETS)
def test_a_sample_of_the_document_is_true(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows in every run, others on every target."""
    monkeypatch.setenv("UIR_EQUIVALENCE", "none")
    record = load()
    chosen = random.Random(f"rows of {target}").sample(sorted(GROUPS), SAMPLE)
    found = {key: placed(representative(GROUPS[key]), target) for key in chosen}
    assert found == {key: record[key[0]][key[1]][target] for key in chosen}
