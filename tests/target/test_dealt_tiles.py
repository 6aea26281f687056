# SPDX-License-Identifier: Apache-2.0
"""Kernels for all sizes on cores that take tiles in turn: they load once what these share, and ahead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi
from uir_tvm import CompileOptions
from uir_tvm.igraph import IGraph, Loop, walk_body
from uir_tvm.igraph.dealt import DEALT, is_dealt
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording
from uir_tvm.runtime.modelled import recording as modelled
from uir_tvm.stages import KernelRecord
from uir_tvm.target import registry

COLUMNS, HEADS = 64, 5
#: Those whose cores take groups in turn.
TARGETS = [name for name, spec in registry.TARGETS.items() if "deal_groups" in spec.passes]


def built(target: str) -> tuple[tvm.runtime.Module, KernelRecord]:
    """Rows times a row that is the same for all of them, for any number of rows."""
    x, g = te.placeholder((tirx.Var("n", "int64"), COLUMNS), name="x"), te.placeholder((COLUMNS,), name="g")
    y = te.compute(x.shape, lambda i, j: x[i, j] * g[j], "y")
    func = te.create_prim_func([x, g, y])
    with recording(CompileOptions(variants="none")) as records:
        made = tvm.tirx.build(tvm.IRModule({"main": func}), target=target)
    return made, records["main"]


@pytest.mark.parametrize("target", TARGETS)
def test_what_tiles_share_is_loaded_once_and_the_next_one_ahead(target: str) -> None:
    """Right for any number of rounds of any unit, none included."""
    module, record = built(target)
    assert record.optimized is not None and is_dealt(record.optimized)
    text = str(record.products["source"].source)
    begin = re.search(r"for \(.*; .*pid \+ .*< groups; \+\+tile\) \{", text)
    assert begin is not None, text
    inside = text[begin.end() :]
    assert re.search(r"if \(.*pid \+ .* < groups\) \{", inside), "the next tile is loaded where there is one"
    (loop,) = (node for node in record.optimized.body if isinstance(node, Loop) and DEALT in node.attrs)
    names = {str(piece.pointer.name) for iop, _ in walk_body(loop.body) for piece in iop.slices()}
    assert {"x", "y"} <= names and "g" not in names and loop.attrs["stages"] == 2
    rows = int(record.optimized.num_groups) * int(_rows_of_tile(record))
    rng = np.random.default_rng(0)
    gain = rng.standard_normal(COLUMNS).astype("float32")
    for n in (0, 1, rows - 1, rows, rows + 1, 2 * rows + 5, 5 * rows):
        given = rng.standard_normal((n, COLUMNS)).astype("float32")
        tensors = [tvm.runtime.tensor(a, tvm.ext_dev(0)) for a in (given, gain, np.full_like(given, np.nan))]
        with modelled():
            module["main"](*tensors)
        np.testing.assert_array_equal(tensors[2].numpy(), given * gain)


@pytest.mark.parametrize("target", TARGETS)
def test_groups_whose_tiles_end_with_their_rows_are_dealt(target: str) -> None:
    """Softmax of masked scores: the bounds of tiles say nothing of groups, and rows of any length are right.

    Numbers of groups lie around one, two and three rounds of all cores; lengths around what pairs of columns
    are folded to.
    """
    module, graph = masked_softmax(target, 40)
    round_ = int(graph.num_groups) // HEADS
    rounds = ((round_, 2), (round_ + 1, 3), (2 * round_ + 1, 37), (3 * round_ + 1, 4))
    assert_softmax(module, ((1, 40), (1, 1), *rounds))


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_of_one_open_dimension_are_dealt_one_by_one(target: str) -> None:
    """Scores of one head are several tiles, each any core's: a core walks its turns alone."""
    module, graph = masked_softmax(target, 128)
    assert [name for name, extent in loops_of(graph.body) if extent > 1] == ["tile"]
    assert_softmax(module, ((1, 128), (1, 1), (2, 33), (3, 97)))


def loops_of(body: Any) -> list[tuple[str, int]]:
    """Variables and extents of all loops."""
    found = []
    for node in body:
        if isinstance(node, Loop):
            found += [(str(node.var), int(node.extent)), *loops_of(node.body)]
    return found


def masked_softmax(target: str, longest: int) -> tuple[Any, IGraph]:
    """Softmax of masked scores (n, HEADS, s, s), and the graph that was printed."""
    b, s = tirx.Var("n", "int64"), tirx.Var("s", "int64")
    x, mask = te.placeholder((b, HEADS, s, s), name="x"), te.placeholder((b, 1, 1, s), name="mask")
    scores = te.compute(x.shape, lambda n, h, i, j: x[n, h, i, j] * 0.5 + mask[n, 0, 0, j], "scores")
    func = te.create_prim_func([x, mask, topi.nn.softmax(scores, -1)])
    func = with_sizes(func, {"n": Size("n", 1, 1000), "s": Size("s", 1, longest)})
    with recording(CompileOptions(variants="none")) as records:
        module = tvm.tirx.build(tvm.IRModule({"main": func}), target=target)["main"]
    graph = records["main"].optimized
    assert graph is not None and is_dealt(graph)
    return module, graph


def assert_softmax(module: Any, sizes: Iterable[tuple[int, int]]) -> None:
    """The numbers of `masked_softmax` at some batches and lengths."""
    rng = np.random.default_rng(1)
    for n, length in sizes:
        given = rng.standard_normal((n, HEADS, length, length)).astype("float32")
        row = rng.standard_normal((n, 1, 1, length)).astype("float32")
        tensors = [tvm.runtime.tensor(a, tvm.ext_dev(0)) for a in (given, row, np.full_like(given, np.nan))]
        with modelled():
            module(*tensors)
        wanted = np.exp(given * 0.5 + row)
        wanted /= wanted.sum(-1, keepdims=True)
        np.testing.assert_allclose(tensors[2].numpy(), wanted, rtol=2e-5, atol=1e-6)


def _rows_of_tile(record: KernelRecord) -> int:
    """Rows of a tile: where a group more begins."""
    groups = record.optimized.groups  # type: ignore[union-attr]
    return next(n for n in range(1, 1 << 16) if groups.evaluate({"n": n + 1}) > 1)
