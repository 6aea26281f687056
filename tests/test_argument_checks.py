# SPDX-License-Identifier: Apache-2.0
"""A function that a program calls asks the same of its arguments, in a few assertions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm_ffi.structural import structural_walk
from uir_tvm.argument_checks import called_by_a_program, checked
from uir_tvm.target.registry import TARGETS

SHAPE = (6, 4)


def function() -> tirx.PrimFunc:
    """z = x + y."""
    x, y = (te.placeholder(SHAPE, "float32", name) for name in "xy")
    z = te.compute(SHAPE, lambda i, j: x[i, j] + y[i, j], "z")
    return te.create_prim_func([x, y, z]).with_attr("global_symbol", "main")


def tensor(*shape: int, dtype: str = "float32") -> tvm.runtime.Tensor:
    return tvm.runtime.tensor(np.ones(shape, dtype))


def turned() -> tvm.runtime.Tensor:
    """Of the right shape, by columns."""
    return tvm_ffi.from_dlpack(np.ones(SHAPE[::-1], np.float32).T, require_contiguous=False)


def built(target: Any) -> Any:
    with called_by_a_program():
        return tvm.compile(tvm.IRModule({"main": function()}), target=target)["main"]


@pytest.fixture(scope="module", params=["llvm", "uir-cpu"])
def call(request: pytest.FixtureRequest) -> Any:
    return built("llvm" if request.param == "llvm" else TARGETS["uir-cpu"].target())


def test_right_arguments_are_taken(call: Any) -> None:
    result = tensor(*SHAPE)
    call(tensor(*SHAPE), tensor(*SHAPE), result)
    np.testing.assert_array_equal(result.numpy(), np.full(SHAPE, 2, np.float32))


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (lambda right: right[:2], TypeError, "number of arguments"),
        (lambda right: [*right[:2], 3], TypeError, "another type"),
        (lambda right: [None, *right[1:]], TypeError, "another type"),
        (lambda right: [*right[:2], tensor(6)], ValueError, "rank, dtype or device"),
        (
            lambda right: [right[0], tensor(6, 4, dtype="float64"), right[2]],
            ValueError,
            "rank, dtype or device",
        ),
        (lambda right: [tensor(6, 5), *right[1:]], ValueError, "shape or layout"),
        (lambda right: [right[0], right[1], tensor(5, 4)], ValueError, "shape or layout"),
        (lambda right: [turned(), *right[1:]], ValueError, "shape or layout"),
    ],
)
def test_each_fault_is_found(call: Any, wrong: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as caught:
        call(*wrong([tensor(*SHAPE) for _ in range(3)]))
    assert "main(" in str(caught.value), "which function it is"


def test_a_caller_of_tvm_is_told_by_tvm() -> None:
    call = tvm.compile(tvm.IRModule({"main": function()}), target=TARGETS["uir-cpu"].target())["main"]
    with pytest.raises(ValueError, match=r"Mismatched y\.strides"):
        call(tensor(*SHAPE), tensor(6, 5), tensor(*SHAPE))


def test_few_assertions_are_left_and_those_of_the_function_itself_stay() -> None:
    own = tirx.AssertStmt(
        tirx.const(1) == tirx.const(1), tvm.ir.StringImm("SizeError"), [tvm.ir.StringImm("mine")]
    )
    buffers = [tirx.decl_buffer(SHAPE, name=name) for name in "xyz"]
    func = tirx.PrimFunc(buffers, own).with_attr({"global_symbol": "main"})
    target = tvm.target.Target("llvm", host="llvm")
    mod = tirx.transform.BindTarget(target)(tvm.IRModule({"main": func}))
    mod = tvm.transform.Sequential([tirx.transform.AnnotateEntryFunc(), tirx.transform.MakePackedAPI()])(mod)

    def asserted(mod: tvm.IRModule) -> list[str]:
        found: list[str] = []
        structural_walk(
            mod["main"].body,
            [(tirx.AssertStmt, lambda each: found.append(str(each.message_parts[0].value)))],
        )
        return found

    assert checked(mod).same_as(mod), "nobody said that a program calls it"
    inner = tvm.IRModule({"main": mod["main"].with_attr("calling_conv", 0)})
    with called_by_a_program():
        few = asserted(checked(mod))
        assert asserted(checked(inner)) == asserted(inner), "a function that others call has no such checks"
    assert few[-1] == "mine" and len(few) <= 7 < 30 < len(asserted(mod))
