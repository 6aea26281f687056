# SPDX-License-Identifier: Apache-2.0
"""LLVM has the first kernels of a model while later ones go through the stages, and the results stay."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.target import code_ahead, code_parts

OPTIONS = uir_tvm.CompileOptions(kernel_cache="off")


class Several(torch.nn.Module):
    """Kernels one after the other, which no recipe makes one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 (64, 48) -> (64,)."""
        x = (torch.softmax(x, -1) + x).transpose(0, 1).contiguous()
        return torch.nn.functional.layer_norm(torch.softmax(x, -1) + x, (64,)).square().sum(0)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine of two CPUs, with modules that are worth it."""
    monkeypatch.setenv("UIR_NUM_THREADS", "2")
    monkeypatch.setattr(code_parts, "WORTH", 1)


def _compiled(x: torch.Tensor) -> uir_tvm.Executable:
    made = uir_tvm.compile(torch.export.export(Several().eval(), (x,)), options=OPTIONS)
    assert isinstance(made, uir_tvm.Executable)
    return made


def _built_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Of each module that LLVM is given from now on: how many functions, and whether by another thread."""
    found: list[tuple[int, bool]] = []
    stock, main = tvm.get_global_func(code_parts.BUILD), threading.get_ident()

    def noted(mod: tvm.IRModule, target: tvm.target.Target) -> object:
        found.append((len(mod.functions), threading.get_ident() != main))
        return stock(mod, target)

    monkeypatch.setattr(code_ahead, "_build", noted)
    return found


def test_kernels_before_the_last_go_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a module of its own where all are worth it, and results are those of one module."""
    x = torch.randn(64, 48)
    with monkeypatch.context() as alone:
        alone.setenv("UIR_NUM_THREADS", "1")
        whole = _compiled(x)
        assert len(list(code_parts._parts_of(whole.library.mod))) == 1
    found = _built_in(monkeypatch)
    made = _compiled(x)
    count = len(made.info.kernels)
    assert count > 1 and found == [(1, True)] * (count - 1)
    assert len(list(code_parts._parts_of(made.library.mod))) == count
    np.testing.assert_array_equal(made(x), whole(x))
    np.testing.assert_allclose(made(x), Several()(x), rtol=1e-4, atol=1e-4)


def test_little_waits_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is worth no module goes with all others at the end."""
    monkeypatch.setattr(code_parts, "WORTH", 1 << 30)
    found = _built_in(monkeypatch)
    made = _compiled(torch.randn(64, 48))
    assert found == [] and len(list(code_parts._parts_of(made.library.mod))) == 1


def test_one_thread_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UIR_NUM_THREADS", "1")
    with called_by_a_program(), code_ahead.going_ahead():
        assert code_ahead.ahead() is None


def test_what_a_pass_context_asks_for_is_asked_of_all() -> None:
    with tvm.transform.PassContext(config={"tirx.disable_assert": True}), code_ahead.going_ahead():
        assert code_ahead.ahead() is None
    with code_ahead.going_ahead():
        assert code_ahead.ahead() is not None
    assert code_ahead.ahead() is None


def test_errors_come_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What TVM raises of a kernel that went ahead ends the compilation, as where it is built with others."""

    def fails(mod: tvm.IRModule, target: tvm.target.Target) -> object:
        raise ValueError("LLVM has no such instruction")

    monkeypatch.setattr(code_ahead, "_build", fails)
    x = torch.randn(64, 48)
    program = torch.export.export(Several().eval(), (x,))
    strict = uir_tvm.CompileOptions(kernel_cache="off", faults="raise")
    with pytest.raises(Exception, match="no such instruction"):
        uir_tvm.compile(program, options=strict)


def test_code_for_another_machine_is_not_made_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules are built all the same."""
    asked: list[object] = []
    monkeypatch.setattr(code_parts, "first_function", asked.append)
    found = _built_in(monkeypatch)
    program = torch.export.export(Several().eval(), (torch.randn(64, 48),))
    uir_tvm.compile(program, "uir-cpu:generic,aarch64", options=OPTIONS)
    assert found and not asked
