# SPDX-License-Identifier: Apache-2.0
"""What `uir doctor` says of MLUs."""

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
    "Cambricon MLU": _device,
    "BANG C compiler": _compiler,
    "MLU host model": _model,
}
