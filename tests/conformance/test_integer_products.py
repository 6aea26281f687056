# SPDX-License-Identifier: Apache-2.0
"""Products of bytes are those of integers: what every target gives is what int64 gives, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import uir_tvm
from uir_tvm.frontend import from_onnx
from uir_tvm.kernel_graph import build
from uir_tvm.library import integer_matmul_attrs
from uir_tvm.library.integer_matmul_attrs import WindowLimits

from tests.asked import asked, in_turn

from .byte_problems import PROBLEMS

TARGETS = ("uir-cpu", "uir-cuda", "uir-ascend", "uir-bang")
#: No convolution is too small: what is compared is bits, not times.
ANY = WindowLimits(inputs=1, outputs=1, products=1)
QUICK = ("odd sizes", "open rows", "a convolution")


@pytest.mark.compares_itself
@pytest.mark.parametrize(("name", "target"), in_turn(asked(QUICK, tuple(PROBLEMS)), TARGETS))
def test_every_bit_is_that_of_integers(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_matmul_attrs, "WINDOWS", ANY)
    problem = PROBLEMS[name]
    exe = uir_tvm.compile(problem.model(), target)
    x = problem.numbers()[0]
    for rows in (1, 3, 16) if problem.open_rows else (len(x),):
        given = np.resize(x, (rows, *x.shape[1:]))
        got = np.asarray(exe(given))
        np.testing.assert_array_equal(got, problem.expected(given))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["odd sizes", "a convolution", "pixels"])
def test_the_library_multiplies_bytes(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One operator of the library, which reads bytes."""
    monkeypatch.setattr(integer_matmul_attrs, "WINDOWS", ANY)
    graph = build(from_onnx(PROBLEMS[name].model()), target)
    (product,) = [node for node in graph.nodes if getattr(node, "kind", "").startswith("integer_")]
    assert [(each.taken, each.reason) for each in graph.integers] == [(True, "")]
    assert all(tensor.dtype in ("int8", "uint8", "float32") for tensor in product.inputs)
    assert product.inputs[1].bytes == product.inputs[1].shape[0] * np.prod(product.inputs[1].shape[1:])
