# SPDX-License-Identifier: Apache-2.0
"""Take kernels through the stages (`uir_tvm.stages`).

Every stage can be dumped (`CompileOptions.dump_dir`), and a dump of ``tir``, ``igraph`` or ``optimize`` can
take the place of what the stage makes (`CompileOptions.override_dir`), or be compiled by itself
(`read_dump`).  A pass whose graph is refused is left out with a warning, and its step says why.

A kernel for whose tiles a memory lacks room (`CapacityError`, whichever stage finds out) is tried with
smaller ones; a recipe of whose kernel no iGraph can be made gives way to the next that fits.  What the
compiler made and then cannot carry on with is left to TVM's own lowering, and so is a kernel on which the
compiler itself fails (`CompileOptions.faults`); what the user wrote (an override, an iGraph of one's own) and
is refused ends the compilation with the reason.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import pathlib
import time
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import attrs
import tvm
from tvm import tirx

from .dump_files import file_stem
from .errors import ArtifactError, CapacityError, DatabaseError, UirError
from .one_at_a_time import one_at_a_time
from .options import CompileOptions
from .stages import (
    STAGES,
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
_RAISED: contextvars.ContextVar[list[Exception] | None] = contextvars.ContextVar("uir_raised", default=None)


@contextlib.contextmanager
def recording(
    options: CompileOptions | None = None, progress: Callable[[KernelRecord], None] | None = None
) -> Iterator[dict[str, KernelRecord]]:
    """Collect the records of all kernels compiled inside, by name.

    Raises
    ------
    UirError
        What a stage raised about the user's own override or iGraph.
    Exception
        A fault of the compiler, where faults are to be raised (`CompileOptions.faults`).
    """
    records: dict[str, KernelRecord] = {}
    raised: list[Exception] = []
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
    Exception
        A fault of the compiler, where faults are to be raised (`CompileOptions.faults`).
    """
    from .schedule.hardware_of import model_of_target

    label = name or str((func.attrs or {}).get("global_symbol", "main"))
    context = Context(target, model_of_target(target), _OPTIONS.get() or CompileOptions())
    record = _best(func, label, context)
    if record.fallback:
        _tell(record)
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
    return _through(func, label, context, scheduled=scheduled)


def _best(func: tirx.PrimFunc, label: str, context: Context) -> KernelRecord:
    """The record of the database's schedule; else of a recipe's."""
    from .schedule.default import is_scheduled
    from .tune.apply import measured

    try:
        chosen = measured(func, context.target, context.options) if not is_scheduled(func) else None
    except DatabaseError as error:
        raise _leaving(error) from error
    if chosen is not None:
        compared = attrs.evolve(context, options=chosen.options)
        record = _through(func, label, compared, scheduled=chosen.scheduled)
        if not record.fallback:
            chosen.works()
            return record
        reason = record.fallback.splitlines()[0]
        log.warning("kernel %s: its schedule of the database is refused (%s)", label, reason)
    return _by_recipes(func, label, context)


def _by_recipes(func: tirx.PrimFunc, label: str, context: Context) -> KernelRecord:
    """The record of the first recipe of whose kernel an iGraph can be made; else the first recipe's.

    The last recipe always builds, but on one unit: what a printer refuses runs faster on the host.
    """
    from .schedule.default import is_scheduled
    from .schedules import RECIPES, fallback

    first = record = _by_tiles(func, label, context, RECIPES)
    names = [recipe.HERO for recipe in RECIPES]
    while record.fallback and not record.fault and record.recipe in names and not is_scheduled(func):
        left = RECIPES[names.index(record.recipe) + 1 :]
        if "source" in record.seconds:
            left = tuple(recipe for recipe in left if recipe is not fallback)
        if not left:
            break
        found = _by_tiles(func, label, context, left)
        said = record.fallback.splitlines()[0]
        log.info("kernel %s: recipe %s gave way to %s (%s)", label, record.recipe, found.recipe, said)
        record = found
    return first if record.fallback else record


def _by_tiles(
    func: tirx.PrimFunc, label: str, context: Context, recipes: tuple[ModuleType, ...]
) -> KernelRecord:
    """The record of the largest tiles for which every stage has room; without, that of the largest that work.

    What a tile takes is known when its kernel is printed, with all temporaries and work buffers.  Sizes that
    are a recipe's own are known to be fast: they are smaller only where the kernel would not be at all.
    """
    from .schedule.default import is_scheduled
    from .schedule.smaller import SHRINKS

    first = _through(func, label, context, recipes=recipes)
    if not first.crowded or is_scheduled(func):
        return first
    found = [first]
    for shrink in SHRINKS:
        record = _through(func, label, context, shrink, recipes=recipes, own_sizes=bool(first.fallback))
        if not record.crowded and not record.fallback:
            return record
        found.append(record)
    return next((record for record in found if not record.fallback), first)


def _through(
    func: tirx.PrimFunc,
    label: str,
    context: Context,
    shrink: int = 1,
    scheduled: tirx.PrimFunc | None = None,
    recipes: tuple[ModuleType, ...] | None = None,
    own_sizes: bool = False,
) -> KernelRecord:
    """One PrimFunc through the stages, by a recipe with tiles so many times smaller, or scheduled so."""
    hero = str((func.attrs or {}).get("uir.hero", ""))
    record = KernelRecord(
        label,
        hero=hero,
        products={"prim_func": func},
        shrink=shrink,
        own_sizes=own_sizes,
        recipes=recipes,
        measured=scheduled,
    )
    for stage in STAGES:
        start = time.perf_counter()
        product = _override(stage, record, context)
        try:
            if product is None:
                product = stage.make(record, context)
            elif stage.name in ("igraph", "optimize"):
                compare(record, getattr(product, "graph", product), context)
            record.products[stage.name] = product
        except MemoryError:
            raise
        except Exception as error:
            known = isinstance(error, UirError)
            own = record.overridden or given_igraph(func) is not None
            if own or (not known and context.options.faults == "raise"):
                raise _leaving(error) from error
            record.fallback = f"{stage.name}: {error if known else _fault(error)}"
            record.crowded = isinstance(error, CapacityError)
            record.fault = None if known else error
            log.debug("kernel %s, stage %s", label, stage.name, exc_info=error)
            break
        finally:
            record.seconds[stage.name] = time.perf_counter() - start
        dump(stage, record, context)
    return record


def _fault(error: Exception) -> str:
    """What the report says of an error that is no refusal."""
    said = first_line(error)
    kind = "" if isinstance(error, tvm.error.InternalError) else f"{type(error).__name__}: "
    return f"a fault of the compiler: {kind}{said}".removesuffix(f": {type(error).__name__}")


def _tell(record: KernelRecord) -> None:
    """Log that a kernel is left to TVM, and why."""
    reason = record.fallback.partition(": ")[2].splitlines()[0]
    log.warning("kernel %s is left to TVM's own lowering (%s)", record.name, reason)
    if record.fault is None:
        return
    frames = traceback.extract_tb(record.fault.__traceback__)
    place = f"{pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno}, " if frames else ""
    log.warning(
        "kernel %s: its results are right, but this is a fault of uir_tvm: please report it with this line"
        " (%s%s), the versions that `uir doctor` prints, and the kernel's dump (UIR_DUMP_DIR=FOLDER)",
        record.name,
        place,
        reason,
    )


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
    """Note an error that is about to cross TVM's passes."""
    raised = _RAISED.get()
    if raised is not None:
        raised.append(error)
    return error
