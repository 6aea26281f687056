# SPDX-License-Identifier: Apache-2.0
"""A function is built once as the reference of all its kernels, and another never stands in for it."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te, tirx
from uir_tvm.verify import function_side
from uir_tvm.verify.function_side import Builds, FunctionSide
from uir_tvm.verify.sides import VALUES_METHOD

ARRAYS = [np.arange(4, dtype="float32"), np.zeros(4, "float32")]
ROLES = ["in", "out"]


def plus(added: float, name: str) -> tirx.PrimFunc:
    x = te.placeholder((4,), "float32", name)
    return te.create_prim_func([x, te.compute((4,), lambda i: x[i] + tirx.const(added, "float32"), "y")])


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tirx.PrimFunc]:
    """What TVM is given to build, with nothing built before."""
    given: list[tirx.PrimFunc] = []
    stock = function_side.built_by_tvm
    monkeypatch.setattr(function_side, "_BUILDS", Builds(2))
    monkeypatch.setattr(function_side, "built_by_tvm", lambda f, c: given.append(f) or stock(f, c))
    return given


def result(func: tirx.PrimFunc) -> np.ndarray:
    ((found, _),) = FunctionSide(func).run(VALUES_METHOD, ARRAYS, ROLES)
    return found


def test_the_same_function_is_built_once(built: list[tirx.PrimFunc]) -> None:
    """Whatever its parameters are called; another constant is another function."""
    np.testing.assert_array_equal(result(plus(1, "x")), ARRAYS[0] + 1)
    np.testing.assert_array_equal(result(plus(1, "other")), ARRAYS[0] + 1)
    assert len(built) == 1
    np.testing.assert_array_equal(result(plus(2, "x")), ARRAYS[0] + 2)
    assert len(built) == 2


def test_those_used_last_are_kept(built: list[tirx.PrimFunc]) -> None:
    for added in (1, 2, 1, 3, 1):
        result(plus(added, "x"))
    assert len(built) == 3
    result(plus(2, "x"))
    assert len(built) == 4


def test_equal_hashes_are_not_taken_for_equal_functions(
    built: list[tirx.PrimFunc], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_side, "structural_hash", lambda *_, **__: 7)
    for added in (1, 2, 1):
        np.testing.assert_array_equal(result(plus(added, "x")), ARRAYS[0] + added)
    assert len(built) == 3


def test_what_cannot_be_built_is_tried_again() -> None:
    def fail() -> None:
        raise RuntimeError("not now")

    builds, func = Builds(2), plus(1, "x")
    with pytest.raises(RuntimeError, match="not now"):
        builds.of(VALUES_METHOD, func, fail)
    assert builds.of(VALUES_METHOD, func, lambda: "made") == "made"
    assert builds.of(VALUES_METHOD, func, fail) == "made"
