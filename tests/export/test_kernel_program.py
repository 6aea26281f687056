# SPDX-License-Identifier: Apache-2.0
"""The project of one kernel: its parameters are files, its workspaces lie in the arena beside them."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from uir_tvm.device.device_kernel import DeviceKernel, KernelParameter, Launch, Workspace
from uir_tvm.errors import ExportError
from uir_tvm.export.kernel_program import kernel_program
from uir_tvm.export.kinds import PROJECTS
from uir_tvm.export.write import write_program
from uir_tvm.runtime.tensors import TensorSpec

from tests.device_targets import DEVICE_TARGETS
from tests.target.sized_kernels import BY_NAME, printed

SOURCE = '#include "kernel_operator.h"\n\nextern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y) {}\n'


def kernel() -> DeviceKernel:
    """One that reads x, writes y, updates z, in two launches that hand over w."""
    params = tuple(
        KernelParameter(name, "fp32", 8, role)
        for name, role in zip("xyz", ("in", "out", "inout"), strict=True)
    )
    launches = (
        Launch("k", 4, 1, 0, False, ("x", "w"), "aiv"),
        Launch("k", 2, 1, 0, False, ("w", "y", "z"), "aiv"),
    )
    return DeviceKernel(
        "k", SOURCE, launches, params, (Workspace("w", 64),), "910b2", "dav-2201", kind="ascend"
    )


def specs(dtype: str = "float32") -> list[TensorSpec]:
    """As the function calls its parameters."""
    return [TensorSpec(name, (2, 4), dtype) for name in ("a", "b", "c")]


def test_inputs_outputs_and_what_lies_between() -> None:
    program = kernel_program(kernel(), "scale", specs(), [False, True, True])
    assert [name for _, name in program.inputs] == ["a", "c"]
    assert [name for _, name in program.outputs] == ["b", "c"]
    steps = [(step.function, step.blocks, step.operands) for step in program.steps()]
    assert steps == [("k", 4, ("a", "workspace_w")), ("k", 2, ("workspace_w", "b", "c"))]
    assert (program.hardware, program.sources, program.weights) == ("910b2", {"k": SOURCE}, ())
    taken = sorted((program.arena.offsets[name], buffer.nbytes) for name, buffer in program.buffers.items())
    assert all(start + size <= after for (start, size), (after, _) in zip(taken, taken[1:], strict=False))


def test_it_is_written_with_what_it_is_checked_with(tmp_path: pathlib.Path) -> None:
    """In files by the names of the parameters; a dtype that no file holds is refused, and nothing is left."""
    program = kernel_program(kernel(), "scale", specs(), [False, True, True])
    arrays = [np.full((2, 4), value, "float32") for value in (1, 2, 3, 4)]
    project = write_program(
        program, PROJECTS["ascend"], tmp_path / "p", inputs=arrays[:2], outputs=arrays[2:]
    )
    assert project.launches == 2 and project.library_calls == project.on_host == 0
    for name, value in (("inputs/a", 1), ("inputs/c", 2), ("outputs/b", 3), ("outputs/c", 4)):
        assert set(np.fromfile(tmp_path / f"p/check/{name}.bin", "float32")) == {value}
    odd = kernel_program(kernel(), "scale", specs("float8_e5m2"), [False, True, True])
    with pytest.raises(ExportError, match="float8_e5m2"):
        write_program(odd, PROJECTS["ascend"], tmp_path / "q")
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_projects_refuse_kernels_with_sizes() -> None:
    kernel = printed(DEVICE_TARGETS[1], BY_NAME["exp_of_rows"])
    with pytest.raises(ExportError, match="known only when it is launched") as error:
        kernel_program(kernel, "model", (), ())
    assert error.value.remedy
