# SPDX-License-Identifier: Apache-2.0
"""Programs that were compiled wrongly, or not at all, when they were drawn first."""

from __future__ import annotations

from .program import Input, Program, Step

#: By what was wrong.
FOUND: dict[str, Program] = {
    "padding asks for nothing of its operand": Program(
        "float32",
        (Input((7,), "float32"), Input((7,), "float32")),
        (
            Step("binary", (0, 1), (7,), ("mul",)),
            Step("pad", (2,), (9,), ((1,), (7,))),
            Step("slice", (3,), (1,), ((8,), (1,))),
            Step("reshape", (4,), (1, 1)),
        ),
        (5,),
    ),
    "two outputs, one of gathered rows of the other": Program(
        "float32",
        (Input((7,), "int32"), Input((10,), "int64")),
        (
            Step("cast", (0,), (7,), ("float32",)),
            Step("take", (2, 1), (10,)),
            Step("cast", (3,), (10,), ("float64",)),
        ),
        (4, 2),
    ),
    "a padded read computed again for another one": Program(
        "float32",
        (Input((3, 16), "float32"), Input((16,), "float32")),
        (
            Step("reduce", (0,), (1, 1), ("max", (0, 1), True)),
            Step("binary", (0, 2), (3, 16), ("max",)),
            Step("binary", (3, 1), (3, 16), ("sub",)),
            Step("pad", (4,), (4, 18), ((1, 1), (3, 16))),
            Step("binary", (5, 2), (4, 18), ("sub",)),
            Step("reduce", (6,), (1, 18), ("min", (0,), True)),
            Step("binary", (6, 7), (4, 18), ("sub",)),
        ),
        (8,),
    ),
    "gathers of two widths from memory on chip": Program(
        "float32",
        (Input((2,), "float32"), Input((5,), "float32"), Input((1,), "int32"), Input((10,), "int32")),
        (
            Step("unary", (0,), (2,), ("erf",)),
            Step("pad", (4,), (5,), ((1,), (2,))),
            Step("concat", (5, 1), (10,), (0,)),
            Step("where", (2, 3, 6, 6), (10,), ("gt", True)),
            Step("pad", (7,), (11,), ((0,), (10,))),
        ),
        (8,),
    ),
    "gathers of two widths from memory of an earlier phase": Program(
        "float32",
        (*(Input((32, 14, 14), "float32"),) * 3, Input((16, 14, 14), "float32")),
        (
            *(Step("unary", (place,), (32, 14, 14), ("relu",)) for place in range(3)),
            Step("concat", (4, 5), (64, 14, 14), (0,)),
            Step("concat", (7, 6), (96, 14, 14), (0,)),
            Step("concat", (8, 3), (112, 14, 14), (0,)),
        ),
        (9,),
    ),
    "the second piece of a concatenation written first": Program(
        "float32",
        (Input((2, 1, 2), "float32"), Input((2, 1, 2), "float32")),
        (
            Step("concat", (0, 1), (2, 2, 2), (1,)),
            Step("reshape", (2,), (1, 2, 2, 2)),
            Step("binary", (3, 3), (1, 2, 2, 2), ("min",)),
        ),
        (4,),
    ),
    "a producer of one gathered row": Program(
        "float64",
        (Input((8, 2, 31), "float64"), Input((1,), "int64"), Input((62, 1), "int8"), Input((62, 1), "int8")),
        (
            Step("unary", (0,), (8, 2, 31), ("abs",)),
            Step("take", (4, 1), (1, 2, 31)),
            Step("permute", (5,), (31, 2, 1), ((2, 1, 0),)),
            Step("reshape", (6,), (62, 1)),
            Step("where", (2, 3, 7, 7), (62, 1), ("eq", True)),
        ),
        (8,),
    ),
    "padding around padding": Program(
        "float32",
        (Input((2, 4, 6, 2), "float32"),),
        (
            Step("unary", (0,), (2, 4, 6, 2), ("erf",)),
            Step("pad", (1,), (2, 6, 7, 5), ((0, 0, 0, 1), (2, 4, 6, 2))),
            Step("pad", (2,), (3, 9, 8, 7), ((0, 1, 1, 2), (2, 6, 7, 5))),
        ),
        (3,),
    ),
    "a mask in memory that is only met in vectors": Program(
        "float32",
        (
            Input((1, 5, 2, 2), "float32"),
            Input((1,), "int32"),
            Input((1, 2, 2), "int32"),
            Input((1, 2, 2), "int32"),
            Input((2,), "float32"),
        ),
        (
            Step("reshape", (0,), (5, 2, 2)),
            Step("take", (5, 1), (1, 2, 2)),
            Step("where", (2, 3, 6, 4), (1, 2, 2), ("eq", False)),
        ),
        (7,),
    ),
    "an int64 index inlined where an int32 variable stood": Program(
        "float32",
        (Input((5,), "float32"), Input((1,), "int64")),
        (
            Step("reshape", (0,), (5, 1)),
            Step("take", (2, 1), (1, 1)),
            Step("cast", (3,), (1, 1), ("float16",)),
        ),
        (4,),
    ),
    "columns joined behind others, gathered from before them": Program(
        "float32",
        (Input((7, 2, 7), "float32"), Input((7, 2, 6), "int8")),
        (
            Step("unary", (0,), (7, 2, 7), ("abs",)),
            Step("cast", (1,), (7, 2, 6), ("float32",)),
            Step("concat", (2, 3), (7, 2, 13), (2,)),
            Step("reshape", (4,), (7, 26)),
        ),
        (5,),
    ),
}
