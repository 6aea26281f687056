# SPDX-License-Identifier: Apache-2.0
"""Max pools: beyond the tensor is -inf, and a window of it gives that."""

from __future__ import annotations

import numpy as np
import uir_tvm
from tvm import relax


def test_max_pool_of_minus_infinity() -> None:
    """Padded, dilated, hanging over the end, over rows that are -inf, NaN and numbers."""
    x = np.arange(40, dtype="float32").reshape(1, 1, 4, 10)
    x[0, 0, :2] = -np.inf
    x[0, 0, 3, 7] = np.nan
    builder = relax.BlockBuilder()
    param = relax.Var("x", relax.TensorType(x.shape, "float32"))
    with builder.function("main", [param]):
        with builder.dataflow():
            pool = relax.op.nn.max_pool2d(param, (2, 3), (1, 2), (1, 1), (1, 2), ceil_mode=True)
            result = builder.emit_output(builder.emit(pool))
        builder.emit_func_output(result)
    found = np.asarray(uir_tvm.compile(builder.get())(x))
    wide = np.full((1, 1, 7, 16), -np.inf, "float32")
    wide[:, :, 1:5, 1:11] = x
    wanted = np.full(found.shape, -np.inf, "float32")
    for row, column in np.ndindex(*found.shape[2:]):
        wanted[0, 0, row, column] = wide[0, 0, row : row + 2, 2 * column : 2 * column + 5 : 2].max()
    np.testing.assert_array_equal(found, wanted)
