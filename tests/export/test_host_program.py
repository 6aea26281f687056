# SPDX-License-Identifier: Apache-2.0
"""What a project's host program does, from what an executable says of itself."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from uir_tvm.errors import ExportError
from uir_tvm.export.device_program import HostStep, KernelStep, LibraryStep
from uir_tvm.export.host_program import host_program

from ..target.ascend.project_program import HOST, ByHand


def test_steps_are_those_of_the_kernel_graph() -> None:
    """In its order; a kernel's launches hand over what only they know."""
    exe: Any = ByHand()
    program = host_program(exe)
    product, first, second = program.steps()
    assert isinstance(product, LibraryStep) and product.buffers == ("x", "weight", "bias", "y")
    assert first == KernelStep("scale_0", 2, ("y", "workspace_1_half"))
    assert second == KernelStep("scale_1", 2, ("x", "workspace_1_half", "out"))
    assert [group.title for group in program.groups] == ["matmul + add", "add: scale"]
    assert (program.name, program.hardware) == ("by hand", "910b2")


def test_memory() -> None:
    """Inputs and what is computed in one allocation, weights in another; apart where needed together."""
    exe: Any = ByHand()
    program = host_program(exe)
    assert [buffer.name for buffer in program.weights] == ["weight", "bias"]
    assert set(program.constants.offsets) == {"weight", "bias"}
    assert set(program.arena.offsets) == {"x", "y", "workspace_1_half", "out"}
    assert len(set(program.arena.offsets.values())) == 4, "the second node needs all four"


def test_an_input_may_be_an_output() -> None:
    exe: Any = ByHand()
    assert [buffer for _, buffer in host_program(exe).outputs] == ["out", "x"]


def test_a_kernel_of_the_host_is_a_step_of_its_own() -> None:
    """With what it only reads in front; it has no launches and no workspace."""
    exe: Any = ByHand(fallback="CodegenError: the vector core has no fp64\nmore", host=HOST)
    program = host_program(exe)
    step = list(program.steps())[-1]
    assert step == HostStep("scale", ("y", "x", "out"), 2, (("float32", (8, 16)),) * 3)
    assert program.host["scale"].reason == "CodegenError: the vector core has no fp64"
    assert set(program.arena.offsets) == {"x", "y", "out"} and program.sources == {}


@pytest.mark.parametrize("host", [{"refused": "C that TVM prints does not have half"}, None])
def test_kernels_that_are_neither_are_refused_by_name_and_reason(host: Any) -> None:
    exe: Any = ByHand(fallback="CodegenError: the vector core has no fp64", host=host)
    with pytest.raises(ExportError, match="scale: CodegenError: the vector core has no fp64") as caught:
        host_program(exe)
    assert caught.value.remedy and (
        "half" in str(caught.value) if host else "compile the model again" in str(caught.value)
    )


def test_kernels_without_a_graph_are_no_model() -> None:
    """Nothing says how they are called, unless it is one that takes the inputs and then the outputs."""
    exe: Any = ByHand()
    exe.kernel_graph = None
    with pytest.raises(ExportError, match="no kernel graph") as caught:
        host_program(exe)
    assert caught.value.limit == "scale" and caught.value.remedy


def test_one_kernel_is_its_own_call() -> None:
    exe: Any = ByHand()
    exe.kernel_graph = None
    (kernel,) = exe.info.kernels
    roles = ("in", "out", "out")
    params = [{**row, "role": role} for row, role in zip(kernel.code["params"], roles, strict=True)]
    exe.info = attrs.evolve(exe.info, kernels=(attrs.evolve(kernel, code={**kernel.code, "params": params}),))
    program = host_program(exe)
    first, second = program.steps()
    assert first == KernelStep("scale_0", 2, ("x", "workspace_0_half"))
    assert second == KernelStep("scale_1", 2, ("output0", "workspace_0_half", "output1"))
