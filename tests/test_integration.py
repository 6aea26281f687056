# SPDX-License-Identifier: Apache-2.0
"""uir-cpu through stock TVM: build, compile, Relax; other targets as they were."""

from __future__ import annotations

import gc
import logging

import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx, topi
from tvm.script import tirx as T
from uir_tvm import integration, pipeline

from tests import tiny
from tests.schedule import functions


@T.prim_func(s_tir=True)
def symbolic_double(a: T.handle, b: T.handle) -> None:
    """b = 2 a, of a length that is known when it runs."""
    n = T.int64()
    x = T.match_buffer(a, (n,), "float32")
    y = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.sblock("double"):
            vi = T.axis.spatial(n, i)
            y[vi] = x[vi] * T.float32(2)


def run(module: tvm.runtime.Module, *inputs: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Call a built PrimFunc with one output."""
    out = tvm.runtime.tensor(np.full(shape, np.nan, "float32"))
    module["main"](*[tvm.runtime.tensor(a) for a in inputs], out)
    return out.numpy()


def random(*shape: int) -> np.ndarray:
    """fp32 in [0, 1)."""
    return np.random.default_rng(3).random(shape, "float32")


@pytest.mark.parametrize("build", [tvm.compile, tvm.tirx.build], ids=["compile", "build"])
def test_a_prim_func_builds_through_an_igraph(build: object) -> None:
    x, bias = random(60, 100), random(100)
    with pipeline.recording() as records:
        module = build(functions.elementwise(), target="uir-cpu")  # type: ignore[operator]
    (record,) = records.values()
    assert record.igraph is not None and not record.fallback
    np.testing.assert_allclose(run(module, x, bias, shape=x.shape), np.exp(x + bias), rtol=1e-6)


def test_no_garbage_is_sought_while_kernels_are_made() -> None:
    """A program that has much in memory would pay for it with a fifth of the time."""
    looked: list[bool] = []

    def progress(_record: object) -> None:
        looked.append(gc.isenabled())

    gc.enable()
    with pipeline.recording(progress=progress):
        tvm.compile(functions.elementwise(), target="uir-cpu")
    assert looked == [False] and gc.isenabled()


def test_a_scheduled_prim_func_keeps_its_schedule() -> None:
    sch = tvm.s_tir.Schedule(functions.elementwise())
    sch.compute_inline("s")
    sch.map_to_units("y", tile=(4, None))
    with pipeline.recording() as records:
        tvm.compile(sch.mod["main"], target="uir-cpu")
    (record,) = records.values()
    assert record.recipe == "by hand" and record.igraph is not None
    assert record.igraph.num_parallel * 4 <= 60


def test_a_target_object_and_its_config_are_the_name() -> None:
    target = tvm.target.Target("uir-cpu")
    for form in (target, tvm.target.Target(dict(target.export()))):
        with pipeline.recording() as records:
            tvm.compile(functions.row_sum(8, 16), target=form)
        assert all(record.igraph is not None for record in records.values()) and records


def test_a_relax_module_compiles_without_a_pipeline_argument() -> None:
    x = tiny.example()
    with pipeline.recording() as records:
        built = tvm.compile(tiny.module(), target="uir-cpu")
    assert [r.fallback for r in records.values()] == [""]
    vm = relax.VirtualMachine(built, tvm.cpu())
    got = vm["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(got, tiny.expected(x), atol=tiny.TOLERANCE)


def test_a_symbolic_prim_func_is_one_kernel_for_all_sizes() -> None:
    with pipeline.recording() as records:
        module = tvm.compile(symbolic_double, target="uir-cpu")
    (record,) = records.values()
    assert record.igraph is not None and len(record.igraph.sizes) == 1
    for n in (1, 7, 5000):
        np.testing.assert_array_equal(run(module, random(n), shape=(n,)), 2 * random(n))


def test_a_symbolic_prim_func_without_a_kernel_is_left_to_tvm_with_a_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x = te.placeholder((n, m), "float32", "x")
    turned = te.create_prim_func([x, topi.transpose(x)])
    with caplog.at_level(logging.WARNING), pipeline.recording() as records:
        module = tvm.compile(turned, target="uir-cpu")
    (record,) = records.values()
    assert record.igraph is None and "smaller upper bounds" in record.fallback
    assert "left to TVM's own lowering" in caplog.text
    np.testing.assert_array_equal(run(module, random(3, 7), shape=(7, 3)), random(3, 7).T)


@pytest.mark.parametrize("func", [functions.recurrence, functions.quadratic_store])
def test_what_no_igraph_expresses_still_runs(func: tirx.PrimFunc) -> None:
    """A dependence through the loop, a store that is not affine: right numbers by one way or the other."""
    sizes = [int(p.ty.shape[0]) for p in func.params]
    a, b = random(sizes[0]), np.zeros(sizes[1], "float32")
    want = b.copy()
    if func is functions.recurrence:
        want[1:] = np.cumsum(a[1:], dtype="float32")
    else:
        want[np.arange(8) ** 2] = a
    module, out = tvm.compile(func, target="uir-cpu"), tvm.runtime.tensor(b)
    module["main"](tvm.runtime.tensor(a), out)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6)


def test_other_targets_are_as_they_were() -> None:
    """No kernel of an llvm build is seen by the stages, and its Relax pipeline is TVM's."""
    x, bias = random(60, 100), random(100)
    with pipeline.recording() as records:
        module = tvm.compile(functions.elementwise(), target="llvm")
        built = tvm.compile(tiny.module(), target="llvm")
    assert records == {}
    np.testing.assert_allclose(run(module, x, bias, shape=x.shape), np.exp(x + bias), rtol=1e-6)
    got = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(tiny.example())).numpy()
    np.testing.assert_allclose(got, tiny.expected(tiny.example()), atol=tiny.TOLERANCE)


def test_registering_twice_changes_nothing() -> None:
    from tvm.relax import pipeline as relax_pipeline
    from tvm.tirx import compilation_pipeline as tir_pipeline

    before = dict(relax_pipeline.PIPELINE_MAP), dict(tir_pipeline.PIPELINE_MAP)
    integration.register()
    assert before == (dict(relax_pipeline.PIPELINE_MAP), dict(tir_pipeline.PIPELINE_MAP))


def test_default_relax_pipeline_of_a_target() -> None:
    ours = relax.get_default_pipeline(tvm.target.Target("uir-cpu"))
    stock = relax.get_default_pipeline(tvm.target.Target("llvm"))
    assert "uir.relax_passes" in str(ours.info) and "uir." not in str(stock.info)
