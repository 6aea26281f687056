# SPDX-License-Identifier: Apache-2.0
"""The project of one kernel: its parameters are files, its workspaces lie in the arena beside them."""

from __future__ import annotations

import importlib
import pathlib
import subprocess

import numpy as np
import pytest
from uir_tvm.device.device_kernel import DeviceKernel, KernelParameter, Launch, Workspace
from uir_tvm.errors import ExportError
from uir_tvm.export.device_program import HostProgram, KernelStep
from uir_tvm.export.kernel_program import kernel_program
from uir_tvm.export.kinds import PROJECTS
from uir_tvm.export.write import write_program
from uir_tvm.igraph import interpreter
from uir_tvm.igraph.dtypes import to_tvm
from uir_tvm.runtime.tensors import TensorSpec

from tests.asked import asked
from tests.corpus.sized import SIZED, Sized
from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of
from tests.target.sized_kernels import BY_NAME, agree, printed

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


def sized_program(row: DeviceTarget, one: Sized) -> tuple[DeviceKernel, HostProgram]:
    """The kernel of a graph with sizes, and the program that launches it."""
    kernel = printed(row, one)
    tensors = [
        TensorSpec(p.name, tuple(map(str, p.dims)) if p.dims else (p.size,), to_tvm(p.dtype))  # type: ignore[arg-type]
        for p in kernel.params
    ]
    return kernel, kernel_program(kernel, one.name, tensors, [p.role != "in" for p in kernel.params])


@pytest.mark.parametrize("name", asked(["twice_in_a_row"], [one.name for one in SIZED]))
@pytest.mark.parametrize("row", asked(DEVICE_TARGETS[2:], DEVICE_TARGETS[1:]), ids=name_of)
def test_a_kernel_with_sizes_takes_them_at_a_run(
    row: DeviceTarget, name: str, tmp_path: pathlib.Path
) -> None:
    """One build, and for sizes around the edges what the interpreter computes; none beyond the range."""
    one = BY_NAME[name]
    graph = one.graph(row.hardware)
    kernel, program = sized_program(row, one)
    folder = write_program(program, PROJECTS[kernel.kind], tmp_path / "p").path
    host = importlib.import_module(f"uir_tvm.target.{kernel.kind}.project_on_model")
    built = host.build(folder, tmp_path / "build")
    given = [f"{spec.name}.bin" for spec, _ in program.inputs]

    def run(n: int, arrays: list[np.ndarray]) -> subprocess.CompletedProcess[str]:
        for file, array in zip(given, arrays, strict=True):
            array.tofile(tmp_path / file)
        files = [tmp_path / file for file in given]
        command = [built, "--project", folder, "--size", f"n={n}", "--output", tmp_path, *files]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    for n in one.points(graph):
        arrays = one.inputs(graph, n)
        done = run(n, arrays)
        assert (done.returncode, done.stderr) == (0, ""), (n, done.stderr)
        wanted = interpreter.run(graph, *arrays, sizes={"n": n})
        for (spec, _), want in zip(program.outputs, wanted, strict=True):
            got = np.fromfile(tmp_path / f"{spec.name}.bin", want.dtype)
            agree(one, got, want, (name, n))
    beyond = int(graph.sizes[0].high) + int(graph.sizes[0].multiple_of)
    refused = run(beyond, one.inputs(graph, beyond))
    assert refused.returncode == 2 and f"not compiled for n = {beyond}" in refused.stderr


def test_what_follows_the_sizes() -> None:
    """Groups and arguments of a launch, shapes, and what is checked before it."""
    kernel, program = sized_program(DEVICE_TARGETS[1], BY_NAME["exp_of_rows"])
    (step,) = program.steps()
    assert isinstance(step, KernelStep)
    assert (step.groups, step.blocks, step.sizes) == ("(n + 3) // 4", 48, ("n",))
    assert program.buffers["x"].shape == ("n", "8") and program.arena is None
    assert program.open.names == ("n",) and program.open.conditions == ("0 <= n <= 301",)
    texts = dict(PROJECTS[kernel.kind].texts(program))
    assert "{n, 8}" in texts["model.cpp"] and "0 <= n <= 301" in texts["README.md"] and "sizes.cpp" in texts
