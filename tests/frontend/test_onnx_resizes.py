# SPDX-License-Identifier: Apache-2.0
"""Images of twice the size, in every form that ONNX has for it, are a view that one kernel writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from uir_tvm.errors import FrontendError

SHAPE = (1, 3, 9, 14)
SCALES, SIZES = np.array([1, 1, 2, 2], np.float32), np.array([1, 3, 18, 28], np.int64)


def _model(version: int, node: onnx.NodeProto, sizes: np.ndarray) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(sizes, "s")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def _node(operator: str, *names: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, ["x", *names], ["y"], mode="nearest", **attributes)


def _image() -> np.ndarray:
    return np.random.default_rng(4).standard_normal(SHAPE).astype(np.float32)


FORMS = {
    "Upsample of version 9": (9, _node("Upsample", "s"), SCALES),
    "Resize of version 10": (10, _node("Resize", "s"), SCALES),
    "corners as centres": (
        13,
        _node("Resize", "", "s", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        SCALES,
    ),
    "centres": (13, _node("Resize", "", "s"), SCALES),
    "sizes": (19, _node("Resize", "", "", "s"), SIZES),
}


@pytest.mark.parametrize("name", FORMS)
def test_twice_the_size(name: str) -> None:
    x = _image()
    exe = uir_tvm.compile(_model(*FORMS[name]))
    np.testing.assert_array_equal(exe(x), x.repeat(2, 2).repeat(2, 3))
    report = exe.report()
    assert (report["kernels"], report["heroes"]) == (1, {"elementwise": 1})


def test_version_10_enlarges() -> None:
    """By any factors: corners count as centres, and places are rounded down."""
    x, factors = _image(), np.array([1, 1, 1.5, 3], np.float32)
    rows, columns = ((np.arange(int(n * f)) / f).astype(int) for n, f in zip((9, 14), (1.5, 3), strict=True))
    exe = uir_tvm.compile(_model(10, _node("Resize", "s"), factors))
    np.testing.assert_array_equal(exe(x), x[:, :, rows][..., columns])


def test_version_10_does_not_shrink() -> None:
    with pytest.raises(FrontendError, match="Resize"):
        uir_tvm.compile(_model(10, _node("Resize", "s"), np.array([1, 1, 0.5, 0.5], np.float32)))
