# SPDX-License-Identifier: Apache-2.0
"""A target from outside of the package passes the conformance table.

Shared files know no target by name: this one has nothing but its record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from uir_tvm.schedules import RECIPES

from ..conformance import refusals
from ..conformance.cases import CASES, CLASSES, QUICK
from ..conformance.groups import GROUP_FORMS, QUICK_FORMS
from ..conformance.refusals import FP8_NAMES, Refusal
from ..conformance.test_targets import ALL_CASES, check_case, check_group_form, check_recipe
from . import NAME, registered

#: Of every class of cases a float, an integer and what is refused: that a printer of C is right in each dtype
#: and shape says little of the package.
FEW = tuple(
    name
    for name in QUICK
    if name.partition("-")[0] not in CLASSES
    or name.endswith(("-fp32-ragged", "-int8-ragged", "-fp8e4m3-ragged"))
)

REASONS = (
    Refusal("C has no fp8", dtypes=FP8_NAMES),
    Refusal("rounds to the nearest only", names=("cast_floor",)),
)


@pytest.fixture(scope="module", autouse=True)
def target() -> Iterator[str]:
    with registered() as record, pytest.MonkeyPatch.context() as patch:
        patch.setitem(refusals.REFUSALS, record.name, REASONS)  # type: ignore[arg-type]
        yield record.name


@pytest.mark.parametrize("name", CASES if ALL_CASES else FEW)
def test_case(name: str) -> None:
    check_case(name, NAME)


@pytest.mark.parametrize("name", GROUP_FORMS if ALL_CASES else QUICK_FORMS)
def test_group_form(name: str) -> None:
    check_group_form(name, NAME)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.hero)
def test_recipe(recipe: Any) -> None:
    check_recipe(recipe, NAME)
