# SPDX-License-Identifier: Apache-2.0
"""Stock TVM on targets of devices: launches of kernels, and kernels that run on the host in their stead."""

from __future__ import annotations

import importlib
import pathlib

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import tirx as T
from uir_tvm import pipeline
from uir_tvm.errors import CodegenError
from uir_tvm.target import code_parts, host_side

from tests import tiny
from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of
from tests.schedule import functions

#: The module that hands a graph to the printer.
PRINT = "uir_tvm.target.source"


@T.prim_func(s_tir=True)
def accumulate(x: T.Buffer((64,), "float32"), total: T.Buffer((64,), "float32")) -> None:
    """total += x: reads what it writes."""
    for i in range(64):
        with T.sblock("add"):
            v = T.axis.spatial(64, i)
            total[v] = total[v] + x[v]


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A printer that takes nothing."""

    def refuse(*_: object) -> object:
        raise CodegenError("The printer refuses it.", remedy="none; it is a test")

    monkeypatch.setattr(importlib.import_module(PRINT), "print_source", refuse)


@pytest.fixture(params=DEVICE_TARGETS, ids=name_of)
def row(request: pytest.FixtureRequest) -> DeviceTarget:
    """Each target that has a device."""
    return request.param


@pytest.fixture
def target(row: DeviceTarget) -> tvm.target.Target:
    """The target on its host model, wherever the test runs."""
    return row.target()


def on_model(array: np.ndarray) -> tvm.runtime.Tensor:
    """A copy on the host model."""
    return tvm.runtime.tensor(array, tvm.ext_dev(0))


def run_elementwise(module: tvm.runtime.Module) -> None:
    """exp(x + bias) is right, twice."""
    rng = np.random.default_rng(3)
    for _ in range(2):
        x, bias = rng.random((60, 100), "float32"), rng.random(100, "float32")
        out = on_model(np.full((60, 100), np.nan, "float32"))
        module["main"](on_model(x), on_model(bias), out)
        np.testing.assert_allclose(out.numpy(), np.exp(x + bias), rtol=1e-6)


@pytest.mark.parametrize("build", [tvm.compile, tvm.tirx.build], ids=["compile", "build"])
def test_a_prim_func_runs_as_text(build: object, row: DeviceTarget, target: tvm.target.Target) -> None:
    with pipeline.recording() as records:
        module = build(functions.elementwise(), target=target)  # type: ignore[operator]
    (record,) = records.values()
    assert not record.fallback and row.mark in str(record.products["source"])
    run_elementwise(module)


def test_a_scheduled_prim_func_keeps_its_schedule(row: DeviceTarget, target: tvm.target.Target) -> None:
    """By `sch` primitives in the caller's hands: the tiles are the caller's."""
    sch = tvm.s_tir.Schedule(functions.elementwise())
    sch.compute_inline("s")
    sch.map_to_units("y", tile=(4, None), hardware=row.hardware)
    with pipeline.recording() as records:
        module = tvm.tirx.build(sch.mod, target=target)
    (record,) = records.values()
    assert not record.fallback and record.recipe == "by hand"
    # rows of the caller's tiles: four from one unit to the next
    assert record.igraph is not None and "400*pid" in str(record.igraph)
    (device_part,) = [part for part in module.imports if part.kind == "uir_device"]
    assert row.mark in device_part.inspect_source()
    run_elementwise(module)


def test_llvm_optimises_little_what_only_calls(
    monkeypatch: pytest.MonkeyPatch, row: DeviceTarget, target: tvm.target.Target
) -> None:
    asked: list[int] = []
    at_level = code_parts._at_level

    def noted(given: tvm.target.Target, mod: tvm.IRModule) -> tvm.target.Target:
        made = at_level(given, mod)
        asked.append(int(made.attrs.get(code_parts.OPTION, code_parts.FULL)))
        return made

    monkeypatch.setattr(code_parts, "_at_level", noted)
    module = tvm.compile(functions.elementwise(), target=target)
    run_elementwise(module)
    assert asked == [host_side.CALLS]


def test_an_exported_library_runs(
    row: DeviceTarget, target: tvm.target.Target, tmp_path: pathlib.Path
) -> None:
    module = tvm.compile(functions.elementwise(), target=target)
    file = tmp_path / "library.so"
    module.export_library(str(file))
    loaded = tvm.runtime.load_module(str(file))
    run_elementwise(loaded)
    (device_part,) = loaded.imports
    assert device_part.kind == "uir_device" and row.mark in device_part.inspect_source()


def test_what_the_printer_refuses_runs_on_the_host(
    refusing: None, target: tvm.target.Target, tmp_path: pathlib.Path
) -> None:
    with pipeline.recording() as records:
        module = tvm.compile(functions.elementwise(), target=target)
    (record,) = records.values()
    assert record.fallback.startswith("source: The printer refuses it.")
    run_elementwise(module)
    file = tmp_path / "library.so"
    module.export_library(str(file))
    run_elementwise(tvm.runtime.load_module(str(file)))


def test_on_the_host_inputs_stay_and_updates_come_back(refusing: None, target: tvm.target.Target) -> None:
    module = tvm.compile(accumulate, target=target)
    x, total = np.arange(64, dtype="float32"), np.full(64, 5, "float32")
    given, updated = on_model(x), on_model(total)
    module["accumulate"](given, updated)
    np.testing.assert_array_equal(updated.numpy(), x + total)
    np.testing.assert_array_equal(given.numpy(), x)


def test_a_fault_of_the_compiler_is_a_recorded_fallback(
    target: tvm.target.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> object:
        raise tvm.error.InternalError("something is off")

    monkeypatch.setenv("UIR_FAULTS", "fall back")
    monkeypatch.setattr(importlib.import_module(PRINT), "print_source", fail)
    with pipeline.recording() as records:
        module = tvm.compile(functions.elementwise(), target=target)
    (record,) = records.values()
    assert record.fallback == "source: a fault of the compiler: something is off"
    run_elementwise(module)


def test_a_relax_module_runs_on_the_device(target: tvm.target.Target) -> None:
    with pipeline.recording() as records:
        built = tvm.compile(tiny.module(), target=target)
    assert [r.fallback for r in records.values()] == [""]
    vm = relax.VirtualMachine(built, tvm.ext_dev(0))
    got = vm["main"](on_model(tiny.example()))
    assert got.device == tvm.ext_dev(0)
    np.testing.assert_allclose(got.numpy(), tiny.expected(tiny.example()), atol=tiny.TOLERANCE)


def test_tensors_of_another_device_are_refused_by_tvm(target: tvm.target.Target) -> None:
    module = tvm.compile(functions.elementwise(), target=target)
    host = [tvm.runtime.tensor(np.zeros(s, "float32")) for s in ((60, 100), (100,), (60, 100))]
    with pytest.raises(Exception, match="device"):
        module["main"](*host)


@T.prim_func(s_tir=True)
def narrow(
    x: T.Buffer((8, 32), "bfloat16"), mask: T.Buffer((8, 32), "bool"), y: T.Buffer((8, 32), "bfloat16")
) -> None:
    """y = mask ? 2 x : x, in bf16."""
    for i, j in T.grid(8, 32):
        with T.sblock("select"):
            v, w = T.axis.remap("SS", [i, j])
            y[v, w] = T.Select(mask[v, w], x[v, w] + x[v, w], x[v, w])


@pytest.mark.parametrize("refused", [False, True], ids=["on the device", "on the host"])
def test_narrow_floats_and_bool_cross_the_host(
    refused: bool, target: tvm.target.Target, request: pytest.FixtureRequest
) -> None:
    """TVM's host code knows bf16 as something else; the device must see what the caller passed."""
    if refused:
        request.getfixturevalue("refusing")
    module = tvm.compile(narrow, target=target)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((8, 32)).astype(ml_dtypes.bfloat16)
    mask = rng.integers(0, 2, (8, 32)).astype(bool)
    out = on_model(np.zeros((8, 32), ml_dtypes.bfloat16))
    module["narrow"](on_model(x), on_model(mask), out)
    np.testing.assert_array_equal(out.numpy(), np.where(mask, x + x, x))
