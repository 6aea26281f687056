# SPDX-License-Identifier: Apache-2.0
"""The kernel graph: a model as library operators and kernels of our own, with DRAM tensors between them."""

from __future__ import annotations

from ..shared_constants import SharedConstants, sharing
from .build import assemble, assemble_open, build, build_with, group
from .choices import Choices, choosing
from .grouped import GroupedProgram
from .kernel_steps import kernels_at
from .memory_plan import MemoryPlan, memory_plan
from .merge import Kernel
from .nodes import CustomOp, KernelGraph, LibraryOp, NotFused, Tensor
from .own_sizes import with_own_sizes
from .to_relax import calls_kernels, legalize_rest, relax_passes, to_relax, vm_passes

__all__ = [
    "Choices",
    "CustomOp",
    "GroupedProgram",
    "Kernel",
    "KernelGraph",
    "LibraryOp",
    "MemoryPlan",
    "NotFused",
    "SharedConstants",
    "Tensor",
    "assemble",
    "assemble_open",
    "build",
    "build_with",
    "calls_kernels",
    "choosing",
    "group",
    "kernels_at",
    "legalize_rest",
    "memory_plan",
    "relax_passes",
    "sharing",
    "to_relax",
    "vm_passes",
    "with_own_sizes",
]
