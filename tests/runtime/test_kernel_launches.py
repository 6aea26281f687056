# SPDX-License-Identifier: Apache-2.0
"""Tasks of models that leave sizes open have symbols, and representative sizes of their own."""

from __future__ import annotations

from typing import Any

import pytest
import uir_tvm
from tvm import tirx
from uir_tvm.bound_kernel import symbols_in
from uir_tvm.errors import ExportError, SizeError, TuneError
from uir_tvm.igraph.tir_sizes import sizes_of
from uir_tvm.tune import extract_tasks
from uir_tvm.tune.batch import export_batch
from uir_tvm.tune.job import Job

from .. import tiny
from ..tune.open_models import HIGHEST, open_kernel, rows_module


def test_a_task_has_symbols_and_its_own_sizes() -> None:
    """One for all sizes of the model; weights are 1 together."""
    found = extract_tasks(rows_module(), "uir-cpu", sizes=["n=1,m=7:3", {"n": 4, "m": 2}])
    (task,) = found.tasks
    assert [str(variable.name) for variable in symbols_in(task.func)] == ["n", "m"]
    assert {(s.low, s.high) for s in sizes_of(task.func).values()} == {(1, HIGHEST)}
    assert [(dict(p.sizes), p.weight) for p in task.points] == [
        ({"n": 1, "m": 7}, 0.75),
        ({"n": 4, "m": 2}, 0.25),
    ]


def test_sizes_are_not_the_key_of_the_kernel_but_of_its_trials() -> None:
    """Schedules of one kernel are found by symbols and ranges; trials at other sizes are others."""
    one, other, renamed = (
        extract_tasks(rows_module(*names), "uir-cpu", sizes=[sizes]).tasks[0]
        for names, sizes in ((("n", "m"), "n=1,m=7"), (("n", "m"), "n=2,m=7"), (("b", "l"), "b=1,l=7"))
    )
    assert one.origin == renamed.origin != other.origin
    assert one.origin.partition("-")[0] == other.origin.partition("-")[0]


def test_a_kernel_is_a_model() -> None:
    """Its sizes are taken by their names, and by its ranges where nobody gives any."""
    (task,) = extract_tasks(open_kernel(), "uir-cpu").tasks
    assert [p.sizes["n"] for p in task.points] == [1, 16, 256]
    (task,) = extract_tasks(open_kernel(), "uir-cpu", sizes=["n=9"]).tasks
    assert [dict(p.sizes) for p in task.points] == [{"n": 9}] and isinstance(task.func, tirx.PrimFunc)


@pytest.mark.parametrize(
    ("sizes", "error"), [("n=1", TuneError), ("n=1,m=2,k=3", TuneError), (f"n=1,m={HIGHEST + 1}", SizeError)]
)
def test_sizes_that_the_model_does_not_take(sizes: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        extract_tasks(rows_module(), "uir-cpu", sizes=[sizes])


def test_sizes_of_a_model_that_has_none() -> None:
    with pytest.raises(TuneError, match="every size of the model is known"):
        extract_tasks(tiny.module(), "uir-cpu", sizes=["n=1"])


def test_a_model_that_is_compiled_by_shape_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason, and what to do."""

    def fail(*_: Any) -> Any:
        raise uir_tvm.errors.OpenSizeError("planted")

    monkeypatch.setattr(uir_tvm.kernel_graph, "assemble_open", fail)
    for sizes in (None, ["n=1,m=2"]):
        with pytest.raises(TuneError, match="planted") as refused:
            extract_tasks(rows_module(), "uir-cpu", sizes=sizes)
        assert "fixed sizes" in str(refused.value)


def test_batches_take_none(tmp_path: Any) -> None:
    """They have the launches of one size; the refusal names what to do."""
    (task,) = extract_tasks(open_kernel(), "uir-cpu", sizes=["n=9"]).tasks
    with pytest.raises(ExportError, match="softmax leaves sizes open") as refused:
        export_batch([Job.of(task)], tmp_path / "out")
    assert "--rpc" in str(refused.value) and not (tmp_path / "out").exists()
