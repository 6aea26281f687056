# SPDX-License-Identifier: Apache-2.0
"""Inner dimensions that are expressions of sizes become sizes: with conditions where an index needs them."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import te, tirx, topi
from tvm_ffi.structural import structural_map
from uir_tvm import CompileOptions
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import sizes_of, with_sizes
from uir_tvm.pipeline import recording
from uir_tvm.schedule.blocks import collect
from uir_tvm.schedule.derived_dims import with_derived_dims
from uir_tvm.schedule.rooted import rooted

N = tirx.Var("n", "int64")


def _function(compute: Any) -> tirx.PrimFunc:
    x = te.placeholder([3, 4, N], name="x")
    func = te.create_prim_func([x, compute(x)])
    return with_sizes(rooted(func), {"n": Size("n", 0, 24)})


def windows() -> tirx.PrimFunc:
    """The greatest of two neighbours."""
    r = te.reduce_axis((0, 2), "r")
    return _function(
        lambda x: te.compute((3, 4, N // 2), lambda i, j, k: te.max(x[i, j, 2 * k + r], axis=r), "y")
    )


def _conditions(func: tirx.PrimFunc) -> list[str]:
    calls = collect(func.body, tvm.ir.Call)
    return [str(call.args[0]) for call in calls if str(call.op.name).endswith("if_then_else")]


def test_an_expression_becomes_a_size_and_its_index_a_condition() -> None:
    made = with_derived_dims(windows())
    assert [(str(s.name), s.low, s.high) for s in sizes_of(made).values()] == [
        ("n", 0, 24),
        ("n_over_2", 0, 12),
    ]
    assert [str(dim) for dim in made.params[1].shape][-1] == "n_over_2"
    (condition,) = _conditions(made)
    assert condition.endswith("< n")


def test_conditions_that_stand_already_stand_once() -> None:
    padded = _function(lambda x: topi.nn.pad(x, [0, 0, 3], [0, 0, 0]))
    made = with_derived_dims(padded)
    assert "n_plus_3" in {str(size.name) for size in sizes_of(made).values()}
    assert len(_conditions(made)) == len(_conditions(padded)) == 1


@pytest.mark.parametrize(
    "compute", [lambda x: topi.exp(x), lambda x: te.compute((N + 3, 4), lambda i, j: x[0, j, 0])]
)
def test_other_dimensions_stay(compute: Any) -> None:
    func = _function(compute)
    assert with_derived_dims(func).same_as(func)


def test_without_its_condition_the_proof_fails() -> None:
    """What the size has to do with the other is no secret knowledge: the condition carries it."""

    def bare(call: Any) -> Any:
        return call.args[1] if str(getattr(call.op, "name", "")).endswith("if_then_else") else call

    def built(func: tirx.PrimFunc) -> Any:
        mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
        with recording(CompileOptions(equivalence="none", database=None, faults="raise")) as records:
            tvm.build(mod, target="uir-cpu")
        (record,) = records.values()
        return record

    guarded = with_derived_dims(windows())
    assert built(guarded).refusal is None
    body = structural_map(guarded.body, (tvm.ir.Call, bare))
    record = built(tirx.PrimFunc(guarded.params, body, guarded.ret_type, guarded.attrs))
    assert "reads beyond the end" in record.attempts[0].reason
