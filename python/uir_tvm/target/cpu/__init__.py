# SPDX-License-Identifier: Apache-2.0
"""uir-cpu: iGraph to TIR to LLVM.

webs      one pointer per value          groups    fuse iOps into nests and groups
views     read through copies            values    registers, rows, or memory
actions   iOps over common domains       emit_*    TIR of nests, values, reductions, contractions
memory    buffers and addresses          stream    stores that bypass the caches
"""

from __future__ import annotations

from .lower import lower

__all__ = ["lower"]
