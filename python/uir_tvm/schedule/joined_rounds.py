# SPDX-License-Identifier: Apache-2.0
"""One loop in the place of two whose last rounds are guarded, while producers are attached inside them.

TVM asks a solver (Z3) whether what a guarded tile needs of a producer lies in it, some times for each one,
and a solver takes some milliseconds to begin with.  In one loop over the tiles alone numbers say it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.s_tir import SBlockRealize, Schedule
from tvm_ffi.structural import structural_equal, structural_map

from .blocks import conjuncts, uses
from .make_tir import guarded, index, loop_like, outermost_changed


@attrs.frozen
class _Rounds:
    """Tiles ``outer * each + inner < count``: the last units have fewer of them than the others."""

    outer: tirx.For
    inner: tirx.For
    count: Any

    @property
    def number(self) -> Any:
        """The number of a tile, as TVM's split writes it."""
        return self.outer.loop_var * self.inner.extent + self.inner.loop_var


@contextlib.contextmanager
def joined_rounds(sch: Schedule, outer: Any, inner: Any) -> Iterator[None]:
    """Let two loops be one inside, if the second stands alone in the first and all inside is guarded alike.

    Inside::

        for u in 1:
          for t in 35:  block(t)

    Before and after, what was attached inside guarded too::

        for u in 2:
          for t in 18:  where(u * 18 + t < 35)  block(u * 18 + t)

    A schedule that is refused inside is not brought back: who attaches drops it.

    Parameters
    ----------
    outer, inner : LoopRV
    """
    rounds = _rounds(sch.get(outer), sch.get(inner))
    body = None if rounds is None else _numbered(rounds)
    if rounds is None or body is None:
        yield
        return
    one = _with_extent(rounds.inner, rounds.count, body)
    sch.state.replace(sch.get_sref(outer), _with_extent(rounds.outer, index(1), one))
    yield
    variable = rounds.inner.loop_var

    def number(var: tvm.ir.Var) -> Any:
        return rounds.number if var.same_as(variable) else var

    made = structural_map(sch.get(inner).body, (tvm.ir.Var, number))
    condition = tirx.LT(rounds.number, rounds.count)
    made = outermost_changed(made, lambda realize: guarded(realize, condition))
    again = loop_like(rounds.inner, made)
    sch.state.replace(sch.get_sref(outer), loop_like(rounds.outer, again))


def _rounds(outer: tirx.For, inner: tirx.For) -> _Rounds | None:
    """Two loops as tiles, each under one condition that numbers do not decide; None where they are others."""
    numbers = (outer.min, outer.extent, inner.min, inner.extent)
    if not all(isinstance(number, tirx.IntImm) for number in numbers) or not outer.body.same_as(inner):
        return None
    first, units, start, each = map(int, numbers)
    if first or start or units < 2 or each < 2:
        return None
    found: list[Any] = []

    def noted(realize: SBlockRealize) -> SBlockRealize:
        found.append(realize)
        return realize

    if outermost_changed(inner.body, noted) is None or not found:
        return None
    rounds = _Rounds(outer, inner, None)
    for condition in conjuncts(found[0].predicate):
        if isinstance(condition, tirx.LT) and isinstance(condition.b, tirx.IntImm):
            count = int(condition.b)
            if (units - 1) * each < count < units * each and structural_equal(condition.a, rounds.number):
                return attrs.evolve(rounds, count=condition.b)
    return None


def _numbered(rounds: _Rounds) -> Any:
    """What is inside, in terms of the inner loop as the number of a tile and without the condition.

    None where a loop is used otherwise, or something is not under the condition.
    """
    whole = tvm.ir.Var("tile", str(rounds.inner.loop_var.ty.dtype))
    number = rounds.number

    def named(value: tirx.Add) -> Any:
        return whole if structural_equal(value, number) else value

    body = structural_map(rounds.inner.body, (tirx.Add, named))
    condition = tirx.LT(whole, rounds.count)

    def free(realize: SBlockRealize) -> SBlockRealize | None:
        parts = conjuncts(realize.predicate)
        rest = [part for part in parts if not structural_equal(part, condition)]
        if len(rest) == len(parts):
            return None
        predicate = tirx.all(*rest) if rest else tirx.IntImm("bool", 1)
        return SBlockRealize(list(realize.iter_values), predicate, realize.block)

    made = outermost_changed(body, free)
    if made is None or uses(made, [rounds.outer.loop_var, rounds.inner.loop_var]):
        return None
    return structural_map(
        made, (tvm.ir.Var, lambda var: rounds.inner.loop_var if var.same_as(whole) else var)
    )


def _with_extent(loop: tirx.For, extent: Any, body: Any) -> tirx.For:
    return tirx.For(
        loop.loop_var, loop.min, extent, loop.kind, body, loop.thread_binding, loop.annotations, loop.step
    )
