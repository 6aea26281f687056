# SPDX-License-Identifier: Apache-2.0
"""Calls that C++ finds by the shapes of their inputs: which it takes, what it counts, and what it leaves."""

from __future__ import annotations

import concurrent.futures
import functools
import gc
import pathlib
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
import uir_tvm
from torch.export import Dim
from tvm import relax
from tvm.ir import PrimType
from tvm_ffi.core import Error as FfiError
from uir_tvm.errors import PositionError, ShapeError, SizeError, StateError
from uir_tvm.runtime import specialized
from uir_tvm.runtime.specialized import SpecializedExecutable

from tests.runtime.test_specialized import X, axes
from tests.runtime.test_specialized import model as of_values

RIGHT = functools.partial(torch.testing.assert_close, rtol=1e-5, atol=1e-6)


class Mixed(torch.nn.Module):
    """Two inputs of one open size, two results."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"rows": torch.softmax(x + y, -1), "sum": (x * y).sum(0)}


@functools.cache
def program() -> torch.export.ExportedProgram:
    n = Dim("n", min=2, max=64)
    return torch.export.export(Mixed(), inputs(4), dynamic_shapes=[{0: n}, {0: n}])


def inputs(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(n)
    return torch.randn(n, 16), torch.randn(n, 16)


def compiled() -> Any:
    return uir_tvm.compile(program(), options=uir_tvm.CompileOptions(faults="raise"))


def found_after(exe: Any, *sizes: int) -> Any:
    """The executable once C++ finds these sizes."""
    for n in (*sizes, *sizes):
        right(exe, inputs(n))
    assert exe._short.found is not None
    return exe


@pytest.fixture(scope="module")
def mixed() -> Any:
    """Where C++ finds the sizes 3 and 5."""
    return found_after(compiled(), 3, 5)


def right(exe: Any, given: Sequence[Any]) -> None:
    want = Mixed()(*map(torch.as_tensor, given))
    made = exe(*given)
    assert list(made) == ["rows", "sum"]
    for key, value in want.items():
        assert type(made[key]) is type(given[0])
        RIGHT(torch.as_tensor(made[key]), value)


def kept(exe: Any) -> dict[int, int]:
    """How often what is kept was called, by the size."""
    return {row["sizes"]["n"]: row["calls"] for row in exe.report()["kept"]}


def refuse(*_: Any) -> Any:
    raise AssertionError("Python looks for what C++ finds")


def test_what_was_called_twice_needs_no_search(mixed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpecializedExecutable, "_ready", refuse)
    for n in (3, 5, 5, 3):
        right(mixed, inputs(n))
        right(mixed, [each.numpy() for each in inputs(n)])
        rows, total = mixed.flat(*inputs(n))
        RIGHT(rows, Mixed()(*inputs(n))["rows"])
        RIGHT(total, Mixed()(*inputs(n))["sum"])
    with pytest.raises(AssertionError, match="Python looks"):
        mixed(*inputs(4))


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ((torch.zeros(3, 16), torch.zeros(3, 16, dtype=torch.float64)), ShapeError, "wrong dtype"),
        ((np.zeros((3, 16), np.int32), np.zeros((3, 16), np.float32)), ShapeError, "wrong dtype"),
        ((torch.zeros(3, 16), torch.zeros(5, 16)), SizeError, "disagree on n"),
        ((torch.zeros(3, 17), torch.zeros(3, 17)), ShapeError, "wrong shape"),
        ((torch.zeros(3, 16),), ShapeError, "."),
        ((torch.zeros(3, 16), 3), ShapeError, "."),
        ((torch.zeros(65, 16), torch.zeros(65, 16)), SizeError, "n cannot be 65"),
    ],
)
def test_what_does_not_fit_is_said_as_ever(
    mixed: Any, given: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    for _ in range(2):
        with pytest.raises(error, match=says):
            mixed(*given)
    with_before = kept(mixed)[3]
    right(mixed, inputs(3))
    assert kept(mixed)[3] == with_before + 1, "the call after the failed ones is taken as those before"


def test_views_of_known_shapes_take_another_way_and_count_once(mixed: Any) -> None:
    wide = torch.randn(3, 32)
    x, y = wide[:, ::2], wide[:, 1::2]
    before = kept(mixed)[3]
    right(mixed, (x, y))
    right(mixed, (x.numpy(), y.numpy()))
    assert kept(mixed)[3] == before + 2


def test_every_call_is_counted_and_dated() -> None:
    exe = found_after(compiled(), 3, 5)
    before = kept(exe), {each.sizes["n"]: each.last_used for each in exe.specializations}
    for n in (3, 3, 5, 3):
        right(exe, inputs(n))
    assert kept(exe) == {3: before[0][3] + 3, 5: before[0][5] + 1}
    dates = {each.sizes["n"]: each.last_used for each in exe.specializations}
    assert dates[3] > dates[5] > max(before[1].values())


def test_what_was_used_last_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialized, "KEPT", 2)
    exe = found_after(compiled(), 3, 5)
    right(exe, inputs(3))  # that C++ alone sees
    right(exe, inputs(7))
    assert set(kept(exe)) == {3, 7}, "5 was not used for longest"
    before = kept(exe)[3]
    right(exe, inputs(3))
    assert kept(exe)[3] == before + 1
    right(exe, inputs(5))  # made anew, and counted from there
    assert kept(exe) == {3: before + 1, 5: 1}


def test_threads_find_each_its_own_while_others_compile() -> None:
    exe = found_after(compiled(), 3, 5)
    before = kept(exe)

    def work(n: int) -> None:
        given = inputs(n)  # once: threads share the seed
        want = Mixed()(*given)["rows"]
        for _ in range(100):
            RIGHT(exe(*given)["rows"], want)

    def make(n: int) -> None:
        right(exe, inputs(n)), right(exe, inputs(n))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for done in [*(pool.submit(work, n) for n in (3, 5, 3, 5)), *(pool.submit(make, n) for n in (8, 9))]:
            done.result()
    assert kept(exe) == {3: before[3] + 200, 5: before[5] + 200, 8: 2, 9: 2}


def test_an_executable_goes_with_its_last_reference() -> None:
    exe = found_after(compiled().clone(), 3)  # what `compile` gave is in the traceback of why sizes are open
    gone = weakref.ref(exe)
    gc.disable()
    try:
        del exe
        assert gone() is None
    finally:
        gc.enable()


def test_a_specialization_is_bound_as_ever(mixed: Any) -> None:
    rows, total = torch.zeros(3, 16), torch.zeros(16)
    made = mixed.specialized(*inputs(3)).bind((rows, total))(*inputs(3))
    assert made["rows"] is rows
    RIGHT(rows, mixed(*inputs(3))["rows"])


def test_what_is_loaded_is_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = uir_tvm.CompileOptions(specialize=[{"n": 3}])
    loaded = uir_tvm.load(uir_tvm.compile(program(), options=options).save(tmp_path / "mixed.uir"))
    right(loaded, inputs(3))
    monkeypatch.setattr(SpecializedExecutable, "_ready", refuse)
    right(loaded, inputs(3))
    assert kept(loaded) == {3: 2}


def test_values_that_decide_are_looked_at_every_time() -> None:
    exe = uir_tvm.compile(of_values())
    for axis in (0, 0, 0, 1):
        np.testing.assert_array_equal(exe(X, axes(axis)), X.sum(axis))
    assert exe._short.found is None


def test_numbers_are_part_of_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x, k = relax.Var("x", relax.TensorType((2, 8), "float32")), relax.Var("k", PrimType("int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, k]):
        with builder.dataflow():
            wide = builder.emit(relax.op.full((k, 8), relax.const(2.0)))
            output = builder.emit_output(builder.emit(relax.op.concat([relax.op.exp(x), wide], 0)))
        builder.emit_func_output(output)
    exe, given = uir_tvm.compile(builder.get()), np.ones((2, 8), "float32")
    for k in (1, 3, 1, 3):
        assert exe(given, k).shape == (2 + k, 8)
    with pytest.raises(ShapeError):
        exe(given, True)
    with pytest.raises(ShapeError):
        exe(given, 3.0)
    monkeypatch.setattr(SpecializedExecutable, "_ready", refuse)
    for k in (1, 3):
        assert exe(given, k).shape == (2 + k, 8) and exe(given, k)[-1, 0] == 2.0


# --- state --------------------------------------------------------------------------------------------


class Total(torch.nn.Module):
    """What came so far, and a row of it that the call names."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4, 8))

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        self.total[place] = x.sum(0, keepdim=True) + self.total[place]
        return x * 2 + self.total.sum(0)


ROW = torch.tensor([1])


@functools.cache
def total_program() -> torch.export.ExportedProgram:
    shapes = ({0: Dim("n", min=2, max=64)}, None)
    return torch.export.export(Total(), (torch.ones(4, 8), ROW), dynamic_shapes=shapes)


def total() -> Any:
    """Where C++ finds the sizes 2 and 3, which were called twice each."""
    exe = uir_tvm.compile(total_program(), options=uir_tvm.CompileOptions(faults="raise"))
    for n in (2, 3, 2, 3):
        exe(torch.ones(n, 8), ROW)
    assert exe._short.found is not None and exe.state["total"][1, 0] == 10
    return exe


def test_all_sizes_work_on_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    exe = total()
    monkeypatch.setattr(SpecializedExecutable, "_ready", refuse)
    for n, so_far in ((2, 12), (3, 15), (2, 17)):
        RIGHT(exe(torch.ones(n, 8), ROW), torch.full((n, 8), 2.0 + so_far))
    exe.reset()
    exe(torch.ones(3, 8), ROW)
    assert exe.state["total"][1, 0] == 3


def test_clones_and_shared_state() -> None:
    exe = total()
    other = exe.clone()
    for n in (2, 3, 2, 3):
        other(torch.ones(n, 8), ROW)
    assert exe.state["total"][1, 0] == 10 and other.state["total"][1, 0] == 20
    exe.share_state(other)
    exe(torch.ones(2, 8), ROW)
    assert other.state["total"][1, 0] == 22
    third = total()
    exe.specialized(torch.ones(2, 8), ROW).share_state(third)  # for these sizes alone
    exe(torch.ones(2, 8), ROW), exe(torch.ones(3, 8), ROW)
    assert third.state["total"][1, 0] == 12 and other.state["total"][1, 0] == 25


def test_a_failed_call_leaves_state_that_all_sizes_refuse() -> None:
    exe = total()
    with pytest.raises(PositionError):
        exe(torch.ones(2, 8), torch.tensor([4]))
    exe(torch.ones(2, 8), ROW)
    direct = exe._short.found[0]
    vars(direct)["run"] = lambda *_: FfiError("RuntimeError", "the device is gone", "")
    with pytest.raises(RuntimeError, match="gone"):
        exe(torch.ones(2, 8), ROW)
    for n in (2, 3, 4):
        with pytest.raises(StateError, match="while it was written"):
            exe(torch.ones(n, 8), ROW)
    exe._keep_short(), exe.reset()
    RIGHT(exe(torch.ones(2, 8), ROW), torch.full((2, 8), 4.0))


# --- the function of C++ ------------------------------------------------------------------------------


def make(functions: Any, keys: Any, places: Any, uses: Any) -> Any:
    shapes = [[tvm_ffi.Shape(row) for row in rows] for rows in (keys, places)]
    counts = [tvm_ffi.from_dlpack(each) for each in uses]
    by_shapes = tvm_ffi.get_global_func("uir.runtime.calls_by_shapes")
    return by_shapes(shapes[0], [tvm_ffi.convert(each) for each in functions], shapes[1], counts)


def test_functions_take_the_arguments_that_they_name() -> None:
    uses = [np.zeros(2, np.int64) for _ in range(2)]
    given: list[Any] = []

    def first(*taken: Any) -> str:
        given.append(taken)
        return "first"

    call = make([first, lambda: None], [[1, 2, -1, 7, 0], [1, 3]], [[2, 0], []], uses)
    vector, scalar = (tvm.runtime.tensor(np.ones(shape, "float32")) for shape in ((2,), ()))
    assert call(vector, 7, scalar) == "first"
    assert [each.shape for each in given[0]] == [(), (2,)]
    other = tvm.runtime.tensor(np.ones(3, "float32"))
    for unknown in ((vector, 8, scalar), (vector, 7), (other, 7, scalar), (vector, True, scalar), ("x",), ()):
        assert call(*unknown) is None
    assert call(other) is None  # found, and it says that it does not take it
    assert [each[0] for each in uses] == [1, 0] and uses[0][1] > 10**18


@pytest.mark.parametrize(
    ("key", "places", "count", "says"),
    [
        ([1, 2], [1], np.zeros(2, np.int64), "argument 1 of 1"),
        ([1, 2], [-1], np.zeros(2, np.int64), "argument -1 of 1"),
        ([-2, 2], [0], np.zeros(2, np.int64), "rank of -2"),
        ([3, 2], [0], np.zeros(2, np.int64), "without its end"),
        ([1, 2], [0], np.zeros(2, np.int32), "cannot count"),
        ([1, 2], [0], np.zeros(3, np.int64), "cannot count"),
    ],
)
def test_what_cannot_be_called_or_counted_is_refused(key: Any, places: Any, count: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make([lambda *_: 1], [key], [places], [count])
