# SPDX-License-Identifier: Apache-2.0
"""Functions whose parameters hold values that count: updated, written in part, or where data says."""

from __future__ import annotations

from tvm.script import tirx as T

from .structure import Structure, permutation


def _accumulate(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def accumulate(A: T.Buffer((n, 10), dt), C: T.Buffer((n, 10), dt)):
        for i, j in T.grid(n, 10):
            with T.sblock("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C[vi, vj] + A[vi, vj]

    return accumulate


def _accumulated_product(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def accumulated_product(A: T.Buffer((n, 24), dt), W: T.Buffer((24, 20), dt), C: T.Buffer((n, 20), dt)):
        for i, j, k in T.grid(n, 20, 24):
            with T.sblock("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vk, vj]

    return accumulated_product


def _accumulated_rows(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def accumulated_rows(A: T.Buffer((n, 33), dt), C: T.Buffer((n,), dt)):
        for i, k in T.grid(n, 33):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = T.max(C[vi], A[vi, vk])

    return accumulated_rows


def _decayed_rows(n: int, dt: str):
    """A reduction that is no sum: what it begins from cannot be added at its end."""

    @T.prim_func(s_tir=True)
    def decayed_rows(A: T.Buffer((n, 33), dt), C: T.Buffer((n,), dt)):
        for i, k in T.grid(n, 33):
            with T.sblock("decay"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] * T.Cast(dt, 0.5) + A[vi, vk]

    return decayed_rows


def _accumulate_then_read(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def accumulate_then_read(A: T.Buffer((n, 10), dt), C: T.Buffer((n, 10), dt), D: T.Buffer((n, 10), dt)):
        for i, j in T.grid(n, 10):
            with T.sblock("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C[vi, vj] + A[vi, vj]
        for i, j in T.grid(n, 10):
            with T.sblock("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] + C[vi, vj]

    return accumulate_then_read


def _accumulate_then_mirrored(n: int, dt: str):
    """What is read of the update was made by another unit, or comes later in the same one."""

    @T.prim_func(s_tir=True)
    def accumulate_then_mirrored(
        A: T.Buffer((n, 10), dt), C: T.Buffer((n, 10), dt), D: T.Buffer((n, 10), dt)
    ):
        for i, j in T.grid(n, 10):
            with T.sblock("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C[vi, vj] + A[vi, vj]
        for i, j in T.grid(n, 10):
            with T.sblock("mirror"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[n - 1 - vi, vj] + A[vi, vj]

    return accumulate_then_mirrored


def _scaled_in_place(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scaled_in_place(A: T.Buffer((n, 7), dt)):
        for i, j in T.grid(n, 7):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] * T.Cast(dt, 3)

    return scaled_in_place


def _first_part(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def first_part(A: T.Buffer((n,), dt), B: T.Buffer((2 * n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] + A[v]

    return first_part


def _every_second(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def every_second(A: T.Buffer((n,), dt), B: T.Buffer((2 * n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[2 * v + 1] = A[v]

    return every_second


def _diagonal(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def diagonal(A: T.Buffer((n,), dt), B: T.Buffer((n, n), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                B[v, v] = A[v]

    return diagonal


def _middle_columns(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def middle_columns(A: T.Buffer((n, 6), dt), B: T.Buffer((n, 11), dt)):
        for i, j in T.grid(n, 6):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj + 3] = A[vi, vj]

    return middle_columns


def _upper_triangle(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def upper_triangle(A: T.Buffer((n, n), dt), B: T.Buffer((n, n), dt)):
        for i, j in T.grid(n, n):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                if vi <= vj:
                    B[vi, vj] = A[vi, vj]

    return upper_triangle


def _where_positive(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def where_positive(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                if A[v] > T.Cast(dt, 1):
                    B[v] = A[v]

    return where_positive


def _where_else(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def where_else(A: T.Buffer((n,), dt), M: T.Buffer((n,), "bool"), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("copy"):
                v = T.axis.spatial(n, i)
                if M[v]:
                    B[v] = A[v]
                else:
                    B[v] = A[v] + A[v]

    return where_else


def _predicated(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def predicated(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for o, i in T.grid((n + 7) // 8, 8):
            with T.sblock("copy"):
                v = T.axis.spatial(n, o * 8 + i)
                T.where(o * 8 + i < n - 3)
                B[v] = A[v]

    return predicated


def _scatter(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scatter(A: T.Buffer((n,), dt), P: T.Buffer((n,), "int32"), B: T.Buffer((2 * n,), dt)):
        for i in range(n):
            with T.sblock("scatter"):
                v = T.axis.spatial(n, i)
                B[P[v]] = A[v]

    return scatter


def _scatter_rows(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scatter_rows(A: T.Buffer((n, 9), dt), P: T.Buffer((n,), "int32"), B: T.Buffer((2 * n, 9), dt)):
        for i, j in T.grid(n, 9):
            with T.sblock("scatter"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[P[vi], vj] = A[vi, vj]

    return scatter_rows


def _scatter_add(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scatter_add(A: T.Buffer((n,), dt), P: T.Buffer((n,), "int32"), B: T.Buffer((5,), dt)):
        for i in range(n):
            with T.sblock("scatter"):
                v = T.axis.opaque(n, i)
                B[P[v]] = B[P[v]] + A[v]

    return scatter_add


def _read_then_write(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def read_then_write(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt), C: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("keep"):
                v = T.axis.spatial(n, i)
                C[v] = B[v]
        for i in range(n):
            with T.sblock("replace"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] + A[v]

    return read_then_write


def _write_then_read(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def write_then_read(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt), C: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("first"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] + A[v]
        for i in range(n):
            with T.sblock("second"):
                v = T.axis.spatial(n, i)
                C[v] = B[v] + A[v]

    return write_then_read


def _partial_then_read(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def partial_then_read(A: T.Buffer((n,), dt), B: T.Buffer((n + 4,), dt), C: T.Buffer((n + 4,), dt)):
        for i in range(n):
            with T.sblock("first"):
                v = T.axis.spatial(n, i)
                B[v + 2] = A[v]
        for i in range(n + 4):
            with T.sblock("second"):
                v = T.axis.spatial(n + 4, i)
                C[v] = B[v] + B[v]

    return partial_then_read


def _two_parts(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def two_parts(A: T.Buffer((n,), dt), B: T.Buffer((n + 5,), dt)):
        for i in range(n):
            with T.sblock("first"):
                v = T.axis.spatial(n, i)
                B[v] = A[v]
        for i in range(5):
            with T.sblock("second"):
                v = T.axis.spatial(5, i)
                B[v + n] = T.Cast(dt, 1)

    return two_parts


def _mirrored_in_place(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def mirrored_in_place(B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("mirror"):
                v = T.axis.opaque(n, i)
                B[v] = B[n - 1 - v] + T.Cast(dt, 1)

    return mirrored_in_place


def _shifted_in_place(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def shifted_in_place(B: T.Buffer((n,), dt)):
        for i in range(n - 1):
            with T.sblock("shift"):
                v = T.axis.opaque(n - 1, i)
                B[v] = B[v + 1]

    return shifted_in_place


STRUCTURES = (
    Structure("accumulate", _accumulate),
    Structure("accumulated_product", _accumulated_product, also="float16"),
    Structure("accumulated_rows", _accumulated_rows, also="int32"),
    Structure("decayed_rows", _decayed_rows, also="float16"),
    Structure("accumulate_then_read", _accumulate_then_read, also="float16"),
    Structure("accumulate_then_mirrored", _accumulate_then_mirrored, also="float16"),
    Structure("scaled_in_place", _scaled_in_place, also="int32"),
    Structure("first_part", _first_part, also="float16"),
    Structure("every_second", _every_second, also="int32"),
    Structure("diagonal", _diagonal),
    Structure("middle_columns", _middle_columns, also="float16"),
    Structure("upper_triangle", _upper_triangle, also="int32"),
    Structure("where_positive", _where_positive, also="float16"),
    Structure("where_else", _where_else, also="int32"),
    Structure("predicated", _predicated),
    Structure("scatter", _scatter, inputs={"P": lambda n: permutation(n, 2 * n)}, also="int32"),
    Structure("scatter_rows", _scatter_rows, inputs={"P": lambda n: permutation(n, 2 * n)}),
    Structure("scatter_add", _scatter_add, also="int32"),
    Structure("read_then_write", _read_then_write),
    Structure("write_then_read", _write_then_read, also="float16"),
    Structure("partial_then_read", _partial_then_read),
    Structure("two_parts", _two_parts, also="bool"),
    Structure("mirrored_in_place", _mirrored_in_place),
    Structure("shifted_in_place", _shifted_in_place, also="int32"),
)
