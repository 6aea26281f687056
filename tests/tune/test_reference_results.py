# SPDX-License-Identifier: Apache-2.0
"""References: TVM's own lowering on inputs that mean something, computed once."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.relax import op
from uir_tvm.schedules.demo import from_relax
from uir_tvm.tune import reference_results
from uir_tvm.tune.reference_results import INTERVALS, arguments_of, reference_of


@pytest.fixture(autouse=True)
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A cache folder for each test, and nothing in memory."""
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path))
    reference_results._held.clear()
    return tmp_path / reference_results.FOLDER


def _func(build: Any, shapes: list[tuple[int, ...]], dtypes: list[str] | None = None) -> tirx.PrimFunc:
    return from_relax(build, shapes, lambda *_: None, dtypes=dtypes or ["float32"] * len(shapes)).func


def _text(func: tirx.PrimFunc) -> str:
    return str(tvm.ir.save_json(func))


def test_results_are_those_of_the_kernel() -> None:
    """NumPy says the same; only the output counts as written, and the inputs are as they were."""
    func = _func(lambda x, y: op.nn.relu(op.add(x, y)), [(5, 7), (5, 7)])
    found = reference_of(_text(func), 3)
    x, y, before = found.arguments
    ((x_after, y_after, result),) = found.results
    assert found.written == (False, False, True)
    np.testing.assert_array_equal(result, np.maximum(x + y, 0))
    assert x_after is x
    assert y_after is y
    assert not np.array_equal(before, result)
    assert not found.sums


def test_inputs_follow_the_seed() -> None:
    """Equal seeds, equal inputs; no array is all zero."""
    func = _func(op.add, [(8, 8), (8, 8)])
    one, same, other = (arguments_of(func, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one[0], other[0])
    assert all(array.any() for array in one)


def test_indices_are_within_what_they_index() -> None:
    """All of the table's rows, and none beyond."""
    func = _func(lambda table, ids: op.take(table, ids, axis=0), [(500, 3), (40, 9)], ["float32", "int64"])
    ids = arguments_of(func, 0)[1]
    assert 0 <= ids.min() <= 50 < 450 <= ids.max() < 500


def test_functions_of_positive_numbers_get_some() -> None:
    """Half of the results of a logarithm of anything would be no number."""
    found = reference_of(_text(_func(op.log, [(64,)])), 0)
    assert found.interval == INTERVALS[1]
    assert np.isfinite(found.results[0][1]).all()
    assert reference_of(_text(_func(op.exp, [(64,)])), 0).interval == INTERVALS[0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_have_two_results(dtype: str) -> None:
    """As they are written, and in fp32 in between, which is nearer to the exact ones."""
    func = _func(lambda x: op.sum(op.multiply(x, x), axis=-1), [(4, 512)], [dtype])
    found = reference_of(_text(func), 0)
    exact = (found.arguments[0].astype("float64") ** 2).sum(-1)
    written, wide = (row[1].astype("float64") for row in found.results)
    assert found.sums
    assert np.abs(wide - exact).max() <= np.abs(written - exact).max()
    assert np.abs(wide - exact).max() / exact.max() < {"float16": 1e-3, "bfloat16": 8e-3}[dtype]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_casts_that_a_kernel_asks_for_round(dtype: str) -> None:
    """There and back, beside a tensor of the dtype: to the bit in both results."""
    func = _func(
        lambda x, n: op.multiply(op.astype(op.astype(x, dtype), "float32"), op.astype(n, "float32")),
        [(4, 64), (4, 64)],
        ["float32", dtype],
    )
    found = reference_of(_text(func), 0)
    x, n = found.arguments[0], found.arguments[1].astype("float32")
    rounded = x.astype(found.arguments[1].dtype).astype("float32")
    assert (rounded != x).any()
    assert len(found.results) == 2
    for row in found.results:
        np.testing.assert_array_equal(row[2], rounded * n)


def test_results_are_kept(cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that starts anew finds them, bit by bit; a damaged file is as none."""
    text = _text(_func(lambda x: op.nn.softmax(x), [(4, 9)], ["bfloat16"]))
    first = reference_of(text, 0)
    (path,) = cache.iterdir()
    ran: list[object] = []
    stock = reference_results._run

    def run(*args: Any) -> Any:
        ran.append(args)
        return stock(*args)

    monkeypatch.setattr(reference_results, "_run", run)
    reference_results._held.clear()
    again = reference_of(text, 0)
    assert not ran
    assert [r[1].tobytes() for r in again.results] == [r[1].tobytes() for r in first.results]
    path.write_bytes(path.read_bytes()[:100])
    reference_results._held.clear()
    assert reference_of(text, 0).results[0][1].tobytes() == first.results[0][1].tobytes()
    assert ran


def test_a_folder_that_cannot_be_written_costs_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results are there all the same."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("UIR_CACHE_DIR", str(blocked))
    assert reference_of(_text(_func(op.exp, [(4,)])), 0).results[0][1].any()


def test_only_so_much_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used last stays; what alone is too large is held all the same."""
    texts = [_text(_func(op.exp, [(8, n)])) for n in (1, 2, 3)]
    first = reference_of(texts[0], 0)
    reference_of(texts[1], 0)
    assert reference_of(texts[0], 0) is first
    monkeypatch.setattr(reference_results, "HELD", first.nbytes)
    assert reference_of(texts[0], 0) is first
    assert len(reference_results._held) == 1
    last = reference_of(texts[2], 0)
    assert list(reference_results._held.values()) == [last]
    assert last.nbytes > reference_results.HELD
