# SPDX-License-Identifier: Apache-2.0
"""Print which Relax operators a test model consists of after its import, with counts and dtypes.

python scripts/relax_ops.py MODEL [--scale full|small] [--onnx]
"""

from __future__ import annotations

import argparse
import io
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import onnx
import torch
import tvm
from uir_tvm.frontend import from_onnx, from_torch
from uir_tvm.frontend.relax_view import dtype_of, is_constant, op_name, shape_of

from tests.models import MODELS


def describe(expr: tvm.ir.Expr) -> str:
    """An argument's dtype and rank: ``float32[3]``, constants marked by ``c:``."""
    if isinstance(expr, tvm.ir.Tuple):
        return "(" + ",".join(describe(field) for field in expr.fields) + ")"
    shape = shape_of(expr)
    if shape is None:
        return type(expr).__name__
    return f"{'c:' if is_constant(expr) else ''}{dtype_of(expr)}[{len(shape)}]"


def table(mod: tvm.IRModule) -> Counter[tuple[str, str, str]]:
    """(operator, argument dtypes and ranks, result) -> count."""
    rows: Counter[tuple[str, str, str]] = Counter()
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            value = binding.value
            name = op_name(value) or type(value).__name__
            args = value.args if isinstance(value, tvm.ir.Call) else []
            rows[name, " ".join(describe(arg) for arg in args), describe(binding.var)] += 1
    return rows


def load(name: str, scale: str, through_onnx: bool) -> tvm.IRModule:
    """Import a test model through torch.export or through ONNX."""
    module, inputs = MODELS[name].build(scale)
    if not through_onnx:
        return from_torch(module, inputs)
    file = io.BytesIO()
    torch.onnx.export(module, inputs, dynamo=True, verbose=False).save(file)
    return from_onnx(onnx.load_from_string(file.getvalue()))


def main() -> None:
    """Print the table of one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--scale", choices=("full", "small"), default="small")
    parser.add_argument("--onnx", action="store_true", help="through ONNX instead of torch.export")
    options = parser.parse_args()
    mod = load(options.model, options.scale, options.onnx)
    rows = table(mod)
    path = "onnx" if options.onnx else "torch"
    print(f"{options.model} ({options.scale}, {path}): {sum(rows.values())} bindings")
    for (name, args, result), count in sorted(rows.items(), key=lambda row: (row[0][0], -row[1])):
        print(f"{count:5d}  {name:15s} {args} -> {result}")
    functions = [var.name_hint for var in mod.get_global_vars() if var.name_hint != "main"]
    print(f"kernels called: {', '.join(functions) or 'none'}")


if __name__ == "__main__":
    main()
