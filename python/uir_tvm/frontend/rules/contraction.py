# SPDX-License-Identifier: Apache-2.0
"""Rules that reassociate: constant scales into weights, constant sums into one, rows in their own shape.

They need exact use counts (a weight is scaled only for its one user), so they run on a simplified graph.
"""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from ...sizes.open_arithmetic import same
from ..relax_view import (
    NUMPY_DTYPES,
    array_of,
    dtype_of,
    is_constant,
    op_name,
    permutation_of,
    shape_of,
    size_of,
    uniform_of,
)
from .rewriter import Rewriter, recall

#: Dtypes of constants that are scaled.
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def fold_scale(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """f(x, w) * scale -> f(x, w * scale), and (f(x, w) + b) * scale -> f(x, w * scale) + b * scale.

    f is conv2d or matmul with constant w, scale a constant, one number or one per output channel: an
    inference batch normalisation, or the factor of attention's query. This reassociates a product, so not
    where a constant would overflow or vanish that its factors alone do not.
    """
    for value, scale in (call.args, reversed(call.args)):
        if not is_constant(scale) or rewriter.uses(value) != 1:
            continue
        sum_, shift = rewriter.made_by(value, "add"), None
        if sum_ is not None:
            parts = [(a, b) for a, b in (sum_.args, reversed(sum_.args)) if is_constant(b)]
            if not parts or rewriter.uses(parts[0][0]) != 1:
                continue
            value, shift = parts[0]
        inner = rewriter.made_by(value, *SCALED)
        scaled = None if inner is None else SCALED[op_name(inner)](inner, scale)
        if scaled is None or (shift is not None and not _keeps_range(shift, scale)):
            continue
        product = rewriter.emit(scaled)
        if shift is None:
            return product
        return rewriter.emit(relax.op.add(product, rewriter.emit(relax.op.multiply(shift, scale))))
    return None


def fold_shift(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """(x + a) + b -> x + (a + b) for constants a and b of one shape, or of which one is a number.

    As the two constant embeddings of BERT, or the bias of a convolution and the equal shifts behind it.

    Not for numbers that cancel, as in (x + 1.5 * 2**23) - 1.5 * 2**23, which rounds x, and not where a + b
    overflows.
    """
    for value, outer in (call.args, reversed(call.args)):
        inner = rewriter.made_by(value, "add")
        if inner is None or not is_constant(outer) or rewriter.uses(value) != 1:
            continue
        for rest, shift in (inner.args, reversed(inner.args)):
            shapes = {shape_of(shift), shape_of(outer)}
            if is_constant(shift) and len(shapes - {()}) <= 1 and _adds_up(shift, outer):
                return rewriter.emit(relax.op.add(rest, rewriter.emit(relax.op.add(shift, outer))))
    return None


def _adds_up(a: tvm.ir.Expr, b: tvm.ir.Expr) -> bool:
    """Whether a sum of constants is finite where they are, and no cancellation of two numbers."""
    if dtype_of(a) not in NUMPY_DTYPES:
        return False
    if np.dtype(dtype_of(a)).kind in "biu":
        return True
    x, y = array_of(a), array_of(b)
    with np.errstate(all="ignore"):
        total = x + y
    if bool((np.isfinite(x) & np.isfinite(y) & ~np.isfinite(total)).any()):
        return False
    one, other = uniform_of(a), uniform_of(b)
    return one is None or other is None or bool(np.signbit(one) == np.signbit(other))


def _keeps_range(constant: tvm.ir.Expr, scale: tvm.ir.Expr) -> bool:
    """Whether a product of float constants, which broadcast, is finite and not zero where both are."""
    if not is_constant(constant) or dtype_of(constant) not in FLOATS:
        return False
    return _in_range(array_of(constant), array_of(scale))


def _in_range(x: np.ndarray, y: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        product = x * y
    overflows = ~np.isfinite(product) & np.isfinite(x) & np.isfinite(y)
    return not bool((overflows | ((product == 0) & (x != 0) & (y != 0))).any())


def _scaled_conv2d(conv: tvm.ir.Call, scale: tvm.ir.Expr) -> tvm.ir.Call | None:
    """The convolution with its kernels scaled, for one factor per output channel of NCHW."""
    shape, out, weight = shape_of(scale), shape_of(conv), conv.args[1]
    layouts = (str(conv.attrs.out_layout or conv.attrs.data_layout), str(conv.attrs.kernel_layout))
    if shape is None or out is None or layouts != ("NCHW", "OIHW") or not _scalable(weight, scale):
        return None
    padded = (1,) * (4 - len(shape)) + shape
    if len(padded) != 4 or padded[0] != 1 or padded[2:] != (1, 1) or padded[1] not in (1, out[1]):
        return None
    factors = array_of(scale).reshape(-1, 1, 1, 1)
    if not _in_range(array_of(weight), factors):
        return None
    product = array_of(weight) * factors
    return recall(conv, [conv.args[0], relax.const(product, dtype_of(weight))])


def _scaled_matmul(matmul: tvm.ir.Call, scale: tvm.ir.Expr) -> tvm.ir.Call | None:
    """The product with the columns of its weight scaled."""
    weight = matmul.args[1]
    shape, matrix = shape_of(scale), shape_of(weight)
    if shape is None or matrix is None or len(matrix) != 2 or not _scalable(weight, scale):
        return None
    if size_of(shape) not in (1, matrix[1]) or (size_of(shape) > 1 and shape[-1] != matrix[1]):
        return None
    factors = array_of(scale).reshape(-1)
    if not _in_range(array_of(weight), factors):
        return None
    product = array_of(weight) * factors
    return recall(matmul, [matmul.args[0], relax.const(product, dtype_of(weight))])


SCALED = {"nn.conv2d": _scaled_conv2d, "matmul": _scaled_matmul}


def _scalable(weight: tvm.ir.Expr, scale: tvm.ir.Expr) -> bool:
    dtype = dtype_of(weight)
    return is_constant(weight) and dtype == dtype_of(scale) and dtype in FLOATS


def scale_before_view(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """view(x) * number -> view(x * number), so that the number meets the product that made x."""
    target = shape_of(call)
    for value, scale in (call.args, reversed(call.args)):
        inner = rewriter.made_by(value, "reshape", "permute_dims")
        if inner is None or target is None or not is_constant(scale) or shape_of(scale) != ():
            continue
        source = inner.args[0]
        shape = shape_of(source)
        if shape is None or rewriter.uses(value) != 1 or rewriter.uses(source) != 1:
            continue
        scaled = rewriter.emit(relax.op.multiply(source, scale))
        if op_name(inner) == "reshape":
            return rewriter.reshape(scaled, target)
        return rewriter.emit(relax.op.permute_dims(scaled, permutation_of(inner, len(shape))))
    return None


def rows_in_shape(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """reshape(reshape(x, (rows, k)) @ w + b, (..., n)) -> reshape(x, (..., k)) @ w + b.

    The product works on rows, so that the reshapes around it, which only count the rows differently,
    would keep it from its neighbours.
    """
    target, value, shift = shape_of(call), call.args[0], None
    if not target or rewriter.uses(value) != 1 or not same((shape_of(value) or (0,))[-1], target[-1]):
        return None
    sum_ = rewriter.made_by(value, "add")
    if sum_ is not None:
        value, shift = sum_.args
        if not is_constant(shift) or len(shape_of(shift) or ()) > 1 or rewriter.uses(value) != 1:
            return None
    product = rewriter.made_by(value, "matmul")
    if product is None or len(shape_of(product.args[1]) or ()) != 2:
        return None
    rows = product.args[0]
    shape = shape_of(rows)
    if rewriter.made_by(rows, "reshape") is None or shape is None or len(shape) < 2:
        return None
    reshaped = rewriter.reshape(rows, (*target[:-1], shape[-1]))
    result = rewriter.emit(recall(product, [reshaped, product.args[1]]))
    return result if shift is None else rewriter.emit(relax.op.add(result, shift))
