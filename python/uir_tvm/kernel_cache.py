# SPDX-License-Identifier: Apache-2.0
"""Kernels that were taken through the stages before: in memory, and on disk for later processes.

A kernel is found again by all that the stages look at: its function, its name, the target, the hardware
model, the options, the files of this package, and the version of TVM. What was registered from outside the
package (a recipe, a target, an iOp) may be anything: then nothing is kept. Refusals are kept in memory alone.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import json
import logging
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm_ffi import serialization

from . import environment
from .cache import Cache
from .igraph.iops import IOpSpec
from .igraph.space import Size
from .igraph.tir_sizes import narrowed
from .optimize import Optimized
from .optimize.kept_step import KeptStep
from .options import CompileOptions
from .refusal import Attempt
from .stages import KernelRecord, StageContext, Variant
from .target_facts import records

log = logging.getLogger(__name__)

#: Records that are kept in memory: those used last.
MOST_IN_MEMORY = 512
#: Writes after which the folder's size is looked at again.
WRITES = 64
SUFFIX = ".kernel.json"
#: Of the files that say what the package makes.
SUFFIXES = (".py", ".so", ".json", ".toml", ".h", ".cu")
#: Packages whose code the digest of the package's files is of, and Python's own.
OURS = frozenset({"uir_tvm", "builtins", "operator", "numpy", "functools"})
#: Options that say nothing of what the stages make of a kernel.
ELSEWHERE = frozenset(
    "cuda_graph database device dump_dir faults fuse kernel_cache override_dir specialize".split()
)

_KEPT: collections.OrderedDict[bytes, KernelRecord] = collections.OrderedDict()
#: iOps whose functions are of this package; that they are held keeps others from having their identity.
_SEEN: dict[int, IOpSpec] = {}
FOLDER = Cache("kernels")
_writes = 0


def key_of(func: tirx.PrimFunc, label: str, context: StageContext) -> bytes | None:
    """All that the record of a function depends on; None where it is not kept.

    Parameters
    ----------
    func : PrimFunc
        As it is given to the stages.
    label : str
        The kernel's name.
    context : StageContext
    """
    options = context.options
    if not may_keep(options):
        return None
    told = {
        field.name: getattr(options, field.name)
        for field in attrs.fields(CompileOptions)
        if field.name not in ELSEWHERE
    }
    parts = (
        package_digest(),
        tvm.__version__,
        label,
        json.dumps(told, sort_keys=True, default=str),
        json.dumps(dict(context.target.export()), sort_keys=True, default=str),
        context.hardware.to_json(),
        tvm.ir.save_json(func),
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.digest()


def may_keep(options: CompileOptions) -> bool:
    """Whether what is made under these options is kept, and depends on nothing but what keys are made of."""
    return options.kernel_cache != "off" and _is_plain(options) and _is_ours()


def _is_plain(options: CompileOptions) -> bool:
    """Whether nothing is read of or written to the user's folders, or compared on the way."""
    return options.dump_dir is None and options.override_dir is None and options.equivalence == "none"


def _is_ours() -> bool:
    """Whether all recipes, targets and iOps are of this package."""
    from .igraph.iops import IOPS
    from .schedules import RECIPES

    said = [getattr(recipe.schedule, "__module__", "") for recipe in RECIPES]
    said += [record.package for record in records().values()]
    return _of_ours(tuple(said)) and all(map(_is_ours_alone, IOPS.values()))


@functools.lru_cache(8)
def _of_ours(modules: tuple[str, ...]) -> bool:
    return all(module.partition(".")[0] in OURS for module in modules)


def _is_ours_alone(row: IOpSpec) -> bool:
    """Whether all functions of an iOp are of this package."""
    if _SEEN.get(id(row)) is row:
        return True
    fields = attrs.asdict(row, recurse=False).values()
    if not _of_ours(tuple(getattr(each, "__module__", "") for each in fields if callable(each))):
        return False
    _SEEN[id(row)] = row
    return True


def find(key: bytes, func: tirx.PrimFunc, options: CompileOptions) -> KernelRecord | None:
    """The record that was kept for a key, about this function; None where there is none."""
    record = _KEPT.get(key)
    kept = "memory"
    if record is None and options.kernel_cache == "disk":
        content, kept = FOLDER.read(key, SUFFIX), "disk"
        record = None if content is None else _read(content)
        if record is not None:
            FOLDER.used(key, SUFFIX)
    if record is None:
        return None
    remember(key, record)
    return _about(record, func, kept)


def _about(record: KernelRecord, func: tirx.PrimFunc, kept: str) -> KernelRecord:
    """A record that was kept, of this function; so are its variants."""
    variants = tuple(
        attrs.evolve(each, record=_about(each.record, narrowed(func, each.sizes), kept))
        for each in record.variants
    )
    return attrs.evolve(record, products={**record.products, "prim_func": func}, kept=kept, variants=variants)


def keep(key: bytes, record: KernelRecord, options: CompileOptions) -> None:
    """Find a record from now on; where a disk is full, or not ours, in this process alone."""
    global _writes
    if record.refusal is not None and record.refusal.is_fault:
        return  # it is told, or raised, whenever the kernel is compiled
    remember(key, record)
    if options.kernel_cache != "disk" or record.refusal is not None:
        return
    FOLDER.remember(key, _written(record), SUFFIX)
    if _writes % WRITES == 0:
        FOLDER.trim(environment.kernel_cache_bytes())
    _writes += 1


def forget() -> None:
    """Keep nothing in memory any more."""
    _KEPT.clear()


def remember(key: bytes, record: KernelRecord) -> None:
    """Find a record in this process from now on, with all that was made of it."""
    _KEPT[key] = record
    _KEPT.move_to_end(key)
    while len(_KEPT) > MOST_IN_MEMORY:
        _KEPT.popitem(last=False)


def _written(record: KernelRecord) -> bytes:
    """A record as text; the source is made again of the graph, which takes as long as reading it."""
    return json.dumps(_plain(record)).encode()


def _plain(record: KernelRecord) -> dict[str, Any]:
    products = record.products
    return {
        "name": record.name,
        "hero": record.hero,
        "recipe": record.recipe,
        "lacked_room": record.lacked_room,
        "attempts": [attempt.to_json() for attempt in record.attempts],
        "steps": [attrs.asdict(KeptStep.of(step)) for step in record.steps],
        "tir": tvm.ir.save_json(products["tir"]),
        "igraph": products["igraph"].to_json(),
        "optimize": products["optimize"].graph.to_json(),
        "variants": [
            {
                "sizes": [[str(s.name), s.low, s.high, s.multiple_of] for s in each.sizes],
                "record": _plain(each.record),
            }
            for each in record.variants
        ],
    }


def _read(content: bytes) -> KernelRecord | None:
    """A record of its text; None where that is of no use."""
    try:
        return _made_of(json.loads(content))
    except Exception as error:  # TVM's reader raises whatever its C++ throws
        log.info("a kept kernel is made anew: %s", error)
        return None


def _made_of(data: Mapping[str, Any]) -> KernelRecord:
    graph = serialization.from_json_graph_str(data["optimize"])
    products = {
        "tir": tvm.ir.load_json(data["tir"]),
        "igraph": serialization.from_json_graph_str(data["igraph"]),
        "optimize": Optimized(graph, tuple(KeptStep(**step) for step in data["steps"])),
    }
    return KernelRecord(
        data["name"],
        data["hero"],
        data["recipe"],
        products,
        attempts=tuple(Attempt(**attempt) for attempt in data["attempts"]),
        lacked_room=data["lacked_room"],
        variants=tuple(
            Variant(tuple(Size(*size) for size in each["sizes"]), _made_of(each["record"]))
            for each in data["variants"]
        ),
    )


@functools.cache
def package_digest() -> str:
    """A digest of the package's files: its modules, schedules and native libraries."""
    digest = hashlib.sha256()
    for path in _files():
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files() -> Iterator[pathlib.Path]:
    from . import schedules

    # recipes may lie beside the package, behind a link
    folders = (pathlib.Path(__file__).parent, *map(pathlib.Path, schedules.__path__))
    for folder in folders:
        for at, _, names in sorted(os.walk(folder)):
            yield from (pathlib.Path(at, name) for name in sorted(names) if name.endswith(SUFFIXES))
