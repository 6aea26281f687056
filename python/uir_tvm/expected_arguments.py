# SPDX-License-Identifier: Apache-2.0
"""What a function expects of its arguments, as numbers, and the call of what compares them.

One function of the native library does so for all kernels (src/runtime/kernel_arguments.cc).  A kernel has
its address in a variable that TVM fills when it loads code, as it does for functions of its own.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PointerType, StringImm

#: What an argument is; a fixed tensor has no length that a call decides.
TENSOR, FIXED, INTEGER, NUMBER, POINTER = range(5)
#: The step of an axis along which there is one element.
ANY_STEP = -1
#: Sizes that a function leaves to its calls, at most.
MOST_SIZES = 32
#: A length that is an expression of sizes: the function itself asks for it.
ELSEWHERE = -(2**63)
#: Of tensors of these TVM knows no lengths.
PARTS_OF_BYTES = 8

_CALL = """
@"uir_expected.{name}" = private unnamed_addr constant [{count} x i64] [{words}]
@"uir_called.{name}" = private unnamed_addr constant [{length} x i8] c"{called}"
@__uir_check_arguments = linkonce global ptr null, align 8
define linkonce_odr i32 @"{name}"(ptr %given, i32 %count) alwaysinline {{
  %check = load ptr, ptr @__uir_check_arguments, align 8
  %result = call i32 %check(ptr %given, i32 %count, ptr @"uir_expected.{name}", ptr @"uir_called.{name}")
  ret i32 %result
}}
"""


def expected_of(func: tirx.PrimFunc, device: int, by_address: bool) -> list[int] | None:
    """What a function expects, before `MakePackedAPI`.

    Parameters
    ----------
    device : int
        The type of the device that its tensors lie on, of DLPack.
    by_address : bool
        Whether tensors may be given by their addresses too, as functions do that call others.

    Returns
    -------
    list of int
        How many sizes are open, ``by_address``, how many parameters there are, and what each is; None where
        it cannot be said so.
    """
    sizes: dict[Any, int] = {}
    words: list[int] = []
    for param in func.params:
        made = _tensor(param, device, sizes) if tirx.is_buffer_var(param) else _plain(param)
        if made is None:
            return None
        words += made
    if any(param in sizes for param in func.params):
        return None  # a number that is given says how long a tensor is
    header = [len(sizes), int(by_address), len(func.params)]
    return [*header, *words] if len(sizes) <= MOST_SIZES else None


def takes_addresses(expected: list[int]) -> bool:
    """Whether tensors may be given by their addresses."""
    return bool(expected[1])


def _plain(param: Any) -> list[int]:
    if isinstance(param.ty, PointerType):
        return [POINTER]
    return [NUMBER if str(param.ty.dtype).startswith("float") else INTEGER]


def _tensor(param: Any, device: int, sizes: dict[Any, int]) -> list[int] | None:
    dtype = tvm.DataType(str(param.dtype))
    offset = param.elem_offset
    if len(param.strides) or dtype.bits < PARTS_OF_BYTES or not _is_zero(offset):
        return None
    rank_and_type = len(param.shape) | dtype.type_code << 32 | dtype.bits << 40 | dtype.lanes << 48
    shape = [_length(each, sizes) for each in param.shape]
    if min(shape, default=0) < 0:
        return [TENSOR, device, rank_and_type, *shape]
    return [FIXED, device, rank_and_type, *shape, *_steps(shape)]


def _steps(shape: list[int]) -> list[int]:
    """By how many elements neighbours along each axis lie apart."""
    apart = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [ANY_STEP if length == 1 else step for length, step in zip(shape, apart, strict=True)]


def _is_zero(offset: Any) -> bool:
    return isinstance(offset, int | tirx.IntImm) and int(offset) == 0


def _length(length: Any, sizes: dict[Any, int]) -> int:
    if isinstance(length, int | tirx.IntImm):
        return int(length)
    if isinstance(length, tvm.ir.Var):
        return ~sizes.setdefault(length, len(sizes))
    return ELSEWHERE


def has_expressions(expected: list[int]) -> bool:
    """Whether the function itself has to ask for lengths."""
    return ELSEWHERE in expected


def check_of(
    expected: list[int], called: str, name: str, given: Any, count: Any
) -> tuple[tirx.Stmt, StringImm]:
    """The statement that ends a function whose arguments are others, and its text in LLVM's language.

    Parameters
    ----------
    called : str
        What an error tells of which function it is.
    name : str
        One for the text, in a module.
    given, count : Var
        The function's arguments.
    """
    content = called.encode() + b"\0"
    text = _CALL.format(
        name=name,
        count=len(expected),
        words=", ".join(f"i64 {word}" for word in expected),
        length=len(content),
        called="".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in content),
    )
    right = tirx.call_extern("int32", name, given, count) == tirx.const(0, "int32")
    failed = tvm.ir.Call(tvm.ir.Op.get("tirx.tvm_throw_last_error"), [], ret_ty=tvm.ir.PrimType("int32"))
    nothing = tirx.Evaluate(tirx.const(0, "int32"))
    return tirx.IfThenElse(right, nothing, tirx.Evaluate(failed)), StringImm(text)
