# SPDX-License-Identifier: Apache-2.0
"""What a default build does with a kernel that no stage, or not the first try, can make: it is never lost."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
import tvm
import uir_tvm
from tvm.script import tirx as T
from uir_tvm import hardware, pipeline
from uir_tvm.errors import CapacityError, CodegenCapacityError, CodegenError, UirError
from uir_tvm.optimize import PassRecord
from uir_tvm.options import CompileOptions
from uir_tvm.pipeline import KernelRecord, compile_kernel
from uir_tvm.schedule.smaller import SHRINKS, TILE_BYTES
from uir_tvm.target import registry

from tests import tiny
from tests.schedule import functions

#: All targets, devices on their host models.
TARGETS = {
    name: row.target(None, "model") if len(row.places) > 1 else row.target()
    for name, row in registry.TARGETS.items()
}
#: Some faults that are nobody's refusal.
FAULTS = (
    AssertionError("never"),
    IndexError("list index out of range"),
    KeyError("x"),
    RecursionError("deep"),
)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> tvm.target.Target:
    """Each target."""
    return TARGETS[request.param]


def compiled(func: Any, target: tvm.target.Target) -> KernelRecord:
    """The record of a function that is bound to a target."""
    return compile_kernel(func.with_attr("target", target), target, "kernel_of_test")


def with_tiles(hw: Any, tile_bytes: int) -> Any:
    """A hardware model that prefers tiles of so many bytes."""
    figures = {**dict(hw.figures), TILE_BYTES: tile_bytes}
    return type(hw)(
        hw.name, hw.kind, hw.num_groups, hw.num_units, hw.reg_bytes, hw.sram_bytes, hw.vector_bytes, figures
    )


def doubled(size: int) -> Any:
    """y = x + x in one run of elements, for tiles of any size."""

    @T.prim_func(s_tir=True)
    def double(x: T.Buffer((size,), "float32"), y: T.Buffer((size,), "float32")) -> None:
        for i in range(size):
            with T.sblock("double"):
                v = T.axis.spatial(size, i)
                y[v] = x[v] * T.float32(2) + T.exp(x[v])

    return double


def test_tiles_beyond_the_memory_of_a_unit_become_smaller_ones(
    target: tvm.target.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the recipe is given up: the verifier finds out, long before a printer does."""
    hw = hardware.get(None, registry.of_target(target).kind)
    greedy = with_tiles(hw, 4 * int(hw.reg_bytes))
    monkeypatch.setattr("uir_tvm.schedule.hardware_of.model_of_target", lambda _: greedy)
    monkeypatch.setattr("uir_tvm.schedules.elementwise.space_of", _with_long_runs(greedy))
    record = compiled(doubled(1 << 22), target)
    assert not record.fallback and record.recipe == "elementwise" and record.candidate.shrink > 1


def _with_long_runs(hw: Any) -> Callable[[Any], Any]:
    """The space of decisions of a hardware model, with runs that are as long as a tile may be."""
    from uir_tvm.schedule.tile_facts import space_of

    return lambda _: attrs.evolve(space_of(hw), flat_tile=1 << 30)


def test_a_lack_of_room_is_known_by_its_class(
    target: tvm.target.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the text says: two printers that word it otherwise were not understood."""
    spec = type(registry.of_target(target))
    lower, tried = spec.lower, []

    def crowded(self: Any, graph: Any, func: Any) -> Any:
        tried.append(graph)
        if len(tried) == 1:
            raise CodegenCapacityError("Words of its own.", need="more", limit="less", remedy="as it likes")
        return lower(self, graph, func)

    monkeypatch.setattr(spec, "lower", crowded)
    record = compiled(functions.elementwise(), target)
    assert not record.fallback and len(tried) == 2 and record.candidate.shrink == SHRINKS[0]


def test_what_a_pass_had_no_room_for_gets_smaller_tiles_though_the_printer_words_it_otherwise(
    target: tvm.target.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a product stays in reg for want of room, and the printer refuses a product in reg."""
    stage, spec = importlib.import_module("uir_tvm.optimize"), type(registry.of_target(target))
    optimize, lower = stage.optimize, spec.lower

    def lacks(graph: Any, *args: Any, **options: Any) -> Any:
        made = optimize(graph, *args, **options)
        step = PassRecord("matrix_unit", graph, graph, 0.0, "The reg of a unit overflows.", "capacity")
        return attrs.evolve(made, steps=(*made.steps, step)) if len(tried) < 1 else made

    tried: list[Any] = []

    def refuse(self: Any, graph: Any, func: Any) -> Any:
        tried.append(graph)
        if len(tried) == 1:
            raise CodegenError("The unit cannot compute this product.")
        return lower(self, graph, func)

    monkeypatch.setattr(stage, "optimize", lacks)
    monkeypatch.setattr(spec, "lower", refuse)
    record = compiled(functions.elementwise(), target)
    assert not record.fallback and record.candidate.shrink == SHRINKS[0]
    assert [attempt.refused for attempt in record.attempts] == ["CodegenError", ""]


def test_what_smaller_tiles_do_not_mend_is_tried_once(
    target: tvm.target.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> object:
        raise CodegenError("The printer refuses it.", remedy="smaller tiles")

    monkeypatch.setattr(type(registry.of_target(target)), "lower", refuse)
    record = compiled(functions.elementwise(), target)
    assert record.fallback.startswith("source: The printer refuses it.") and record.candidate.shrink == 1


def test_errors_of_room_are_both_of_their_stage_and_of_room() -> None:
    from uir_tvm.errors import VerifyCapacityError, VerifyError

    error = VerifyCapacityError("Too much.", need="2 bytes", limit="1 byte")
    assert isinstance(error, CapacityError) and isinstance(error, VerifyError) and error.rule == "capacity"
    assert issubclass(CodegenCapacityError, CodegenError) and issubclass(CodegenCapacityError, CapacityError)


@pytest.mark.parametrize(
    ("stage", "fault"), [(stage.name, fault) for stage, fault in zip(pipeline.STAGES, FAULTS, strict=True)]
)
def test_a_fault_of_the_compiler_costs_the_kernel_its_igraph_alone(
    stage: str, fault: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In every stage, by any exception: the model is right, the report and the log say what happened."""
    plant(stage, fault, monkeypatch)
    with caplog.at_level(logging.WARNING, "uir_tvm.pipeline"):
        exe = uir_tvm.compile(tiny.module(), options=CompileOptions(faults="fall back"))
    np.testing.assert_allclose(exe(tiny.example()), tiny.expected(tiny.example()), atol=tiny.TOLERANCE)
    (kernel,) = exe.info.kernels
    assert kernel.fallback.startswith(f"{stage}: a fault of the compiler: {type(fault).__name__}: ")
    assert exe.report()["kernels_without_igraph"]
    assert "please report it" in caplog.text and "test_fall_back.py" in caplog.text


@pytest.mark.parametrize("fault", [*FAULTS[:3], MemoryError("none left")], ids=lambda f: type(f).__name__)
def test_a_fault_of_the_compiler_is_raised_where_that_is_asked_for(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its class, through TVM's passes; the suite runs so, and a lack of memory is never hidden."""
    plant("optimize", fault, monkeypatch)
    assert CompileOptions().faults == "raise"
    way = "fall back" if isinstance(fault, MemoryError) else "raise"
    with pytest.raises(type(fault)):
        uir_tvm.compile(tiny.module(), options=CompileOptions(faults=way))


@pytest.mark.parametrize("way", ["fall back", "raise"])
def test_what_tvm_cannot_build_costs_the_kernel_its_igraph_alone(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault that shows when TVM makes machine code of all kernels: the one that has it is found."""
    right = registry.TargetRecord.lower

    def wrong(record: registry.TargetRecord, graph: Any, func: tvm.tirx.PrimFunc) -> tvm.tirx.PrimFunc:
        lowered = right(record, graph, func)
        unknown, kind = tvm.tirx.Var("nowhere", "int32"), tvm.tirx.ForKind.SERIAL
        return lowered.with_body(tvm.tirx.For(tvm.tirx.Var("i", "int32"), 0, unknown, kind, lowered.body))

    monkeypatch.setattr(registry.TargetRecord, "lower", wrong)
    options = CompileOptions(faults=way)
    if way == "raise":
        with pytest.raises(Exception):  # noqa: B017  (TVM's own class)
            uir_tvm.compile(tiny.module(), options=options)
        return
    exe = uir_tvm.compile(tiny.module(), options=options)
    np.testing.assert_allclose(exe(tiny.example()), tiny.expected(tiny.example()), atol=tiny.TOLERANCE)
    (kernel,) = exe.info.kernels
    assert kernel.fallback.startswith("build: a fault of the compiler: ")


def test_ways_to_treat_faults_are_checked() -> None:
    with pytest.raises(UirError, match="one of fall back, raise"):
        CompileOptions(faults="ignore")


def plant(stage: str, fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one stage raise."""

    def fail(*_: object, **__: object) -> object:
        raise fault

    modules = {
        "tir": ("uir_tvm.schedule.driver", "run_recipe"),
        "igraph": ("uir_tvm.extract", "extract"),
        "optimize": ("uir_tvm.optimize", "optimize"),
    }
    if stage == "source":
        monkeypatch.setattr(registry.TargetRecord, "lower", fail)
    else:
        module, name = modules[stage]
        monkeypatch.setattr(importlib.import_module(module), name, fail)
