# SPDX-License-Identifier: Apache-2.0
"""A dtype holds another exactly where every value of it comes back from there."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph.dtypes import DTYPES, numpy_of
from uir_tvm.optimize.exact_casts import holds

from .equal import bits
from .test_simplify import values

NARROW = [name for name, row in DTYPES.items() if row.bytes <= 2]


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("wide", DTYPES)
def test_every_value_of_a_narrow_dtype_comes_back_exactly_where_it_is_held(narrow: str, wide: str) -> None:
    """All values; of dtypes that are not held, some value does not come back, or is out of range there."""
    found = values(narrow)
    real = found.astype(np.float64)
    with np.errstate(all="ignore"):
        there = found.astype(
            np.float32 if DTYPES[narrow].kind == "float" and narrow != "fp64" else found.dtype
        )
        there = there.astype(numpy_of(wide))
        exact = there.astype(np.float64)
        same = (exact == real) & (np.signbit(exact) == np.signbit(real)) | np.isnan(real) & np.isnan(exact)
    assert bool(same.all()) == holds(wide, narrow)
    if holds(wide, narrow):
        np.testing.assert_array_equal(bits(there.astype(found.dtype)), bits(found))


def test_wide_dtypes() -> None:
    assert holds("fp64", "fp32") and holds("fp64", "int32") and holds("int64", "uint32")
    assert not holds("fp32", "int32") and not holds("fp64", "int64") and not holds("int32", "uint32")
