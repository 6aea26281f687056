# SPDX-License-Identifier: Apache-2.0
"""Sizes that PyTorch was to leave open, and then found to be a number (`Dim.AUTO` of a table's rows)."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.export import ExportedProgram


def known(size: Any) -> Any:
    """A size; of a symbol that stands for a number the number."""
    expr = size.node.expr if isinstance(size, torch.SymInt) else None
    return int(expr) if isinstance(expr, sympy.Integer) else size


def know_sizes(program: ExportedProgram) -> None:
    """Write such sizes of a program's inputs as the numbers that they are."""
    for node in program.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not any(known(s) is not s for s in value.shape):
            continue
        shape, stride = (tuple(map(known, sizes)) for sizes in (value.shape, value.stride()))
        with value.fake_mode:  # type: ignore[attr-defined]
            node.meta["val"] = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
        node.meta.pop("tensor_meta", None)
