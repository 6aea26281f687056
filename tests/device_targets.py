# SPDX-License-Identifier: Apache-2.0
"""The targets whose kernels run on a device: what the tests of the runtime and of stock TVM run through."""

from __future__ import annotations

import attrs
import tvm
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel
from uir_tvm.target import registry


@attrs.frozen
class DeviceTarget:
    """One target, on its host model wherever the tests run.

    Parameters
    ----------
    name, model : str
        Target and hardware model.
    arch : str
        What its code is compiled for.
    suffix : str
        Of a file with its text.
    mark : str
        What every kernel's text has.
    """

    name: str
    model: str
    arch: str
    suffix: str
    mark: str

    @property
    def hardware(self) -> HardwareModel:
        """The hardware model itself."""
        return hardware.get(self.model, registry.get(self.name).kind)

    def target(self) -> tvm.target.Target:
        """The TVM target of the host model."""
        return registry.get(self.name).target(self.model, "model")


DEVICE_TARGETS = (
    DeviceTarget("uir-cuda", "h200", "sm_90a", ".cu", "__global__"),
    DeviceTarget("uir-ascend", "910b2", "dav-2201", ".cpp", "__global__ __aicore__"),
    DeviceTarget("uir-bang", "mlu370-x8", "372", ".mlu", "__mlu_entry__"),
)


def name_of(target: DeviceTarget) -> str:
    """The name of a test's parameter."""
    return target.name
