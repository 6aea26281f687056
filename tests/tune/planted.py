# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in the processes that measure: each function is called in one before its first job.

What is planted concerns candidates alone, not the compiler's own schedules.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm_ffi.structural import structural_hash, structural_map
from uir_tvm import pipeline
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.igraph import IGraph
from uir_tvm.pipeline import KernelRecord
from uir_tvm.target import registry

from tests.device import ascend_faults, bang_faults

#: Names of kernels whose candidates end their process, as a fault of native code does, or never end.
CRASHES, HANGS = "crashes", "hangs"


def misbehave() -> None:
    """Candidates of some kernels do what their names say, before they are compiled."""
    stock = pipeline.compile_scheduled

    def compile_scheduled(*args: Any, **kwargs: Any) -> Any:
        name = args[3]
        if name == CRASHES:
            print("last words", file=sys.stderr, flush=True)
            os.abort()
        if name == HANGS:
            time.sleep(3600)
        return stock(*args, **kwargs)

    pipeline.compile_scheduled = compile_scheduled


def broken_import() -> None:
    """The process does not become ready."""
    raise ImportError("planted")


def _emitted(change: Callable[[KernelRecord, Any], Any]) -> None:
    """Let something become of what a given schedule was compiled to, after all checks of the compiler."""
    stock = pipeline.compile_scheduled

    def compile_scheduled(*args: Any, **kwargs: Any) -> KernelRecord:
        record = stock(*args, **kwargs)
        if not record.fallback and is_planted(args[2]):
            record.products["source"] = change(record, record.products["source"])
        return record

    pipeline.compile_scheduled = compile_scheduled


#: Faults are planted in every second schedule, by its hash.
SHARE = 2


def is_planted(scheduled: tirx.PrimFunc) -> bool:
    """Whether the kernel of a schedule gets a fault."""
    return structural_hash(scheduled) % SHARE == 0


#: What orders nothing when it is gone.
_SYNCS = {"ascend": (ascend_faults.TABLE, "drop WaitFlag"), "bang": (bang_faults.TABLE, "drop a wait")}


def drop_a_sync() -> None:
    """A printer that leaves out one sync: the kernel is a little faster, and races."""

    def without(_record: KernelRecord, kernel: DeviceKernel) -> DeviceKernel:
        table, kind = _SYNCS[kernel.kind]
        fault = next(iter(table.faults(kernel.source, kind, kernel.report)))
        return attrs.evolve(kernel, source=fault.source)

    _emitted(without)


def drop_an_iop() -> None:
    """A printer that leaves out the last thing that a kernel does."""

    def without(record: KernelRecord, _lowered: Any) -> Any:
        graph, func = record.optimized, record.products["prim_func"]
        assert isinstance(graph, IGraph)
        return registry.get("uir-cpu").lower(graph.replace(body=list(graph.body)[:-1]), func)

    _emitted(without)


def shift_a_bound() -> None:
    """A printer whose loops end one iteration early, where they have several."""

    def shorter(loop: tirx.For) -> tirx.For:
        extent = int(loop.extent)
        return loop if extent == 1 else _with_extent(loop, extent - 1)

    def early(_record: KernelRecord, lowered: tirx.PrimFunc) -> tirx.PrimFunc:
        return structural_map(lowered, [(tirx.For, shorter)])

    _emitted(early)


def _with_extent(loop: tirx.For, extent: int) -> tirx.For:
    return tirx.For(
        loop.loop_var,
        loop.min,
        tvm.tirx.const(extent, str(loop.extent.ty)),
        loop.kind,
        loop.body,
        loop.thread_binding,
        loop.annotations,
    )
