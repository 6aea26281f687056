# SPDX-License-Identifier: Apache-2.0
"""The table of functions, and their choice by name and dtype."""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx
from tvm.ir import Expr

from uir_tvm.errors import CodegenError

from .exp import exp, exp2, exp_of_negative
from .log import log, log2
from .ops import Binder, binding, cast, const_like, element_dtype, lanes, let
from .power import pow, rsqrt, sqrt
from .saturating import erf, tanh
from .sigmoid import sigmoid
from .trig import cos, sin

Function = Callable[..., Expr]

#: float32 scalars or vectors in, the same out.
MATH: dict[str, Function] = {
    "cos": cos,
    "erf": erf,
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log2": log2,
    "pow": pow,
    "rsqrt": rsqrt,
    "sigmoid": sigmoid,
    "sin": sin,
    "sqrt": sqrt,
    "tanh": tanh,
}

#: The same for float32 arguments that are at most zero, or NaN.
OF_NEGATIVE: dict[str, Function] = {"exp": exp_of_negative}


def _sigmoid64(x: Expr) -> Expr:
    def of(x: Expr) -> Expr:
        one = const_like(x, 1.0)
        return let(
            tirx.exp(const_like(x, -1.0) * tirx.abs(x)),
            lambda e: tirx.Select(x < const_like(x, 0.0), e, one) / (one + e),
        )

    return let(x, of)


def _library(name: str) -> Function:
    """The C library's float64 function ``name``, called for each element."""

    def call(x: Expr) -> Expr:
        return tirx.call_pure_extern("float64", name, x)

    def each(x: Expr) -> Expr:
        elements = [call(tirx.Shuffle([x], [k])) for k in range(lanes(x))]
        return tirx.Shuffle(elements, list(range(lanes(x))))

    return lambda x: call(x) if lanes(x) == 1 else let(x, each)


#: float64: the C library's (within 1 ULP), mostly by way of TVM, and what is made of them. TVM's own tanh
#: loses accuracy towards zero, and its erf has no lowering for vectors.
MATH64: dict[str, Function] = {
    "cos": tirx.cos,
    "erf": _library("erf"),
    "exp": tirx.exp,
    "exp2": tirx.exp2,
    "log": tirx.log,
    "log2": tirx.log2,
    "pow": tirx.pow,
    "rsqrt": rsqrt,
    "sigmoid": _sigmoid64,
    "sin": tirx.sin,
    "sqrt": tirx.sqrt,
    "tanh": _library("tanh"),
}


def emit(name: str, *args: Expr, bind: Binder | None = None) -> Expr:
    """The expression of a function on its arguments, in their dtype.

    Parameters
    ----------
    name : str
        A key of `MATH`.
    *args : Expr
        Scalars or vectors of one element type: float32, float64 or float16, which is computed in float32
        and rounded. (bfloat16 is refused: TVM rounds to it by an expression that repeats its operand, with
        the bindings in it.) Scalars beside vectors are broadcast.

    bind : callable, optional
        Given an expression that is used more than once, computes it in a statement ahead and returns what
        holds it; `bind_in_cells` makes one. Without it the binder of the surrounding `binding` does that;
        without either, such expressions are bound by ``Let``, which suits a vectorised loop over scalars,
        but takes long to compile where functions are nested.

    Returns
    -------
    Expr
        Of the dtype of the arguments. Where it is a ``Let``, whoever uses it twice binds it: TVM refuses a
        second copy of one in a vectorised loop.

    Raises
    ------
    CodegenError
        An unknown function or a dtype that it has not.
    """
    if name not in MATH:
        raise CodegenError(
            f"uir-cpu has no function named `{name}`.",
            need="one of " + ", ".join(MATH),
            remedy="write it with these functions",
        )
    dtypes = {element_dtype(x) for x in args}
    dtype = dtypes.pop()
    if dtypes or dtype not in ("float16", "float32", "float64"):
        raise CodegenError(
            f"uir-cpu cannot compute `{name}` on {' and '.join(sorted({dtype, *dtypes}))}.",
            need="arguments of one dtype: float16, float32 or float64",
            remedy="cast the arguments",
        )
    width = max(lanes(x) for x in args)
    wide = [tirx.Broadcast(x, width) if lanes(x) < width else x for x in args]
    with binding(bind):
        if dtype == "float64":
            return MATH64[name](*wide)
        return cast(MATH[name](*(cast(x, "float32") for x in wide)), dtype)
