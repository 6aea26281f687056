# SPDX-License-Identifier: Apache-2.0
"""The dtype table names the same types as TVM and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import DataType
from uir_tvm.errors import IGraphError
from uir_tvm.igraph.dtypes import DTYPES, bytes_of, from_tvm, numpy_of, to_tvm


@pytest.mark.parametrize("name", DTYPES)
def test_names_round_trip_and_sizes_agree_with_tvm(name: str) -> None:
    assert from_tvm(to_tvm(name)) == name
    assert from_tvm(DataType(to_tvm(name))) == name
    assert bytes_of(name) == numpy_of(name).itemsize
    assert name == "bool" or bytes_of(name) * 8 == DataType(to_tvm(name)).bits


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_stores_the_number_one(name: str) -> None:
    assert np.ones(2, numpy_of(name)).astype(np.float64).tolist() == [1.0, 1.0]


def test_unknown_dtypes_are_refused_with_the_choice() -> None:
    with pytest.raises(IGraphError, match="float32x4.*\n.*float32"):
        from_tvm("float32x4")
    with pytest.raises(IGraphError, match="fp99.*\n.*fp32"):
        numpy_of("fp99")
