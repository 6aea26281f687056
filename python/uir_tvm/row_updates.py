# SPDX-License-Identifier: Apache-2.0
"""Functions that write rows of a tensor and leave the others as they are in its memory."""

# mypy: ignore-errors
# TVMScript is written as Python, but its types are others

from __future__ import annotations

from math import prod
from typing import Any

import attrs
from tvm import tirx
from tvm.script import tirx as T

from .function_attributes import SCATTERS


@attrs.frozen
class Rows:
    """Which rows an update writes: of a tensor (outer, length, inner), ``count`` of every ``length``.

    Attributes
    ----------
    outer, length, count, inner : int
    begin, step : int
        Row ``begin + step * j`` gets the values of row j; of no account where an index says which.
    sets, own : int
        How many sets of ``count`` indices there are: 0, 1, or ``outer``; then ``own`` is 1.
    """

    outer: int
    length: int
    count: int
    inner: int
    begin: int = 0
    step: int = 1
    sets: int = 0
    own: int = 0

    @property
    def values(self) -> tuple[int, int, int]:
        """Shape of the values."""
        return self.outer, self.count, self.inner

    @property
    def size(self) -> int:
        """Elements that are written."""
        return prod(self.values)


def row_update(rows: Rows, dtype: str, kind: str = "") -> tirx.PrimFunc:
    """The function of an update: its parameters are the values, perhaps the index, and the memory.

    Parameters
    ----------
    rows : Rows
    dtype, kind : str
        Of the values and the memory, and of the index.
    """
    sides = rows.outer, rows.length, rows.count, rows.inner
    if not kind:
        return _at_a_place(*_wide(*sides, rows.begin, rows.step), dtype)
    return _at_indices(*_wide(*sides, rows.sets, rows.own), dtype, kind)


def _wide(*sizes: Any) -> list[Any]:
    """Sizes as TVM takes them."""
    return [tirx.IntImm("int64", size) if isinstance(size, int) else size for size in sizes]


def _at_a_place(
    outer: Any, length: Any, count: Any, inner: Any, begin: Any, step: Any, dtype: str
) -> tirx.PrimFunc:
    """``memory[o * length + begin + step * j, i] = values[o, j, i]``."""

    @T.prim_func(s_tir=True, private=True)
    def update(
        values: T.Buffer((outer, count, inner), dtype), memory: T.Buffer((outer * length, inner), dtype)
    ):
        for o, j, i in T.grid(outer, count, inner):
            with T.sblock("update"):
                v_o, v_j, v_i = T.axis.remap("SSS", [o, j, i])
                memory[v_o * length + begin + v_j * step, v_i] = values[v_o, v_j, v_i]

    return update


def _at_indices(
    outer: Any, length: Any, count: Any, inner: Any, sets: Any, own: Any, dtype: str, kind: str
) -> tirx.PrimFunc:
    """``memory[o * length + index[o, j], i] = values[o, j, i]`` where the index is one of a row.

    A negative index counts from the end; one outside of the rows writes nothing.
    """

    @T.prim_func(s_tir=True, private=True)
    def update(
        values: T.Buffer((outer, count, inner), dtype),
        index: T.Buffer((sets, count), kind),
        memory: T.Buffer((outer * length, inner), dtype),
    ):
        for o, j, i in T.grid(outer, count, inner):
            with T.sblock("update"):
                v_o, v_j, v_i = T.axis.remap("SSS", [o, j, i])
                T.reads(index[v_o * own, v_j], values[v_o, v_j, v_i])
                T.writes(memory[0 : outer * length, v_i])
                T.sblock_attr({SCATTERS: 1})
                if index[v_o * own, v_j] >= -length and index[v_o * own, v_j] < length:
                    memory[
                        T.Select(
                            index[v_o * own, v_j] < 0,
                            index[v_o * own, v_j] + (v_o * length + length),
                            index[v_o * own, v_j] + v_o * length,
                        ),
                        v_i,
                    ] = values[v_o, v_j, v_i]

    return update
