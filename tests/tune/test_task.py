# SPDX-License-Identifier: Apache-2.0
"""Tasks are the functions that the compiler meets, once each, with all their launches."""

from __future__ import annotations

import pathlib

import pytest
import tvm
import uir_tvm
from tvm import relax
from uir_tvm import kernel_graph
from uir_tvm.api import import_model
from uir_tvm.errors import TargetError
from uir_tvm.target import registry
from uir_tvm.tune import ScheduleDatabase
from uir_tvm.tune.spaces import design_spaces
from uir_tvm.tune.task import extract_tasks

from .. import tiny
from ..kernel_graph.programs import constant, module
from .kernels import kernel

op = relax.op
WIDTH = 24


def layers() -> tvm.IRModule:
    """Three equal layers of a product and a norm, and a softmax."""
    ones, zeros = (relax.const(constant(WIDTH).value.numpy() * 0 + n) for n in (1, 0))

    def body(emit: object, x: relax.Var) -> relax.Var:
        for seed in range(3):
            y = emit(op.matmul(x, constant(WIDTH, WIDTH, seed=seed)))  # type: ignore[operator]
            x = emit(op.nn.layer_norm(y, ones, zeros, axes=[-1]))  # type: ignore[operator]
        return emit(op.nn.softmax(x))  # type: ignore[operator]

    return module({"x": ((8, WIDTH), "float32")}, body)


def test_equal_kernels_are_one_task() -> None:
    """Weights are launches in a run of the model; the library's are counted apart."""
    graph = kernel_graph.build(import_model(layers()), registry.resolve("uir-cpu").target)
    found = extract_tasks(graph, "uir-cpu")
    assert sum(task.weight for task in found.tasks) == len(graph.custom_ops)
    assert found.library == len(graph.library_ops) == 3
    assert sorted(task.weight for task in found.tasks) == [
        1,
        2,
    ]  # the last norm has the softmax in its kernel
    assert len({task.origin for task in found.tasks}) == len(found.tasks)


@pytest.mark.parametrize("target", ["uir-cpu", "uir-ascend", "uir-bang", "uir-cuda"])
def test_the_compiler_finds_what_is_kept_of_a_task(target: str, tmp_path: pathlib.Path) -> None:
    """Every kernel of a compiled model takes the schedule that was added for its task."""
    device = "auto" if target == "uir-cpu" else "model"
    place = registry.resolve(target, device).target
    graph = kernel_graph.build(import_model(tiny.module()), place)
    database = ScheduleDatabase(tmp_path / "db")
    for task in extract_tasks(graph, place).tasks:
        space = design_spaces(task.func, task.target)[0]
        database.add(task.func, space.schedule, [1e-3], task.target, begun=space.begun)
    options = uir_tvm.CompileOptions(device=device)
    exe = uir_tvm.compile(tiny.module(), target, database=database.folder, options=options)
    assert [kernel.recipe for kernel in exe.info.kernels] == ["database"] * len(exe.info.kernels)


def test_a_module_that_calls_kernels(tmp_path: pathlib.Path) -> None:
    """A kernel by itself is a task too; what is scheduled or an iGraph already is left, and why is said."""
    (task,) = extract_tasks(import_model(kernel()), "uir-cpu").tasks
    assert (
        task.weight == 1 and task.origin == extract_tasks(import_model(kernel()), "uir-cpu").tasks[0].origin
    )
    exe = uir_tvm.compile(kernel())
    (info,) = exe.info.kernels
    (tmp_path / "k.igraph").write_text(info.texts["igraph"])
    found = extract_tasks(import_model(tmp_path / "k.igraph"), "uir-cpu")
    assert not found.tasks and "iGraph" in next(iter(found.left.values()))
    found = extract_tasks(import_model(info_schedule()), "uir-cpu")
    assert not found.tasks and "scheduled" in next(iter(found.left.values()))


def info_schedule() -> tvm.tirx.PrimFunc:
    """A kernel that is scheduled."""
    return design_spaces(kernel(), registry.resolve("uir-cpu").target)[0].schedule.mod["main"]


def test_an_unknown_target() -> None:
    graph = kernel_graph.build(import_model(tiny.module()), registry.resolve("uir-cpu").target)
    with pytest.raises(TargetError, match="uir-tpu"):
        extract_tasks(graph, "uir-tpu")
