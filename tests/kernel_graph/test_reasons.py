# SPDX-License-Identifier: Apache-2.0
"""Two kernels, and the reason why."""

from __future__ import annotations

from tvm import relax

from .programs import check, constant, kinds

op = relax.op
F32 = "float32"


def test_a_column_reduction_is_not_read_back_by_its_elements() -> None:
    """Reading a sum over rows back at every element needs all of it first: two kernels, and the reason."""

    def body(emit, x):
        total = emit(op.sum(x, axis=[0], keepdims=True))
        return emit(op.divide(x, total))

    graph = check({"x": ((6, 8), F32)}, body)
    assert kinds(graph) == ["reduction", "elementwise"]
    assert "repeated" in graph.why_not[0].reason


def test_two_row_kernels_over_different_rows_stay_two() -> None:
    def body(emit, x):
        return emit(op.nn.softmax(emit(op.nn.softmax(x, axis=-1)), axis=0))

    graph = check({"x": ((4, 8), F32)}, body)
    assert kinds(graph) == ["normalization", "normalization"]
    assert "hero" in graph.why_not[0].reason


def test_an_expensive_value_is_not_computed_for_every_reader() -> None:
    """exp of a row read by every row of a matrix: computed once, in a kernel of its own.

    Of so many rows that one more kernel takes less on every CPU.
    """

    def body(emit, row, x):
        return emit(op.add(emit(op.exp(row)), x))

    graph = check({"row": ((8,), F32), "x": ((5000, 8), F32)}, body)
    assert kinds(graph) == ["elementwise", "elementwise"]
    assert "computed 5000 times" in graph.why_not[0].reason


def test_a_result_with_two_readers_keeps_its_epilogue_outside() -> None:
    """What is absorbed is never written: a second reader must find it, and the graph says so."""

    def body(emit, x):
        y = emit(op.matmul(x, constant(8, 16)))
        return emit(op.nn.relu(y)), emit(op.exp(y))

    graph = check({"x": ((3, 8), "float32")}, body)
    assert kinds(graph) == ["matmul", "elementwise"] or kinds(graph) == [
        "matmul",
        "elementwise",
        "elementwise",
    ]
    assert any("2 readers" in entry.reason for entry in graph.why_not)
