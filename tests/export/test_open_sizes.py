# SPDX-License-Identifier: Apache-2.0
"""What a program leaves open: conditions, sizes to check with, and what kernels' sizes are at a call."""

from __future__ import annotations

import pytest
from uir_tvm.errors import ExportError
from uir_tvm.export.open_sizes import OpenSizes, launch_values, range_texts
from uir_tvm.sizes.saved_sizes import holds

SIZE = {"low": 0, "high": 40, "multiple_of": 1}


def test_a_kernel_s_sizes_are_dimensions_of_its_tensors_or_products() -> None:
    code = {
        "sizes": [{"name": "s0_times_s1", **SIZE}, {"name": "own", **SIZE}],
        "shapes": [["s0", "s1", 64], ["own", None]],
    }
    found = launch_values(code, [("b", "n + 1", 64), ("(h - 1)//2", "2*h")])
    assert found == {"s0_times_s1": "b * (n + 1)", "own": "(h - 1) // 2"}
    # one kernel may be called with other shapes, of which some are numbers
    assert launch_values(code, [("b", 7, 64), (5, 10)]) == {"s0_times_s1": "b * 7", "own": 5}
    assert launch_values(code, [(2, 7, 64), (5, 10)])["s0_times_s1"] == 14
    assert launch_values({"sizes": []}, []) == {}


def test_a_size_that_no_dimension_has() -> None:
    code = {"sizes": [{"name": "s0_times_s1", **SIZE}], "shapes": [["s0", None]]}
    with pytest.raises(ExportError, match="size s0_times_s1 of a kernel") as error:
        launch_values(code, [("b", "2*n")])
    assert error.value.need and "--size" in error.value.remedy


def test_what_kernels_ask_is_a_condition() -> None:
    """Once, whichever kernel asks it, and in terms of the program's sizes."""
    sizes = OpenSizes(("b", "n"), ("1 <= b <= 8",), {"b": 2, "n": 8})
    row = {"name": "k", "low": 4, "high": 64, "multiple_of": 4}
    met = sizes.meeting([row], {"k": "b*n"}).meeting([row], {"k": "b*n"})
    assert met.conditions == ("1 <= b <= 8", "4 <= b*n <= 64", "(b*n) % 4 == 0")
    assert met.broken({"b": 2, "n": 8}) == "" and met.broken({"b": 3, "n": 3}) == "(b*n) % 4 == 0"
    (unbounded,) = range_texts("n", {"low": 1, "high": 2**31 - 1, "multiple_of": 1})
    assert unbounded == "1 <= n"


def test_sizes_to_check_with_are_small_and_meet_all_conditions() -> None:
    """They compare as the usual ones do; where no small ones do, the usual ones are taken."""
    sizes = OpenSizes(("b", "n"), ("1 <= b", "n < b", "n % 4 == 0"), {"b": 59, "n": 52})
    small = sizes.small()
    assert small["n"] < small["b"] < 59 and all(holds(text, small) for text in sizes.conditions)
    assert list(small) == ["b", "n"]
    odd = OpenSizes(("n",), ("n == 1009",), {"n": 1009})
    assert odd.small() == {"n": 1009}


def test_bytes_are_told_at_the_usual_sizes() -> None:
    assert OpenSizes(("n",), (), {"n": 10}).nbytes(("n", "n + 1", 3), "float16") == 2 * 10 * 11 * 3
    assert OpenSizes().nbytes((3, 5), "bool") == 15
