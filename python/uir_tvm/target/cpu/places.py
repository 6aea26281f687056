# SPDX-License-Identifier: Apache-2.0
"""Where LLVM's code runs: on this machine's CPU."""

from __future__ import annotations

from typing import Any

import tvm

from ...igraph.nodes import HardwareModel
from ..place import Place


def _config(hw: HardwareModel) -> dict[str, Any]:
    return {
        "keys": ["uir", "cpu"],
        "mcpu": str(hw.figures["mcpu"]),
        "num-cores": int(hw.num_groups),
        "model": str(hw.name),
    }


def _toolchain() -> str:
    return f"LLVM {tvm.target.codegen.llvm_version_major()}"


PLACES = (Place("cpu", "llvm", "cpu", _config, toolchain=_toolchain),)
