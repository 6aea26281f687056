# SPDX-License-Identifier: Apache-2.0
"""Code for GPUs, made while a model compiles: its figures go into the report, and no first call waits for it.

Without a compiler for it the source is kept as it is, and compiled where it first runs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ...device.device_kernel import DeviceKernel
from ...errors import ToolchainError
from ...refusal import Refusal
from .. import registry
from . import toolchain
from .cubin import Cubin

if TYPE_CHECKING:
    from ...stages import KernelRecord

log = logging.getLogger(__name__)
#: The place whose code is made ahead; the host model's compiler is quick, and not every kernel runs there.
PLACE = "gpu"


def compile_ahead(records: Iterable[KernelRecord]) -> None:
    """Compile the kernels that are for a GPU, several at a time; `KernelRecord.products` gets ``cubin``.

    A kernel whose source the compiler refuses is left to TVM's own lowering, with the reason.
    """
    chosen = [record for record in records if _is_for_gpu(record)]
    if not chosen:
        return
    if toolchain.available() is None:
        log.warning("no compiler for CUDA sources was found: kernels are compiled where they first run")
        return
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for record, made in zip(chosen, pool.map(_compiled, chosen), strict=True):
            if isinstance(made, Cubin):
                record.products["cubin"] = made
                _note(record, made)
            else:
                record.refusal = Refusal("source", made)
                log.warning("kernel %s is left to TVM's own lowering (%s)", record.name, made.what)


def _is_for_gpu(record: KernelRecord) -> bool:
    if record.fallback or not isinstance(record.lowered, DeviceKernel):
        return False
    return registry.place_of(record.products["prim_func"].attrs["target"]).name == PLACE


def _compiled(record: KernelRecord) -> Cubin | ToolchainError:
    kernel: DeviceKernel = record.lowered
    try:
        return toolchain.compile(kernel.source, kernel.arch, name=f"{kernel.name}.cu")
    except ToolchainError as error:
        return error


def _note(record: KernelRecord, cubin: Cubin) -> None:
    for text in cubin.warnings:
        log.info("kernel %s: %s", record.name, text)
    for name in cubin.spills:
        log.warning("kernel %s: %s does not fit into its registers, which costs time", record.name, name)
