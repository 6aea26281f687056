# SPDX-License-Identifier: Apache-2.0
"""How source text of a kind of hardware is compiled and launched: one fact of every target that prints."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ..target_facts import Facts
from .launch import DeviceArray, LaunchResult

if TYPE_CHECKING:
    from .device_kernel import DeviceKernel, Launch

#: Source text and architecture -> code.
Compiler = Callable[[str, str], bytes]


@attrs.frozen
class DeviceKind:
    """One kind of hardware.

    Parameters
    ----------
    suffix : str
        End of the name of a file that holds its text.
    compile : callable
        Text -> the shared object that its host model runs.
    launch : callable
        Runs one kernel of it there: the function's kernels, the launch with its blocks, the object, its
        arguments (tensors, then sizes), seconds that it may take (0: any number), and whether the modelled
        time of each instruction is wanted.
    model : str
        Architecture of code for the host model.
    compilers : mapping of str to callable
        Start of an architecture's name -> what makes code for it of a text.
    costs : callable, optional
        What its instructions cost, where the host model counts time.
    alignment : int
        Bytes of which a tensor's address is a multiple: the widest access of what is printed.
    """

    suffix: str
    compile: Callable[[str], pathlib.Path]
    launch: Callable[
        [DeviceKernel, Launch, pathlib.Path, Sequence[DeviceArray | int], float, bool], LaunchResult
    ]
    model: str
    compilers: Mapping[str, Compiler]
    costs: Callable[[], Mapping[str, Any]] | None = None
    alignment: int = 32


#: Kind of hardware -> the same (`uir_tvm.target.record`).
DEVICES: Mapping[str, DeviceKind] = Facts("device")


def counts_time(kind: str) -> bool:
    """Whether the host model of a kind of hardware counts modelled time."""
    found = DEVICES.get(kind)
    return found is not None and found.costs is not None
