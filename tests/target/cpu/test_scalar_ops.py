# SPDX-License-Identifier: Apache-2.0
"""Scalar operators give values of the types in which the next ones compute."""

from __future__ import annotations

import itertools

import pytest
from tvm import tirx
from uir_tvm.igraph.dtypes import DTYPES
from uir_tvm.target.cpu.elements import element, type_of
from uir_tvm.target.cpu.scalar_ops import cast

#: All but those of which uir-cpu computes none.
COMPUTED = [name for name in DTYPES if not name.startswith("fp8")]


@pytest.mark.parametrize(("source", "target"), list(itertools.product(COMPUTED, COMPUTED)))
def test_a_cast_gives_the_type_in_which_its_target_is_computed(source: str, target: str) -> None:
    """An int8 that came by way of float32 would lose the low bits of a large int32."""
    x = tirx.Var("x", element(source).compute)
    assert type_of(cast(x, source, target, None)) == element(target).compute
