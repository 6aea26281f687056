# SPDX-License-Identifier: Apache-2.0
"""The primitive ``move_to_hierarchy``: stage an operand or a result at a level of memory."""

from __future__ import annotations

from typing import Any

from tvm.s_tir import Schedule

from ..errors import ScheduleError
from ..igraph import HardwareModel
from .blocks import block_info, param_names
from .hardware_of import hardware_for
from .transaction import primitive

#: Level of the iGraph -> scope of TVM.
SCOPES = {"reg": "local", "sram": "shared", "dram": "global"}


@primitive(
    remedy="attach at a loop that encloses every consumer of the buffer, and stage producers before consumers"
)
def move_to_hierarchy(
    sch: Schedule,
    block: Any,
    buffer: Any,
    level: str,
    at: Any = None,
    *,
    hardware: HardwareModel | str | None = None,
) -> Any:
    """Keep a buffer of a block at ``reg`` or ``sram`` while a tile is worked on.

    An intermediate that another block of the function makes::

        for i, j: E[i, j] = exp(X[i, j])          for pid, lid:
        for pid, lid:                       ->      for i, j: E.local[i, j] = exp(X[..])
          for i, j: Y = f(E[i, j])                  for i, j: Y = f(E.local[i, j])

    A parameter that the block reads (or writes: the copy then follows the block)::

        for pid, lid:                             for pid, lid:
          for i, j: Y = f(X[i, j])          ->      for i, j: X.local[i, j] = X[..]
                                                    for i, j: Y = f(X.local[i, j])

    Parameters
    ----------
    block : SBlockRV or str
        The block that reads or writes the buffer.
    buffer : str or Buffer
        The buffer, by name or itself.
    level : {"reg", "sram"}
        Where it is kept.
    at : LoopRV, optional
        The loop inside which it is staged; without it only the scope changes (intermediates).

    Returns
    -------
    SBlockRV
        The block that now makes the staged copy (or, for a written parameter, that moves it out).

    Raises
    ------
    ScheduleError
        An unknown level; no sram on the hardware; the block does not touch the buffer; TVM refuses
        to attach there (a consumer lies outside ``at``, or the buffer is an output of the function).
    """
    hw = hardware_for(sch, hardware)
    scope = _scope_of(level, hw)
    rv = sch.get_sblock(block) if isinstance(block, str) else block
    info = block_info(sch, rv)
    name = buffer if isinstance(buffer, str) else buffer.name
    reads = [r.source.name for r in info.stmt.reads]
    writes = [w.source.name for w in info.stmt.writes]
    if name not in reads and name not in writes:
        raise ScheduleError(
            f"Block {info.name!r} does not touch the buffer {name!r}.",
            need=f"one of {sorted({*reads, *writes})}",
            remedy="name a buffer that the block reads or writes",
        )
    if name in param_names(sch):
        return _stage_parameter(sch, rv, name, reads, writes, scope, at)
    return _stage_intermediate(sch, rv, name, writes, scope, at)


def _scope_of(level: str, hw: HardwareModel) -> str:
    if level not in ("reg", "sram"):
        raise ScheduleError(
            f"{level!r} is no level to move to.",
            need="reg or sram",
            remedy="dram is where parameters already are",
        )
    if level == "sram" and hw.sram_bytes == 0:
        raise ScheduleError(
            f"{hw.name} has no sram.",
            need="memory that a group shares",
            limit="sram 0 bytes",
            remedy='stage at "reg", which a unit owns',
        )
    return SCOPES[level]


def _stage_parameter(
    sch: Schedule, rv: Any, name: str, reads: list[str], writes: list[str], scope: str, at: Any
) -> Any:
    if name in writes:
        copy = sch.cache_write(rv, writes.index(name), scope)
        if at is not None:
            sch.reverse_compute_at(copy, at, preserve_unit_loops=True)
        return copy
    copy = sch.cache_read(rv, reads.index(name), scope)
    if at is not None:
        sch.compute_at(copy, at, preserve_unit_loops=True)
    return copy


def _stage_intermediate(sch: Schedule, rv: Any, name: str, writes: list[str], scope: str, at: Any) -> Any:
    if name in writes:
        producer, index = rv, writes.index(name)
    else:
        producer, index = _producer_of(sch, rv, name)
    sch.set_scope(producer, index, scope)
    if at is not None:
        sch.compute_at(producer, at, preserve_unit_loops=True)
    return producer


def _producer_of(sch: Schedule, rv: Any, name: str) -> tuple[Any, int]:
    for producer in sch.get_producers(rv):
        written = [w.source.name for w in sch.get(producer).writes]
        if name in written:
            return producer, written.index(name)
    raise ScheduleError(
        f"No block before {sch.get(rv).name_hint!r} writes {name!r}.",
        need="the block that makes the buffer",
        remedy="stage it through the block that writes it",
    )
