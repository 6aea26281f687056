# SPDX-License-Identifier: Apache-2.0
"""Executables have the constants of their models, though TVM's code generation saw small ones instead."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tvm
import tvm_ffi
import uir_tvm
from tvm import relax
from uir_tvm import model_library
from uir_tvm.large_constants import LARGE, NUMBER, LargeConstants, without_large

SIDE = 160  # a float32 matrix of it is large
RNG = np.random.default_rng(5)
WEIGHT = RNG.standard_normal((SIDE, SIDE)).astype("float32")
ROWS = RNG.standard_normal((4, SIDE)).astype("float32")


def model(*returned: np.ndarray, small: np.ndarray | None = None) -> tvm.IRModule:
    """x (4, SIDE) -> x @ each of some constants, and the constants themselves."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, SIDE), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            weights = [relax.const(each, str(each.dtype)) for each in returned]
            products = [builder.emit(relax.op.matmul(x, each)) for each in weights]
            more = [] if small is None else [relax.const(small, str(small.dtype))]
            made = builder.emit_output(relax.Tuple([*products, *weights, *more]))
        builder.emit_func_output(made)
    return builder.get()


def check(exe: uir_tvm.Executable, *weights: np.ndarray) -> None:
    """An executable's results are those of the constants."""
    results = exe(ROWS)
    for result, weight in zip(results, weights, strict=False):
        np.testing.assert_allclose(result, ROWS @ weight, rtol=1e-4, atol=1e-4)
    for result, weight in zip(results[len(weights) :], weights, strict=False):
        np.testing.assert_array_equal(result, weight)


def lowered() -> tvm.IRModule:
    """A module for the virtual machine: two calls on constants of one content, and one on another."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((SIDE, SIDE), "float32"))
    result = relax.TensorType((SIDE, SIDE), "float32")
    with builder.function("main", [x]):
        value = x
        for weight in (WEIGHT, WEIGHT.copy(), WEIGHT + 1, np.ones(NUMBER, "uint8")):
            call = relax.op.call_pure_packed("none", value, relax.const(weight), ty_args=[result])
            value = builder.emit(call)
        builder.emit_func_output(value)
    return builder.get()


def test_constants_of_the_same_contents_share_a_small_one() -> None:
    """As TVM makes them one; others differ, and from what the model has, too."""
    mod, held = without_large(lowered())
    assert len(held.small) == len(held.large) == 2
    assert held.length > NUMBER  # a constant of the model has that length
    assert len({bytes(each.numpy()) for each in held.small}) == 2
    assert mod["main"].ret_ty == lowered()["main"].ret_ty or tvm_ffi.structural_equal(
        mod["main"].ret_ty, lowered()["main"].ret_ty
    )


def test_types_stay() -> None:
    """The virtual machine is told the shapes of the constants, not of what stands for them."""
    before, (after, _) = lowered(), without_large(lowered())
    assert before["main"].script() == after["main"].script()


def test_a_module_without_large_ones_is_left_alone() -> None:
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        builder.emit_func_output(relax.const(np.zeros(LARGE // 4 - 1, "float32")))
    mod = builder.get()
    made, held = without_large(mod)
    assert made.same_as(mod) and not held.small


def test_results_are_those_of_the_constants() -> None:
    """Two that differ in their last element alone, in the middle or at the ends, and one that comes twice."""
    last, middle = WEIGHT.copy(), WEIGHT.copy()
    last[-1, -1] += 1
    middle[SIDE // 2, 7] += 1
    every = (WEIGHT, last, middle, WEIGHT.copy())
    check(uir_tvm.compile(model(*every)), *every)


@pytest.mark.parametrize("length", [NUMBER, NUMBER + 1])
def test_a_constant_that_looks_like_a_small_one_stays_another(length: int) -> None:
    """Bytes that are a number, as those that stand for large constants."""
    number = np.zeros(length, "uint8")
    exe = uir_tvm.compile(model(WEIGHT, WEIGHT + 1, small=number))
    check(exe, WEIGHT, WEIGHT + 1)
    np.testing.assert_array_equal(exe(ROWS)[-1], number)


def test_saved_executables_have_them(tmp_path: pathlib.Path) -> None:
    """What is loaded computes the same: the file has the constants."""
    exe = uir_tvm.compile(model(WEIGHT, WEIGHT + 1))
    exe.save(tmp_path / "model.uir")
    assert (tmp_path / "model.uir").stat().st_size > WEIGHT.nbytes
    check(uir_tvm.load(tmp_path / "model.uir"), WEIGHT, WEIGHT + 1)


def test_the_pool_is_that_of_tvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant by constant, and instruction by instruction, as without the small ones."""
    mod = model(WEIGHT, WEIGHT + 1, WEIGHT.copy())
    ours = uir_tvm.compile(mod, name="ours").library
    monkeypatch.setattr(model_library, "without_large", lambda mod: (mod, LargeConstants()))
    theirs = uir_tvm.compile(mod, name="theirs").library
    assert ours.stats() == theirs.stats() and ours.as_text() == theirs.as_text()


def test_code_generation_sees_no_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    build = relax.build

    def watched(mod: tvm.IRModule, *args: object, **kwargs: object) -> object:
        visit = lambda one: seen.append(int(np.prod(getattr(one.value, "shape", 1))))  # noqa: E731
        tvm_ffi.structural_walk(mod["main"], (tvm.ir.GenericConst, visit))
        return build(mod, *args, **kwargs)

    monkeypatch.setattr(relax, "build", watched)
    check(uir_tvm.compile(model(WEIGHT, WEIGHT + 1)), WEIGHT, WEIGHT + 1)
    assert seen and max(seen) * 4 < LARGE


def test_only_executables_have_constants() -> None:
    put = tvm_ffi.get_global_func("uir.runtime.put_constants")
    other = tvm.compile(tvm.te.create_prim_func([tvm.te.placeholder((1,))]), target="llvm").mod
    with pytest.raises(ValueError, match=r"need: +relax.VMExecutable"):
        put(other, [], [])
    exe = uir_tvm.compile(model(WEIGHT))
    with pytest.raises(ValueError, match="need: +as many"):
        put(exe.library.mod, [tvm.runtime.tensor(WEIGHT)], [])
