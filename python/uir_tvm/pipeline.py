# SPDX-License-Identifier: Apache-2.0
"""Take kernels through the stages (`uir_tvm.stages`).

Every stage can be dumped (`CompileOptions.dump_dir`), and a dump of ``tir``, ``igraph`` or ``optimize`` can
take the place of what the stage makes (`CompileOptions.override_dir`), or be compiled by itself
(`read_dump`).  A pass whose graph is refused is left out with a warning, and its step says why.

The driver (`uir_tvm.schedule.driver`) says which recipe, form and tiles are tried next when a stage refuses.
What the compiler made and then cannot carry on with is left to TVM's own lowering, and so is a kernel on
which the compiler itself fails (`CompileOptions.faults`); what the user wrote (an override, an iGraph) and is
refused ends the compilation with the reason.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import pathlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import tvm
from tvm import tirx
from tvm_ffi import structural_equal

from . import kernel_cache
from .dump_files import file_stem
from .errors import ArtifactError, DatabaseError, NoRecipeError, UirError, first_line
from .garbage import unsearched
from .one_at_a_time import one_at_a_time
from .options import CompileOptions
from .refusal import Refusal
from .stages import (
    STAGES,
    KernelRecord,
    Stage,
    StageContext,
    compare,
    dump,
    given_igraph,
)
from .variants import variants_of

if TYPE_CHECKING:
    from .schedule.driver import Candidate

__all__ = [
    "STAGES",
    "StageContext",
    "KernelRecord",
    "Stage",
    "compile_kernel",
    "compile_scheduled",
    "knowing",
    "leaving",
    "read_dump",
    "recording",
    "try_kernel",
]

log = logging.getLogger(__name__)

#: What comes after the stages: TVM makes machine code of all kernels.
BUILD = "build"

_RECORDS: contextvars.ContextVar[dict[str, KernelRecord] | None] = contextvars.ContextVar(
    "uir_records", default=None
)
_OPTIONS: contextvars.ContextVar[CompileOptions | None] = contextvars.ContextVar("uir_options", default=None)
_PROGRESS: contextvars.ContextVar[Callable[[KernelRecord], None] | None] = contextvars.ContextVar(
    "uir_progress", default=None
)
#: Kernels that are left to TVM's own lowering whatever their stages say, and why.
_LEFT: contextvars.ContextVar[Mapping[str, Exception]] = contextvars.ContextVar("uir_left", default={})  # noqa: B039
#: Records of kernels that were taken through the stages before, by name.
_KNOWN: contextvars.ContextVar[Mapping[str, KernelRecord]] = contextvars.ContextVar("uir_known", default={})  # noqa: B039
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


@contextlib.contextmanager
def leaving(kernels: Mapping[str, Exception]) -> Iterator[None]:
    """Leave kernels to TVM's own lowering inside: TVM cannot build what was emitted for them.

    Parameters
    ----------
    kernels : mapping of str to Exception
        What TVM raised, by the kernel's name.
    """
    token = _LEFT.set(kernels)
    try:
        yield
    finally:
        _LEFT.reset(token)


@contextlib.contextmanager
def knowing(records: Mapping[str, KernelRecord]) -> Iterator[None]:
    """Take kernels inside as what is known of them already, by name."""
    token = _KNOWN.set(records)
    try:
        yield
    finally:
        _KNOWN.reset(token)


@one_at_a_time
@unsearched()
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
    label, context = _label(func, name), _context(target)
    known = None if label in _LEFT.get() else _KNOWN.get().get(label)
    record = known or _best(func, label, context)
    if record.refusal is not None:
        _tell(record)
    records, progress = _RECORDS.get(), _PROGRESS.get()
    if records is not None:
        records[label] = record
    if progress is not None:
        progress(record)
    return record


@one_at_a_time
@unsearched()
def try_kernel(func: tirx.PrimFunc, target: tvm.target.Target, name: str | None = None) -> KernelRecord:
    """`compile_kernel` of what need not become a kernel: a refusal is for the caller to tell.

    `recording` does not collect the record; `knowing` makes it that of the kernel's name.
    """
    return _best(func, _label(func, name), _context(target))


@one_at_a_time
@unsearched()
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
    return _through(_record(func, _label(func, name), measured=scheduled), _context(target))


def _label(func: tirx.PrimFunc, name: str | None) -> str:
    return name or str((func.attrs or {}).get("global_symbol", "main"))


def _context(target: tvm.target.Target) -> StageContext:
    from .schedule.hardware_of import model_of_target

    return StageContext(target, model_of_target(target), _OPTIONS.get() or CompileOptions())


def _record(func: tirx.PrimFunc, label: str, **fields: Any) -> KernelRecord:
    """A record at the beginning of the stages."""
    hero = str((func.attrs or {}).get("uir.hero", ""))
    return KernelRecord(label, hero=hero, products={"prim_func": func}, **fields)


def _best(func: tirx.PrimFunc, label: str, context: StageContext) -> KernelRecord:
    """The record of the schedule that is given, by the user or by the database; else of a recipe's."""
    from .schedule.begin import is_scheduled
    from .schedule.tuned import tuned_schedule

    if label in _LEFT.get():
        return _refused(_record(func, label), BUILD, _LEFT.get()[label], context, time.perf_counter())
    given = _path(STAGES[0], label, context) is not None
    if given or given_igraph(func) is not None or is_scheduled(func):
        return _through(_record(func, label), context)
    try:
        chosen = tuned_schedule(func, context.target, context.options)
    except DatabaseError as error:
        raise _leaving(error) from error
    if chosen is None:
        return _by_recipes(func, label, context)
    compared = attrs.evolve(context, options=chosen.options)
    record = _through(_record(func, label, measured=chosen.scheduled), compared)
    if record.refusal is None:
        chosen.works()
        return record
    reason = record.refusal.reason
    log.warning("kernel %s: its schedule of the database is refused (%s)", label, reason)
    return _by_recipes(func, label, context)


def _by_recipes(func: tirx.PrimFunc, label: str, context: StageContext) -> KernelRecord:
    """The record that is kept of this kernel; else what recipes make, which is kept."""
    key = kernel_cache.key_of(func, label, context)
    start = time.perf_counter()
    record = None if key is None else kernel_cache.find(key, func, context.options)
    if record is None:
        record = _made(func, label, context)
        if record.refusal is None:
            record.variants = variants_of(
                record, context, lambda given, name, known: _made(given, name, context, known)
            )
        if key is not None:
            kernel_cache.keep(key, record, context.options)
        return record
    record.seconds = {"kept": time.perf_counter() - start}
    every = (record, *(variant.record for variant in record.variants))
    read = [each for each in every if each.refusal is None and STAGES[-1].name not in each.products]
    for each in read:
        _through(each, context, STAGES[-1:])
    if key is not None and read and not any(each.refusal for each in read):
        kernel_cache.remember(key, record)
    return record


def _made(
    func: tirx.PrimFunc, label: str, context: StageContext, known: tirx.PrimFunc | None = None
) -> KernelRecord:
    """The record of the first candidate of which a kernel can be made; else of the first candidate.

    One whose schedule is the known one is left there.
    """
    from .schedule.driver import Driver

    scheduling, start = STAGES[0].name, time.perf_counter()

    def build(candidate: Candidate) -> KernelRecord:
        record = _record(func, label, candidate=candidate)
        if known is None:
            return _through(record, context)
        record = _through(record, context, STAGES[:1])
        if record.refusal is not None or structural_equal(
            record.products[scheduling].body, known.body, map_free_vars=True
        ):
            return record
        return _through(record, context, STAGES[1:])

    try:
        driver = Driver(func, context.hardware, build)
    except Exception as error:
        return _refused(_record(func, label), scheduling, error, context, start)
    try:
        record = driver.run()
    except NoRecipeError as error:
        record = _refused(_record(func, label), scheduling, error, context, start)
    record.attempts = tuple(driver.attempts)
    if record.candidate is not None:
        # records are kept for long, and what candidates began from is needed no more
        record.candidate = attrs.evolve(record.candidate, beginning=None)
    return record


def _through(
    record: KernelRecord, context: StageContext, stages: Sequence[Stage] | None = None
) -> KernelRecord:
    """One PrimFunc through the stages; through all where none are named."""
    for stage in STAGES if stages is None else stages:
        start = time.perf_counter()
        product = _override(stage, record, context)
        try:
            if product is None:
                product = stage.make(record, context)
            elif stage.name in ("igraph", "optimize"):
                compare(record, getattr(product, "graph", product), context)
            record.products[stage.name] = product
        except Exception as error:
            return _refused(record, stage.name, error, context, start)
        record.seconds[stage.name] = time.perf_counter() - start
        dump(stage, record, context)
    return record


def _refused(
    record: KernelRecord, stage: str, error: Exception, context: StageContext, start: float
) -> KernelRecord:
    """Note why a stage made nothing; or raise it: where it is about what the user wrote, and where asked."""
    refusal = Refusal(stage, error)
    own = bool(record.overridden) or given_igraph(record.products["prim_func"]) is not None
    if isinstance(error, MemoryError):
        raise error
    if own or (refusal.is_fault and context.options.faults == "raise"):
        raise _leaving(error) from error
    record.refusal = refusal
    # a pass that lacked room may be what a later stage misses
    record.lacked_room = record.lacked_room or refusal.lacks_room
    record.seconds[stage] = time.perf_counter() - start
    log.debug("kernel %s, stage %s", record.name, stage, exc_info=error)
    return record


def _tell(record: KernelRecord) -> None:
    """Log that a kernel is left to TVM, and why."""
    refusal = record.refusal
    assert refusal is not None
    log.warning("kernel %s is left to TVM's own lowering (%s)", record.name, refusal.reason)
    if not refusal.is_fault:
        return
    frames = traceback.extract_tb(refusal.error.__traceback__)
    place = f"{pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno}, " if frames else ""
    log.warning(
        "kernel %s: its results are right, but this is a fault of uir_tvm: please report it with this line"
        " (%s%s), the versions that `uir doctor` prints, and the kernel's dump (UIR_DUMP_DIR=FOLDER)",
        record.name,
        place,
        refusal.reason,
    )


def _override(stage: Stage, record: KernelRecord, context: StageContext) -> Any:
    """What the user put in the place of a stage's product; None where there is nothing."""
    path = _path(stage, record.name, context)
    if path is None:
        return None
    log.info("kernel %s: stage %s comes from %s", record.name, stage.name, path)
    record.overridden += (stage.name,)
    return read_dump(path, stage, context)


def _path(stage: Stage, name: str, context: StageContext) -> pathlib.Path | None:
    """The file that takes the place of a stage's product, where there is one."""
    folder = context.options.override_dir
    if folder is None or stage.read is None:
        return None
    path = folder / f"{file_stem(name)}{stage.suffix}"
    return path if path.is_file() else None


def read_dump(path: pathlib.Path, stage: Stage, context: StageContext | None) -> Any:
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
