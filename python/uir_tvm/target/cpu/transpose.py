# SPDX-License-Identifier: Apache-2.0
"""Transposition of square blocks in vector registers.

An operand whose elements are contiguous along the rows of its domain would be loaded one element at a time.
Instead a block of it is loaded along its rows, transposed by shuffles, and left where its columns are
contiguous.  The shuffles are those of x86's unpack instructions, which work within 128 bits: parts of that
size are loaded into place, so that nothing has to cross them.  TIR has no such shuffle; LLVM has.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx
from tvm.ir import Expr

from .address import index

#: Bits within which the unpack instructions of x86 work.
PART_BITS = 128


def supported(bits: int, lanes: int) -> bool:
    """Whether blocks of ``lanes`` x ``lanes`` elements fill whole parts."""
    return lanes > 1 and bits * lanes % PART_BITS == 0


def name_of(bits: int, lanes: int) -> str:
    """Name of the function that transposes one block."""
    return f"uir_transpose_i{bits}x{lanes}"


def definition(bits: int, lanes: int) -> str:
    """LLVM text of ``(source, source stride, target, target stride)``, strides in elements.

    Element (i, j) of the target is element (j, i) of the source, ``lanes`` by ``lanes``.
    """
    part = PART_BITS // bits
    vector, quarter, element = f"<{lanes} x i{bits}>", f"<{part} x i{bits}>", f"i{bits}"
    lines = [
        f"define linkonce_odr void @{name_of(bits, lanes)}(ptr %s, i64 %m, ptr %t, i64 %n) alwaysinline {{"
    ]
    count = iter(range(1 << 30))

    def value(text: str) -> str:
        name = f"%v{next(count)}"
        lines.append(f"  {name} = {text}")
        return name

    def address(base: str, stride: str, row: int, col: int) -> str:
        start = value(f"mul i64 {stride}, {row}")
        at = value(f"add i64 {start}, {col}")
        return value(f"getelementptr {element}, ptr {base}, i64 {at}")

    def joined(parts: list[str], width: int) -> str:
        while len(parts) > 1:
            mask = ", ".join(f"i32 {k}" for k in range(2 * width))
            kind = f"<{width} x i{bits}>"
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [
                value(f"shufflevector {kind} {a}, {kind} {b}, <{2 * width} x i32> <{mask}>") for a, b in pairs
            ]
            width *= 2
        return parts[0]

    align = bits // 8
    for block in range(lanes // part):
        rows = []
        for k in range(part):
            pieces = []
            for unit in range(lanes // part):
                at = address("%s", "%m", unit * part + k, block * part)
                pieces.append(value(f"load {quarter}, ptr {at}, align {align}"))
            rows.append(joined(pieces, part))
        for i, row in enumerate(_transposed(rows, part, lanes, vector, value)):
            at = address("%t", "%n", block * part + i, 0)
            lines.append(f"  store {vector} {row}, ptr {at}, align {align}")
    return "\n".join([*lines, "  ret void", "}"]) + "\n"


def _transposed(
    rows: list[str], part: int, lanes: int, vector: str, value: Callable[[str], str]
) -> list[str]:
    """Within every part its square block transposed: log2(part) rounds that interleave two halves."""
    masks = []
    for first in (0, part // 2):
        lanes_of = [
            lane + base * part
            for base in range(lanes // part)
            for k in range(part // 2)
            for lane in (first + k, lanes + first + k)
        ]
        masks.append(", ".join(f"i32 {lane}" for lane in lanes_of))
    rounds = part.bit_length() - 1
    for _ in range(rounds):
        half = part // 2
        rows = [
            value(f"shufflevector {vector} {rows[i]}, {vector} {rows[i + half]}, <{lanes} x i32> <{mask}>")
            for i in range(half)
            for mask in masks
        ]
    return rows


def transpose(
    bits: int,
    source: tirx.Buffer,
    at: Expr,
    stride: Expr | int,
    target: tirx.Buffer,
    to: Expr,
    target_stride: Expr | int,
    lanes: int,
) -> tirx.Stmt:
    """Copy a block transposed: element (i, j) of the target is element (j, i) of the source.

    Parameters
    ----------
    bits : int
        Size of an element.
    source, target : Buffer
        Flat buffers of one element type.
    at, to : Expr
        The first element of either.
    stride, target_stride : int or Expr
        Elements from one row to the next.
    lanes : int
        Rows and columns of the block.
    """
    call = tirx.call_extern(
        "void",
        name_of(bits, lanes),
        tirx.address_of(tirx.BufferLoad(source, [at])),
        index(stride) if isinstance(stride, int) else stride,
        tirx.address_of(tirx.BufferLoad(target, [to])),
        index(target_stride) if isinstance(target_stride, int) else target_stride,
    )
    return tirx.Evaluate(call)
