# SPDX-License-Identifier: Apache-2.0
"""The stated error of every scalar function of floats, for each target, over the whole range.

Bounds are of fp32 results, in units in the last place (ULP) of the exact one.  Narrow floats are computed
in fp32 and rounded once, to within `NARROW_ULP` of theirs.
What holds for one target alone is in `EXCEPTIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from ..target_facts import Facts

#: Bound of what is computed in fp32 and rounded to fp16 or bf16.
NARROW_ULP = 0.6
#: The least normal fp32; what is below it may be lost where a row says so.
LEAST_NORMAL = 2.0**-126


@attrs.frozen
class Accuracy:
    """How far a function may be from its exact value.

    Parameters
    ----------
    ulp : float
        Units in the last place of the exact result; 0 where results are equal.
    absolute : float
        What is allowed besides, as for results that underflow early.
    most : float
        The largest magnitude of an argument (of a binary function: of the quotient) for which it is computed;
        beyond it the result is NaN.
    normal : bool
        Only where no argument is denormal: with denormal ones nothing is promised.
    signed_zero : bool
        Whether a result of zero has the sign that IEEE 754 gives it.
    why : str
        The reason of a limit.
    """

    ulp: float = 4.0
    absolute: float = 0.0
    most: float = math.inf
    normal: bool = False
    signed_zero: bool = True
    why: str = ""


_EXACT = Accuracy(0.0)
_ROUNDED = Accuracy(0.5)
_MAGNITUDE = Accuracy(0.0, signed_zero=False, why="which of two zeros is larger, IEEE 754 leaves open")

#: By function, for all targets; what is not named has `Accuracy()`, 4 ULP.
ACCURACY: dict[str, Accuracy] = {
    **dict.fromkeys(("copy", "abs", "neg", "floor", "ceil", "round", "trunc"), _EXACT),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), _EXACT),
    **dict.fromkeys(("maxs", "mins", "relu", "max", "min", "sign"), _MAGNITUDE),
    **dict.fromkeys(("adds", "subs", "muls", "rsubs", "add", "sub", "mul", "leaky_relu"), _ROUNDED),
    # the quotient, rounded or exact, to a whole number: beyond 2^24 a rounded one is whole already
    **dict.fromkeys(("floordiv", "truncdiv"), Accuracy(0.5)),
    "mod": Accuracy(0.5, signed_zero=False, why="a zero has the sign of the dividend or of the divisor"),
    "truncmod": _EXACT,
    "sigmoid": Accuracy(4.0, absolute=LEAST_NORMAL, why="e^-x overflows where the result is denormal"),
}

#: By target and function, where a target is not within `ACCURACY` (`uir_tvm.target.record`).
EXCEPTIONS: Mapping[str, Mapping[str, Accuracy]] = Facts("accuracy", by="name")


def accuracy_of(target: str, name: str, dtype: str = "fp32") -> Accuracy:
    """The stated error of a function of ``dtype`` (fp32, fp16, bf16) on a target."""
    row = EXCEPTIONS[target].get(name, ACCURACY.get(name, Accuracy()))
    return row if dtype == "fp32" or row.ulp <= 0.5 else attrs.evolve(row, ulp=NARROW_ULP)
