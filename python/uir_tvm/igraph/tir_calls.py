# SPDX-License-Identifier: Apache-2.0
"""Names of the calls of TIR."""

from __future__ import annotations

from typing import Any

#: Functions of the C library that TVM calls by name, as the intrinsic that they are.
EXTERNS: dict[str, str] = {
    name + suffix: intrinsic
    for name, intrinsic in {
        "exp": "exp", "log": "log", "sqrt": "sqrt", "erf": "erf", "tanh": "tanh", "sin": "sin", "cos": "cos",
        "pow": "pow", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "atan2": "atan2",
    }.items()
    for suffix in ("", "f")
}  # fmt: skip


def call_name(expr: Any) -> str:
    """The name of a call's operation without its dialect: ``tirx.exp`` and ``prim.exp`` are one."""
    return str(getattr(expr.op, "name", expr.op)).rpartition(".")[2]
