# SPDX-License-Identifier: Apache-2.0
"""Transposition of square blocks in vector registers.

An operand whose elements are contiguous along the rows of its domain would be loaded one element at a time.
Instead a block of it is loaded along its rows, transposed by shuffles, and left where its columns are
contiguous.  The shuffles are those of x86's unpack instructions, which work within 128 bits: parts of that
size are loaded into place, so that nothing has to cross them.  TIR has no such shuffle; LLVM has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import tirx
from tvm.ir import Expr

from .address import index
from .llvm_text import LlvmText

#: Bits within which the unpack instructions of x86 work.
PART_BITS = 128
#: A number that LLVM learns where it is used.  Of a stride that sizes decide it would keep all multiples from
#: before the outermost loop on: more than there are registers, and most of a small call.
HERE = "uir_here"
_HERE_TEXT = f"""
define linkonce_odr i64 @{HERE}(i64 %n) alwaysinline {{
  %m = call i64 asm sideeffect "", "=r,0"(i64 %n)
  ret i64 %m
}}
"""
#: Most lanes of a block of which parts are moved under masks: its function is one straight run.
MOST_PARTIAL = 16
#: Rows that x86 addresses from one: at a stride, twice and three times that.
NEAR = 4
#: Vectors of so many bits are stored without masks: AVX2's masked stores are dear (`first_lanes`).
UNMASKED_BITS = 256


def held_here(text: LlvmText, number: Expr | int) -> Expr:
    """A stride, of which LLVM makes what it needs from here on; of one that it knows it may make all."""
    if isinstance(number, int):
        return index(number)
    text.need(HERE, _HERE_TEXT)
    return tirx.call_extern("int64", HERE, number)


def supported(bits: int, lanes: int) -> bool:
    """Whether blocks of ``lanes`` x ``lanes`` elements fill whole parts."""
    return lanes > 1 and bits * lanes % PART_BITS == 0


def name_of(bits: int, lanes: int, streamed: int = 0) -> str:
    """Name of the function that transposes one block, or so many beside each other (``streamed``)."""
    return f"uir_transpose_i{bits}x{lanes}" + (f"_streamed{streamed}" if streamed else "")


def definition(bits: int, lanes: int, streamed: int = 0) -> str:
    """LLVM text of ``(source, source stride, target, target stride)``, strides in elements.

    Element (i, j) of the target is element (j, i) of the source, ``lanes`` by ``lanes``.  ``streamed`` is as
    of `add_block`.
    """
    lines = [
        f"define linkonce_odr void @{name_of(bits, lanes, streamed)}"
        "(ptr %s, i64 %m, ptr %t, i64 %n) alwaysinline {"
    ]
    count = iter(range(1 << 30))

    def value(text: str) -> str:
        name = f"%v{next(count)}"
        lines.append(f"  {name} = {text}")
        return name

    multiples = ({k: value(f"mul i64 %{stride}, {k}") for k in range(1, NEAR + 1)} for stride in "mn")
    add_block(bits, lanes, ("%s", "%t"), tuple(multiples), lines, value, streamed)
    return "\n".join([*lines, "  ret void", "}"]) + "\n"


def add_block(
    bits: int,
    lanes: int,
    starts: tuple[str, str],
    multiples: tuple[Mapping[int, str], ...],
    lines: list[str],
    value: Callable[[str], str],
    streamed: int = 0,
) -> None:
    """Append LLVM text that moves one block.

    Parameters
    ----------
    bits, lanes : int
        Size of an element, and rows and columns of the block.
    starts : (str, str)
        Pointers to its first element in the source and in the target.
    multiples : (mapping, mapping)
        The strides of both, each once, three and `NEAR` times; twice where an address does not double it.
    lines : list of str
        Text that is appended to.
    value : Callable
        Appends an instruction; the name of what it makes.
    streamed : int
        So many blocks, which are beside each other in the target, and whose rows fill whole lines of its
        memory, are moved at once, past the caches: a line that is written in parts would go to memory in
        parts.  0 moves one block through the caches.
    """
    part = PART_BITS // bits
    vector, quarter, element = f"<{lanes} x i{bits}>", f"<{part} x i{bits}>", f"i{bits}"

    def address(start: str, col: int) -> str:
        return value(f"getelementptr {element}, ptr {start}, i64 {col}") if col else start

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
    stored = f"align {align * lanes}, !nontemporal !0" if streamed else f"align {align}"
    across = max(1, streamed)
    sources, targets = (
        _rows_from(start, steps, count, element, value)
        for start, steps, count in zip(starts, multiples, (lanes * across, lanes), strict=True)
    )

    def transposed(beside: int, block: int) -> list[str]:
        rows = []
        for k in range(part):
            pieces = []
            for unit in range(lanes // part):
                at = address(sources[beside * lanes + unit * part + k], block * part)
                pieces.append(value(f"load {quarter}, ptr {at}, align {align}"))
            rows.append(joined(pieces, part))
        return _transposed(rows, part, lanes, vector, value)

    for block in range(lanes // part):
        made = [transposed(beside, block) for beside in range(across)]
        for i, row in enumerate(zip(*made, strict=True)):
            for beside, piece in enumerate(row):
                at = address(targets[block * part + i], beside * lanes)
                lines.append(f"  store {vector} {piece}, ptr {at}, {stored}")


def _rows_from(
    first: str, steps: Mapping[int, str], count: int, element: str, value: Callable[[str], str]
) -> list[str]:
    """Where rows begin: `NEAR` of them are a register and a multiple of the stride behind one address."""
    rows: list[str] = []
    for row in range(count):
        near = row % NEAR
        if not near:
            first = value(f"getelementptr {element}, ptr {first}, i64 {steps[NEAR]}") if row else first
            rows.append(first)
        elif near in steps:
            rows.append(value(f"getelementptr {element}, ptr {first}, i64 {steps[near]}"))
        else:
            rows.append(value(f"getelementptr [{near} x {element}], ptr {first}, i64 {steps[1]}"))
    return rows


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


def name_of_part(bits: int, lanes: int) -> str:
    """Name of the function that transposes a part of a block."""
    return f"uir_transpose_part_i{bits}x{lanes}"


def definition_of_part(bits: int, lanes: int) -> str:
    """LLVM text of ``(source, source stride, target, target stride, rows, columns)`` of the target.

    At most ``lanes`` of either, at least one.  Whole vectors are loaded under masks; what lies beyond the
    last column is loaded from the last one again.  They are stored under masks too, or by halves.
    """
    part = PART_BITS // bits
    vector, element, holds = f"<{lanes} x i{bits}>", f"i{bits}", f"<{lanes} x i1>"
    counts = f"<{lanes} x i32>"
    numbers = ", ".join(f"i32 {k}" for k in range(lanes))
    load, store = (f"@llvm.masked.{what}.v{lanes}i{bits}.p0" for what in ("load", "store"))
    lines = [
        f"define linkonce_odr void @{name_of_part(bits, lanes)}"
        "(ptr %s, i64 %m, ptr %t, i64 %n, i32 %rows, i32 %cols) alwaysinline {"
    ]
    count = iter(range(1 << 30))

    def value(text: str) -> str:
        name = f"%v{next(count)}"
        lines.append(f"  {name} = {text}")
        return name

    def mask(limit: str) -> str:
        one = value(f"insertelement {counts} poison, i32 {limit}, i32 0")
        all_of = value(f"shufflevector {counts} {one}, {counts} poison, {counts} zeroinitializer")
        return value(f"icmp slt {counts} <{numbers}>, {all_of}")

    align = bits // 8
    in_rows = mask("%rows")
    rows, at = [], "%s"
    for number in range(lanes):
        if number:
            there = value(f"icmp slt i32 {number}, %cols")
            step = value(f"select i1 {there}, i64 %m, i64 0")
            at = value(f"getelementptr {element}, ptr {at}, i64 {step}")
        rows.append(
            value(f"call {vector} {load}(ptr {at}, i32 {align}, {holds} {in_rows}, {vector} zeroinitializer)")
        )
    units = lanes // part
    # parts of 128 bits where `definition` loads them, then within these
    placed = [_interleaved(rows[k::part], part, lanes, vector, value) for k in range(part)]
    made = [
        row
        for block in range(units)
        for row in _transposed([parts[block] for parts in placed], part, lanes, vector, value)
    ]

    def stored(name: str, start: str, end: str, calls: Sequence[str]) -> None:
        at = start
        for number, call in enumerate(calls):
            if number:
                there = value(f"icmp slt i32 {number}, %rows")
                lines.extend((f"  br i1 {there}, label %{name}{number}, label %{end}", f"{name}{number}:"))
                at = value(f"getelementptr {element}, ptr {at}, i64 %n")
            lines.append("  " + call.format(at=at))
        lines.append(f"  br label %{end}")

    if bits * lanes > UNMASKED_BITS:
        in_cols = mask("%cols")
        under = f"ptr {{at}}, i32 {align}, {holds} {in_cols}"
        stored("row", "%t", "end", [f"call void {store}({vector} {row}, {under})" for row in made])
    else:
        lines += [f"  %whole = icmp sge i32 %cols, {lanes}", "  br i1 %whole, label %plain, label %part"]
        lines.append("plain:")
        stored("wide", "%t", "end", [f"store {vector} {row}, ptr {{at}}, align {align}" for row in made])
        lines.append("part:")
        _store_parts(bits, lanes, made, lines, stored)
    return "\n".join([*lines, "end:", "  ret void", "}"]) + "\n"


def _store_parts(
    bits: int,
    lanes: int,
    rows: Sequence[str],
    lines: list[str],
    stored: Callable[[str, str, str, Sequence[str]], None],
) -> None:
    """Store fewer columns than there are lanes: half of every row's vector, then half of that, and so on."""
    names, at, before = list(rows), "%t", "part"
    for bit in reversed(range(lanes.bit_length() - 1)):
        width = 1 << bit
        kind, half = f"<{2 * width} x i{bits}>", f"<{width} x i{bits}>"
        for side, first in (("low", 0), ("high", width)):
            mask = ", ".join(f"i32 {k}" for k in range(first, first + width))
            for k, row in enumerate(names):
                taken = f"shufflevector {kind} {row}, {kind} poison, <{width} x i32> <{mask}>"
                lines.append(f"  %{side}{width}of{k} = {taken}")
        lines += [
            f"  %bit{width} = and i32 %cols, {width}",
            f"  %has{width} = icmp ne i32 %bit{width}, 0",
            f"  br i1 %has{width}, label %do{width}, label %next{width}",
            f"do{width}:",
        ]
        low = [f"store {half} %low{width}of{k}, ptr {{at}}, align {bits // 8}" for k in range(lanes)]
        stored(f"part{width}row", at, f"done{width}", low)
        lines += [
            f"done{width}:",
            f"  %after{width} = getelementptr i{bits}, ptr {at}, i64 {width}",
            f"  br label %next{width}",
            f"next{width}:",
            f"  %at{width} = phi ptr [ {at}, %{before} ], [ %after{width}, %done{width} ]",
        ]
        for k in range(lanes):
            ways = f"[ %low{width}of{k}, %{before} ], [ %high{width}of{k}, %done{width} ]"
            lines.append(f"  %v{width}of{k} = phi {half} {ways}")
        names, at, before = [f"%v{width}of{k}" for k in range(lanes)], f"%at{width}", f"next{width}"
    lines.append("  br label %end")


def _interleaved(
    rows: list[str], part: int, lanes: int, vector: str, value: Callable[[str], str]
) -> list[str]:
    """As many rows as they have parts, transposed part by part."""
    units = len(rows)
    masks = [
        ", ".join(
            f"i32 {lane}"
            for unit in range(first, first + units // 2)
            for base in (unit * part, lanes + unit * part)
            for lane in range(base, base + part)
        )
        for first in (0, units // 2)
    ]
    for _ in range(units.bit_length() - 1):
        half = units // 2
        rows = [
            value(f"shufflevector {vector} {rows[i]}, {vector} {rows[i + half]}, <{lanes} x i32> <{mask}>")
            for i in range(half)
            for mask in masks
        ]
    return rows


def _need(text: LlvmText, bits: int, lanes: int, is_part: bool, streamed: int) -> str:
    """The name of a function, whose definition the kernel gets."""
    if not is_part:
        text.need(name_of(bits, lanes, streamed), definition(bits, lanes, streamed))
        return name_of(bits, lanes, streamed)
    vector, holds = f"<{lanes} x i{bits}>", f"<{lanes} x i1>"
    load, store = (f"@llvm.masked.{what}.v{lanes}i{bits}.p0" for what in ("load", "store"))
    text.need(load, f"declare {vector} {load}(ptr, i32, {holds}, {vector})")
    text.need(store, f"declare void {store}({vector}, ptr, i32, {holds})")
    text.need(name_of_part(bits, lanes), definition_of_part(bits, lanes))
    return name_of_part(bits, lanes)


def transpose(
    text: LlvmText,
    bits: int,
    source: tirx.Buffer,
    at: Expr,
    stride: Expr | int,
    target: tirx.Buffer,
    to: Expr,
    target_stride: Expr | int,
    lanes: int,
    part: tuple[Expr, Expr] | None = None,
    streamed: int = 0,
) -> tirx.Stmt:
    """Copy a block transposed: element (i, j) of the target is element (j, i) of the source.

    Parameters
    ----------
    text : LlvmText
        Gets the function that is called.
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
    part : (Expr, Expr), optional
        How many rows and columns of the target there are, where that may be fewer; of neither none.
    streamed : int
        So many whole blocks beside each other, past the caches, at an address aligned to their row.
    """
    counts = () if part is None else tuple(tirx.Cast("int32", number) for number in part)

    call = tirx.call_extern(
        "void",
        _need(text, bits, lanes, part is not None, streamed),
        tirx.address_of(tirx.BufferLoad(source, [at])),
        held_here(text, stride),
        tirx.address_of(tirx.BufferLoad(target, [to])),
        held_here(text, target_stride),
        *counts,
    )
    return tirx.Evaluate(call)
