# SPDX-License-Identifier: Apache-2.0
"""Functions of which TVM makes the only block the root block: recipes want a root around their blocks."""

from __future__ import annotations

from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi.structural import WalkResult, structural_walk

from .make_tir import changed

#: How recipes name the root block.
ROOT = "root"


def rooted(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with a root block of that name.

    A script with one block at its top has no other root.  If blocks lie in it, it is the root under another
    name; else it is a block, and gets a root around it.
    """
    realize = func.body
    if not isinstance(realize, SBlockRealize) or str(realize.block.name_hint) == ROOT:
        return func
    block = realize.block
    if _has_blocks(block.body):
        root = changed(block, name_hint=ROOT)
    else:
        root = SBlock([], [], [], ROOT, realize)
    return func.with_body(SBlockRealize([], True, root))


def _has_blocks(stmt: tirx.Stmt) -> bool:
    found = False

    def visit(_: SBlockRealize) -> WalkResult:
        nonlocal found
        found = True
        return WalkResult.SKIP

    structural_walk(stmt, (SBlockRealize, visit), order="pre")
    return found
