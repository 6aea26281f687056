# SPDX-License-Identifier: Apache-2.0
"""Functions whose stated error on an MLU is not the one for all targets."""

from __future__ import annotations

from collections.abc import Mapping

from ...igraph.accuracy import LEAST_NORMAL, Accuracy

_WHOLE = Accuracy(0.0, signed_zero=False, why="rounded by adding and taking away a number")
_NO_DENORMAL = "the reciprocal of a denormal overflows"
_FEW_QUOTIENTS = "a quotient beyond is rounded by more than one"

ACCURACY: Mapping[str, Accuracy] = {
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), _WHOLE),
    "leaky_relu": Accuracy(0.5, signed_zero=False, why="the sum of a positive and a negative part"),
    "sigmoid": Accuracy(
        60.0, absolute=LEAST_NORMAL, why="(1.25 |x| + 6) / 2 ULP, the power's argument is rounded"
    ),
    **dict.fromkeys(("sinh", "cosh"), Accuracy(6.0, why="e^x has 3 ULP")),
    "erf": Accuracy(6.0, why="a quotient of two polynomials in fp32"),
    "div": Accuracy(4.0, normal=True, why=_NO_DENORMAL),
    "atan2": Accuracy(4.0, normal=True, why=_NO_DENORMAL),
    **dict.fromkeys(("floordiv", "truncdiv"), Accuracy(4.0, normal=True, why=_NO_DENORMAL)),
    "mod": Accuracy(0.5, most=2.0**22, normal=True, signed_zero=False, why=_FEW_QUOTIENTS),
    "truncmod": Accuracy(0.0, most=2.0**22, normal=True, why=_FEW_QUOTIENTS),
}
