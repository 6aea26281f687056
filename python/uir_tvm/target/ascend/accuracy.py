# SPDX-License-Identifier: Apache-2.0
"""Functions whose stated error on an NPU is not the one for all targets."""

from __future__ import annotations

from collections.abc import Mapping

from ...igraph.accuracy import Accuracy

_TURNS = Accuracy(
    4.0, signed_zero=False, why="half turns are taken off, and a zero's sign with those of zero"
)
_FEW_QUOTIENTS = "a quotient beyond is rounded by more than one"

ACCURACY: Mapping[str, Accuracy] = {
    **dict.fromkeys(("sin", "cos", "tan"), _TURNS),
    "erf": Accuracy(6.0, why="a quotient of two polynomials in fp32"),
    "mod": Accuracy(0.5, most=2.0**22, signed_zero=False, why=_FEW_QUOTIENTS),
    "truncmod": Accuracy(0.0, most=2.0**22, why=_FEW_QUOTIENTS),
}
