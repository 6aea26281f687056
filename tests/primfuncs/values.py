# SPDX-License-Identifier: Apache-2.0
"""Functions of 0 to 6 dimensions that compute: reductions, scans, products, several results, all dtypes."""

from __future__ import annotations

from tvm.script import tirx as T

from .structure import Structure


def _scalar(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scalar(A: T.Buffer((), dt), B: T.Buffer((), dt)):
        with T.sblock("add"):
            B[()] = A[()] + A[()]

    return scalar


def _scalar_sum(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scalar_sum(A: T.Buffer((n,), dt), B: T.Buffer((), dt)):
        for k in range(n):
            with T.sblock("sum"):
                vk = T.axis.reduce(n, k)
                with T.init():
                    B[()] = T.Cast(dt, 0)
                B[()] = B[()] + A[vk]

    return scalar_sum


def _broadcast_scalar(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def broadcast_scalar(A: T.Buffer((), dt), B: T.Buffer((n, 3), dt)):
        for i, j in T.grid(n, 3):
            with T.sblock("fill"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[()]

    return broadcast_scalar


def _elementwise_1d(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def elementwise_1d(A: T.Buffer((n * 31,), dt), B: T.Buffer((n * 31,), dt)):
        for i in range(n * 31):
            with T.sblock("mul"):
                v = T.axis.spatial(n * 31, i)
                B[v] = A[v] * A[v] + T.Cast(dt, 1)

    return elementwise_1d


def _broadcast_3d(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def broadcast_3d(A: T.Buffer((3, 1, n), dt), B: T.Buffer((1, 5, 1), dt), C: T.Buffer((3, 5, n), dt)):
        for i, j, k in T.grid(3, 5, n):
            with T.sblock("add"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vi, vj, vk] = A[vi, 0, vk] + B[0, vj, 0]

    return broadcast_3d


def _elementwise_5d(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def elementwise_5d(A: T.Buffer((2, 3, 2, n, 3), dt), B: T.Buffer((2, 3, 2, n, 3), dt)):
        for a, b, c, d, e in T.grid(2, 3, 2, n, 3):
            with T.sblock("sub"):
                va, vb, vc, vd, ve = T.axis.remap("SSSSS", [a, b, c, d, e])
                B[va, vb, vc, vd, ve] = A[va, vb, vc, vd, ve] * T.Cast(dt, 2)

    return elementwise_5d


def _row_sum(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def row_sum(A: T.Buffer((n, 45), dt), B: T.Buffer((n,), dt)):
        for i, k in T.grid(n, 45):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.Cast(dt, 0)
                B[vi] = B[vi] + A[vi, vk]

    return row_sum


def _column_max(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def column_max(A: T.Buffer((n, 21), dt), B: T.Buffer((21,), dt)):
        for j, k in T.grid(21, n):
            with T.sblock("max"):
                vj, vk = T.axis.remap("SR", [j, k])
                with T.init():
                    B[vj] = T.min_value(dt)
                B[vj] = T.max(B[vj], A[vk, vj])

    return column_max


def _prefix_sums(n: int, dt: str):
    """Row i is the sum of the first i + 1: an init of elements, a predicate of both kinds of variables."""

    @T.prim_func(s_tir=True)
    def prefix_sums(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for i, k in T.grid(n, n):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.Cast(dt, 0)
                B[vi] = B[vi] + T.if_then_else(vk <= vi, A[vk], T.Cast(dt, 0))

    return prefix_sums


def _predicated_sum(n: int, dt: str):
    """The init is of the elements alone that some iteration reaches."""

    @T.prim_func(s_tir=True)
    def predicated_sum(A: T.Buffer((n, 8), dt), B: T.Buffer((n,), dt)):
        for i, k in T.grid(n, 8):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(i + k < n - 3)
                with T.init():
                    B[vi] = T.Cast(dt, 0)
                B[vi] = B[vi] + A[vi, vk]

    return predicated_sum


def _scan_by_choice(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scan_by_choice(A: T.Buffer((6, n), dt), B: T.Buffer((6, n), dt)):
        for i in range(6):
            for j in range(n):
                with T.sblock("scan"):
                    vi = T.axis.spatial(6, i)
                    vj = T.axis.opaque(n, j)
                    B[vi, vj] = T.if_then_else(vj == 0, A[vi, vj], B[vi, vj - 1] + A[vi, vj])

    return scan_by_choice


def _scan_by_branch(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scan_by_branch(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for j in range(n):
            with T.sblock("scan"):
                vj = T.axis.opaque(n, j)
                if vj == 0:
                    B[vj] = A[vj]
                else:
                    B[vj] = B[vj - 1] + A[vj]

    return scan_by_branch


def _scan_with_first(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def scan_with_first(A: T.Buffer((n, 4), dt), B: T.Buffer((n, 4), dt)):
        for j in range(4):
            with T.sblock("first"):
                vj = T.axis.spatial(4, j)
                B[0, vj] = A[0, vj]
        for i, j in T.grid(n - 1, 4):
            with T.sblock("rest"):
                vi = T.axis.opaque(n - 1, i)
                vj = T.axis.spatial(4, j)
                B[vi + 1, vj] = B[vi, vj] + A[vi + 1, vj]

    return scan_with_first


def _product(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def product(A: T.Buffer((n, 29), dt), W: T.Buffer((29, 18), dt), C: T.Buffer((n, 18), dt)):
        for i, j, k in T.grid(n, 18, 29):
            with T.sblock("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.Cast(dt, 0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vk, vj]

    return product


def _batched_product(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def batched_product(A: T.Buffer((3, n, 8), dt), W: T.Buffer((3, 12, 8), dt), C: T.Buffer((3, n, 12), dt)):
        for b, i, j, k in T.grid(3, n, 12, 8):
            with T.sblock("product"):
                vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
                with T.init():
                    C[vb, vi, vj] = T.Cast(dt, 0)
                C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * W[vb, vj, vk]

    return batched_product


def _byte_product(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def byte_product(A: T.Buffer((n, 16), dt), W: T.Buffer((16, 16), dt), C: T.Buffer((n, 16), "int32")):
        for i, j, k in T.grid(n, 16, 16):
            with T.sblock("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vk, vj])

    return byte_product


def _convolution(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def convolution(A: T.Buffer((3, n + 4), dt), W: T.Buffer((5, 3, 5), dt), B: T.Buffer((5, n), dt)):
        for o, x, c, k in T.grid(5, n, 3, 5):
            with T.sblock("sum"):
                vo, vx, vc, vk = T.axis.remap("SSRR", [o, x, c, k])
                with T.init():
                    B[vo, vx] = T.Cast(dt, 0)
                B[vo, vx] = B[vo, vx] + A[vc, vx + vk] * W[vo, vc, vk]

    return convolution


def _pooled(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def pooled(A: T.Buffer((4, 2 * n), dt), B: T.Buffer((4, n), dt)):
        for c, x, k in T.grid(4, n, 3):
            with T.sblock("max"):
                vc, vx, vk = T.axis.remap("SSR", [c, x, k])
                with T.init():
                    B[vc, vx] = T.min_value(dt)
                B[vc, vx] = T.max(
                    B[vc, vx], T.if_then_else(vx * 2 + vk < 2 * n, A[vc, vx * 2 + vk], T.min_value(dt))
                )

    return pooled


def _normalised(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def normalised(A: T.Buffer((n, 33), dt), B: T.Buffer((n, 33), dt)):
        S = T.sblock_alloc_buffer((n,), dt)
        for i, k in T.grid(n, 33):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.Cast(dt, 1)
                S[vi] = S[vi] + A[vi, vk] * A[vi, vk]
        for i, j in T.grid(n, 33):
            with T.sblock("divide"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] / S[vi]

    return normalised


def _two_results(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def two_results(A: T.Buffer((n, 9), dt), B: T.Buffer((n, 9), dt), C: T.Buffer((n, 9), dt)):
        for i, j in T.grid(n, 9):
            with T.sblock("both"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.Cast(dt, 1)
                C[vi, vj] = A[vi, vj] * A[vi, vj]

    return two_results


def _results_of_two_shapes(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def results_of_two_shapes(A: T.Buffer((n, 9), dt), S: T.Buffer((n,), dt), B: T.Buffer((n, 9), dt)):
        for i, k in T.grid(n, 9):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.Cast(dt, 0)
                S[vi] = S[vi] + A[vi, vk]
        for i, j in T.grid(n, 9):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * S[vi]

    return results_of_two_shapes


def _arg_max(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def arg_max(A: T.Buffer((n, 27), dt), V: T.Buffer((n,), dt), P: T.Buffer((n,), "int64")):
        for i, k in T.grid(n, 27):
            with T.sblock("best"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    V[vi] = T.min_value(dt)
                    P[vi] = T.int64(0)
                v_i: T.let[T.int64] = T.Select(A[vi, vk] > V[vi], T.Cast("int64", vk), P[vi])
                v_v: T.let[T.float32] = T.Select(A[vi, vk] > V[vi], A[vi, vk], V[vi])
                V[vi] = v_v
                P[vi] = v_i

    return arg_max


def _integers(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def integers(A: T.Buffer((n,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("divide"):
                v = T.axis.spatial(n, i)
                B[v] = T.floordiv(A[v] - T.Cast(dt, 2), T.Cast(dt, 3)) * T.Cast(dt, 5) + T.floormod(
                    A[v] - T.Cast(dt, 2), T.Cast(dt, 3)
                )

    return integers


def _compared(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def compared(A: T.Buffer((n, 5), dt), B: T.Buffer((n, 5), dt), C: T.Buffer((n, 5), "bool")):
        for i, j in T.grid(n, 5):
            with T.sblock("less"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] < B[vi, vj] or A[vi, vj] > T.Cast(dt, 1)

    return compared


def _chosen(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def chosen(M: T.Buffer((n,), "bool"), A: T.Buffer((n, 5), dt), C: T.Buffer((n, 5), dt)):
        for i, j in T.grid(n, 5):
            with T.sblock("choose"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.Select(M[vi], A[vi, vj], T.Cast(dt, 0))

    return chosen


def _narrowed(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def narrowed(A: T.Buffer((n * 8,), dt)):
        for i in range(n * 8):
            with T.sblock("narrow"):
                v = T.axis.spatial(n * 8, i)
                A[v] = T.Cast(dt, T.Cast("int8", v)) + T.Cast(dt, T.Cast("uint8", v - 40))

    return narrowed


def _positions(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def positions(B: T.Buffer((n, 6), dt)):
        for i, j in T.grid(n, 6):
            with T.sblock("fill"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.Cast(dt, vi * 6 - vj)

    return positions


def _window_sums(n: int, dt: str):
    """A scan of a window, with loops inside of one block."""

    @T.prim_func(s_tir=True)
    def window_sums(A: T.Buffer((n + 3,), dt), B: T.Buffer((n,), dt)):
        for i in range(n):
            with T.sblock("window"):
                vi = T.axis.spatial(n, i)
                B[vi] = T.Cast(dt, 0)
                for k in range(4):
                    B[vi] = B[vi] + A[vi + k]

    return window_sums


def _loops_in_a_block(n: int, dt: str):
    @T.prim_func(s_tir=True)
    def loops_in_a_block(A: T.Buffer((n, 11), dt), B: T.Buffer((n, 11), dt)):
        with T.sblock("all"):
            for i in range(n):
                for j in range(11):
                    B[i, j] = A[i, j] + A[i, 10 - j]

    return loops_in_a_block


STRUCTURES = (
    Structure("scalar", _scalar, also="int32", sizes=(1,)),
    Structure("scalar_sum", _scalar_sum, also="int32"),
    Structure("broadcast_scalar", _broadcast_scalar, also="bool"),
    Structure("elementwise_1d", _elementwise_1d, also="float16"),
    Structure("broadcast_3d", _broadcast_3d, also="float16"),
    Structure("elementwise_5d", _elementwise_5d, also="int32", sizes=(7, 8)),
    Structure("row_sum", _row_sum, also="float16"),
    Structure("column_max", _column_max, also="int32"),
    Structure("prefix_sums", _prefix_sums),
    Structure("predicated_sum", _predicated_sum, also="int32"),
    Structure("scan_by_choice", _scan_by_choice, also="int32"),
    Structure("scan_by_branch", _scan_by_branch),
    Structure("scan_with_first", _scan_with_first),
    Structure("product", _product, also="float16"),
    Structure("batched_product", _batched_product, also="float16"),
    Structure("byte_product", _byte_product, dtype="int8"),
    Structure("convolution", _convolution, also="float16"),
    Structure("pooled", _pooled, also="float16"),
    Structure("normalised", _normalised),
    Structure("two_results", _two_results, also="float16"),
    Structure("results_of_two_shapes", _results_of_two_shapes),
    Structure("arg_max", _arg_max),
    Structure("integers", _integers, dtype="int32", also="int64"),
    Structure("compared", _compared, also="int32"),
    Structure("chosen", _chosen, also="bool"),
    Structure("narrowed", _narrowed, also="int32"),
    Structure("positions", _positions, also="int64"),
    Structure("window_sums", _window_sums),
    Structure("loops_in_a_block", _loops_in_a_block, also="float16"),
)
