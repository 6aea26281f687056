# SPDX-License-Identifier: Apache-2.0
"""One executable for all sizes of a model, with kernels for all sizes and kernels for those of a call."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch
import tvm_ffi
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm import _native
from uir_tvm.errors import ArtifactError, NotCompiledError, UnsupportedOperatorError
from uir_tvm.kernel_graph import kernel_steps
from uir_tvm.runtime import sized_executable
from uir_tvm.runtime.open_kernels import KernelBySizes, OpenKernels

TARGETS = ("uir-cpu", "uir-cuda", "uir-ascend", "uir-bang")
WIDTH = 24


class Rows(nn.Module):
    """Rows that all sizes share, and a mean over an axis that is open."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.relu(self.norm(x + y))
        return z, (x * y).mean(1)


@pytest.fixture(autouse=True)
def no_kernel_of_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let means be compiled for the sizes of a call, whatever kernels could be made of them."""
    refusal = OpenKernels.refusal

    def refused(self: OpenKernels, name: str, function: Any) -> str:
        return "means are compiled by sizes here" if "mean" in name else refusal(self, name, function)

    monkeypatch.setattr(OpenKernels, "refusal", refused)


def compiled(target: str = "uir-cpu", **options: Any) -> Any:
    b, s = Dim("b", min=1, max=64), Dim("s", min=1, max=128)
    x = torch.randn(3, 7, WIDTH)
    shapes = {"x": {0: b, 1: s}, "y": {0: b, 1: s}}
    options = uir_tvm.CompileOptions(device="auto" if target == "uir-cpu" else "model", **options)
    return uir_tvm.compile(Rows().eval(), target, args=(x, x), dynamic_shapes=shapes, options=options)


def inputs(*shape: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(sum(shape))
    return tuple(torch.from_numpy(rng.standard_normal((*shape, WIDTH), np.float32)) for _ in range(2))  # type: ignore[return-value]


def expect_right(exe: Any, *shape: int) -> None:
    given = inputs(*shape)
    for got, want in zip(exe(*given), Rows().eval()(*given), strict=True):
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=0, atol=2e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_one_executable_serves_all_shapes(target: str) -> None:
    exe = compiled(target)
    shapes = [(3, 7), (2, 64), (5, 33), (4, 2), (3, 7)]
    for shape in shapes:
        expect_right(exe, *shape)
    report = exe.report()
    (program,) = report["programs"]
    assert report["compiled"] == 1 and program["shapes"] == 4
    assert program["kernels_for_all_sizes"] == 1
    (mean,) = program["kernels_by_sizes"]
    assert mean["kernel"] == "multiply_mean" and mean["reason"]
    assert mean["sizes"] == [{"b": b, "s": s} for b, s in shapes[:4]]
    first, *others = report["specializations"]
    assert first["seconds"] and not any(each["seconds"] for each in others)
    assert [each["by_sizes"] for each in report["specializations"]] == [1] * 4
    # in numbers, though the graph is one: both kernels read both inputs, one also scale and shift
    assert first["bytes_after"] == 4 * WIDTH * (2 * 21 + 2 + 21 + 2 * 21 + 3)


def test_kernels_of_a_model_that_is_gone_are_dropped() -> None:
    exe = compiled()
    expect_right(exe, 3, 7)
    (program,) = exe._programs.programs
    (call,) = program.whole.kernels.calls
    name = program.whole.kernels.calls[call].name
    count, make = (
        tvm_ffi.get_global_func(f"uir.runtime.{end}") for end in ("specialized.count", "specialize")
    )
    assert count(name) == 1
    del exe, program
    gc.collect()
    assert count(name) == 0
    with pytest.raises(RuntimeError, match="is gone"):  # TVM keeps the text of an error
        tvm_ffi.get_global_func("uir.runtime.specialize")(name, tvm_ffi.Shape((3, 7)))


def test_a_kernel_that_cannot_be_compiled_fails_by_type_and_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exe = compiled()

    def fails(*_: Any) -> Any:
        raise UnsupportedOperatorError("There is no such kernel.", where="here")

    with monkeypatch.context() as patch:
        patch.setattr(KernelBySizes, "make", fails)
        with pytest.raises(UnsupportedOperatorError, match="no such kernel"):
            exe(*inputs(3, 7))
    expect_right(exe, 3, 7)


def test_a_group_that_cannot_be_merged_runs_operator_by_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    merge = kernel_steps.merge

    def alone(kernel: Any, name: str) -> Any:
        if len(kernel.group.ops) > 1:
            raise RuntimeError("FuseTIR fails")
        return merge(kernel, name)

    monkeypatch.setattr(kernel_steps, "merge", alone)
    exe = compiled()
    expect_right(exe, 5, 9)
    (program,) = exe._programs.programs
    (call,) = program.whole.kernels.calls.values()
    assert [record.name for record in call.made[5, 9]] == ["multiply_mean_0", "multiply_mean_1"]


def test_what_is_saved_serves_all_shapes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    exe = compiled()
    expect_right(exe, 3, 7)
    one = uir_tvm.load(exe.specialized(*inputs(3, 7)).save(tmp_path / "one.uir"))
    expect_right(one, 3, 7)
    explained = exe.specialized(*inputs(3, 7)).report(explain=True)["explain"]
    assert len(explained["kernels"]) == 2
    path = exe.save(tmp_path / "rows.uir")
    del exe, one
    gc.collect()  # the kernels that are compiled by sizes are those of the file from here on
    loaded = uir_tvm.load(path)
    for shape in ((2, 5), (1, 1), (64, 2)):
        expect_right(loaded, *shape)
    (program,) = loaded.report()["programs"]
    assert program["conditions"] == ["1 <= b <= 64", "1 <= s <= 128"]
    assert program["kernels_by_sizes"][0]["sizes"] == [{"b": b, "s": s} for b, s in ((2, 5), (1, 1), (64, 2))]
    again, other = uir_tvm.load(loaded.save(tmp_path / "again.uir")), uir_tvm.load(path)
    del loaded
    for each in (again, other):
        expect_right(each, 5, 9)
    with pytest.raises(NotCompiledError, match="alone"):
        again.specialized(*inputs(5, 9)).save(tmp_path / "alone.uir")
    monkeypatch.setattr(_native, "runtime_only", lambda: True)
    with pytest.raises(NotCompiledError, match="no compiler is here"):
        again(*inputs(6, 11))


def test_a_kernel_that_cannot_be_stored_leaves_the_shapes(tmp_path: Any) -> None:
    exe = compiled()
    exe.make_whole()
    for kernel in exe.wholes[0].kernels:
        kernel.function = None
    with pytest.raises(ArtifactError, match="multiply_mean cannot be stored"):
        exe.save(tmp_path / "rows.uir")
    expect_right(exe, 2, 3)
    loaded = uir_tvm.load(exe.save(tmp_path / "rows.uir"))
    expect_right(loaded, 2, 3)
    with pytest.raises(NotCompiledError):
        loaded(*inputs(2, 4))


def test_memory_of_few_shapes_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[int] = []
    monkeypatch.setattr(
        sized_executable.tvm_ffi, "get_global_func", lambda name: lambda: cleared.append(1), raising=True
    )
    memory = sized_executable.HeldMemory()
    for size in range(sized_executable.KEPT):
        memory.ask((size,))
        memory.ask((0,))
    assert not cleared
    memory.ask((100,))
    memory.ask((100,))
    assert cleared == [1]


class Softmax(nn.Module):
    """Rows of an open length."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x, -1)


@pytest.mark.parametrize("target", ["uir-cpu", "uir-ascend"])
def test_rows_of_open_length_have_one_kernel(target: str) -> None:
    rows, columns = Dim("n", min=1, max=64), Dim("m", min=2, max=128)
    options = uir_tvm.CompileOptions(device="auto" if target == "uir-cpu" else "model")
    exe = uir_tvm.compile(
        Softmax(), target, args=(torch.randn(3, 7),), dynamic_shapes=({0: rows, 1: columns},), options=options
    )
    for shape in ((3, 7), (5, 65)):
        given = torch.randn(*shape)
        np.testing.assert_allclose(exe(given).numpy(), torch.softmax(given, -1).numpy(), rtol=0, atol=2e-6)
    (program,) = exe.report()["programs"]
    assert program["kernels_for_all_sizes"] == 1 and not program["kernels_by_sizes"]
