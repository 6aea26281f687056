# SPDX-License-Identifier: Apache-2.0
"""Take kernels through the stages (`uir_tvm.stages`).

Every stage can be dumped (`CompileOptions.dump_dir`), and a dump of ``tir``, ``igraph`` or ``optimize`` can
take the place of what the stage makes (`CompileOptions.override_dir`), or be compiled by itself
(`read_dump`).  A pass whose graph is refused is left out with a warning, and its step says why.

What the compiler made and then cannot carry on with is left to TVM's own lowering; what the user wrote
(an override, an iGraph of one's own) and is refused ends the compilation with the reason.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import tvm
from tvm import tirx

from .dump_files import file_stem
from .errors import ArtifactError, DatabaseError, UirError
from .one_at_a_time import one_at_a_time
from .options import CompileOptions
from .stages import (
    ROOM,
    SHRINKS,
    STAGES,
    TILE,
    Context,
    KernelRecord,
    Stage,
    compare,
    dump,
    first_line,
    given_igraph,
)

__all__ = [
    "STAGES",
    "TILE",
    "Context",
    "KernelRecord",
    "Stage",
    "compile_kernel",
    "compile_scheduled",
    "read_dump",
    "recording",
]

log = logging.getLogger(__name__)

_RECORDS: contextvars.ContextVar[dict[str, KernelRecord] | None] = contextvars.ContextVar(
    "uir_records", default=None
)
_OPTIONS: contextvars.ContextVar[CompileOptions | None] = contextvars.ContextVar("uir_options", default=None)
_PROGRESS: contextvars.ContextVar[Callable[[KernelRecord], None] | None] = contextvars.ContextVar(
    "uir_progress", default=None
)
#: Errors on their way out through TVM's passes, which keep their text but not their class.
_RAISED: contextvars.ContextVar[list[UirError] | None] = contextvars.ContextVar("uir_raised", default=None)


@contextlib.contextmanager
def recording(
    options: CompileOptions | None = None, progress: Callable[[KernelRecord], None] | None = None
) -> Iterator[dict[str, KernelRecord]]:
    """Collect the records of all kernels compiled inside, by name.

    Raises
    ------
    UirError
        What a stage raised about the user's own override or iGraph.
    """
    records: dict[str, KernelRecord] = {}
    raised: list[UirError] = []
    tokens = (_RECORDS.set(records), _OPTIONS.set(options), _PROGRESS.set(progress), _RAISED.set(raised))
    try:
        yield records
    except Exception:
        if raised:
            raise raised[0] from None
        raise
    finally:
        _RECORDS.reset(tokens[0])
        _OPTIONS.reset(tokens[1])
        _PROGRESS.reset(tokens[2])
        _RAISED.reset(tokens[3])


@one_at_a_time
def compile_kernel(func: tirx.PrimFunc, target: tvm.target.Target, name: str | None = None) -> KernelRecord:
    """Take one PrimFunc through the stages.

    A function that some stage refuses is left to TVM's own lowering; the record says why.

    Parameters
    ----------
    func : PrimFunc
        In S-TIR, scheduled or not.
    target : Target
        A uir target.
    name : str, optional
        Default: the function's global symbol.

    Raises
    ------
    UirError
        An override, or an iGraph that the function stands for, is refused.
    """
    from .schedule.hardware_of import model_of_target

    label = name or str((func.attrs or {}).get("global_symbol", "main"))
    context = Context(target, model_of_target(target), _OPTIONS.get() or CompileOptions())
    record = _best(func, label, context)
    if record.fallback:
        reason = record.fallback.partition(": ")[2].splitlines()[0]
        log.warning("kernel %s is left to TVM's own lowering (%s)", label, reason)
    records, progress = _RECORDS.get(), _PROGRESS.get()
    if records is not None:
        records[label] = record
    if progress is not None:
        progress(record)
    return record


@one_at_a_time
def compile_scheduled(
    func: tirx.PrimFunc, target: tvm.target.Target, scheduled: tirx.PrimFunc, name: str | None = None
) -> KernelRecord:
    """Take one PrimFunc through the stages with a schedule that is given, as with one of a database.

    Parameters
    ----------
    func, target, name
        As for `compile_kernel`.
    scheduled : PrimFunc
        The same kernel, scheduled.

    Returns
    -------
    KernelRecord
        Where a stage refuses, its ``fallback`` says why: no recipe takes the schedule's place.
    """
    from .schedule.hardware_of import model_of_target

    label = name or str((func.attrs or {}).get("global_symbol", "main"))
    context = Context(target, model_of_target(target), _OPTIONS.get() or CompileOptions())
    return _through(func, label, context, 1, scheduled)


def _best(func: tirx.PrimFunc, label: str, context: Context) -> KernelRecord:
    """The record of the database's schedule; else of the largest tiles for which every stage has room.

    If there are no such, that of the first. What a tile takes is known when its kernel is printed, with all
    temporaries and work buffers.
    """
    from .schedule.default import is_scheduled
    from .tune.apply import measured

    try:
        chosen = measured(func, context.target, context.options) if not is_scheduled(func) else None
    except DatabaseError as error:
        raise _leaving(error) from error
    if chosen is not None:
        compared = attrs.evolve(context, options=chosen.options)
        record = _through(func, label, compared, 1, chosen.scheduled)
        if not record.fallback:
            chosen.works()
            return record
        reason = record.fallback.splitlines()[0]
        log.warning("kernel %s: its schedule of the database is refused (%s)", label, reason)
    first = _through(func, label, context, 1)
    if not first.crowded or TILE not in context.hardware.figures or is_scheduled(func):
        return first
    found = [first]
    for shrink in SHRINKS:
        record = _through(func, label, context, shrink)
        if not record.crowded:
            return record
        found.append(record)
    return next((record for record in found if not record.fallback), first)


def _through(
    func: tirx.PrimFunc, label: str, context: Context, shrink: int, scheduled: tirx.PrimFunc | None = None
) -> KernelRecord:
    """One PrimFunc through the stages, with tiles so many times smaller, or scheduled so."""
    hero = str((func.attrs or {}).get("uir.hero", ""))
    record = KernelRecord(label, hero=hero, products={"prim_func": func}, shrink=shrink, measured=scheduled)
    for stage in STAGES:
        start = time.perf_counter()
        product = _override(stage, record, context)
        try:
            if product is None:
                product = stage.make(record, context)
            elif stage.name in ("igraph", "optimize"):
                compare(record, getattr(product, "graph", product), context)
            record.products[stage.name] = product
        except (UirError, tvm.error.InternalError) as error:
            if record.overridden or given_igraph(func) is not None:
                raise _leaving(error) from error
            record.fallback = f"{stage.name}: {_said(error)}"
            record.crowded = getattr(error, "remedy", "") == ROOM
            log.debug("kernel %s, stage %s", label, stage.name, exc_info=error)
            break
        finally:
            record.seconds[stage.name] = time.perf_counter() - start
        dump(stage, record, context)
    return record


def _said(error: Exception) -> str:
    """What an error says; of one that is a fault of ours, that it is."""
    return str(error) if isinstance(error, UirError) else f"a fault of the compiler: {first_line(error)}"


def _override(stage: Stage, record: KernelRecord, context: Context) -> Any:
    """What the user put in the place of a stage's product; None where there is nothing."""
    folder = context.options.override_dir
    if folder is None or stage.read is None:
        return None
    path = folder / f"{file_stem(record.name)}{stage.suffix}"
    if not path.is_file():
        return None
    log.info("kernel %s: stage %s comes from %s", record.name, stage.name, path)
    record.overridden += (stage.name,)
    return read_dump(path, stage, context)


def read_dump(path: pathlib.Path, stage: Stage, context: Context | None) -> Any:
    """The product of a stage from its dump; an iGraph is verified where there is a context.

    Raises
    ------
    UirError
        What the stage's reader says of the file; ``where`` starts with its path.
    """
    assert stage.read is not None, stage
    try:
        return stage.read(path.read_text(), context)
    except (OSError, UnicodeDecodeError) as error:
        raise _leaving(
            ArtifactError(
                f"{path} cannot be read.", need=first_line(error), remedy="check the path; dumps are text"
            )
        ) from error
    except UirError as error:
        error.where = f"{path}, {error.where}" if error.where else str(path)
        error.args = (error.render(),)
        raise _leaving(error) from error.__cause__


def _leaving(error: Exception) -> Exception:
    """Note an error that is about to cross TVM's passes, if it is a user's."""
    raised = _RAISED.get()
    if raised is not None and isinstance(error, UirError):
        raised.append(error)
    return error
