# SPDX-License-Identifier: Apache-2.0
"""A nearest resize by whole factors is one kernel on every target, which computes no index."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tvm
import uir_tvm
from tvm import relax
from tvm.relax import op
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.options import CompileOptions
from uir_tvm.target.registry import TARGETS

from tests.asked import every_two

#: Images, and how often rows and columns are repeated.
SHAPES = [((2, 3, 7, 28), 2, 2), ((1, 5, 9, 17), 3, 3), ((1, 2, 4, 33), 1, 4), ((3, 8, 6, 5), 2, 5)]
DTYPES = {"float32": "fp32", "float16": "fp16", "uint8": "uint8"}
CASES = [
    pytest.param(target, shape, dtype, id=f"{target}-{shape[1]}x{shape[2]}-{dtype}")
    for target, shape, dtype in every_two(TARGETS, SHAPES, list(DTYPES))
]


def _module(shape: tuple[int, ...], high: int, wide: int, dtype: str, joined: bool) -> tvm.IRModule:
    """The resize by places, as of PyTorch; ``joined``: with another image added."""
    builder = relax.BlockBuilder()
    n, c, h, w = shape
    given = [relax.Var("x", relax.TensorType(shape, dtype))]
    if joined:
        given.append(relax.Var("y", relax.TensorType((n, c, h * high, w * wide), dtype)))
    with builder.function("main", given):
        with builder.dataflow():
            value = given[0]
            for axis, times in ((2, high), (3, wide)):
                places = relax.const(np.arange(shape[axis] * times) // times)
                value = builder.emit(op.take(value, places, axis=axis))
            if joined:
                value = builder.emit(op.add(value, given[1]))
            output = builder.emit_output(value)
        builder.emit_func_output(output)
    return builder.get()


@pytest.mark.parametrize(("target", "shape", "dtype"), CASES)
@pytest.mark.parametrize("joined", [False, True], ids=["alone", "added"])
def test_one_kernel(
    target: str, shape: tuple[tuple[int, ...], int, int], dtype: str, joined: bool, tmp_path: pathlib.Path
) -> None:
    """Each element is loaded as it lies; what is added to the images joins the kernel."""
    sizes, high, wide = shape
    rng = np.random.default_rng(9)
    x = rng.integers(0, 50, sizes).astype(numpy_of(DTYPES[dtype]))
    wanted = x.repeat(high, 2).repeat(wide, 3)
    given = [x]
    if joined:
        given.append(rng.integers(0, 50, wanted.shape).astype(x.dtype))
        wanted = wanted + given[1]
    options = CompileOptions(dump_dir=tmp_path)
    exe = uir_tvm.compile(_module(sizes, high, wide, dtype, joined), target, options=options)
    np.testing.assert_array_equal(exe(*given), wanted)
    report = exe.report()
    assert report["kernels"] == report["kernels_through_igraph"] == 1
    (text,) = [path.read_text() for path in tmp_path.glob("*.opt.igraph")]
    assert "gather" not in text
