# SPDX-License-Identifier: Apache-2.0
"""Cases of operators that create, move, gather and scatter elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tvm
from tvm import relax

from .case import (
    ALL,
    EMPTY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    RANKS,
    Case,
    Input,
    distinct,
    rising,
    shuffled,
    spread,
    text,
)

op = relax.op
const = relax.const


def _views() -> Iterator[Case]:
    for dtype in ALL:
        for shape in (*RANKS, EMPTY[1]):
            x, tag, rank = (Input(shape, dtype),), f"{dtype}-{text(shape)}", len(shape)
            size = int(np.prod(shape))
            flat = (size, 1) if size else (0,)
            yield Case("reshape", tag, x, lambda x, s=flat: op.reshape(x, s))
            yield Case("flatten", tag, x, op.flatten)
            yield Case("expand_dims", tag, x, lambda x: op.expand_dims(x, [0, -1]))
            yield Case("broadcast_to", tag, x, lambda x, s=shape: op.broadcast_to(x, (2, *s)))
            yield Case("permute_dims", tag, x, op.permute_dims)
            yield Case("squeeze", tag, x, op.squeeze)
            yield Case("collapse_sum_to", tag, x, lambda x, s=shape: op.collapse_sum_to(x, s[1:]))
            if not rank:
                continue
            yield Case("flip", tag, x, lambda x: op.flip(x, 0))
            yield Case("tile", tag, x, lambda x, r=rank: op.tile(x, [2] * r))
            yield Case("repeat", tag, x, lambda x, r=rank: op.repeat(x, 3, r - 1))
            yield Case("concat", tag, x * 3, lambda *x: op.concat(list(x), -1))
            yield Case("stack", tag, x * 2, lambda *x: op.stack(list(x), 0))
            yield Case("split", tag, x, lambda x: op.split(x, [1], -1))
            first = {"axes": [0], "begin": [0], "end": [shape[0]], "strides": [2]}
            yield Case("strided_slice", tag, x, lambda x, a=first: op.strided_slice(x, **a))
            back = {"axes": [rank - 1], "begin": [-1], "end": [-100], "strides": [-1]}
            yield Case("strided_slice", f"{tag}-back", x, lambda x, a=back: op.strided_slice(x, **a))
            if shape[0]:
                yield Case("strided_slice", f"{tag}-none", x, lambda x: op.strided_slice(x, [0], [0], [0]))
            yield Case("nn.pad", tag, x, lambda x, r=rank: op.nn.pad(x, [1, 2] * r))
            if rank > 1:
                yield Case("nn.batch_flatten", tag, x, op.nn.batch_flatten)
                yield Case("tril", tag, x, lambda x: op.tril(x, 1))
                yield Case("triu", tag, x, lambda x: op.triu(x, -1))
    for dtype in ALL:
        x = Input((4, 6), dtype)
        for mode in ("reflect", "replicate", "circular"):
            yield Case("nn.pad", f"{dtype}-{mode}", (x,), lambda x, m=mode: op.nn.pad(x, [1, 2, 2, 1], m))
        yield Case("collapse_sum_like", dtype, (x, Input((1, 6), dtype)), op.collapse_sum_like)
        yield Case("layout_transform", dtype, (x,), lambda x: op.layout_transform(x, lambda i, j: (j, i)))
        yield Case("repeat", f"{dtype}-flat", (x,), lambda x: op.repeat(x, 2))
    x = Input((4, 6))
    yield Case("concat", "float32-empty-part", (x, Input((0, 6))), lambda *x: op.concat(list(x), 0))
    for dtype in ALL:
        many = tuple(Input((2, 1 + n % 3), dtype) for n in range(12))
        yield Case("concat", f"{dtype}-many", many, lambda *x: op.concat(list(x), 1))
        grid = (Input((3,), dtype), Input((4,), dtype))
        yield Case("meshgrid", dtype, grid, lambda *x: op.meshgrid(list(x), "ij"))
        three = (Input((2, 3, 5), dtype), Input((2,), "int32", spread(1, 3)))
        yield Case("reverse_sequence", dtype, three, lambda x, n: op.reverse_sequence(x, n, 1, 0))
        yield Case(
            "nn.pixel_shuffle",
            dtype,
            (Input((1, 8, 2, 3), dtype),),
            lambda x: op.nn.pixel_shuffle(x, 2),
            reference=_pixel_shuffled,
        )
        ends = (Input((5, 6), dtype), *(Input((2,), "int64", rising) for _ in range(1)))
        yield Case(
            "dynamic_strided_slice",
            dtype,
            ends[:1],
            lambda x: op.dynamic_strided_slice(
                x, const([1, 0], "int64"), const([4, 6], "int64"), const([1, 2], "int64")
            ),
        )


def _pixel_shuffled(x: np.ndarray) -> np.ndarray:
    """By a factor of 2 (torch.nn.PixelShuffle); stock TVM's rule names a function that is not there."""
    apart = x.reshape(1, 2, 2, 2, 2, 3)
    return apart.transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)


def _created() -> Iterator[Case]:
    for dtype in ALL:
        for shape in (*RANKS, EMPTY[0]):
            tag = f"{dtype}-{text(shape)}"
            x = (Input(shape, dtype),)
            yield Case("zeros", tag, (), lambda s=shape, d=dtype: op.zeros(s, d))
            yield Case("ones", tag, (), lambda s=shape, d=dtype: op.ones(s, d))
            yield Case("full", tag, (), lambda s=shape, d=dtype: op.full(s, const(1, d), d))
            yield Case("zeros_like", tag, x, op.zeros_like)
            yield Case("ones_like", tag, x, op.ones_like)
            yield Case("full_like", tag, x, lambda x, d=dtype: op.full_like(x, const(1, d)))
            yield Case(
                "full", f"{tag}-variable", (Input((), dtype),), lambda v, s=shape, d=dtype: op.full(s, v, d)
            )
            if len(shape) == 2:
                yield Case("eye_like", tag, x, op.eye_like)
        if dtype != "bool":
            yield Case("arange", dtype, (), lambda d=dtype: op.arange(2, 17, 3, d))
        yield Case("eye", dtype, (), lambda d=dtype: op.eye(3, 5, 1, d))
    for dtype in FLOATS:
        yield Case("hamming_window", dtype, (), lambda d=dtype: op.hamming_window(9, True, 0.54, 0.46, d))
    for dtype in INTEGERS:
        indices = (Input((2, 3), dtype, spread(0, 4)),)
        yield Case("one_hot", dtype, indices, lambda i: op.one_hot(i, _prim(2.0), _prim(-1.0), 5))
    for shape in RANKS:
        for dtype in ALL:
            tag, x = f"{dtype}-{text(shape)}", (Input(shape, dtype),)
            yield Case("size", tag, x, op.size)
            yield Case("shape_to_tensor", tag, x, lambda x: op.shape_to_tensor(op.shape_of(x)))


def _prim(value: float) -> tvm.ir.Expr:
    return tvm.tirx.const(value, "float32")


def _gathers() -> Iterator[Case]:
    for dtype in ALL:
        for index in ("int32", "int64"):
            tag = f"{dtype}-{index}"
            x = Input((6, 5), dtype)
            few = spread(0, 4)
            for mode in ("fast", "clip", "wrap", "nan"):
                if mode == "nan" and "float" not in dtype:
                    continue
                values = few if mode == "fast" else spread(-3, 9)
                for shape in ((), (7,), (2, 3), (0,)):
                    inputs = (x, Input(shape, index, values))
                    for axis in (0, 1):
                        yield Case(
                            "take",
                            f"{tag}-{text(shape)}-{mode}-{axis}",
                            inputs,
                            lambda x, i, a=axis, m=mode: op.take(x, i, a, m),
                        )
            flat = (Input((9,), dtype), Input((4,), index, few))
            yield Case("take", f"{tag}-flat", flat, op.take)
            for axis in (0, 1):
                same = (x, Input((6, 5), index, few))
                yield Case(
                    "gather_elements", f"{tag}-{axis}", same, lambda x, i, a=axis: op.gather_elements(x, i, a)
                )
            if index == "int64":  # the only one that it takes
                yield Case("gather_nd", f"{tag}-1", (x, Input((3, 1), index, few)), op.gather_nd)
                yield Case("gather_nd", f"{tag}-2", (x, Input((2, 3, 2), index, few)), op.gather_nd)
                batched = (Input((2, 5, 3), dtype), Input((2, 4, 1), index, few))
                yield Case("gather_nd", f"{tag}-batch", batched, lambda x, i: op.gather_nd(x, i, 1))
            pair = (x, Input((3, 1), index, few), Input((4,), index, few))
            yield Case("index_tensor", tag, pair, lambda x, *i: op.index_tensor(x, list(i)))
            yield Case("index_tensor", f"{tag}-one", pair[:2], lambda x, *i: op.index_tensor(x, list(i)))


def _scatters() -> Iterator[Case]:
    for dtype in NUMBERS:
        for index in ("int32", "int64"):
            tag = f"{dtype}-{index}"
            x, few, apart = Input((6, 5), dtype), spread(0, 4), distinct(5)
            for reduction in ("update", "add", "mul", "min", "max", "mean"):
                for axis in (0, 1):
                    if reduction == "update":
                        values = distinct(5, axis)
                    else:
                        values = few
                    three = (x, Input((3, 4), index, values), Input((3, 4), dtype))
                    yield Case(
                        "scatter_elements",
                        f"{tag}-{reduction}-{axis}",
                        three,
                        lambda x, i, u, a=axis, r=reduction: op.scatter_elements(x, i, u, a, r),
                    )
                if reduction == "mean":
                    continue
                at = Input((4, 1), index, distinct(5, 0) if reduction == "update" else few)
                nd = (x, at, Input((4, 5), dtype))
                yield Case(
                    "scatter_nd",
                    f"{tag}-{reduction}",
                    nd,
                    lambda x, i, u, r=reduction: op.scatter_nd(x, i, u, r),
                )
            for accumulate in (False, True):
                at = Input((4,), index, few if accumulate else apart)
                put = (x, at, Input((4,), index, few), Input((4,), dtype))
                yield Case(
                    "index_put",
                    f"{tag}-{'add' if accumulate else 'put'}",
                    put,
                    lambda x, i, j, v, a=accumulate: op.index_put(x, (i, j), v, a),
                )
        slices = (Input((6, 5), dtype), Input((2, 5), dtype))
        yield Case("slice_scatter", dtype, slices, lambda x, s: op.slice_scatter(x, s, 1, 5, 2, 0))
        one = (Input((7,), dtype), Input((2,), "int32", distinct(7)), Input((2,), dtype))
        yield Case("scatter_elements", f"{dtype}-rank-1", one, op.scatter_elements)
        none = (Input((6, 5), dtype), Input((0, 5), "int64", rising), Input((0, 5), dtype))
        yield Case("scatter_elements", f"{dtype}-none", none, op.scatter_elements)
    for dtype in NUMBERS:
        search = (Input((3, 4), dtype), Input((5,), dtype, rising))
        for right in (False, True):
            yield Case(
                "bucketize", f"{dtype}-{right}", search, lambda x, b, r=right: op.bucketize(x, b, True, r)
            )
    yield Case("bucketize", "float32-int64", (Input((9,)), Input((5,), "float32", rising)), op.bucketize)
    wide = (Input((4, 5), "float32", shuffled), Input((3,), "int64", distinct(4)))
    yield Case("take", "float32-rows", wide, lambda x, i: op.take(x, i, 0))


def cases() -> Iterator[Case]:
    """All of this file."""
    yield from _views()
    yield from _created()
    yield from _gathers()
    yield from _scatters()
