# SPDX-License-Identifier: Apache-2.0
"""Sums of products of bytes that a library gives in float32, exact up to 2^24: cut, and added exactly."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from tvm import relax

from ..library.integer_matmul_attrs import EXACT
from .integer_endings import SUMS, EndedProduct

#: Adds a binding to the function that is built.
Emit = Callable[[Any], Any]


def parts_of(matrix: np.ndarray, most: int) -> int:
    """In how many parts of one length sums are exact in float32.

    Parameters
    ----------
    matrix : numpy.ndarray
        The weight, the outputs first.
    most : int
        What no number that it is multiplied by is farther from 0 than.

    Returns
    -------
    int
        As few as will do; up to twice as many where they need no zeros behind the weight.
    """
    length, sizes = matrix.shape[1], np.abs(matrix.astype(np.int64))

    def fits(parts: int) -> bool:
        starts = np.arange(0, length, -(-length // parts))
        return int(np.add.reduceat(sizes, starts, axis=1).max()) * most <= EXACT

    least = next(parts for parts in range(1, length + 1) if fits(parts))
    return next((each for each in range(least, 2 * least + 1) if length % each == 0 and fits(each)), least)


def side_by_side(emit: Emit, x: Any, parts: int) -> Any:
    """Matrices of a tensor's rows in parts.

    Before: x [..., k].  After: [parts, rows, k / parts].
    """
    *lead, length = x.ty.shape.values
    rows = emit(relax.op.reshape(x, (prod(lead), parts, length // parts)))
    return emit(relax.op.permute_dims(rows, (1, 0, 2)))


def added(emit: Emit, product: EndedProduct, sums: list[Any], shift: int, parts: int, point: Any) -> Any:
    """The sums of a product with its zero point and its start, in int32 where it ends with them.

    Before: sums, each of the products of a part of the bytes less `shift`.
    After: add(sums, (shift - zero point) * (sum of that part of the weight)), exact in float32, of each part,
    and the sum of these, rounded once.

    Parameters
    ----------
    emit : callable
    product : EndedProduct
    sums : list of Expr
        Of every part, in float32.
    shift : int
        What was subtracted from the bytes.
    parts : int
    point : Expr, optional
        The zero point where it is computed, of one element.
    """
    op, numbers = relax.op, product.numbers
    matrix = numbers.transpose(0, 2, 3, 1) if product.image else numbers
    matrix = matrix.reshape(len(numbers), -1).astype(np.int64)
    starts = np.arange(0, matrix.shape[1], -(-matrix.shape[1] // parts))
    totals = np.add.reduceat(matrix, starts, axis=1).T
    zero = None if point is None else emit(op.astype(point, "float32"))
    exact = []
    for each, total in zip(sums, totals, strict=True):
        each = _plus(emit, each, (shift - product.x.zero) * total)
        if zero is not None:
            each = emit(op.subtract(each, emit(op.multiply(_number(total), zero))))
        exact.append(each)
    start = product.ending.start
    if product.ending.stage == SUMS:
        whole = [emit(op.astype(each, "int32")) for each in exact]
        return _sum(emit, whole + ([relax.const(start.astype(np.int32))] if start.any() else []), True)
    near = start.astype(np.float32)
    exact += [_number(each) for each in (near, start - near.astype(np.int64)) if each.any()]
    most = farthest(product) * int(np.abs(matrix).sum(1).max()) + int(np.abs(start).max())
    return _sum(emit, exact, most <= EXACT)


def farthest(product: EndedProduct) -> int:
    """What no byte of a product is farther from 0 than, as it is multiplied and less its zero point."""
    return max(128, product.x.farthest)


def _plus(emit: Emit, sums: Any, start: np.ndarray) -> Any:
    return emit(relax.op.add(sums, _number(start))) if start.any() else sums


def _number(values: np.ndarray) -> Any:
    return relax.const(values.astype(np.float32))


def _sum(emit: Emit, numbers: list[Any], exact: bool) -> Any:
    """The sum of whole numbers, rounded once: what additions lose (Knuth's two-sum) is added at the end."""
    op, total, lost = relax.op, numbers[0], None
    for number in numbers[1:]:
        new = emit(op.add(total, number))
        if not exact:
            taken = emit(op.subtract(new, total))
            first = emit(op.subtract(total, emit(op.subtract(new, taken))))
            loss = emit(op.add(first, emit(op.subtract(number, taken))))
            lost = loss if lost is None else emit(op.add(lost, loss))
        total = new
    return total if lost is None else emit(op.add(total, lost))
