# SPDX-License-Identifier: Apache-2.0
"""What makes the kernels of a kernel graph whose sizes are open."""

from __future__ import annotations

from typing import Protocol

import tvm

from .merge import Kernel


class KernelMaker(Protocol):
    """What makes kernels of a program whose sizes are open."""

    def own(self, name: str, function: tvm.tirx.PrimFunc) -> tvm.tirx.PrimFunc:
        """A function as a kernel for all sizes is made of it: its dimensions may be sizes of its own."""

    def refusal(self, name: str, function: tvm.tirx.PrimFunc) -> str:
        """Why no kernel for all sizes can be made of a function; empty where one was."""

    def later(
        self, kernel: Kernel, signature: str, function: tvm.tirx.PrimFunc | None, reason: str
    ) -> OpenCall:
        """How a kernel is called that is compiled for the sizes of a call.

        Its function has open sizes; None where there is none. The reason says why it serves not all.
        """


class OpenCall(Protocol):
    """A kernel that is compiled for the sizes of a call."""

    def to_json(self) -> str:
        """The name under which it is."""


#: The packed function that calls a kernel of `SpecializedOp`: (inputs, name, sizes, outputs).
SPECIALIZED = "uir.runtime.specialized"
