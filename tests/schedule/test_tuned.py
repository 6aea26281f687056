# SPDX-License-Identifier: Apache-2.0
"""By what kernels with open sizes find their schedules, and how these go on through the stages."""

from __future__ import annotations

import pytest
import tvm
from tvm import te, tirx
from uir_tvm.function_attributes import origin_of
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import sizes_of, with_sizes
from uir_tvm.schedule.begin import begin
from uir_tvm.schedule.hardware_of import model_of_target
from uir_tvm.schedule.tuned import scheduled_as, size_names, tuned_origin
from uir_tvm.target import registry


def rows(first: str = "n", second: str = "m", high: int = 512) -> tirx.PrimFunc:
    """max(x, 0) of (n, m, 32) numbers."""
    n, m = tirx.Var(first, "int64"), tirx.Var(second, "int64")
    x = te.placeholder((n, m, 32), name="x")
    func = te.create_prim_func([x, te.compute(x.shape, lambda *at: te.max(x[at], 0.0), "y")])
    return with_sizes(func, {first: Size(first, 1, high), second: Size(second, 1, 64)})


def test_names_do_not_count_and_ranges_do() -> None:
    """No number of a call is in it; static functions have the origin that they always had."""
    assert tuned_origin(rows()) == tuned_origin(rows("batch", "length")) == tuned_origin(rows("m", "n"))
    assert len({tuned_origin(rows(high=high)) for high in (512, 1024)}) == 2
    x = te.placeholder((4, 32), name="x")
    static = te.create_prim_func([x, te.compute(x.shape, lambda *at: te.max(x[at], 0.0), "y")])
    assert tuned_origin(static) == origin_of(static)


@pytest.mark.parametrize("names", [("n", "m"), ("m", "n"), ("batch", "length")])
def test_a_schedule_gets_the_names_of_the_kernel(names: tuple[str, str]) -> None:
    """Those of joined sizes too, with what is known of them; what it computes stays."""
    func = rows(*names)
    made = begin(rows(), model_of_target(registry.resolve("uir-cpu").target))
    assert size_names(made) == ["n_times_m"]
    named = scheduled_as(func.with_attr("global_symbol", "kernel"), made, ["n", "m"])
    ((variable, size),) = sizes_of(named).items()
    assert str(variable.name) == str(size.name) == "_times_".join(names)
    assert (size.low, size.high) == (1, 512 * 64)
    assert origin_of(named) == origin_of(made)
    assert str(named.attrs["global_symbol"]) == "kernel"
    assert isinstance(named, tvm.tirx.PrimFunc)
