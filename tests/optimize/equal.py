# SPDX-License-Identifier: Apache-2.0
"""Whether two graphs compute the same bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.sizes import at

from ..igraph.strategies import random_inputs

#: Values of open sizes: none, one, about tiles of some rows, more than all units have at once.
SIZES = (0, 1, 4, 15, 16, 17, 33, 100)


def bits(array: np.ndarray) -> np.ndarray:
    """The bits; of NaN one pattern, since its sign and payload are no part of the meaning."""
    if array.dtype.kind not in "biu":
        array = np.where(np.isnan(array.astype(np.float64)), array.dtype.type(np.nan), array)
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def assert_same_bits(
    before: IGraph, after: IGraph, inputs: Sequence[np.ndarray] | None = None, seed: int = 0
) -> None:
    """Both give the same bits on the inputs (by default random ones); graphs with sizes at some of these."""
    if before.sizes and inputs is None:
        for value in SIZES:
            sizes = {str(size.name): min(max(value, int(size.low)), int(size.high)) for size in before.sizes}
            assert_same_bits(at(before, sizes), at(after, sizes), seed=seed)
        return
    given = random_inputs(before, seed) if inputs is None else inputs
    for old, new in zip(interpreter.run(before, *given), interpreter.run(after, *given), strict=True):
        differ = bits(old) != bits(new)
        assert not differ.any(), (np.flatnonzero(differ)[:4], old[differ][:4], new[differ][:4])
