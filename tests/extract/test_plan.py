# SPDX-License-Identifier: Apache-2.0
"""Loops that repeat what they load are two sides of a tile: each element is loaded once."""

from __future__ import annotations

import pytest
from tvm import te

from .compare import check
from .schedules import prim

F32 = "float32"


@pytest.mark.parametrize("times", [2, 3, 5])
def test_repeated_columns(times: int) -> None:
    """No index is computed: elements come once, and rows of ``times`` of each go."""
    func = prim(lambda a: te.compute((4, 14 * times), lambda i, j: a[i, j // times], "out"), ((4, 14), F32))
    graph, _ = check(func)
    iops = [iop for iop, _ in graph.walk()]
    assert not [iop for iop in iops if iop.op == "gather"]
    (load,) = [iop for iop in iops if iop.op == "move" and iop.target.pointer.level == "reg"]
    assert load.target.rows * load.target.cols == 56
    (spread,) = [iop for iop in iops if iop.op == "broadcast"]
    assert (spread.target.rows, spread.target.cols, spread.attrs["axis"]) == (56, times, "row")


def test_repeated_rows_of_channels() -> None:
    """Pixels with their channels side by side are rows of channels."""
    shape = (6, 10, 24)
    func = prim(lambda a: te.compute(shape, lambda i, j, k: a[i // 2, j // 2, k], "out"), ((3, 5, 24), F32))
    graph, _ = check(func)
    assert not [iop for iop, _ in graph.walk() if iop.op == "gather"]


def test_what_differs_along_both_stays_a_gather() -> None:
    """Elements of two rows take turns: neither side of a tile of theirs is both linear and long."""
    func = prim(
        lambda a: te.compute((4, 28), lambda i, j: a[i, j % 2, j // 2], "out"),
        ((4, 2, 14), F32),
    )
    graph, _ = check(func)
    assert [iop for iop, _ in graph.walk() if iop.op == "gather"]
