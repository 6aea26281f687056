# SPDX-License-Identifier: Apache-2.0
"""What `uir doctor` says of NPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...device.text_model import compiler, library
from ...errors import DeviceError
from . import places, toolchain


def _device() -> str:
    """What there is; a DeviceError says why there is nothing."""
    if why := places.absent():
        raise DeviceError(why)
    return str(places.preset())


def _compiler() -> str:
    tool = toolchain.find()
    return f"{tool} ({tool.path})"


def _model() -> str:
    return f"{library()}, kernels compiled by {compiler()}"


CHECKS: Mapping[str, Callable[[], str]] = {
    "Ascend NPU": _device,
    "Ascend C compiler": _compiler,
    "Ascend host model": _model,
}
