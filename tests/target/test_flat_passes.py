# SPDX-License-Identifier: Apache-2.0
"""Functions that a target lowered for the host go through TVM's passes for flat code alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import s_tir, te, tirx
from tvm_ffi.structural import structural_walk
from uir_tvm import pipeline
from uir_tvm.errors import CodegenError
from uir_tvm.target import registry
from uir_tvm.target.flat_passes import APART, FLAT, SharedMemory, finishing

from tests.schedule import functions


def rows() -> tirx.PrimFunc:
    """Softmax-like rows of open number and length: its tile has rows of the greatest length."""
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x = te.placeholder((n, m), name="x")
    k = te.reduce_axis((0, m), "k")
    total = te.compute((n,), lambda i: te.sum(te.exp(x[i, k]), axis=k), "total")
    y = te.compute((n, m), lambda i, j: te.exp(x[i, j]) / total[i], "y")
    return te.create_prim_func([x, y]).with_attr("uir.sizes", {"m": [1, 64, 1]})


def lowered(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """What uir-cpu makes of a function, as the pipeline gets it."""
    target = registry.resolve("uir-cpu", "auto").target
    with pipeline.recording():
        record = pipeline.try_kernel(func.with_attr("target", target), target, "main")
    assert record.refusal is None
    made: tirx.PrimFunc = record.lowered
    return made.with_attr({"target": target.with_host(target), "global_symbol": "main", FLAT: True})


def open_memory(mod: tvm.IRModule) -> int:
    """How many allocations have a size that is no number."""
    found = []

    def note(node: tirx.AllocBuffer) -> None:
        found.append(all(isinstance(extent, tirx.IntImm) for extent in node.buffer.shape))

    for func in mod.functions.values():
        structural_walk(func.body, (tirx.AllocBuffer, note))
    assert found
    return found.count(False)


def test_memory_of_open_kernels_has_sizes_that_are_numbers() -> None:
    mod = tvm.IRModule({"main": lowered(rows())})
    assert open_memory(mod) == 0
    compacted = s_tir.transform.CompactBufferAllocation()(mod)
    assert open_memory(compacted) > 0, "TVM's pipeline would make them smaller, for whatever sizes"
    seen: list[str] = []

    @tvm.ir.instrument.pass_instrument
    class Watch:
        def run_before_pass(self, _mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
            seen.append(str(info.name))

    stock, _, _ = tvm.s_tir.pipeline.default_s_tir_pipeline()
    with tvm.transform.PassContext(instruments=[Watch()]):
        made = finishing(stock)(mod)
    assert "tirx.MakePackedAPI" in seen and "s_tir.CompactBufferAllocation" not in seen
    assert seen.count("tirx.StmtSimplify") == 1
    assert not {"s_tir.StmtSimplify", "tirx.FlattenBuffer", "tirx.RemoveNoOp"}.intersection(seen)
    (func,) = made.functions.values()
    assert FLAT not in func.attrs


@pytest.mark.parametrize("func", [rows(), functions.elementwise(), functions.row_sum(8, 16)])
def test_there_is_nothing_to_flatten(func: tirx.PrimFunc) -> None:
    """Buffers have one dimension, those of parameters too where elements are read and written."""
    found: list[int] = []

    def note(node: Any) -> None:
        found.append(len(node.indices))

    structural_walk(lowered(func).body, [(tvm.ir.TensorLoad, note), (tirx.BufferStore, note)])
    assert found and set(found) == {1}


@pytest.mark.parametrize("size", [(1, 1), (7, 37), (33, 64)])
def test_they_compute_the_same(size: tuple[int, int]) -> None:
    library = tvm.compile(tvm.IRModule({"main": rows()}), target="uir-cpu")
    x = np.random.default_rng(5).random(size, "float32")
    out = tvm.runtime.tensor(np.zeros(size, "float32"))
    library["main"](tvm.runtime.tensor(x), out)
    np.testing.assert_allclose(out.numpy(), np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)


def test_functions_with_blocks_go_through_all_passes_beside_them() -> None:
    """One function is ours, the other is left to TVM: a library has both, and no entry."""
    ours, other = functions.elementwise(), functions.row_sum(8, 16)
    with pipeline.recording() as records, pipeline.leaving({"other": CodegenError("left")}):
        library = tvm.tirx.build(
            tvm.IRModule({"ours": ours.with_attr("global_symbol", "ours"), "other": other}), target="uir-cpu"
        )
    assert not records["ours"].fallback and records["other"].fallback
    rng = np.random.default_rng(6)
    x, bias = rng.random((60, 100), "float32"), rng.random(100, "float32")
    out = tvm.runtime.tensor(np.zeros_like(x))
    library["ours"](tvm.runtime.tensor(x), tvm.runtime.tensor(bias), out)
    np.testing.assert_allclose(out.numpy(), np.exp(x + bias), rtol=1e-6)
    assert not library.implements_function("__tvm_ffi_main")


def test_a_library_of_one_function_runs_it_when_it_is_called() -> None:
    library = tvm.tirx.build(functions.elementwise().with_attr("global_symbol", "named"), target="uir-cpu")
    rng = np.random.default_rng(6)
    x, bias = rng.random((60, 100), "float32"), rng.random(100, "float32")
    out = tvm.runtime.tensor(np.zeros_like(x))
    library(tvm.runtime.tensor(x), tvm.runtime.tensor(bias), out)
    np.testing.assert_allclose(out.numpy(), np.exp(x + bias), rtol=1e-6)


def allocated(elements: int) -> int:
    """How many buffers are left of two of which one ends before the other begins."""
    out = tirx.decl_buffer((elements,), "float32", name="out")
    i = [tirx.Var(f"i{k}", "int32") for k in range(4)]
    first, second = (tirx.decl_buffer((elements,), "float32", name=name) for name in "ab")

    def loop(k: int, target: tirx.Buffer, value: Callable[[Any], Any]) -> tirx.Stmt:
        body = tirx.BufferStore(target, value(i[k]), [i[k]])
        return tirx.For(i[k], 0, elements, tirx.ForKind.SERIAL, body)

    steps = [
        tirx.AllocBuffer(first),
        loop(0, first, lambda at: tirx.Cast("float32", at)),
        loop(1, out, lambda at: tirx.BufferLoad(first, [at])),
        tirx.AllocBuffer(second),
        loop(2, second, lambda at: tirx.BufferLoad(out, [at]) * 2.0),
        loop(3, out, lambda at: tirx.BufferLoad(second, [at])),
    ]
    mod = tvm.IRModule({"main": tirx.PrimFunc([out], tirx.SeqStmt(steps))})
    found: list[tirx.AllocBuffer] = []
    structural_walk(SharedMemory(mod)["main"].body, (tirx.AllocBuffer, found.append))
    return len(found)


def test_memory_is_shared_where_it_takes_much_of_a_cache() -> None:
    assert (allocated(4 * APART), allocated(APART // 16)) == (1, 2)
