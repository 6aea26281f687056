# SPDX-License-Identifier: Apache-2.0
"""The stages that a kernel goes through, as one table.

    relax     the model, imported and normalised             (whole module)
    tir       the kernel's PrimFunc, scheduled by its recipe  (PrimFunc)
    igraph    what extraction made of it, verified            (IGraph)
    source    what the target made of the iGraph              (text; on uir-cpu TIR)

Every stage can be dumped (`CompileOptions.dump_dir`), and a dump of ``tir`` or ``igraph`` can take the
place of what the stage makes (`CompileOptions.override_dir`).
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
from tvm_ffi.structural import structural_hash

from .errors import ArtifactError, UirError
from .igraph import HardwareModel, IGraph
from .options import CompileOptions

log = logging.getLogger(__name__)


@attrs.define
class KernelRecord:
    """What became of one PrimFunc: the product of every stage, or why it left the pipeline."""

    name: str
    hero: str = ""
    recipe: str = ""
    #: Products by stage name: ``prim_func`` (as given), ``tir``, ``igraph``, ``source``.
    products: dict[str, Any] = attrs.field(factory=dict)
    #: Seconds by stage.
    seconds: dict[str, float] = attrs.field(factory=dict)
    #: Why TVM's own lowering took the kernel instead (empty: it went through an iGraph).
    fallback: str = ""

    @property
    def igraph(self) -> IGraph | None:
        """The verified iGraph; None for a fallback."""
        return self.products.get("igraph")

    @property
    def lowered(self) -> tirx.PrimFunc:
        """What is handed to TVM's code generation."""
        return self.products.get("source", self.products["prim_func"])


@attrs.frozen
class Context:
    """What a stage may look at."""

    target: tvm.target.Target
    hardware: HardwareModel
    options: CompileOptions


@attrs.frozen
class Stage:
    """One step: how it is made, what its dump looks like, how a dump is read back."""

    name: str
    make: Callable[[KernelRecord, Context], Any]
    suffix: str
    dump: Callable[[Any], str]
    #: None where a dump is for reading only.
    read: Callable[[str, Context], Any] | None


def _schedule(record: KernelRecord, context: Context) -> tirx.PrimFunc:
    from .schedule import apply_default

    scheduled = apply_default(record.products["prim_func"], context.hardware)
    record.recipe = str(scheduled.attrs.get("uir.recipe", "by hand"))
    return scheduled


def _extract(record: KernelRecord, context: Context) -> IGraph:
    from .extract import extract

    return _verified(extract(record.products["tir"], context.hardware, name=record.name), context)


def _verified(graph: IGraph, context: Context) -> IGraph:
    from .verify import verify

    if context.options.verify:
        verify(graph)
    return graph


def _emit(record: KernelRecord, context: Context) -> Any:
    from .target import registry

    return registry.of_target(context.target).lower(record.products["igraph"], record.products["prim_func"])


def _read_tir(text: str, context: Context) -> tirx.PrimFunc:
    func = tvm.ir.load_json(text)
    if not isinstance(func, tirx.PrimFunc):
        raise ArtifactError(
            "The file does not hold a PrimFunc.", need="a .tir.json dump", remedy="dump it with --dump"
        )
    return func


def _read_igraph(text: str, context: Context) -> IGraph:
    from .igraph.parser import parse_igraph

    return _verified(parse_igraph(text), context)


STAGES: tuple[Stage, ...] = (
    Stage("tir", _schedule, ".tir.json", tvm.ir.save_json, _read_tir),
    Stage("igraph", _extract, ".igraph", str, _read_igraph),
    Stage(
        "source",
        _emit,
        ".source.txt",
        lambda product: product.script() if hasattr(product, "script") else str(product),
        None,
    ),
)


_RECORDS: contextvars.ContextVar[dict[str, KernelRecord] | None] = contextvars.ContextVar(
    "uir_records", default=None
)
_OPTIONS: contextvars.ContextVar[CompileOptions | None] = contextvars.ContextVar("uir_options", default=None)
_PROGRESS: contextvars.ContextVar[Callable[[KernelRecord], None] | None] = contextvars.ContextVar(
    "uir_progress", default=None
)


@contextlib.contextmanager
def recording(
    options: CompileOptions | None = None, progress: Callable[[KernelRecord], None] | None = None
) -> Iterator[dict[str, KernelRecord]]:
    """Collect the records of all kernels compiled inside, by name."""
    records: dict[str, KernelRecord] = {}
    tokens = (_RECORDS.set(records), _OPTIONS.set(options), _PROGRESS.set(progress))
    try:
        yield records
    finally:
        _RECORDS.reset(tokens[0])
        _OPTIONS.reset(tokens[1])
        _PROGRESS.reset(tokens[2])


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
    """
    from .schedule.hardware_of import model_of_target

    attributes = func.attrs or {}
    label = name or str(attributes.get("global_symbol", "main"))
    record = KernelRecord(label, hero=str(attributes.get("uir.hero", "")), products={"prim_func": func})
    context = Context(target, model_of_target(target), _OPTIONS.get() or CompileOptions())
    for stage in STAGES:
        start = time.perf_counter()
        try:
            record.products[stage.name] = _overridden(stage, record, context) or stage.make(record, context)
        except UirError as error:
            record.fallback = f"{stage.name}: {error}"
            log.warning("kernel %s is left to TVM's own lowering (%s)", label, str(error).splitlines()[0])
            break
        finally:
            record.seconds[stage.name] = time.perf_counter() - start
        _dump(stage, record, context)
    records, progress = _RECORDS.get(), _PROGRESS.get()
    if records is not None:
        records[label] = record
    if progress is not None:
        progress(record)
    return record


def _overridden(stage: Stage, record: KernelRecord, context: Context) -> Any:
    folder = context.options.override_dir
    if folder is None or stage.read is None:
        return None
    path = folder / f"{record.name}{stage.suffix}"
    if not path.is_file():
        return None
    log.info("kernel %s: stage %s comes from %s", record.name, stage.name, path)
    return stage.read(path.read_text(), context)


def _dump(stage: Stage, record: KernelRecord, context: Context) -> None:
    if context.options.dump_dir is not None:
        write_dump(
            context.options.dump_dir, record.name, stage.suffix, stage.dump(record.products[stage.name])
        )


def write_dump(folder: pathlib.Path, name: str, suffix: str, text: str) -> pathlib.Path:
    """Write one dump; returns its path.

    Raises
    ------
    ArtifactError
        The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}{suffix}"
        path.write_text(text)
    except OSError as error:
        raise ArtifactError(
            f"The dump folder {folder} cannot be written.", need=str(error), remedy="name another folder"
        ) from error
    return path


def kernel_key(func: tirx.PrimFunc) -> int:
    """Structural hash of a PrimFunc without its name: equal kernels have equal keys."""
    return structural_hash(func.without_attr("global_symbol"))
