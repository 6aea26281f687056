# SPDX-License-Identifier: Apache-2.0
"""Zeros that TVM must not see: its constant folding takes x * 0, 0 / x and x + 0 for real numbers."""

from __future__ import annotations

from .program import Program, Value, View, is_float
from .strided_views import Layout

#: Operator -> its operands of which TVM folds a zero among floats (``TryConstFold`` of its
#: ``ir/prim/const_fold.h``): x * 0 and 0 / x become 0, of NaN too; x + 0 and x - (-0) become x, of -0 too; by
#: a constant zero TVM refuses to divide.
FOLDED: dict[str, tuple[int, ...]] = {
    "add": (0, 1),
    "subtract": (1,),
    "multiply": (0, 1),
    "divide": (0, 1),
    "floor_divide": (0, 1),
    "floor_mod": (0, 1),
    "mod": (0, 1),
}


#: Those of which the second operand divides: by a zero there TVM refuses, whatever is asked for.
DIVIDING = frozenset({"divide", "floor_divide", "floor_mod", "mod"})


def keep_zeros(program: Program, fast_math: bool = False) -> None:
    """Let kernels read from memory the zeros by which TVM would fold an operator on floats.

    Before: y = multiply(x, 0.0), a kernel that fills y with zeros.  After: the zero is an input of the
    kernel, and y is NaN where x is NaN or infinite, and has the signs of IEEE 754.  With ``fast_math`` only
    divisors.
    """
    held: dict[Value, Value] = {}
    for op in program.ops:
        for index in FOLDED.get(op.name, ()):
            if fast_math and not (index == 1 and op.name in DIVIDING):
                continue
            view = op.operands[index]
            if view.scalar != 0 or not is_float(view.base.dtype):
                continue
            zero = held.get(view.base)
            if zero is None:
                zero = held[view.base] = program.fresh(
                    "zero", view.base.shape, view.base.dtype, view.base.constant
                )
                zero.in_memory = True
            op.operands[index] = View(zero, Layout(()).broadcast(view.shape))
