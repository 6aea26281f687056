# SPDX-License-Identifier: Apache-2.0
"""normalize: what each rule makes of a small function, and that it keeps the function's values."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op
from uir_tvm.errors import FrontendError
from uir_tvm.frontend import normalize
from uir_tvm.frontend.normalize import rewritten
from uir_tvm.frontend.relax_view import is_constant
from uir_tvm.frontend.rules import Rewriter

from tests.frontend.stock import assert_close, operators, run
from tests.models.imported import imported

RANDOM = np.random.default_rng(11)
Body = Callable[[relax.BlockBuilder, list[relax.Var]], tvm.ir.Expr]


def const(*shape: int, dtype: str = "float32") -> tvm.ir.Expr:
    return relax.const(RANDOM.standard_normal(shape).astype(dtype), dtype)


def build(body: Body, *shapes: tuple[int, ...], dtype: str = "float32") -> tvm.IRModule:
    """A module whose ``main`` has parameters of these shapes."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{index}", relax.TensorType(shape, dtype)) for index, shape in enumerate(shapes)]
    with builder.function("main", params):
        with builder.dataflow():
            output = builder.emit_output(body(builder, params))
        builder.emit_func_output(output)
    return builder.get()


def chain(*steps: Callable[[tvm.ir.Expr], tvm.ir.Expr]) -> Body:
    """Steps applied to the first parameter, one after another."""

    def body(builder: relax.BlockBuilder, params: list[relax.Var]) -> tvm.ir.Expr:
        value = params[0]
        for step in steps:
            value = builder.emit(step(value))
        return value

    return body


def split_sum(builder: relax.BlockBuilder, params: list[relax.Var]) -> tvm.ir.Expr:
    parts = builder.emit(op.split(params[0], [1, 3], axis=1))
    first, last = (builder.emit(relax.TupleGetItem(parts, index)) for index in (0, 2))
    return builder.emit(op.add(first, last))


def equal_calls(builder: relax.BlockBuilder, params: list[relax.Var]) -> tvm.ir.Expr:
    twice = [builder.emit(op.exp(params[0])) for _ in range(2)]
    builder.emit(op.sin(params[0]))  # dead
    return builder.emit(op.add(*twice))


def shared_scale(builder: relax.BlockBuilder, params: list[relax.Var]) -> tvm.ir.Expr:
    """A product with two users keeps its weight."""
    product = builder.emit(op.matmul(params[0], const(4, 3)))
    scaled = builder.emit(op.multiply(product, relax.const(0.3, "float32")))
    return builder.emit(op.add(builder.emit(op.exp(scaled)), product))


def stacked(builder: relax.BlockBuilder, params: list[relax.Var]) -> tvm.ir.Expr:
    return builder.emit(op.max(builder.emit(op.stack(params, axis=1)), axis=1))


MESH = [
    relax.const(np.arange(2).reshape(2, 1, 1), "int64"),
    relax.const(np.arange(6).reshape(1, 1, 6), "int64"),
]
PERMUTED = np.array([2, 0, 1], dtype="int64")

CASES: dict[str, tuple[Body, list[tuple[int, ...]], dict[str, int]]] = {
    # views
    "reshapes in a row": (
        chain(lambda x: op.expand_dims(x, [0]), lambda x: op.reshape(x, (3, 2))),
        [(2, 3)],
        {"reshape": 1},
    ),
    "reshape and back": (
        chain(lambda x: op.reshape(x, (3, 2)), lambda x: op.reshape(x, (2, 3)), op.exp),
        [(2, 3)],
        {"exp": 1},
    ),
    "squeeze and flatten": (chain(op.squeeze, op.flatten), [(1, 2, 3)], {"reshape": 1}),
    "permutations in a row": (
        chain(*[lambda x: op.permute_dims(x, [1, 2, 0])] * 2),
        [(2, 3, 4)],
        {"permute_dims": 1},
    ),
    "permutations that cancel": (
        chain(*[lambda x: op.permute_dims(x, [1, 0])] * 2, op.exp),
        [(2, 3)],
        {"exp": 1},
    ),
    "permutation of unit axes": (chain(lambda x: op.permute_dims(x, [1, 0, 2])), [(1, 2, 3)], {"reshape": 1}),
    "squeeze after a permutation": (
        chain(lambda x: op.permute_dims(x, [2, 0, 3, 1]), lambda x: op.squeeze(x, [0])),
        [(2, 3, 1, 4)],
        {"reshape": 1, "permute_dims": 1},
    ),
    "merged axes beside a permutation": (
        chain(
            lambda x: op.reshape(x, (6, 4, 5)),
            lambda x: op.permute_dims(x, [0, 2, 1]),
            lambda x: op.reshape(x, (2, 3, 5, 4)),
        ),
        [(2, 3, 4, 5)],
        {"permute_dims": 1},
    ),
    # broadcasts
    "broadcast before an operator": (
        lambda b, p: b.emit(op.add(b.emit(op.broadcast_to(p[0], (4, 2, 3))), p[1])),
        [(2, 3), (4, 2, 3)],
        {"add": 1},
    ),
    "operator after a broadcast": (
        chain(lambda x: op.broadcast_to(x, (4, 2, 3)), op.exp),
        [(2, 3)],
        {"exp": 1, "broadcast_to": 1},
    ),
    "broadcast of broadcast": (
        chain(lambda x: op.broadcast_to(x, (2, 3)), lambda x: op.broadcast_to(x, (4, 2, 3))),
        [(3,)],
        {"broadcast_to": 1},
    ),
    "slice of what is repeated": (
        chain(lambda x: op.broadcast_to(x, (4, 3)), lambda x: op.strided_slice(x, [0], [1], [3])),
        [(3,)],
        {"broadcast_to": 1},
    ),
    "reduction beside a broadcast": (
        chain(lambda x: op.broadcast_to(x, (4, 2, 3)), lambda x: op.max(x, -1)),
        [(2, 3)],
        {"max": 1, "reshape": 2, "broadcast_to": 1},
    ),
    "reduction over what is repeated": (
        chain(lambda x: op.broadcast_to(x, (4, 3)), lambda x: op.sum(x, 0)),
        [(3,)],
        {"broadcast_to": 1, "sum": 1},
    ),
    # elementwise
    "multiplication by ones": (
        chain(lambda x: op.multiply(x, op.ones((2, 3), "float32")), op.exp),
        [(2, 3)],
        {"exp": 1},
    ),
    "addition of equal numbers": (
        chain(lambda x: op.add(x, op.full((2, 3), relax.const(2.5)))),
        [(2, 3)],
        {"add": 1},
    ),
    "division by a power of two": (
        chain(lambda x: op.divide(x, relax.const(8.0))),
        [(2, 3)],
        {"multiply": 1},
    ),
    "division by three": (chain(lambda x: op.divide(x, relax.const(3.0))), [(2, 3)], {"divide": 1}),
    "square": (chain(lambda x: op.power(x, relax.const(2.0))), [(2, 3)], {"multiply": 1}),
    "cube": (chain(lambda x: op.power(x, relax.const(3.0))), [(2, 3)], {"multiply": 2}),
    "power of a half": (
        chain(op.exp, lambda x: op.power(x, relax.const(0.5))),
        [(3,)],
        {"exp": 1, "power": 1},
    ),
    "zeros of two signs": (
        chain(
            lambda x: op.divide(x, op.add(relax.const(np.array([0.0, -0.0], np.float32)), relax.const(-0.0)))
        ),
        [(3, 2)],
        {"divide": 1},
    ),
    "numbers that cancel": (
        chain(lambda x: op.add(x, relax.const(12582912.0)), lambda x: op.add(x, relax.const(-12582912.0))),
        [(2, 3)],
        {"add": 2},
    ),
    "numbers that overflow together": (
        chain(lambda x: op.add(x, relax.const(3e38)), lambda x: op.add(x, relax.const(3e38))),
        [(2, 3)],
        {"add": 2},
    ),
    "numbers that add up": (
        chain(lambda x: op.add(x, relax.const(2.0)), lambda x: op.add(x, relax.const(3.0))),
        [(2, 3)],
        {"add": 1},
    ),
    "inverse root": (
        chain(op.exp, op.sqrt, lambda x: op.divide(relax.const(1.0), x)),
        [(3,)],
        {"exp": 1, "rsqrt": 1},
    ),
    "clip with one bound": (chain(lambda x: op.clip(x, 0.1, float("inf"))), [(2, 3)], {"maximum": 1}),
    "cast to the same": (chain(lambda x: op.astype(x, "float32"), op.exp), [(2, 3)], {"exp": 1}),
    "selection by true": (
        lambda b, p: b.emit(op.exp(b.emit(op.where(relax.const(np.ones((2, 3), bool)), p[0], p[1])))),
        [(2, 3), (2, 3)],
        {"exp": 1},
    ),
    "selection by false": (
        lambda b, p: b.emit(op.where(relax.const(np.zeros((2, 3), bool)), p[0], p[1])),
        [(2, 3), (3,)],
        {"broadcast_to": 1},
    ),
    "maximum of a stack": (stacked, [(2, 3), (2, 3), (2, 3)], {"maximum": 2}),
    # slices and indices
    "slice of everything": (
        chain(lambda x: op.strided_slice(x, [0], [0], [9]), op.exp),
        [(2, 3)],
        {"exp": 1},
    ),
    "reversing slice": (
        chain(lambda x: op.strided_slice(x, [0], [-1], [-9], [-1])),
        [(2, 3)],
        {"strided_slice": 1},
    ),
    "split": (split_sum, [(2, 4)], {"strided_slice": 2, "add": 1}),
    "slice of a permutation": (
        chain(lambda x: op.permute_dims(x, [1, 0]), lambda x: op.strided_slice(x, [0], [1], [3])),
        [(2, 4)],
        {"strided_slice": 1, "permute_dims": 1},
    ),
    "part of a split axis": (
        chain(
            lambda x: op.reshape(x, (2, 3, 4)),
            lambda x: op.strided_slice(x, [1], [1], [2]),
            lambda x: op.squeeze(x, [1]),
        ),
        [(2, 12)],
        {"strided_slice": 1},
    ),
    "inner part of a split axis": (
        chain(lambda x: op.reshape(x, (2, 3, 4)), lambda x: op.strided_slice(x, [2], [1], [2])),
        [(2, 12)],
        {"reshape": 1, "strided_slice": 1},
    ),
    "take of one row": (
        chain(lambda x: op.take(x, relax.const(1, "int64"), axis=0)),
        [(3, 2)],
        {"strided_slice": 1, "reshape": 1},
    ),
    "take of a range": (
        chain(lambda x: op.take(x, relax.const(np.array([1, 2]), "int64"), axis=1)),
        [(2, 4)],
        {"strided_slice": 1},
    ),
    "take of all": (
        chain(lambda x: op.take(x, relax.const(np.arange(3), "int64"), axis=0), op.exp),
        [(3, 2)],
        {"exp": 1},
    ),
    "take out of order": (
        chain(lambda x: op.take(x, relax.const(PERMUTED, "int64"), axis=0)),
        [(3, 2)],
        {"take": 1},
    ),
    "index by a mesh": (chain(lambda x: op.index_tensor(x, MESH)), [(2, 6)], {"reshape": 1}),
    # sharing
    "equal calls": (equal_calls, [(2, 3)], {"exp": 1, "add": 1}),
    # contractions
    "scale of a product": (
        chain(
            lambda x: op.matmul(x, const(4, 6)),
            lambda x: op.add(x, const(6)),
            lambda x: op.reshape(x, (2, 3, 2, 3)),
            lambda x: op.permute_dims(x, [0, 2, 1, 3]),
            lambda x: op.multiply(x, relax.const(0.3)),
        ),
        [(2, 3, 4)],
        {"matmul": 1, "add": 1, "reshape": 1, "permute_dims": 1},
    ),
    "scale that overflows in the weights": (
        chain(
            lambda x: op.multiply(x, relax.const(1e-30)),
            lambda x: op.matmul(x, relax.const(np.full((4, 6), 1e30, np.float32))),
            lambda x: op.multiply(x, relax.const(1e30)),
        ),
        [(3, 4)],
        {"multiply": 2, "matmul": 1},
    ),
    "scale that vanishes in the weights": (
        chain(
            lambda x: op.matmul(x, relax.const(np.full((4, 6), 1e-30, np.float32))),
            lambda x: op.multiply(x, relax.const(1e-30)),
        ),
        [(3, 4)],
        {"multiply": 1, "matmul": 1},
    ),
    "scale of a shared product": (shared_scale, [(2, 4)], {"matmul": 1, "multiply": 1, "exp": 1, "add": 1}),
    "scale of a convolution": (
        chain(
            lambda x: op.nn.conv2d(x, const(3, 2, 3, 3), padding=1),
            lambda x: op.add(x, const(3, 1, 1)),
            lambda x: op.multiply(x, const(1, 3, 1, 1)),
            lambda x: op.add(x, const(1, 3, 1, 1)),
        ),
        [(1, 2, 4, 4)],
        {"nn.conv2d": 1, "add": 1},
    ),
    "scale of a convolution's columns": (
        chain(lambda x: op.nn.conv2d(x, const(3, 2, 3, 3), padding=1), lambda x: op.multiply(x, const(4))),
        [(1, 2, 4, 4)],
        {"nn.conv2d": 1, "multiply": 1},
    ),
    "rows counted otherwise": (
        chain(
            lambda x: op.reshape(x, (6, 4)),
            lambda x: op.matmul(x, const(4, 5)),
            lambda x: op.add(x, const(5)),
            lambda x: op.reshape(x, (2, 3, 5)),
        ),
        [(2, 3, 4)],
        {"matmul": 1, "add": 1},
    ),
    "two shifts": (
        chain(lambda x: op.add(x, const(2, 3)), lambda x: op.add(x, const(2, 3))),
        [(2, 3)],
        {"add": 1},
    ),
    "a vector and a number": (
        chain(lambda x: op.add(x, const(3)), lambda x: op.add(x, relax.const(0.5, "float32"))),
        [(2, 3)],
        {"add": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rule(name: str) -> None:
    """Values agree to a few roundings of fp32: only the rules on contractions round otherwise."""
    body, shapes, expected = CASES[name]
    before = build(body, *shapes)
    after = normalize(before)
    assert operators(after) == expected
    assert after["main"].ret_ty.shape is not None
    inputs = [RANDOM.standard_normal(shape).astype("float32") for shape in shapes]
    assert_close(run(after, inputs), run(before, inputs), 1e-6)


def test_constants_are_folded() -> None:
    """arange, comparison, cumulative sum and triangle of constants leave nothing to run."""

    def body(builder: relax.BlockBuilder, params: list[relax.Var]) -> tvm.ir.Expr:
        position = builder.emit(op.cumsum(builder.emit(op.arange(0, 4, 1, "int64")), 0))
        late = builder.emit(op.greater(position, relax.const(2, "int64")))
        ones = builder.emit(op.tril(builder.emit(op.ones((4, 4), "float32"))))
        mask = builder.emit(op.where(late, ones, builder.emit(op.zeros_like(ones))))
        return builder.emit(op.add(params[0], mask))

    before = build(body, (4, 4))
    after = normalize(before)
    assert operators(after) == {"add": 1}
    assert is_constant(after["main"].body.blocks[0].bindings[0].value.args[1])
    x = RANDOM.standard_normal((4, 4)).astype("float32")
    assert_close(run(after, [x]), run(before, [x]), 0)


def test_large_constants_are_not_made() -> None:
    """A broadcast of 4 bytes to 4 MiB stays an operator."""
    body = chain(
        lambda x: op.matmul(x, op.broadcast_to(relax.const(np.ones((1, 1024), "float32")), (1024, 1024)))
    )
    assert operators(normalize(build(body, (2, 1024)))) == {"broadcast_to": 1, "matmul": 1}


def test_argument_is_not_changed_and_result_is_stable() -> None:
    before = build(equal_calls, (2, 3))
    text = before.script()
    once = normalize(before)
    assert before.script() == text
    tvm.ir.assert_structural_equal(normalize(once), once)


def test_unused_parameters_stay() -> None:
    main = normalize(build(lambda b, p: b.emit(op.exp(p[1])), (2,), (3,)))["main"]
    assert [param.name for param in main.params] == ["x0", "x1"]


def test_result_may_be_a_parameter_twice() -> None:
    mod = normalize(build(lambda b, p: relax.Tuple([p[0], p[0]]), (2,)))
    x = np.array([1, 2], "float32")
    assert_close(run(mod, [x]), [x, x], 0)


def test_kernels_are_kept() -> None:
    """A PrimFunc that main calls survives with its name."""
    from tvm import topi

    mod = normalize(build(lambda b, p: b.emit_te(topi.flip, p[0], axis=0), (3,)))
    assert operators(mod) == {"call_tir": 1}
    assert_close(run(mod, [np.array([1, 2, 3], "float32")]), [np.array([3, 2, 1], "float32")], 0)


def test_assertions_are_dropped() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    with builder.function("main", [x], pure=False):
        builder.emit(op.assert_op(relax.const(True), format="never"))
        builder.emit_func_output(builder.emit(op.exp(x)))
    assert operators(normalize(builder.get())) == {"exp": 1}


def test_control_flow_is_refused() -> None:
    condition = relax.Var("c", relax.TensorType((), "bool"))
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [condition, x]):
        branches = [relax.SeqExpr([], body) for body in (x, x)]
        builder.emit_func_output(builder.emit(relax.If(condition, *branches)))
    with pytest.raises(FrontendError, match="control flow"):
        normalize(builder.get())


def test_module_without_main_is_refused() -> None:
    with pytest.raises(FrontendError, match="no function 'main'"):
        normalize(tvm.IRModule())


def test_clip_of_integers_drops_bounds_beyond_their_dtype() -> None:
    """No number of the dtype is the bound: 2**63 of int64, -1 of uint8."""
    for dtype, low, high in (("int64", 0, 2.0**63), ("uint8", -1, 200)):
        builder = relax.BlockBuilder()
        param = relax.Var("x", relax.TensorType((4,), dtype))
        with builder.function("main", [param]):
            with builder.dataflow():
                result = builder.emit_output(builder.emit(relax.op.clip(param, low, high)))
            builder.emit_func_output(result)
        text = normalize(builder.get()).script()
        assert "clip" not in text and ("minimum" in text) != ("maximum" in text)


@pytest.mark.parametrize("name", ["minilm", "vit", "llama"])
def test_what_is_normalised_stays_as_it_is(name: str) -> None:
    """The kernel graph takes such a module as it is."""
    mod = imported(name)
    assert normalize(mod)["main"].script() == mod["main"].script()


def test_rules_go_on_until_none_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that makes room for another one: passes come again, and at most once."""
    passes: list[int] = []

    def halved(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
        return rewriter.emit(relax.op.negative(call.args[0]))

    def counted(mod: tvm.IRModule, rules: object) -> tvm.IRModule:
        passes.append(len(rules))
        return rewritten(mod, rules)

    module = sys.modules[normalize.__module__]
    monkeypatch.setattr(module, "rewritten", counted)
    monkeypatch.setattr(module, "PASSES", ({}, {"tanh": (halved,)}))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(builder.emit(relax.op.tanh(x)))
        builder.emit_func_output(out)
    made = normalize(builder.get())
    assert "negative" in made["main"].script() and passes == [0, 1, 1]
    passes.clear()
    normalize(made)
    assert passes == [0, 1]
