# SPDX-License-Identifier: Apache-2.0
"""Functions that read and write in unusual orders: reversed, shifted, strided, divided, by an index."""

from __future__ import annotations

import numpy as np
from tvm.script import tirx as T

from .structure import Structure


def _reversed_read(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def reversed_read(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[v] = A[n - 1 - v]

    return reversed_read


def _reversed_columns(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def reversed_columns(A: T.Buffer((5, n), dt), B: T.Buffer((5, n), dt)):
        for i, j in T.grid(5, n):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, n - 1 - vj] + A[vi, vj]

    return reversed_columns


def _reversed_rows(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def reversed_rows(A: T.Buffer((n, 12), dt), B: T.Buffer((n, 12), dt)):
        for i, j in T.grid(n, 12):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[n - 1 - vi, vj]

    return reversed_rows


def _reversed_both(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def reversed_both(A: T.Buffer((6, n), dt), B: T.Buffer((6, n), dt)):
        for i, j in T.grid(6, n):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[5 - vi, n - 1 - vj]

    return reversed_both


def _reversed_write(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def reversed_write(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[n - 1 - v] = A[v]

    return reversed_write


def _reversed_sum(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def reversed_sum(A: T.Buffer((n,), dt), W: T.Buffer((9, n), dt), B: T.Buffer((9,), dt)):
        for i, k in T.grid(9, n):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.Cast(dt, 0)
                B[vi] = B[vi] + W[vi, vk] * A[n - 1 - vk]

    return reversed_sum


def _shifted_read(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def shifted_read(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[v] = T.if_then_else(v > 2, A[v - 3], T.Cast(dt, 0)) + A[v]

    return shifted_read


def _stencil(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def stencil(A: T.Buffer((n + 2, 14), dt), B: T.Buffer((n, 12), dt)):
        for i, j in T.grid(n, 12):
            with T.sblock("sum"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj + 1] + A[vi + 1, vj] + A[vi + 1, vj + 2] + A[vi + 2, vj + 1]

    return stencil


def _shifted_local(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def shifted_local(A: T.Buffer((n, 18), dt), B: T.Buffer((n, 16), dt)):
        for i in range(n):
            with T.sblock("row"):
                vi = T.axis.spatial(n, i)
                L = T.sblock_alloc_buffer((18,), dt, scope="local")
                for j in range(18):
                    with T.sblock("stage"):
                        vj = T.axis.spatial(18, j)
                        L[vj] = A[vi, vj] * A[vi, vj]
                for j in range(16):
                    with T.sblock("use"):
                        vj = T.axis.spatial(16, j)
                        B[vi, vj] = L[vj] + L[vj + 1] + L[vj + 2]

    return shifted_local


def _reversed_local(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def reversed_local(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        with T.sblock("all"):
            L = T.sblock_alloc_buffer((n,), dt, scope="local")
            for j in range(n):
                with T.sblock("stage"):
                    vj = T.axis.spatial(n, j)
                    L[vj] = A[vj] * A[vj]
            for j in range(n):
                with T.sblock("use"):
                    vj = T.axis.spatial(n, j)
                    B[vj] = L[n - 1 - vj] - L[vj]

    return reversed_local


def _strided_read(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def strided_read(A: T.Buffer((3 * n,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[v] = A[3 * v + 1]

    return strided_read


def _deinterleave(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def deinterleave(A: T.Buffer((n, 2), dt), B: T.Buffer((n,), dt), C: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[v] = A[v, 0]
                C[v] = A[v, 1]

    return deinterleave


def _repeated(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def repeated(A: T.Buffer((n,), dt), B: T.Buffer((n * 3,), dt)):
        for i in range(n * 3):
            with T.sblock("copy"):
                v = T.axis.spatial(n * 3, i)
                B[v] = A[v // 3]

    return repeated


def _tiled(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def tiled(A: T.Buffer((5,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[v] = A[v % 5]

    return tiled


def _rolled(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def rolled(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[v] = A[(v + 11) % n]

    return rolled


def _concatenated(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def concatenated(A: T.Buffer((4, n), dt), B: T.Buffer((4, 6), dt), C: T.Buffer((4, n + 6), dt)):
        for i, j in T.grid(4, n + 6):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.if_then_else(vj < n, A[vi, vj], B[vi, vj - n])

    return concatenated


def _gather_rows(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def gather_rows(A: T.Buffer((n, 17), dt), P: T.Buffer((13,), "int64"), B: T.Buffer((13, 17), dt)):
        for i, j in T.grid(13, 17):
            with T.sblock("gather"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[P[vi], vj]

    return gather_rows


def _gather_elements(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def gather_elements(A: T.Buffer((n, 17), dt), P: T.Buffer((n, 6), "int32"), B: T.Buffer((n, 6), dt)):
        for i, j in T.grid(n, 6):
            with T.sblock("gather"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, P[vi, vj]] + A[P[vi, vj], vj]

    return gather_elements


def _narrowed_index(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def narrowed_index(A: T.Buffer((300,), dt), B: T.Buffer((n * 8,), dt)):
        for i in range(n * 8):
            with T.sblock("copy"):
                v = T.axis.spatial(n * 8, i)
                B[v] = A[T.Cast("int32", T.Cast("int8", v)) + 128]

    return narrowed_index


def _transposed(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def transposed(A: T.Buffer((n, 19), dt), B: T.Buffer((19, n), dt)):
        for i, j in T.grid(19, n):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]

    return transposed


def _permuted_6d(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def permuted_6d(A: T.Buffer((2, 3, n, 2, 3, 4), dt), B: T.Buffer((4, 2, 3, 2, n, 3), dt)):
        for a, b, c, d, e, f in T.grid(4, 2, 3, 2, n, 3):
            with T.sblock("copy"):
                va, vb, vc, vd, ve, vf = T.axis.remap("SSSSSS", [a, b, c, d, e, f])
                B[va, vb, vc, vd, ve, vf] = A[vd, vf, ve, vb, vc, va]

    return permuted_6d


STRUCTURES = (
    Structure("reversed_read", _reversed_read, also="float16"),
    Structure("reversed_columns", _reversed_columns, also="int32"),
    Structure("reversed_rows", _reversed_rows),
    Structure("reversed_both", _reversed_both),
    Structure("reversed_write", _reversed_write, also="bool"),
    Structure("reversed_sum", _reversed_sum),
    Structure("shifted_read", _shifted_read, also="float16"),
    Structure("stencil", _stencil),
    Structure("shifted_local", _shifted_local, also="float16"),
    Structure("reversed_local", _reversed_local),
    Structure("strided_read", _strided_read, also="float16"),
    Structure("deinterleave", _deinterleave, also="int32"),
    Structure("repeated", _repeated),
    Structure("tiled", _tiled),
    Structure("rolled", _rolled, also="int32"),
    Structure("concatenated", _concatenated, also="bool"),
    Structure("gather_rows", _gather_rows, also="float16", inputs={"P": lambda n: np.arange(13) * 2 % n}),
    Structure("gather_elements", _gather_elements, also="int32"),
    Structure("narrowed_index", _narrowed_index),
    Structure("transposed", _transposed, also="float16"),
    Structure("permuted_6d", _permuted_6d, sizes=(5, 8)),
)
