# SPDX-License-Identifier: Apache-2.0
"""Vectors of which only the first lanes exist: loads and stores that touch no memory behind these.

The end of a row whose length a size decides is less than a vector.  Where the processor loads and stores
under a mask it is one vector too, instead of a loop over elements.  TIR has no such load; LLVM has.
A masked store of AVX2 is many micro-operations on AMD's processors, and no load takes what it left before
that has reached the cache; halves of a vector, each under a branch that is the same in every row, are few.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr

from ...igraph.dtypes import bytes_of
from ...igraph.nodes import HardwareModel
from .elements import element, vector_type
from .llvm_text import LlvmText
from .stream import LLVM_TYPES

#: Type of the number of lanes.
COUNT = "int32"
#: Vector bytes of x86 -> bytes of the elements that it masks: AVX-512BW all, AVX2 those of vmaskmov.
_X86 = {64: frozenset((1, 2, 4, 8)), 32: frozenset((4, 8))}


def masked_bytes(hw: HardwareModel) -> frozenset[int]:
    """Bytes of the elements that a processor loads and stores under a mask; none where it has no masks."""
    if str(hw.figures.get("machine", "")) != "x86_64":
        return frozenset()
    return _X86.get(int(hw.vector_bytes), frozenset())


def supported(dtype: str, sizes: frozenset[int]) -> bool:
    """Whether elements of an iGraph dtype are among those that are masked."""
    return bytes_of(dtype) in sizes and element(dtype).storage in LLVM_TYPES


def exist(first: Expr, lanes: int) -> Expr:
    """For every lane whether it is one of the first."""
    numbers = tirx.Ramp(tirx.const(0, COUNT), tirx.const(1, COUNT), lanes)
    return tirx.LT(numbers, tirx.Broadcast(first, lanes))


def behind(first: int, lanes: int) -> Expr:
    """For every lane whether it is none of the first."""
    numbers = tirx.Ramp(tirx.const(0, COUNT), tirx.const(1, COUNT), lanes)
    return tirx.GE(numbers, tirx.Broadcast(tirx.const(first, COUNT), lanes))


def load(text: LlvmText, buffer: tirx.Buffer, address: Expr, lanes: int, first: Expr) -> Expr:
    """The first lanes of a vector, zeros behind them; a call, which the caller binds at once."""
    dtype = str(buffer.dtype)
    where = _address_of(buffer, address, lanes)
    return tirx.call_extern(vector_type(dtype, lanes), _need(text, "load", dtype, lanes), where, first)


def load_span(
    text: LlvmText, buffer: tirx.Buffer, address: Expr, begin: Expr, end: Expr, other: Expr
) -> Expr:
    """The lanes from ``begin`` to before ``end``, ``other`` in the rest; the caller binds the call at once.

    No memory beside these lanes is touched.  Of at most 32 lanes; ``begin`` and ``end`` may be any numbers.
    """
    dtype, lanes = str(buffer.dtype), int(other.ty.dtype.lanes)
    name = _need_span(text, dtype, lanes)
    where = _address_of(buffer, address, lanes)
    return tirx.call_extern(vector_type(dtype, lanes), name, where, begin, end, other)


def _need_span(text: LlvmText, dtype: str, lanes: int) -> str:
    name = f"uir_load_span_{dtype}x{lanes}"
    size = int(tirx.const(0, dtype).ty.dtype.bits)
    bits, kind = f"<{lanes} x i{size}>", f"<{lanes} x {LLVM_TYPES[dtype]}>"
    masked, holds = f"@llvm.masked.load.v{lanes}i{size}.p0", f"<{lanes} x i1>"
    text.need(masked, f"declare {bits} {masked}(ptr, i32, {holds}, {bits})")
    for bound in ("smax", "smin"):
        text.need(f"llvm.{bound}.i32", f"declare i32 @llvm.{bound}.i32(i32, i32)")

    def lanes_from(number: str) -> str:
        return f"""
  %{number}_up = call i32 @llvm.smax.i32(i32 %{number}, i32 0)
  %{number}_in = call i32 @llvm.smin.i32(i32 %{number}_up, i32 {lanes})
  %{number}_wide = zext i32 %{number}_in to i64
  %from_{number} = shl i64 -1, %{number}_wide"""

    from_both = lanes_from("a") + lanes_from("b")
    text.need(
        name,
        f"""
define linkonce_odr {kind} @{name}(ptr %p, i32 %a, i32 %b, {kind} %other) alwaysinline {{{from_both}
  %before_b = xor i64 %from_b, -1
  %both = and i64 %from_a, %before_b
  %some = trunc i64 %both to i{lanes}
  %there = bitcast i{lanes} %some to {holds}
  %o = bitcast {kind} %other to {bits}
  %v = call {bits} {masked}(ptr %p, i32 {size // 8}, {holds} %there, {bits} %o)
  %r = bitcast {bits} %v to {kind}
  ret {kind} %r
}}
""",
    )
    return name


def store(
    text: LlvmText,
    buffer: tirx.Buffer,
    address: Expr,
    value: Expr,
    first: Expr,
    in_parts: bool = False,
) -> tirx.Stmt:
    """Store the first lanes of a vector of the buffer's type; ``in_parts``: by halves, without a mask."""
    dtype, lanes = str(buffer.dtype), int(value.ty.dtype.lanes)
    where = _address_of(buffer, address, lanes)
    name = _need_parts(text, dtype, lanes) if in_parts else _need(text, "store", dtype, lanes)
    return tirx.Evaluate(tirx.call_extern("void", name, where, first, value))


def _address_of(buffer: tirx.Buffer, address: Expr, lanes: int) -> Expr:
    """The address of a vector, as one: of memory that is ours TVM keeps what accesses reach, and no more."""
    whole = tirx.Ramp(address, tirx.const(1, str(address.ty.dtype)), lanes)
    return tirx.address_of(tirx.BufferLoad(buffer, [whole]))


def _need(text: LlvmText, what: str, dtype: str, lanes: int) -> str:
    """The name of the function, whose definition the kernel gets."""
    name = f"uir_{what}_first_{dtype}x{lanes}"
    size = int(tirx.const(0, dtype).ty.dtype.bits)
    # of integers, for not every processor with masks has them for halves
    bits, kind = f"<{lanes} x i{size}>", f"<{lanes} x {LLVM_TYPES[dtype]}>"
    counts, holds = f"<{lanes} x i32>", f"<{lanes} x i1>"
    numbers = ", ".join(f"i32 {k}" for k in range(lanes))
    masked = f"@llvm.masked.{what}.v{lanes}i{size}.p0"
    mask = f"""
  %one = insertelement {counts} poison, i32 %n, i32 0
  %all = shufflevector {counts} %one, {counts} poison, {counts} zeroinitializer
  %there = icmp slt {counts} <{numbers}>, %all"""
    if what == "load":
        text.need(masked, f"declare {bits} {masked}(ptr, i32, {holds}, {bits})")
        text.need(
            name,
            f"""
define linkonce_odr {kind} @{name}(ptr %p, i32 %n) alwaysinline {{{mask}
  %v = call {bits} {masked}(ptr %p, i32 {size // 8}, {holds} %there, {bits} zeroinitializer)
  %r = bitcast {bits} %v to {kind}
  ret {kind} %r
}}
""",
        )
    else:
        text.need(masked, f"declare void {masked}({bits}, ptr, i32, {holds})")
        text.need(
            name,
            f"""
define linkonce_odr void @{name}(ptr %p, i32 %n, {kind} %v) alwaysinline {{{mask}
  %b = bitcast {kind} %v to {bits}
  call void {masked}({bits} %b, ptr %p, i32 {size // 8}, {holds} %there)
  ret void
}}
""",
        )
    return name


def _need_parts(text: LlvmText, dtype: str, lanes: int) -> str:
    """The name of the function that stores all lanes, or half of them, then half of that, and so on."""
    name = f"uir_store_parts_{dtype}x{lanes}"
    text.need("llvm.smax.i32", "declare i32 @llvm.smax.i32(i32, i32)")
    text.need(name, definition_of_parts(name, dtype, lanes))
    return name


def definition_of_parts(name: str, dtype: str, lanes: int) -> str:
    """LLVM text of ``(pointer, number of lanes, value)``; a number of at most 0 stores nothing."""
    size, given = int(tirx.const(0, dtype).ty.dtype.bits), f"<{lanes} x {LLVM_TYPES[dtype]}>"
    lines = [
        f"define linkonce_odr void @{name}(ptr %p, i32 %n, {given} %v) alwaysinline {{",
        "entry:",
        f"  %v{lanes} = bitcast {given} %v to <{lanes} x i{size}>",
        f"  %whole = icmp sge i32 %n, {lanes}",
        "  br i1 %whole, label %all, label %some",
        "all:",
        f"  store <{lanes} x i{size}> %v{lanes}, ptr %p, align {size // 8}",
        "  br label %end",
        "some:",
        "  %least = call i32 @llvm.smax.i32(i32 %n, i32 0)",
        # a number that LLVM learns here: else it makes the loop around this once for every way through it
        '  %m = call i32 asm sideeffect "", "=r,0"(i32 %least) noduplicate',
        f"  br label %part{lanes}",
        f"part{lanes}:",
        f"  %p{lanes} = phi ptr [ %p, %some ]",
    ]
    width = lanes
    while width > 1:
        half, kind = width // 2, f"<{width} x i{size}>"
        low, high = (", ".join(f"i32 {k}" for k in range(at, at + half)) for at in (0, half))
        part = f"<{half} x i{size}>"
        lines += [
            f"  %low{half} = shufflevector {kind} %v{width}, {kind} poison, <{half} x i32> <{low}>",
            f"  %high{half} = shufflevector {kind} %v{width}, {kind} poison, <{half} x i32> <{high}>",
            f"  %bit{half} = and i32 %m, {half}",
            f"  %has{half} = icmp ne i32 %bit{half}, 0",
            f"  br i1 %has{half}, label %do{half}, label %part{half}",
            f"do{half}:",
            f"  store {part} %low{half}, ptr %p{width}, align {size // 8}",
            f"  %after{half} = getelementptr i8, ptr %p{width}, i64 {half * size // 8}",
            f"  br label %part{half}",
            f"part{half}:",
            f"  %p{half} = phi ptr [ %p{width}, %part{width} ], [ %after{half}, %do{half} ]",
            f"  %v{half} = phi {part} [ %low{half}, %part{width} ], [ %high{half}, %do{half} ]",
        ]
        width = half
    return "\n".join([*lines, "  br label %end", "end:", "  ret void", "}"]) + "\n"
