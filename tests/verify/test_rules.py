# SPDX-License-Identifier: Apache-2.0
"""The rules of the iOp table reach the verifier, with the iOp and a remedy."""

from __future__ import annotations

from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice

from .graphs import DEVICE, clean, only

A = IPointer("a", "reg", "fp32", 8, "tmp")
B = IPointer("b", "reg", "fp32", 8, "tmp")
M = IPointer("m", "reg", "bool", 8, "tmp")


def fill(pointer: IPointer) -> IOp:
    return IOp("fill", "", pointer.dtype, [ISlice(pointer, 0, (1, 8))], [], {"value": 0})


def build(iop: IOp) -> IGraph:
    return IGraph("g", DEVICE, 1, 1, (A, B, M), [fill(A), fill(B), fill(M), iop])


def test_shape():
    narrow = ISlice(B, 0, (1, 4))
    fault = only(
        build(IOp("binary", "add", "fp32", [ISlice(A, 0, (1, 8))], [ISlice(A, 0, (1, 8)), narrow])), "shape"
    )
    assert "b (1, 4) must have the shape (1, 8)" in fault.what
    assert "binary.add.fp32 a[0; (1,8); (8,1)]" in fault.where
    assert "broadcast" in fault.remedy


def test_dtype():
    fault = only(build(IOp("unary", "exp", "fp32", [ISlice(A, 0, (1, 8))], [ISlice(M, 0, (1, 8))])), "dtype")
    assert "m is bool, but unary.exp.fp32 needs fp32 there" in fault.what
    assert "cast" in fault.remedy


def test_right_shapes_and_dtypes_pass():
    piece = ISlice(A, 0, (1, 8))
    clean(build(IOp("compare", "lt", "fp32", [ISlice(M, 0, (1, 8))], [piece, ISlice(B, 0, (1, 8))])))
