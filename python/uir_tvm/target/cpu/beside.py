# SPDX-License-Identifier: Apache-2.0
"""Loops of known length, and how many of their rounds stand beside each other.

LLVM by itself repeats what such a loop does until it has some 500 instructions, for processors that hold so
many, and takes longer for these than for the rest of a kernel.  A few vectors beside each other are as fast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from tvm.ir import Expr

from .actions import MAP, REDUCE_ROW, Action
from .address import as_int, index
from .code import Code
from .llvm_text import LlvmText
from .values import is_brief

if TYPE_CHECKING:
    from .emit_group import GroupEmitter

#: Vectors that stand beside each other.
BESIDE = 8


def loop_beside(
    code: Code,
    text: LlvmText,
    begin: Expr,
    count: Expr,
    step: int,
    vectors: int,
    body: Callable[[Code, Expr], None],
    name: str,
) -> None:
    """`Code.loop`, with rounds beside each other while they have at most `BESIDE` vectors.

    Parameters
    ----------
    vectors : int
        That are independent in a round.
    """
    rounds = as_int(count)
    if rounds is None or rounds <= 0:
        code.loop(begin, count, step, body, name)
        return
    most = min(max(1, BESIDE // vectors), rounds)
    beside = next(number for number in range(most, 0, -1) if rounds % number == 0)
    if beside == rounds:
        code.loop(begin, count, step, body, name)
        return

    def block(inner: Code, at: Expr) -> None:
        inner.add(text.once())
        inner.loop(at, index(beside), step, body, name)

    code.loop(begin, index(rounds // beside), step * beside, block, name)


def rounds(emitter: GroupEmitter, code: Code, begin: Expr, columns: int, unroll: int) -> int:
    """A loop over columns, so many vectors in a round; how many columns that are, of those there are."""
    step = emitter.lanes * unroll
    # others take so many instructions for a vector that nothing is gained by several
    vectors = unroll if all(map(_is_short, emitter.group.actions)) else BESIDE
    body = functools.partial(emitter.round, unroll=unroll)
    loop_beside(code, emitter.kernel.text, begin, index(columns // step), step, vectors, body, "c")
    return columns // step * step


def _is_short(action: Action) -> bool:
    """Whether an action takes few instructions for a vector."""
    return action.kind in (MAP, REDUCE_ROW) and (action.indexed_rows or is_brief(action.iop))
