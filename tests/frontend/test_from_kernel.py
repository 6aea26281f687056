# SPDX-License-Identifier: Apache-2.0
"""One kernel as a model: which parameters are inputs, and what is refused."""

from __future__ import annotations

import pytest
from tvm import tirx
from tvm.script import tirx as T
from uir_tvm.errors import FrontendError, ShapeError
from uir_tvm.frontend import from_prim_func

from tests.schedule import functions


@T.prim_func(s_tir=True)
def scaled(a: T.Buffer((8,), "float32"), s: T.float32, b: T.Buffer((8,), "float32")) -> None:
    """A scalar parameter."""
    for i in range(8):
        with T.sblock("scale"):
            vi = T.axis.spatial(8, i)
            b[vi] = a[vi] * s


@T.prim_func(s_tir=True)
def output_first(b: T.Buffer((8,), "float32"), a: T.Buffer((8,), "float32")) -> None:
    """The output before the input."""
    for i in range(8):
        with T.sblock("copy"):
            vi = T.axis.spatial(8, i)
            b[vi] = a[vi]


@T.prim_func(s_tir=True)
def nothing(a: T.Buffer((8,), "float32")) -> None:
    """No output."""
    with T.sblock("root"):
        T.evaluate(0)


@T.prim_func(s_tir=True)
def symbolic(a: T.handle, b: T.handle) -> None:
    """A length that is known when it runs."""
    n = T.int64()
    x = T.match_buffer(a, (n,), "float32")
    y = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.sblock("copy"):
            vi = T.axis.spatial(n, i)
            y[vi] = x[vi]


def test_what_is_written_is_the_result() -> None:
    main = from_prim_func(functions.elementwise(6, 10), "kernel")["main"]
    assert [p.name for p in main.params] == ["x", "bias"]
    assert [int(extent) for extent in main.ret_ty.shape] == [6, 10]


@pytest.mark.parametrize(
    ("func", "kind", "words"),
    [
        (scaled, FrontendError, "scalar"),
        (output_first, FrontendError, "not in order"),
        (nothing, FrontendError, "writes no parameter"),
        (symbolic, ShapeError, "leaves n open"),
    ],
)
def test_refusals(func: tirx.PrimFunc, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        from_prim_func(func)
