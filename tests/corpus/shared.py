# SPDX-License-Identifier: Apache-2.0
"""Operators scheduled by hand so that the units of a group share their work: group forms, staged tiles."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import attrs
from tvm.s_tir import Schedule
from uir_tvm.igraph import IGraph

from tests.extract import shared_work as work
from tests.extracted import extracted

from .entry import Entry


@attrs.frozen
class Shared:
    """A function, and a schedule of it."""

    func: Callable[[], Any]
    schedule: Callable[[Any], Schedule]


#: By name.
SHARED: dict[str, Shared] = {
    "row sum shared by 2": Shared(lambda: work.row_sum(30, 64), lambda f: work.schedule_row_sum(f, 2, 4)),
    "row sum shared by 4": Shared(lambda: work.row_sum(8, 64), lambda f: work.schedule_row_sum(f, 4, 1)),
    "softmax shared by 2": Shared(lambda: work.softmax(20, 128), lambda f: work.schedule_softmax(f, 2, 3)),
    "softmax shared by 4": Shared(lambda: work.softmax(24, 64), lambda f: work.schedule_softmax(f, 4, 2)),
    "softmax in many steps": Shared(lambda: work.softmax(80, 32), lambda f: work.schedule_softmax(f, 4, 2)),
    "product, b staged together": Shared(
        lambda: work.product(32, 16, 24), lambda f: work.stage_b(f, work.share_b)
    ),
    "product, b staged by each": Shared(
        lambda: work.product(32, 16, 24), lambda f: work.stage_b(f, work.keep_b)
    ),
}


@functools.cache
def made(name: str) -> tuple[Any, IGraph]:
    """The function and its graph."""
    func = SHARED[name].func()
    scheduled = SHARED[name].schedule(func).mod["main"]
    return func, extracted(scheduled, work.GRID, name="".join(c if c.isalnum() else "_" for c in name))


def entries() -> Iterator[Entry]:
    """Every schedule."""
    for name in SHARED:
        yield Entry(name, *made(name), "recipe")
