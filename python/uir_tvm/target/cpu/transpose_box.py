# SPDX-License-Identifier: Apache-2.0
"""A box that is transposed block by block: two loops in LLVM's own language.

Where sizes decide strides, addresses of a block took half as many instructions as moving it.  Here a block
lies a step behind the one before, and what multiples of a stride no address makes are held in registers.
"""

from __future__ import annotations

import itertools

import attrs
from tvm import tirx
from tvm.ir import Expr

from .llvm_text import LOOP_AS_IT_IS, LlvmText
from .transpose import NEAR, add_block, held_here

#: Bytes that an address of x86 counts an index in, at most.
MOST_SCALE = 8


@attrs.frozen
class BoxSide:
    """A side of the box.

    Attributes
    ----------
    length : Expr
        Its elements, at least those of a block; the last block ends with them.
    in_source, in_target : Expr
        From an element to the next.
    """

    length: Expr
    in_source: Expr
    in_target: Expr


def name_of_box(bits: int, lanes: int) -> str:
    """Name of the function that transposes a box."""
    return f"uir_transpose_box_i{bits}x{lanes}"


def _held(bits: int) -> list[int]:
    """The multiples of a stride that are held."""
    return [1, 3, NEAR] if 2 * bits <= 8 * MOST_SCALE else [1, 2, 3, NEAR]


def definition_of_box(bits: int, lanes: int) -> str:
    """LLVM text of ``(source, multiples of its stride, target, multiples of its stride, outer, inner)``.

    A stride leads from a row of a block to the next; the last two are the numbers of a `BoxSide` each.
    """
    places = [f"ptr %{s}, {', '.join(f'i64 %{m}{k}' for k in _held(bits))}" for s, m in ("sm", "tn")]
    sides = [f"i64 %{side}.{what}" for side in ("outer", "inner") for what in ("length", "s", "t")]
    lines = [
        f"define linkonce_odr void @{name_of_box(bits, lanes)}({', '.join(places + sides)}) alwaysinline {{"
    ]
    multiples = tuple({k: f"%{stride}{k}" for k in _held(bits)} for stride in "mn")
    count = itertools.count()

    def value(text: str) -> str:
        name = f"%v{next(count)}"
        lines.append(f"  {name} = {text}")
        return name

    def moved(name: str, start: str, by: str, along: str) -> None:
        """Both places so many elements along a side behind others."""
        for at in "st":
            step = value(f"mul i64 {by}, %{along}.{at}")
            lines.append(f"  %{name}.{at} = getelementptr i{bits}, ptr %{start}.{at}, i64 {step}")

    def block(at: str) -> None:
        add_block(bits, lanes, (f"%{at}.s", f"%{at}.t"), multiples, lines, value)

    lines.append("entry:")
    whole = value(f"udiv i64 %inner.length, {lanes}")
    rest = value(f"urem i64 %inner.length, {lanes}")
    back = value(f"sub i64 %inner.length, {lanes}")
    lines += ["  br label %band", "band:"]
    lines += [f"  %band.{at} = phi ptr [ %{at}, %entry ], [ %below.{at}, %down ]" for at in "st"]
    lines += ["  %left = phi i64 [ %outer.length, %entry ], [ %less, %down ]", "  br label %block", "block:"]
    lines += [f"  %at.{at} = phi ptr [ %band.{at}, %band ], [ %next.{at}, %block ]" for at in "st"]
    lines.append(f"  %blocks = phi i64 [ {whole}, %band ], [ %fewer, %block ]")
    block("at")
    moved("further", "at", str(lanes), "inner")
    # else LLVM holds all distances from the first block in registers: there are not so many
    lines += [f'  %next.{at} = call ptr asm "", "=r,0"(ptr %further.{at})' for at in "st"]
    lines += [
        "  %fewer = sub i64 %blocks, 1",
        "  %is.last = icmp eq i64 %fewer, 0",
        f"  br i1 %is.last, label %beside, label %block, !llvm.loop {LOOP_AS_IT_IS}",
        "beside:",
        f"  %fits = icmp eq i64 {rest}, 0",
        "  br i1 %fits, label %under, label %part",
        "part:",
    ]
    moved("last", "band", back, "inner")
    block("last")
    lines += [
        "  br label %under",
        "under:",
        f"  %beyond = sub i64 %left, {lanes}",
        "  %done = icmp eq i64 %beyond, 0",
        "  br i1 %done, label %end, label %down",
        "down:",
        f"  %is.part = icmp ult i64 %beyond, {lanes}",
    ]
    step = value(f"select i1 %is.part, i64 %beyond, i64 {lanes}")
    lines.append(f"  %less = sub i64 %left, {step}")
    moved("below", "band", step, "outer")
    return "\n".join([*lines, "  br label %band", "end:", "  ret void", "}"]) + "\n"


def transpose_box(
    text: LlvmText,
    bits: int,
    source: tirx.Buffer,
    at: Expr,
    stride: Expr | int,
    target: tirx.Buffer,
    to: Expr,
    target_stride: Expr | int,
    lanes: int,
    outer: BoxSide,
    inner: BoxSide,
) -> tirx.Stmt:
    """Copy a box transposed, whole blocks alone: what lies in two of them is moved twice.

    Parameters
    ----------
    text, bits, source, at, stride, target, to, target_stride, lanes
        As of `transpose.transpose`, for the first block.
    outer, inner : BoxSide
        Its sides; blocks along the inner one come one after another.
    """
    text.need(name_of_box(bits, lanes), definition_of_box(bits, lanes))

    def place(buffer: tirx.Buffer, at: Expr, stride: Expr | int) -> tuple[Expr, ...]:
        strides = (held_here(text, stride * k) for k in _held(bits))
        return tirx.address_of(tirx.BufferLoad(buffer, [at])), *strides

    given = (*place(source, at, stride), *place(target, to, target_stride))
    sides = (number for side in (outer, inner) for number in attrs.astuple(side, recurse=False))
    return tirx.Evaluate(tirx.call_extern("void", name_of_box(bits, lanes), *given, *sides))
