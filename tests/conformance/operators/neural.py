# SPDX-License-Identifier: Apache-2.0
"""Cases of products, convolutions, pools, losses, images, boxes and quantisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tvm
from tvm import relax

from .case import (
    FLOATS,
    NUMBERS,
    POSITIVE,
    RANKS,
    UNIT,
    Case,
    Input,
    Shape,
    chosen,
    rising,
    shuffled,
    spread,
    text,
)
from .elementwise import function

op = relax.op
nn, image, grad, vision = op.nn, op.image, op.grad, op.vision
PRODUCTS: tuple[tuple[Shape, Shape], ...] = (
    ((4, 5), (5, 3)),
    ((5,), (5, 3)),
    ((4, 5), (5,)),
    ((5,), (5,)),
    ((2, 4, 5), (2, 5, 3)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((1, 5), (5, 1)),
    ((4, 0), (0, 3)),
    ((0, 5), (5, 3)),
)


def _products() -> Iterator[Case]:
    for dtype in NUMBERS:
        for a, b in PRODUCTS:
            two = (Input(a, dtype), Input(b, dtype))
            yield Case("matmul", f"{dtype}-{text(a)}-{text(b)}", two, op.matmul)
        yield Case("outer", dtype, (Input((4,), dtype), Input((3,), dtype)), op.outer)
    wide = (Input((4, 6), "float16"), Input((6, 3), "float16"))
    yield Case("matmul", "float16-wide", wide, lambda a, b: op.matmul(a, b, "float32"))
    narrow = (Input((4, 6), "int8"), Input((6, 3), "int8"))
    yield Case("matmul", "int8-wide", narrow, lambda a, b: op.matmul(a, b, "int32"))
    for dtype in NUMBERS:
        for subscripts, shapes in (
            ("ij,jk->ik", ((3, 4), (4, 5))),
            ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
            ("ii->i", ((4, 4),)),
            ("ij->ji", ((3, 4),)),
        ):
            yield Case(
                "einsum",
                f"{dtype}-{subscripts}",
                tuple(Input(shape, dtype) for shape in shapes),
                lambda *x, s=subscripts: op.einsum(list(x), s),
            )


def _convolutions() -> Iterator[Case]:
    for dtype in NUMBERS:
        for rank, spatial in ((1, (9,)), (2, (7, 8)), (3, (5, 4, 6))):
            data, kernel = Input((2, 4, *spatial), dtype), (3,) * rank
            for tag, groups, keywords in (
                ("plain", 1, {}),
                ("padded", 1, {"padding": 1, "strides": 2}),
                ("grouped", 2, {"groups": 2}),
                ("depthwise", 4, {"groups": 4, "dilation": 2 if rank < 3 else 1}),
            ):
                weight = Input((4, 4 // groups, *kernel), dtype)
                f = function(f"nn.conv{rank}d")
                yield Case(
                    f"nn.conv{rank}d",
                    f"{dtype}-{tag}",
                    (data, weight),
                    lambda x, w, f=f, k=keywords: f(x, w, **k),
                )
            f = function(f"nn.conv{rank}d_transpose")
            for tag, keywords in (
                ("plain", {}),
                ("strided", {"strides": 2, "output_padding": 1, "padding": 1}),
            ):
                weight = Input((4, 3, *kernel), dtype)
                yield Case(
                    f"nn.conv{rank}d_transpose",
                    f"{dtype}-{tag}",
                    (data, weight),
                    lambda x, w, f=f, k=keywords: f(x, w, **k),
                )
        last = (Input((1, 6, 7, 4), dtype), Input((3, 3, 4, 5), dtype))
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        yield Case("nn.conv2d", f"{dtype}-NHWC", last, lambda x, w, k=layouts: nn.conv2d(x, w, **k))


def _pools() -> Iterator[Case]:
    for dtype in NUMBERS:
        for rank, spatial in ((1, (9,)), (2, (7, 8)), (3, (5, 4, 6))):
            data = (Input((1, 3, *spatial), dtype),)
            size = (2,) * rank
            for kind in ("max", "avg"):
                name = f"nn.{kind}_pool{rank}d"
                f = function(name)
                padded = {"padding": (1,) * rank, "strides": size, "pool_size": (3,) * rank}
                for tag, keywords in (
                    ("plain", {"pool_size": size}),
                    ("padded", padded),
                    ("ceil", {**padded, "ceil_mode": True}),
                    ("counted", {**padded, "count_include_pad": True}),
                ):
                    yield Case(name, f"{dtype}-{tag}", data, lambda x, f=f, k=keywords: f(x, **k))
            f = function(f"nn.adaptive_avg_pool{rank}d")
            for out in (1, 3):
                yield Case(
                    f"nn.adaptive_avg_pool{rank}d",
                    f"{dtype}-{out}",
                    data,
                    lambda x, f=f, o=(out,) * rank: f(x, o),
                )


def _losses() -> Iterator[Case]:
    for dtype in FLOATS:
        scores, weights = Input((4, 3), dtype), Input((3,), dtype, POSITIVE)
        classes = Input((4,), "int64", spread(0, 2))
        for reduction in ("mean", "sum", "none"):
            yield Case(
                "nn.nll_loss",
                f"{dtype}-{reduction}",
                (scores, classes, weights),
                lambda x, t, w, r=reduction: nn.nll_loss(x, t, w, r),
            )
        yield Case(
            "nn.cross_entropy_with_logits",
            dtype,
            (scores, Input((4, 3), dtype, POSITIVE)),
            nn.cross_entropy_with_logits,
        )
        yield Case(
            "grad.nll_loss_backward",
            dtype,
            (Input((), dtype), scores, classes, weights),
            grad.nll_loss_backward,
        )
        pooled, data = Input((1, 2, 3, 3), dtype), Input((1, 2, 6, 6), dtype, shuffled)
        for kind in ("max", "avg"):
            f = function(f"grad.{kind}_pool2d_backward")
            yield Case(
                f"grad.{kind}_pool2d_backward",
                dtype,
                (pooled, data),
                lambda g, x, f=f: f(g, x, (2, 2), (2, 2)),
            )
        taken = (Input((3, 5), dtype), Input((6, 5), dtype), Input((3,), "int32", spread(0, 5)))
        yield Case("grad.take_backward", dtype, taken, lambda g, x, i: grad.take_backward(g, x, i, 0))
        for name in ("grad.no_grad", "grad.start_checkpoint", "grad.end_checkpoint"):
            yield Case(name, dtype, (scores,), function(name))


def _attention() -> Iterator[Case]:
    for dtype in FLOATS:
        three = (Input((2, 5, 2, 8), dtype),) * 3
        yield Case("nn.attention", dtype, three, nn.attention)
        for mask in ("TopLeft", "BottomRight"):
            yield Case(
                "nn.attention",
                f"{dtype}-{mask}",
                three,
                lambda q, k, v, m=mask: nn.attention(q, k, v, None, None, m),
            )
        bias = (*three, Input((2, 2, 5, 5), dtype))
        yield Case("nn.attention_bias", dtype, bias, nn.attention)


def _images() -> Iterator[Case]:
    for dtype in (*FLOATS, "uint8", "int32"):
        data = Input((1, 2, 5, 6), dtype)
        for method in ("nearest_neighbor", "linear", "cubic"):
            for mode in ("half_pixel", "asymmetric", "align_corners"):
                keywords: dict[str, Any] = {"method": method, "coordinate_transformation_mode": mode}
                if method == "nearest_neighbor":
                    keywords["rounding_method"] = "floor"
                for size in ((10, 12), (3, 13)):
                    yield Case(
                        "image.resize2d",
                        f"{dtype}-{method}-{mode}-{text(size)}",
                        (data,),
                        lambda x, s=size, k=keywords: image.resize2d(x, s, **k),
                    )
        cube = (Input((1, 2, 3, 4, 5), dtype),)
        yield Case("image.resize3d", dtype, cube, lambda x: image.resize3d(x, (6, 8, 10)))
        for method in ("bilinear", "nearest", "bicubic"):
            for padding in ("zeros", "border", "reflection"):
                two = (data, Input((1, 2, 3, 4), dtype, spread(-1.3, 1.3)))
                yield Case(
                    "image.grid_sample",
                    f"{dtype}-{method}-{padding}",
                    two,
                    lambda x, g, m=method, p=padding: image.grid_sample(x, g, m, "NCHW", p),
                )
        yield Case(
            "image.affine_grid", dtype, (Input((2, 2, 3), dtype),), lambda x: image.affine_grid(x, (4, 5))
        )


#: Class, score and corners of four boxes.
ROWS = chosen(0, 0.9, 0, 0, 2, 2, 1, 0.8, 1, 1, 3, 3, 0, 0.1, 0, 0, 1, 1, 1, 0.7, 5, 5, 8, 8)
#: Floats that TVM's own sort knows, so that its suppression is a reference.
SORTED = ("float32", "float16", "float64")


def _boxes() -> Iterator[Case]:
    for dtype in FLOATS:
        yield from _boxes_of(dtype)


def _boxes_of(dtype: str) -> Iterator[Case]:
    data = Input((1, 2, 8, 8), dtype)
    regions = Input((2, 5), dtype, chosen(0, 1, 1, 6, 5, 0, 0.5, 2, 7, 7))
    for mode in ("avg", "max"):
        yield Case(
            "vision.roi_align",
            f"{dtype}-{mode}",
            (data, regions),
            lambda x, r, m=mode: vision.roi_align(x, r, (2, 2), 1.0, 2, mode=m),
        )
    yield Case("vision.roi_pool", dtype, (data, regions), lambda x, r: vision.roi_pool(x, r, (2, 2), 1.0))
    yield Case(
        "vision.get_valid_counts",
        dtype,
        (Input((1, 4, 6), dtype, ROWS),),
        lambda x: vision.get_valid_counts(x, 0.2),
    )
    yield from _suppressions(dtype) if dtype in SORTED else ()
    located = (Input((1, 3, 4), dtype), Input((1, 16), dtype, UNIT), Input((1, 4, 4), dtype, POSITIVE))
    yield Case("vision.multibox_transform_loc", dtype, located, vision.multibox_transform_loc)


def _suppressions(dtype: str) -> Iterator[Case]:
    found = (
        Input((1, 4, 6), dtype, ROWS),
        Input((1,), "int32", chosen(4)),
        Input((1, 4), "int32", rising),
    )
    yield Case(
        "vision.non_max_suppression",
        dtype,
        found,
        lambda x, n, i: vision.non_max_suppression(x, n, i, return_indices=False),
    )
    boxes = (
        Input((1, 6, 4), dtype, spread(0, 4)),
        Input((1, 2, 6), dtype, POSITIVE),
    )
    yield Case("vision.all_class_non_max_suppression", dtype, boxes, _first_boxes)


def _first_boxes(boxes: tvm.ir.Expr, scores: tvm.ir.Expr) -> tvm.ir.Expr:
    """The first of each class; what follows the last box that was found is undefined."""
    found = vision.all_class_non_max_suppression(
        boxes,
        scores,
        relax.const(3, "int64"),
        relax.const(0.5, "float32"),
        relax.const(0.1, "float32"),
        output_format="tensorflow",
    )
    return op.strided_slice(relax.TupleGetItem(found, 0), [1], [0], [2])


#: What `quantize` gives and `dequantize` takes.
NARROW = ("int8", "int16", "uint8", "uint16", "float8_e4m3fn", "float8_e5m2")


def _quantised() -> Iterator[Case]:
    for narrow in NARROW:
        scale, zero = Input((5,), "float32", POSITIVE), Input((5,), "int8", spread(-3, 3))
        for shape in RANKS[1:4]:
            for dtype in ("float32", "float16"):
                yield Case(
                    "quantize",
                    f"{dtype}-{narrow}-{text(shape)}",
                    (Input((*shape[:-1], 5), dtype), scale, zero),
                    lambda x, s, z, d=narrow: op.quantize(x, s, z, -1, d),
                )
            yield Case(
                "dequantize",
                f"{narrow}-{text(shape)}",
                (Input((*shape[:-1], 5), narrow), scale, zero),
                lambda x, s, z: op.dequantize(x, s, z, -1),
            )
    for dtype in FLOATS:
        drawn = (
            Input((2, 4), dtype, chosen(0.125, 0.25, 0.25, 0.375)),
            Input((3, 1), dtype, chosen(0.0625, 0.5, 0.9375)),
            Input((3, 1), "int64", chosen(0, 1, 0)),
        )
        yield Case("multinomial_from_uniform", dtype, drawn, op.multinomial_from_uniform)


def cases() -> Iterator[Case]:
    """All of this file."""
    yield from _products()
    yield from _convolutions()
    yield from _pools()
    yield from _losses()
    yield from _attention()
    yield from _images()
    yield from _boxes()
    yield from _quantised()
