# SPDX-License-Identifier: Apache-2.0
"""The comparison of a batch's runner, in plain Python, is that of candidates everywhere else."""

from __future__ import annotations

import importlib
import pathlib
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from uir_tvm.export import batch_runner
from uir_tvm.verify.agreement import TVM_TOLERANCE, Reference, differences, least_size

DTYPES = {name: np.dtype(getattr(ml_dtypes, name, None) or name) for name in TVM_TOLERANCE}


@pytest.fixture
def elements(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The runner's module, imported as there."""
    monkeypatch.syspath_prepend(str(pathlib.Path(batch_runner.__file__).parent))
    monkeypatch.delitem(
        sys.modules, "compare_elements", raising=False
    )  # another program may have such a module
    return importlib.import_module("compare_elements")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_value_is_decoded(elements: Any, dtype: str) -> None:
    """All bits of narrow types; of others, numbers of every size, infinities and NaN."""
    kind = DTYPES[dtype]
    if kind.itemsize <= 2:
        values = np.arange(256**kind.itemsize, dtype=f"uint{8 * kind.itemsize}").view(kind)
    else:
        rng = np.random.default_rng(1)
        values = rng.standard_normal(999) * 10.0 ** rng.integers(-40, 38, 999)
        values = np.append(values, [np.inf, -np.inf, np.nan, 0.0, -0.0]).astype(kind)
    _, decode = elements.FLOATS[dtype]
    with np.errstate(invalid="ignore"):  # NaN that signal
        wanted = values.astype(np.float64)
    np.testing.assert_array_equal(np.array(decode(values.tobytes())), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sums", [False, True])
def test_verdicts_are_the_same(elements: Any, dtype: str, sums: bool) -> None:
    """Errors around the tolerance, of two forms that are both right, and numbers that are none; seed 7."""
    rng = np.random.default_rng(7)
    kind, allowed = DTYPES[dtype], TVM_TOLERANCE[dtype]
    forms = [rng.uniform(-2, 2, 9000).astype(kind) for _ in range(2)]
    forms[1] = (forms[0].astype("float64") * (1 + allowed)).astype(kind)
    for scale in (0.0, 0.5, 0.9, 3.0):
        noise = rng.uniform(-scale, scale, 9000) * allowed
        got = (forms[0].astype("float64") * (1 + noise)).astype(kind)
        got[3] = forms[1][3]
        judged(elements, dtype, got, forms, sums)
    for at, value in ((0, np.nan), (8999, np.inf)):
        got = forms[0].copy()
        got[at] = value
        judged(elements, dtype, got, forms, sums)


def judged(elements: Any, dtype: str, got: np.ndarray, forms: list[np.ndarray], sums: bool) -> None:
    """Both verdicts, with the count of what differs."""
    reference = Reference(("y",), (True,), (forms[0],), tuple((form,) for form in forms), sums, (0.0, 1.0))
    theirs = differences(reference, [got])
    rows = [(form.tobytes(), least_size(form, sums)) for form in forms]
    ours = elements.compare("y", dtype, got.tobytes(), rows, TVM_TOLERANCE[dtype])
    assert bool(ours) == bool(theirs), (ours, list(map(str, theirs)))
    if theirs:
        assert ours.startswith(f"{theirs[0].count} of {theirs[0].total} elements of y differ")


def test_what_is_no_float_is_equal(elements: Any) -> None:
    """To the last bit; a float that a kernel only reads likewise."""
    wanted = np.arange(10, dtype="int32")
    assert elements.compare("y", "int32", wanted.tobytes(), [(wanted.tobytes(), 0.0)], 0.0) == ""
    got = wanted.copy()
    got[4] += 256
    said = elements.compare("y", "int32", got.tobytes(), [(wanted.tobytes(), 0.0)], 0.0)
    assert said == "1 of 40 bytes of y differ, first byte 17"
