# SPDX-License-Identifier: Apache-2.0
"""Where Ascend C runs: on an NPU of the 910B series, else on the host model of one.

Both are TVM's device ``ext_dev``: its memory is the device's or the host model's, which of them is settled
once in a process (src/runtime/ext_dev_api.cc).
"""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import tvm_ffi

from ...igraph.nodes import HardwareModel
from ..place import Away, Place
from .presets import DEVICES

#: Key of TVM targets that stand for the device itself.
KEY = "npu"


def device_files() -> list[pathlib.Path]:
    """Files by which the driver offers devices."""
    return sorted(pathlib.Path("/dev").glob("davinci[0-9]*"))


@functools.cache
def _described() -> dict[str, str]:
    """``error`` (why there is no device; else empty) and ``soc``, the toolkit's name of the device."""
    found = tvm_ffi.get_global_func("uir.runtime.acl.describe")()
    return {str(key): str(value) for key, value in found.items()}


def absent() -> str:
    """Why kernels cannot run on an NPU here; empty where they can."""
    if not device_files():
        # asked first: loading the toolkit's runtime takes a while, and talks to the driver
        return "there is no /dev/davinci*, as the driver makes for every NPU"
    return str(_described()["error"])


def preset() -> str | None:
    """The hardware model of the device, by the toolkit's name for it (``Ascend910B2``, ``Ascend910B4-1``)."""
    if absent():
        return None
    name = str(_described()["soc"]).lower().removeprefix("ascend")
    return next((row for row in DEVICES if name.startswith(row)), None)


def _npu(hw: HardwareModel) -> dict[str, Any]:
    return {"keys": ["uir", "ascend", KEY], "model": str(hw.name)}


def _model(hw: HardwareModel) -> dict[str, Any]:
    return {"keys": ["uir", "ascend"], "model": str(hw.name)}


def _toolchain() -> str:
    from . import toolchain

    return str(toolchain.find())


def _where() -> dict[str, Any]:
    """Where the vendor's compiler is looked for."""
    from . import toolchain

    return {
        "toolchain": {
            "names": list(toolchain.NAMES),
            "variables": ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"],
            "roots": list(toolchain.PLACES),
            "within": list(toolchain.WITHIN),
        }
    }


_AWAY = Away("project", "an Atlas A2: Python 3.8 and the CANN toolkit", _where, build_seconds=600.0)
#: Best first.
PLACES = (
    Place("npu", "ext_dev", "ext_dev", _npu, absent, preset, key=KEY, toolchain=_toolchain, away=_AWAY),
    Place(
        "model",
        "ext_dev",
        "ext_dev",
        _model,
        notice="uir-ascend runs on the host model of a 910B: every access is checked, times are modelled",
    ),
)
