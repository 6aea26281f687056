# SPDX-License-Identifier: Apache-2.0
"""Where BANG C runs: on an MLU, else on the host model of one.

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
KEY = "mlu"


def device_files() -> list[pathlib.Path]:
    """Files by which the driver offers devices."""
    return sorted(pathlib.Path("/dev").glob("cambricon_dev[0-9]*"))


@functools.cache
def _described() -> dict[str, str]:
    """``error`` (why there is no device; else empty) and ``name``, the runtime's name of the device."""
    found = tvm_ffi.get_global_func("uir.runtime.cnrt.describe")()
    return {str(key): str(value) for key, value in found.items()}


def absent() -> str:
    """Why kernels cannot run on an MLU here; empty where they can."""
    if not device_files():
        # asked first: loading the toolkit's runtime takes a while, and talks to the driver
        return "there is no /dev/cambricon_dev*, as the driver makes for every MLU"
    return str(_described()["error"])


def preset() -> str | None:
    """The hardware model of the device, by the runtime's name for it (``MLU370-X8``, ``MLU590-M9``)."""
    if absent():
        return None
    name = str(_described()["name"]).lower()
    return next((row for row in DEVICES if name.startswith(row)), None)


def _mlu(hw: HardwareModel) -> dict[str, Any]:
    return {"keys": ["uir", "bang", KEY], "model": str(hw.name)}


def _model(hw: HardwareModel) -> dict[str, Any]:
    return {"keys": ["uir", "bang"], "model": str(hw.name)}


def _toolchain() -> str:
    from . import toolchain

    return str(toolchain.find())


def _where() -> dict[str, Any]:
    """Where the vendor's compiler is looked for."""
    from . import toolchain

    return {
        "toolchain": {
            "names": ["cncc"],
            "variables": ["NEUWARE_HOME"],
            "roots": list(toolchain.PLACES),
            "within": ["bin"],
        }
    }


_AWAY = Away("project", "an MLU: Python 3.8 and Neuware", _where, build_seconds=600.0)
#: Best first.
PLACES = (
    Place("mlu", "ext_dev", "ext_dev", _mlu, absent, preset, key=KEY, toolchain=_toolchain, away=_AWAY),
    Place(
        "model",
        "ext_dev",
        "ext_dev",
        _model,
        notice="uir-bang runs on the host model of an MLU: every access is checked, times are modelled",
    ),
)
