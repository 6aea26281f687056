# SPDX-License-Identifier: Apache-2.0
"""Functions that stock TVM builds and that no iGraph says, and names that are taken: all targets."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tvm
import uir_tvm
from tvm import relax, te
from tvm.relax import op
from tvm.script import tirx as T
from uir_tvm import pipeline
from uir_tvm.errors import ShapeError
from uir_tvm.options import CompileOptions
from uir_tvm.schedules import RECIPES
from uir_tvm.target import registry
from uir_tvm.target.source import MOST_TENSORS, identifier

from tests.schedule import functions

RNG = np.random.default_rng(31)


@T.prim_func(s_tir=True)
def running_product(x: T.Buffer((4, 10), "float32"), y: T.Buffer((4, 10), "float32")) -> None:
    """Loops without a block, as TVM lowers cumprod."""
    with T.sblock("root"):
        T.reads()
        T.writes()
        for i in range(4):
            y[i, 0] = x[i, 0]
            for j in range(9):
                y[i, j + 1] = y[i, j] * x[i, j + 1]


@T.prim_func(s_tir=True)
def symbolic(a: T.handle, b: T.handle) -> None:
    """y = x + 1 for any number of rows."""
    n = T.int64()
    x = T.match_buffer(a, (n, 16), "float32")
    y = T.match_buffer(b, (n, 16), "float32")
    for i, j in T.grid(n, 16):
        with T.sblock("add"):
            v, w = T.axis.remap("SS", [i, j])
            y[v, w] = x[v, w] + T.float32(1)


@T.prim_func(s_tir=True)
def scaled(factor: T.float32, x: T.Buffer((4, 10), "float32"), y: T.Buffer((4, 10), "float32")) -> None:
    """A parameter that is a number."""
    for i, j in T.grid(4, 10):
        with T.sblock("scale"):
            v, w = T.axis.remap("SS", [i, j])
            y[v, w] = x[v, w] * factor


def sorted_rows() -> Any:
    """An external function does all the work, as TVM lowers sort."""
    x = te.placeholder((4, 10), name="x")

    def call(ins: Any, outs: Any) -> Any:
        return tvm.tirx.call_packed("tvm.contrib.sort.sort", ins[0], outs[0], 1, True)

    y = te.extern((4, 10), [x], call, name="y", dtype="float32")
    return te.create_prim_func([x, y])


@pytest.fixture(params=registry.TARGETS)
def name(request: pytest.FixtureRequest) -> str:
    """Each target."""
    return request.param


@pytest.fixture
def target(name: str) -> tvm.target.Target:
    """The same as TVM's; devices on their host models."""
    row = registry.get(name)
    return row.target(None, "model") if len(row.places) > 1 else row.target()


def device_of(target: tvm.target.Target) -> tvm.runtime.Device:
    """Where its tensors lie."""
    return tvm.device(registry.place_of(target).device)


def ran(library: Any, target: tvm.target.Target, *inputs: Any) -> np.ndarray:
    """What a call of a library makes of arrays and numbers; the last array has the result's shape."""
    device = device_of(target)
    given = [tvm.runtime.tensor(x, device) if isinstance(x, np.ndarray) else x for x in inputs]
    *_, last = (x for x in inputs if isinstance(x, np.ndarray))
    out = tvm.runtime.tensor(np.full(last.shape, np.nan, last.dtype), device)
    library(*given, out)
    return out.numpy()


@pytest.mark.parametrize(
    ("func", "expected"),
    [(running_product, lambda x: np.cumprod(x, 1)), (sorted_rows(), lambda x: np.sort(x, 1))],
    ids=["loops", "external"],
)
def test_what_is_opaque_runs_on_the_host(func: Any, expected: Any, target: tvm.target.Target) -> None:
    """It has no block, of which "all" may be said; and what an external function writes comes back."""
    x = RNG.random((4, 10), "float32")
    with pipeline.recording() as records:
        library = tvm.compile(func, target=target)
    (record,) = records.values()
    assert record.fallback.startswith("tir: The function is opaque") and not record.refusal.is_fault
    np.testing.assert_allclose(ran(library, target, x), expected(x), rtol=1e-6)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.hero)
def test_no_recipe_matches_a_function_without_blocks(recipe: Any) -> None:
    assert not recipe.matches(tvm.s_tir.Schedule(running_product))


def test_symbolic_shapes_at_both_doors(name: str, target: tvm.target.Target) -> None:
    """TVM's door makes one kernel for all sizes; ours compiles for the sizes of each call."""
    with pipeline.recording() as records:
        library = tvm.compile(symbolic, target=target)
    (record,) = records.values()
    assert record.refusal is None and [str(size.name) for size in record.igraph.sizes] == ["n"]
    for rows in (1, 37):
        x = RNG.random((rows, 16), "float32")
        np.testing.assert_array_equal(ran(library, target, x), x + 1)
    x = RNG.random((5, 16), "float32")
    executable = uir_tvm.compile(symbolic, target=name)
    for rows in (5, 3):
        np.testing.assert_array_equal(executable(x[:rows]), x[:rows] + 1)
    with pytest.raises(ShapeError) as caught:
        executable(x[:, :8])
    assert caught.value.need and caught.value.remedy


def test_a_number_as_a_parameter(target: tvm.target.Target) -> None:
    x = RNG.random((4, 10), "float32")
    library = tvm.compile(scaled, target=target)
    np.testing.assert_array_equal(ran(library, target, 3.0, x), np.float32(3) * x)


@pytest.mark.parametrize("name_of", ["malloc", "free", "std", "main", "int", "isfinite", "a/../b", "x\ny\\"])
def test_kernels_whose_names_are_taken(name_of: str) -> None:
    """Each target in turn runs the kernel of a name that its text must not have."""
    names = list(registry.TARGETS)
    row = registry.get(names[1 + len(name_of) % (len(names) - 1)])
    target = row.target(None, "model")
    library = tvm.compile(functions.elementwise().with_attr("global_symbol", name_of), target=target)
    x, bias = RNG.random((60, 100), "float32"), RNG.random(100, "float32")
    device = device_of(target)
    out = tvm.runtime.tensor(np.zeros((60, 100), "float32"), device)
    library(tvm.runtime.tensor(x, device), tvm.runtime.tensor(bias, device), out)
    np.testing.assert_allclose(out.numpy(), np.exp(x + bias), rtol=1e-6)


@pytest.mark.parametrize(
    "word",
    "malloc free qsort std Add A float4 size_t make_float4 _x x_ isfinite signbit beta cyl_bessel_jf".split(),
)
def test_a_name_that_a_header_may_declare_gets_a_prefix(word: str) -> None:
    assert identifier(word) == f"kernel_{word}"


def test_names_of_kernels_are_legal_and_stay_apart() -> None:
    """Those that nobody else has are kept."""
    names = [
        "g",
        "ahead",
        "softmax",
        "fused_add",
        "a/b",
        "",
        "1a",
        "malloc",
        "kernel_malloc",
        "x" * 300,
        "x" * 301,
    ]
    made = [identifier(word) for word in names]
    assert len(set(made)) == len(made) and made[:4] == names[:4]
    assert all(re.fullmatch(r"[A-Za-z]\w*", word, re.ASCII) and len(word) < 250 for word in made)


def test_comments_of_a_text_hold_any_name(target: tvm.target.Target) -> None:
    """Neither a line's end nor a backslash in a pointer's name reaches the next line."""
    x = te.placeholder((60, 100), name="x\n#error \\")
    func = te.create_prim_func([x, te.compute((60, 100), lambda i, j: te.exp(x[i, j]), name="y\\")])
    record = pipeline.compile_kernel(func.with_attr("target", target), target, "odd")
    assert not record.fallback
    lines = str(record.products["source"]).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("#error") or line.rstrip().endswith("\\")]


def test_a_kernel_of_too_many_tensors_is_for_the_host(target: tvm.target.Target) -> None:
    xs = [te.placeholder((8,), name=f"x{i}") for i in range(MOST_TENSORS + 1)]
    func = te.create_prim_func([*xs, te.compute((8,), lambda i: xs[0][i] + xs[-1][i], name="y")])
    record = pipeline.compile_kernel(func.with_attr("target", target), target, "many")
    on_device = registry.place_of(target).device != "cpu"
    assert (f"takes {MOST_TENSORS + 2} tensors" in record.fallback) == on_device == bool(record.fallback)


def test_a_concatenation_of_many(name: str) -> None:
    """In several kernels: one would be a choice among all in every element."""
    arrays = [RNG.random((2, 1 + i % 2), "float32") for i in range(26)]
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", relax.TensorType(a.shape, "float32")) for i, a in enumerate(arrays)]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(builder.emit(op.concat(params, axis=1)))
        builder.emit_func_output(out)
    options = CompileOptions(device="model" if name != "uir-cpu" else "auto")
    exe = uir_tvm.compile(builder.get(), name, options=options)
    assert not exe.report()["kernels_without_igraph"] and len(exe.info.kernels) > 1
    np.testing.assert_array_equal(exe(*arrays), np.concatenate(arrays, 1))
