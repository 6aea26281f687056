# SPDX-License-Identifier: Apache-2.0
"""A target that is none of the package's: cores with memory of their own, whose kernels are plain C.

It is written against public interfaces alone, as somebody else's would be: a record with what is known of the
hardware, a printer, a compiler (the C compiler at hand), and a place to run.  `registered` enters it.
"""

from __future__ import annotations

import contextlib
import ctypes
import pathlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uir_tvm import target_facts
from uir_tvm.cache import Cache, scratch
from uir_tvm.device.device_kernel import DeviceKernel, Launch
from uir_tvm.device.kind import DeviceKind
from uir_tvm.device.launch import DeviceArray, LaunchResult
from uir_tvm.errors import ToolchainError
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.optimize import select
from uir_tvm.schedule.tile_facts import TileSpace
from uir_tvm.target.place import Place
from uir_tvm.target.record import TargetRecord, register_target
from uir_tvm.target.source import check_kind, identifier
from uir_tvm.verify.addresses import ADDRESSES

from .printer import print_c

NAME, KIND, ARCH = "plain-c", "scratchpad", "c11"
#: A kernel is run once: what compiling takes counts, not what the code does.
FLAGS = tuple("-std=gnu11 -O0 -fPIC -shared -fwrapv -fno-strict-aliasing -ffp-contract=off -w".split())


class Hardware:
    """Its hardware models: four groups of four cores, or eight of one, with so much memory each."""

    DEFAULT = "board"
    PRESETS = {
        "board": lambda: _model("board", 4, 4),
        "board-x2": lambda: _model("board-x2", 8, 1),
    }


def _model(name: str, groups: int, units: int) -> HardwareModel:
    figures = {"arch": ARCH, "line_bytes": 64, "reg_align": 8, "sram_align": 8, "group_units": 1}
    return HardwareModel(name, KIND, groups, units, 256 * 1024, 128 * 1024, 64, figures)


#: What fits memory that software manages.
TILES = TileSpace(
    serial_work=0,
    groups=None,
    tiles_per_unit=2,
    flat_tile=4096,
    wide_values=True,
    value_bytes=4,
    least_columns=64,
    least_tile=0,
    row_values=0,
    sets=(1,),
    transposed=dict.fromkeys((1, 2, 4, 8), (32, 32)),
)
PASSES = {
    "identity": "a name less is a range of memory less",
    "simplify": "each iOp is a loop of its own",
    "load_cse": "a load is a loop of its own",
    "dead": "what nobody reads takes memory",
    "allocate": "the memory has addresses",
}


def compile_c(source: str) -> pathlib.Path:
    """The shared object of a text; it is kept.

    Raises
    ------
    ToolchainError
        There is no C compiler, or it refuses the text.
    """
    cache, tool = Cache(NAME), shutil.which("gcc") or shutil.which("cc")
    if (kept := cache.find(source.encode(), ".so")) is not None:
        return kept
    if tool is None:
        raise ToolchainError("There is no C compiler.", need="gcc", where="PATH", remedy="install it")
    with scratch("plain-c-") as folder:
        (folder / "kernel.c").write_text(source)
        line = [tool, *FLAGS, "kernel.c", "-o", "kernel.so", "-lm"]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolchainError("The C compiler refuses a kernel.", need=done.stderr, log=done.stderr)
        return cache.keep(source.encode(), (folder / "kernel.so").read_bytes(), ".so")


def launch(
    _kernel: DeviceKernel,
    one: Launch,
    compiled: pathlib.Path,
    arguments: Sequence[DeviceArray],
    _max_seconds: float,
    _timeline: bool,
) -> LaunchResult:
    """Run one kernel by ctypes, as `uir_tvm.device.run_text` asks for it."""
    addresses = (ctypes.c_void_p * len(arguments))(*(memory.address for memory in arguments))
    getattr(ctypes.CDLL(str(compiled)), f"{one.name}_launch")(one.grid, None, addresses)
    return LaunchResult((), {}, 0.0)


def lower(graph: IGraph, prim_func: Any = None) -> DeviceKernel:
    """The iGraph as C.

    Raises
    ------
    CodegenError
        Hardware of another kind, and what the printer refuses.
    """
    check_kind(graph, KIND, Hardware.DEFAULT)
    if ADDRESSES not in graph.attrs:
        for row in select(("allocate",)):
            graph = row.run(graph)
    return DeviceKernel.of(graph, print_c(graph, identifier(str(graph.name))))


def _config(hw: HardwareModel) -> Mapping[str, Any]:
    # of the key "cpu" TVM's own functions for the host are known
    return {"keys": ["uir", KIND, "cpu"], "model": str(hw.name)}


RECORD = TargetRecord(
    NAME,
    KIND,
    __name__,
    hardware=Hardware,
    passes=PASSES,
    lower=lower,
    places=(Place("core", "llvm", "cpu", _config),),
    devices=("core",),
    space=TILES,
    device=DeviceKind(".c", compile_c, launch, ARCH, {ARCH: lambda text, _: compile_c(text).read_bytes()}),
)


@contextlib.contextmanager
def registered() -> Iterator[TargetRecord]:
    """The target is in the table inside."""
    try:
        yield register_target(RECORD)
    finally:
        target_facts.remove(NAME)
