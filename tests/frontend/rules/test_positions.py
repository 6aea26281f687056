# SPDX-License-Identifier: Apache-2.0
"""Positions that arange counts: what is known of them, whether sizes are open or numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, tirx
from uir_tvm.frontend.normalize import normalize
from uir_tvm.frontend.relax_view import op_name
from uir_tvm.kernel_graph import assemble, group
from uir_tvm.sizes.open_symbols import symbols_for
from uir_tvm.sizes.size_space import SizeSpace, reading_open_sizes

from tests.kernel_graph.programs import arguments, assert_close, module, run, run_graph

op = relax.op
#: Sizes, names among them, and dtype.
Spec = tuple[Any, str]


def normalized(body: Callable[..., Any], *specs: Spec) -> tuple[list[str], tvm.IRModule, SizeSpace]:
    """The operators that are left of a body over inputs with n (any size) and m (up to 32)."""
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    named = {"n": n, "m": m}
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{index}", relax.TensorType([named.get(size, size) for size in shape], dtype))
        for index, (shape, dtype) in enumerate(specs)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(body(builder.emit, *params, n, m))
        builder.emit_func_output(result)
    space = SizeSpace(symbols_for({"n": (0, None), "m": (0, 32)}, {"n": "n", "m": "m"}))
    with reading_open_sizes(space):
        mod = normalize(builder.get())
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    return [op_name(each.value) for each in bindings if op_name(each.value)], mod, space


def expect_same(
    body: Callable[..., Any],
    mod: tvm.IRModule,
    space: SizeSpace,
    specs: Sequence[Spec],
    sizes: dict[str, int],
) -> None:
    """The kernels of the normalised module compute what the body computes in numbers."""
    target = tvm.target.Target("llvm")
    graph = assemble(group(mod, target, space).at(space, sizes), target)
    inputs = {
        f"x{i}": (tuple(sizes.get(s, s) for s in shape), dtype) for i, (shape, dtype) in enumerate(specs)
    }
    args = arguments(inputs)
    args = [arg % 2 if arg.dtype == np.int64 else arg for arg in args]
    plain = module(inputs, lambda emit, *xs: body(emit, *xs, sizes["n"], sizes["m"]))
    assert_close(run_graph(graph, args), run(plain, args))


def table(rows: int = 32) -> Any:
    return relax.const(np.arange(rows * 4, dtype="float32").reshape(rows, 4))


def taken(emit: Any, x: Any, n: Any, m: Any) -> Any:
    return emit(op.add(x, emit(op.take(table(), emit(op.arange(0, m, 1, "int64")), axis=0, mode="fast"))))


def taken_by_a_table(emit: Any, x: Any, n: Any, m: Any) -> Any:
    numbers = relax.const(np.arange(3, 35, dtype="int64").reshape(1, 32))
    places = emit(op.strided_slice(numbers, [1], [0], [m]))
    found = emit(op.take(table(40), places, axis=0, mode="fast"))
    return emit(op.add(x, found))


def masked(emit: Any, x: Any, n: Any, m: Any) -> Any:
    rows, columns = emit(op.arange(0, n, 1, "int64")), emit(op.arange(0, m, 1, "int64"))
    rows, columns = emit(op.reshape(rows, (n, 1, 1))), emit(op.add(columns, relax.const(0, "int64")))
    columns = emit(op.reshape(columns, (1, 1, m)))
    below = emit(op.less(columns, relax.const(0, "int64")))
    wrapped = emit(op.where(below, emit(op.add(columns, relax.const(5, "int64"))), columns))
    found = emit(op.index_tensor(x, (rows, wrapped)))
    seen = emit(op.greater_equal(rows, relax.const(0, "int64")))
    return emit(op.logical_and(seen, found))


def repeated(emit: Any, x: Any, n: Any, m: Any) -> Any:
    zeros = relax.const(np.zeros((1, 32), "int64"))
    index = emit(op.gather_elements(zeros, emit(op.reshape(x, (1, m))), axis=1))
    return emit(op.take(table(), emit(op.broadcast_to(index, (n, m))), axis=0, mode="fast"))


@pytest.mark.parametrize(
    ("body", "shapes", "left"),
    [
        (taken, [(("m", 4), "float32")], ["strided_slice", "add"]),
        (taken_by_a_table, [(("m", 4), "float32")], None),
        (masked, [(("n", "m"), "bool")], ["reshape"]),
        (repeated, [(("m",), "int64")], ["broadcast_to"]),
    ],
)
def test_positions(body: Any, shapes: Any, left: list[str] | None) -> None:
    specs = [*shapes, (("n", "m"), "float32")]  # which says what n and m are

    def with_sizes(emit: Any, *given: Any) -> Any:
        *xs, _, n, m = given
        return body(emit, *xs, n, m)

    names, mod, space = normalized(with_sizes, *specs)
    assert "take" not in names and "index_tensor" not in names and "arange" not in names
    assert left is None or names == left
    for sizes in ({"n": 3, "m": 5}, {"n": 2, "m": 31}):
        assert space.admits()(**sizes)
        expect_same(with_sizes, mod, space, specs, sizes)


def test_what_is_not_in_range_stays_as_it_is() -> None:
    def body(emit: Any, x: Any, n: Any, m: Any) -> Any:
        return emit(op.take(table(), emit(op.arange(0, n, 1, "int64")), axis=0, mode="clip"))

    names, _, _ = normalized(body, (("n", "m"), "float32"))
    assert "take" in names  # n may be more than the table has


def begun(emit: Any, x: Any, n: Any, m: Any) -> Any:
    """x (m,) and the places n to n + m - 1, of which the size is a tensor of one element."""
    first = emit(op.astype(emit(op.reshape(emit(op.shape_to_tensor(relax.ShapeExpr([n]))), ())), "int64"))
    places = emit(op.add(emit(op.arange(0, m, 1, "int64")), first))
    return emit(op.add(x, emit(op.astype(emit(op.reshape(places, [1, m])), "float32"))))


def test_places_that_begin_at_a_size_are_counted() -> None:
    specs: list[Spec] = [((1, "m"), "float32"), (("n",), "float32")]

    def body(emit: Any, x: Any, other: Any, n: Any, m: Any) -> Any:
        return begun(emit, x, n, m)

    left, mod, space = normalized(body, *specs)
    assert left == ["arange", "reshape", "astype", "add"]
    (counted,) = [
        binding.value
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if op_name(binding.value) == "arange"
    ]
    assert [str(arg) for arg in counted.args] in (["n", "n + m", "T.int64(1)"], ["n", "m + n", "T.int64(1)"])
    expect_same(body, mod, space, specs, {"n": 5, "m": 7})


def test_other_steps_and_shares_stay_sums() -> None:
    """Places that fall, and what is no whole number, are added up as they were."""

    def falling(emit: Any, x: Any, other: Any, n: Any, m: Any) -> Any:
        first = emit(op.astype(emit(op.reshape(emit(op.shape_to_tensor(relax.ShapeExpr([n]))), ())), "int64"))
        places = emit(op.subtract(first, emit(op.arange(0, m, 1, "int64"))))
        return emit(op.add(x, emit(op.astype(emit(op.reshape(places, [1, m])), "float32"))))

    left, _, _ = normalized(falling, ((1, "m"), "float32"), (("n",), "float32"))
    assert "subtract" in left
