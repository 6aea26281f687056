# SPDX-License-Identifier: Apache-2.0
"""uir-cpu: iGraph to TIR to LLVM.

views     read through copies            groups    fuse iOps into nests and groups
actions   iOps over common domains       values    registers, rows, or memory
memory    buffers and addresses          emit_*    TIR of nests, values, reductions, contractions
stream    stores that bypass the caches
"""

from __future__ import annotations

from .lower import lower

__all__ = ["lower"]
