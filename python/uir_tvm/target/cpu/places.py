# SPDX-License-Identifier: Apache-2.0
"""Where LLVM's code runs: on this machine's CPU."""

from __future__ import annotations

from typing import Any

import tvm

from ...hardware import host_cpu
from ...igraph.nodes import HardwareModel
from ..place import Place
from .processors import Processor, llvm_config


def _config(hw: HardwareModel) -> dict[str, Any]:
    features = str(hw.figures.get("mattr", ""))
    return {
        "keys": ["uir", "cpu"],
        **llvm_config(
            str(hw.figures.get("machine", "")),
            str(hw.figures["mcpu"]),
            features.split(",") if features else (),
            int(hw.vector_bytes),
        ),
        "num-cores": int(hw.num_groups),
        "model": str(hw.name),
    }


def _toolchain() -> str:
    return f"LLVM {tvm.target.codegen.llvm_version_major()}"


def _unable(hw: HardwareModel) -> str:
    mcpu = str(hw.figures.get("mcpu", ""))
    if mcpu == host_cpu.mcpu():
        return ""
    features = [part for part in str(hw.figures.get("mattr", "")).split(",") if part]
    processor = Processor.named(",".join([mcpu, str(hw.figures.get("machine", "")), *features]))
    return "" if processor is None else processor.missing_here()


PLACES = (Place("cpu", "llvm", "cpu", _config, toolchain=_toolchain, unable=_unable),)
