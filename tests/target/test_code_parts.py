# SPDX-License-Identifier: Apache-2.0
"""Kernels of a model are compiled in parts, and only where they are independent of each other."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from tvm.script import ir as I
from tvm.script import tirx as T
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.function_attributes import LLVM_LEVEL
from uir_tvm.target import code_parts

HOST = {"kind": "llvm", "mcpu": str(tvm.target.codegen.llvm_get_system_cpu())}


@I.ir_module(s_tir=True)
class Apart:
    @T.prim_func(s_tir=True)
    def two(a: T.handle("float32"), n: T.int32) -> None:
        A = T.decl_buffer((8,), "float32", data=a)
        A[n] = T.float32(2)

    @T.prim_func(s_tir=True)
    def one(a: T.handle("float32"), n: T.int32) -> None:
        A = T.decl_buffer((8,), "float32", data=a)
        A[n] = T.float32(1)

    @T.prim_func(s_tir=True)
    def many(a: T.handle("float32"), n: T.int32) -> None:
        A = T.decl_buffer((8,), "float32", data=a)
        A[n] = T.exp(A[n])
        A[n + 1] = T.exp(A[n])
        A[n + 2] = T.exp(A[n])


@I.ir_module(s_tir=True)
class Together:
    @T.prim_func(private=True, s_tir=True)
    def asked(n: T.int32) -> T.int32:
        return n + 1

    @T.prim_func(s_tir=True)
    def asks(a: T.handle("int32"), n: T.int32) -> None:
        A = T.decl_buffer((8,), "int32", data=a)
        A[n] = Together.asked(n)


@I.ir_module(s_tir=True)
class Packed:
    @T.prim_func(s_tir=True)
    def one(n: T.int32) -> None:
        T.call_packed("another", n)

    @T.prim_func(s_tir=True)
    def another(a: T.handle("int32"), n: T.int32) -> None:
        A = T.decl_buffer((8,), "int32", data=a)
        A[n] = n


class Several(torch.nn.Module):
    """Kernels of some size, one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 (64, 48) -> (64,)."""
        x = (torch.softmax(x, -1) + x).transpose(0, 1).contiguous()
        return torch.nn.functional.layer_norm(torch.softmax(x, -1) + x, (64,)).square().sum(0)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine of two CPUs, with parts that are worth it."""
    monkeypatch.setenv("UIR_NUM_THREADS", "2")
    monkeypatch.setattr(code_parts, "WORTH", 1)


def test_parts_are_alike() -> None:
    """Each function is in one part, the heaviest alone, in whatever order they come."""
    mod = Apart
    again = tvm.IRModule(dict(reversed(list(mod.functions_items()))))
    names = [
        sorted(sorted(v.name_hint for v in part.functions) for part in code_parts._divided(each))
        for each in (mod, again)
    ]
    assert names == [[["many"], ["one", "two"]]] * 2


@pytest.mark.parametrize("mod", [Together, Packed])
def test_what_asks_for_others_is_one(mod: tvm.IRModule) -> None:
    """A function that calls another of its module, or a packed one, is looked up there."""
    assert code_parts._divided(mod) == []


def test_one_thread_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the functions are too small for two."""
    monkeypatch.setenv("UIR_NUM_THREADS", "1")
    assert code_parts._divided(Apart) == []
    monkeypatch.setenv("UIR_NUM_THREADS", "2")
    monkeypatch.setattr(code_parts, "WORTH", 1000)
    assert code_parts._divided(Apart) == []


def _llvm(library: object) -> list[object]:
    return list(code_parts._parts_of(getattr(library, "mod", library)))


def test_a_model_in_two(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results are those of one part, bit by bit, also of a saved file, which links both."""
    x = torch.randn(64, 48)
    program = torch.export.export(Several().eval(), (x,))
    options = uir_tvm.CompileOptions(kernel_cache="off")
    made = uir_tvm.compile(program, options=options)
    parts = _llvm(made.library)
    names = [[str(name) for name in part.get_function("get_func_names")()] for part in parts]
    assert len(parts) == 2 and all(names)
    assert not set(names[0]) & set(names[1])
    made.save(tmp_path / "model.tar")
    monkeypatch.setattr(code_parts, "WORTH", 1 << 30)
    whole = uir_tvm.compile(program, options=options)
    assert len(_llvm(whole.library)) == 1
    np.testing.assert_allclose(whole(x), Several()(x), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(made(x), whole(x))
    np.testing.assert_array_equal(uir_tvm.load(tmp_path / "model.tar")(x), whole(x))


def test_tvms_own_builds_stay() -> None:
    """What a program does not call comes as one module, with the same code."""
    target = tvm.target.Target(HOST)
    mod = tvm.IRModule({v: f.with_attr("target", target) for v, f in Apart.functions_items()})
    alone = tvm.tirx.build(mod, target=target)
    assert not list(alone.imports)
    with called_by_a_program():
        parted = tvm.tirx.build(mod, target=target)
    assert len(list(parted.imports)) == 1


def test_errors_come_out() -> None:
    """What TVM raises in a thread is raised."""

    def fails(part: tvm.IRModule, target: object) -> None:
        raise ValueError(f"{len(part.functions)} functions")

    with called_by_a_program(), pytest.raises(ValueError, match="functions"):
        code_parts._built(Apart, None, fails)


def _of_levels(**levels: int) -> tvm.IRModule:
    return tvm.IRModule(
        {
            variable: function.with_attr(LLVM_LEVEL, levels[variable.name_hint])
            if variable.name_hint in levels
            else function
            for variable, function in Apart.functions_items()
        }
    )


def _asked(mod: tvm.IRModule, target: tvm.target.Target) -> dict[str, int]:
    """The level at which each function is compiled."""
    found: dict[str, int] = {}

    def compiled(part: tvm.IRModule, at: tvm.target.Target) -> tvm.runtime.Module:
        level = int(at.attrs.get("opt-level", 3))
        found.update({variable.name_hint: level for variable in part.get_global_vars()})
        return tvm.IRModule({})

    with called_by_a_program():
        code_parts._built(mod, target, compiled)
    return found


def test_a_level_is_its_functions_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What asks for little is compiled apart from what asks for all, where both are worth a module."""
    target = tvm.target.Target(HOST)
    monkeypatch.setattr(tvm.IRModule, "import_module", lambda self, other: None, raising=False)
    assert _asked(Apart, target) == {"one": 3, "two": 3, "many": 3}
    assert _asked(_of_levels(one=1, two=1, many=1), target) == {"one": 1, "two": 1, "many": 1}
    assert _asked(_of_levels(one=1, two=2), target) == {"one": 1, "two": 2, "many": 3}
    monkeypatch.setattr(code_parts, "WORTH", 1 << 20)
    assert _asked(_of_levels(one=1, two=2), target) == {"one": 3, "two": 3, "many": 3}
    assert _asked(_of_levels(one=1, two=2, many=1), target) == {"one": 2, "two": 2, "many": 2}
    chosen = tvm.target.Target({**HOST, "opt-level": 2})
    assert set(_asked(_of_levels(one=1, two=1, many=1), chosen).values()) == {2}


def test_kernels_without_products_ask_for_little() -> None:
    """Softmax does; attention, whose products LLVM arranges, does not."""

    class Attention(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            """float32 (1, 2, 8, 16) each -> the same."""
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    def levels(module: torch.nn.Module, *inputs: torch.Tensor) -> set[int]:
        found: list[int] = []

        def noted(target: tvm.target.Target, mod: tvm.IRModule) -> tvm.target.Target:
            found.append(max(code_parts._level(function) for function in mod.functions.values()))
            return target

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(code_parts, "_at_level", noted)
            program = torch.export.export(module.eval(), inputs)
            uir_tvm.compile(program, options=uir_tvm.CompileOptions(kernel_cache="off"))
        return set(found)

    assert levels(torch.nn.Softmax(-1), torch.randn(4, 8)) == {1}
    assert levels(Attention(), *(torch.randn(1, 2, 8, 16) for _ in range(3))) == {3}
