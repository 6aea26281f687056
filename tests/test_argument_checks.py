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


def test_one_call_asks_for_what_is_fixed() -> None:
    """A function of a program has no assertion of its own where its lengths are numbers."""
    with called_by_a_program():
        code = tvm.compile(tvm.IRModule({"main": function()}), target=TARGETS["uir-cpu"].target()).mod
        text = str(code.inspect_source("ll"))
    assert "@__uir_check_arguments" in text and "set_raised" not in text


def open_function() -> tirx.PrimFunc:
    """z[i] = x[i] * scale + y[2 n], for x and z of n elements and y of 2 n + 1."""
    n, scale = tirx.Var("n", "int64"), tirx.Var("scale", "float32")
    x, y = te.placeholder((n,), "float32", "x"), te.placeholder((2 * n + 1,), "float32", "y")
    z = te.compute((n,), lambda i: x[i] * scale + y[2 * n], "z")
    return te.create_prim_func([x, y, z, scale]).with_attr("global_symbol", "main")


@pytest.fixture(scope="module")
def open_call() -> Any:
    with called_by_a_program():
        return tvm.compile(tvm.IRModule({"main": open_function()}), target="llvm")["main"]


def test_sizes_of_a_call_are_taken(open_call: Any) -> None:
    result = tensor(3)
    open_call(tensor(3), tensor(7), result, 2.0)
    np.testing.assert_array_equal(result.numpy(), np.full(3, 3, np.float32))


@pytest.mark.parametrize(
    ("shapes", "scale", "kind", "text"),
    [
        ((3, 7, 4), 2.0, ValueError, "shape or layout"),
        ((3, 6, 3), 2.0, ValueError, r"Invalid y\.shape"),
        ((3, 7, 3), "2", TypeError, "another type"),
    ],
)
def test_sizes_of_a_call_have_to_agree(
    open_call: Any, shapes: tuple[int, ...], scale: Any, kind: type[Exception], text: str
) -> None:
    """A size is what it was first seen as; the function asks itself for an expression of sizes."""
    with pytest.raises(kind, match=text):
        open_call(*(tensor(length) for length in shapes), scale)


def test_a_number_that_is_given_has_to_be_a_length() -> None:
    n = tirx.Var("n", "int64")
    x = te.placeholder((n,), "float32", "x")
    y = te.compute((n,), lambda i: x[i] * 2.0, "y")
    func = te.create_prim_func([n, x, y]).with_attr("global_symbol", "main")
    with called_by_a_program():
        call = tvm.compile(tvm.IRModule({"main": func}), target="llvm")["main"]
    call(3, tensor(3), tensor(3))
    with pytest.raises(ValueError, match=r"shape|match"):
        call(2, tensor(3), tensor(3))


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
