# SPDX-License-Identifier: Apache-2.0
"""One call of a library operator for all sizes: right at random ones, refused where there is no operator."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import operator
from typing import Any

import attrs
import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, tirx
from uir_tvm.errors import SizeError
from uir_tvm.library import cpu, reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, OperandLayout
from uir_tvm.library.open_attrs import OpenAttrs
from uir_tvm.library.recurrence import GATES, RecurrenceAttrs, recurrence
from uir_tvm.library.sized import FUNCTION, in_numbers, sized_texts
from uir_tvm.library.work import work_of
from uir_tvm.sizes.open_arithmetic import least
from uir_tvm.sizes.open_size import at
from uir_tvm.sizes.open_symbols import OpenSymbol
from uir_tvm.sizes.size_space import SizeSpace

Array = np.ndarray[Any, Any]
RECURRENCE = "uir.library.cpu.recurrence"
#: Relative to the largest result: sums of at most 216 products in float32 err by about 1e-6 of it.
TOLERANCE = 1e-5
SPACE = SizeSpace([OpenSymbol("b", 2, None, 53), OpenSymbol("s", 2, None, 59)])
B, S = SPACE.symbol("b"), SPACE.symbol("s")
#: Sizes at which products take several rows of tiles, one, and none.
SIZES = st.fixed_dictionaries({"b": st.integers(0, 4), "s": st.integers(0, 70)})


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def call(
    function: str, attributes: OpenAttrs, sizes: dict[str, int], operands: list[Any], *outputs: Array
) -> list[Array]:
    """The outputs of a sized call; each output begins as the array that is given."""
    tensors = [a if isinstance(a, tvm_ffi.Tensor) else tvm.runtime.tensor(a) for a in operands]
    results = [tvm.runtime.tensor(array) for array in outputs]
    numbers = tvm_ffi.Shape([sizes[name] for name in attributes.symbols])
    texts = sized_texts(function, attributes)
    tvm_ffi.get_global_func(FUNCTION)(*tensors, *texts, numbers, *results)
    return [result.numpy() for result in results]


def assert_close(got: Array, want: Array) -> None:
    assert got.shape == want.shape
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    assert float(np.abs(got - want).max(initial=0)) <= TOLERANCE * scale


def check_matmul(attributes: MatmulAttrs, sizes: dict[str, int], a: Array, b: Array, out: Array) -> None:
    """With an operand b that is packed where the attributes say so."""
    more = {"bias": random(3, attributes.at(sizes).n)} if attributes.bias else {}
    if attributes.residual != "none":
        more["residual"] = random(4, *out.shape)
    second = cpu.pack_weight(b, attributes) if attributes.packed else b
    (got,) = call(cpu.MATMUL, attributes, sizes, [a, second, *more.values()], out)
    assert_close(got, reference.matmul(attributes.at(sizes), a, b, **more, out=out))


@settings(max_examples=20, deadline=None)
@given(sizes=SIZES, packed=st.booleans(), residual=st.sampled_from(cpu.RESIDUALS))
def test_a_layer(sizes: dict[str, int], packed: bool, residual: str) -> None:
    """[b, s, 48] by a weight, with all that follows it; no batch, no rows."""
    attributes = MatmulAttrs.contiguous(
        (B * S, 48), (48, 200), bias=True, residual=residual, activation="gelu_erf", alpha=0.5
    )
    if packed:
        attributes = attributes.with_packed_weight()
    rows = sizes["b"] * sizes["s"]
    check_matmul(attributes, sizes, random(1, rows, 48), random(2, 48, 200), np.ones((rows, 200), np.float32))


@settings(max_examples=20, deadline=None)
@given(sizes=SIZES)
def test_attention_where_it_lies(sizes: dict[str, int]) -> None:
    """Scores and their mixing of heads in [b, s, 3 * 4 * 8], strides of open sizes; b = 0, s = 0."""
    b, s = sizes["b"], sizes["s"]
    row = 96
    heads = OperandLayout((S * row, 8, row, 1))
    keys = OperandLayout((S * row, 8, 1, row), 32)
    scores = OperandLayout((4 * S * S, S * S, S, 1))
    fused, mixed = random(1, b, s, row), random(2, b, 4, s, s)
    scoring = MatmulAttrs(batch=(B, 4), m=S, n=S, k=8, a=heads, b=keys, out=scores, alpha=8**-0.5)
    check_matmul(scoring, sizes, fused, fused, np.ones((b, 4, s, s), np.float32))
    values = OperandLayout((S * row, 8, row, 1), 64)
    joined = OperandLayout((S * 32, 8, 32, 1))
    mixing = MatmulAttrs(batch=(B, 4), m=S, n=8, k=S, a=scores, b=values, out=joined)
    check_matmul(mixing, sizes, mixed, fused, np.ones((b, s, 32), np.float32))


def test_a_product_of_nothing_is_the_rest_of_its_epilogue(library: bool) -> None:
    """k = 0: zeros, with bias, residual and activation; what a view of the output leaves out stays."""
    attributes = MatmulAttrs(
        m=5,
        n=4,
        k=S,
        a=OperandLayout((S, 1)),
        b=OperandLayout((4, 1)),
        out=OperandLayout((8, 1), 2),
        bias=True,
        residual="before_activation",
        activation="tanh",
    )
    empty = np.zeros((0,), np.float32)
    check_matmul(attributes, {"s": 0}, empty, empty, random(5, 5, 8))


def test_no_rows_in_a_larger_output() -> None:
    """Nothing is written, though the output has elements."""
    attributes = MatmulAttrs.contiguous((S, 6), (6, 4))
    before = random(1, 3, 4)
    (got,) = call(cpu.MATMUL, attributes, {"s": 0}, [random(2, 0, 6), random(3, 6, 4)], before)
    assert np.array_equal(got, before)


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.fixed_dictionaries({"b": st.integers(0, 3), "s": st.integers(1, 40)}),
    shape=st.sampled_from(
        [
            {"weight": (70, 24, 3, 3), "padding": (1, 1, 1, 1)},
            {"weight": (16, 24, 1, 1), "strides": (2, 2)},
            {"weight": (24, 1, 3, 5), "padding": (1, 2, 1, 2), "groups": 24},
            {"weight": (8, 12, 2, 3), "padding": (1, 1, 2, 1), "dilation": (2, 1), "groups": 2},
        ]
    ),
    packed=st.booleans(),
)
def test_convolutions_of_any_image(sizes: dict[str, int], shape: dict[str, Any], packed: bool) -> None:
    """Open batch, rows and columns."""
    attributes = Conv2dAttrs(
        input=(B, 24, S, 2 * S + 1), bias=True, residual="after_activation", activation="relu", **shape
    )
    if packed:
        attributes = attributes.with_packed_weight()
    numbers = attributes.at(sizes)
    x, w, bias = random(1, *numbers.input), random(2, *numbers.weight), random(3, numbers.weight[0])
    residual = random(4, *numbers.output)
    second = cpu.pack_weight(w, attributes) if packed else w
    (got,) = call(cpu.CONV2D, attributes, sizes, [x, second, bias, residual], np.ones_like(residual))
    assert_close(got, reference.conv2d(numbers, x, w, bias, residual))


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.fixed_dictionaries({"b": st.integers(0, 4), "s": st.integers(0, 9)}),
    cell=st.sampled_from(sorted(GATES)),
    packed=st.booleans(),
)
def test_recurrences_of_any_length(sizes: dict[str, int], cell: str, packed: bool) -> None:
    """Open steps and batch; without steps an LSTM's cell stays as it was."""
    hidden, wide = 21, GATES[cell] * 21
    attributes = RecurrenceAttrs(
        cell=cell, steps=S, batch=B, hidden=hidden, weight=OperandLayout((wide, 1)), packed=packed
    )
    steps, batch = sizes["s"], sizes["b"]
    inputs, weight, state = random(1, steps, batch, wide), random(2, hidden, wide), random(3, batch, hidden)
    weight /= np.float32(np.sqrt(hidden))
    other = {"lstm": [random(4, batch, hidden)], "gru": [random(4, hidden)]}.get(cell, [])
    second = cpu.pack_recurrence(weight, attributes) if packed else weight
    rows = np.ones((steps, batch, hidden), np.float32)
    outputs = [rows, np.ones_like(state)] if cell == "lstm" else [rows]
    got = call(RECURRENCE, attributes, sizes, [inputs, second, state, *other], *outputs)
    want = recurrence(attributes.at(sizes), inputs, weight, state, *other)
    for one, wanted in zip(got, want, strict=False):
        assert wanted is not None
        assert_close(one, wanted)


@pytest.mark.parametrize("n", [40, 384, 400])
def test_one_packed_weight_serves_every_number_of_rows(n: int) -> None:
    """Its bytes depend on no rows, nor on a batch that becomes rows: nothing is converted at a call."""
    attributes = MatmulAttrs.contiguous((B * S, 64), (64, n), bias=True).with_packed_weight()
    heads = attrs.evolve(
        attributes,
        batch=(B,),
        m=S,
        a=OperandLayout((S * 64, 64, 1)),
        b=OperandLayout((0, n, 1)),
        out=OperandLayout((S * n, n, 1)),
    )
    weight = random(1, 64, n)
    blobs = {
        np.from_dlpack(cpu.pack_weight(weight, each.at({"b": b, "s": s}))).tobytes()
        for each in (attributes, heads)
        for b, s in ((1, 1), (1, 7), (2, 8), (3, 37), (1, 128), (4, 500))
    }
    assert blobs == {np.from_dlpack(cpu.pack_weight(weight, attributes)).tobytes()}


def test_a_convolutions_weight_has_few_layouts() -> None:
    """oneDNN reads no other than its own for an image, but images of all sizes share three at most."""
    attributes = Conv2dAttrs(
        input=(B, 32, S, S), weight=(80, 32, 3, 3), padding=(1, 1, 1, 1)
    ).with_packed_weight()
    weight = random(1, 80, 32, 3, 3)
    blobs = {
        np.from_dlpack(cpu.pack_weight(weight, attributes.at({"b": b, "s": s}))).tobytes()
        for b, s in ((1, 1), (1, 3), (1, 7), (1, 13), (2, 14), (1, 28), (1, 35), (3, 56), (1, 60))
    }
    assert len(blobs) <= 3


def test_through_relax() -> None:
    """`call_dps_packed` with texts and a shape of symbols, compiled once for all sizes."""
    b, s = tirx.Var("b", "int64"), tirx.Var("s", "int64")
    weight = random(1, 40, 24)
    attributes = MatmulAttrs.contiguous((B * S, 40), (40, 24), activation="relu").with_packed_weight()
    assert attributes.symbols == ("b", "s")
    packed = relax.const(np.from_dlpack(cpu.pack_weight(weight, attributes)))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((b, s, 40), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            texts = map(tvm.ir.StringImm, sized_texts(cpu.MATMUL, attributes))
            given = relax.Tuple([x, packed, *texts, relax.ShapeExpr([b, s])])
            made = relax.op.call_dps_packed(FUNCTION, given, relax.TensorType((b, s, 24), "float32"))
            result = builder.emit_output(builder.emit(made))
        builder.emit_func_output(result)
    machine = relax.VirtualMachine(tvm.compile(builder.finalize(), target="llvm"), tvm.cpu())
    for sizes in ((1, 1), (3, 50), (2, 0), (4, 7)):
        value = random(2, *sizes, 40)
        got = machine["main"](tvm.runtime.tensor(value)).numpy()
        assert_close(got, np.maximum(value.astype(np.float64) @ weight, 0))


def test_many_threads_and_more_sizes_than_are_kept() -> None:
    """Threads ask for sizes of their own and of others; results stay right when old ones are dropped."""
    one = OperandLayout((1, 1))
    attributes = MatmulAttrs(m=1, n=1, k=1, a=OperandLayout((1, 1), S), b=one, out=one, plan="plain")
    texts, sized = sized_texts(cpu.MATMUL, attributes), tvm_ffi.get_global_func(FUNCTION)
    values, factor = np.arange(5000, dtype=np.float32), np.full(1, 2, np.float32)
    a, b = tvm.runtime.tensor(values), tvm.runtime.tensor(factor)

    def wrong(thread: int) -> list[int]:
        out, found = tvm.runtime.tensor(np.zeros(1, np.float32)), []
        for number in range(2000):
            s = (thread * 1500 + number) % len(values)
            sized(a, b, *texts, tvm_ffi.Shape((s,)), out)
            if out.numpy()[0] != 2 * s:
                found.append(s)
        return found

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert not [s for found in pool.map(wrong, range(4)) for s in found]


def test_texts_are_those_of_the_numbers() -> None:
    """What the native code, `in_numbers` and `at` make of open attributes is the same operator."""
    part = (S + 1) // 2
    attributes = Conv2dAttrs(
        input=(B * S, 4, part, (S * B + 3) % 5 + 3), weight=(6, 4, 3, 3), padding=(1,) * 4
    )
    assert attributes.is_open and attributes.symbols == ("b", "s")
    for sizes in ({"b": 1, "s": 6}, {"b": 3, "s": 11}):
        numbers = attributes.at(sizes)
        assert not numbers.is_open and numbers.symbols == ()
        assert in_numbers("conv2d", attributes.to_json(), sizes) == numbers.to_json()
        assert Conv2dAttrs.from_json(numbers.to_json()) == numbers
        assert work_of("conv2d", attributes.to_json(), sizes) == work_of("conv2d", numbers.to_json())
        x, w = random(1, *numbers.input), random(2, *numbers.weight)
        (got,) = call(cpu.CONV2D, attributes, sizes, [x, w], np.zeros(numbers.output, np.float32))
        assert_close(got, reference.conv2d(numbers, x, w))


def test_attributes_ask_their_space_nothing_that_ranges_decide() -> None:
    space = SizeSpace([OpenSymbol("n", 2, None, 61)])
    n = space.symbol("n")
    made = MatmulAttrs.contiguous((n, 3, n, 8), (8, n), bias=True)
    assert made == attrs.evolve(made) and hash(made) == hash(attrs.evolve(made))
    assert made != MatmulAttrs.contiguous((n, 3, n, 8), (8, 2 * n), bias=True)
    Conv2dAttrs(input=(n, 3, n, n), weight=(4, 3, 3, 3), padding=(1, 1, 1, 1))
    assert space.conditions == ()
    Conv2dAttrs(input=(n, 3, n, n), weight=(4, 3, 3, 3))
    assert [str(each) for each in space.conditions] == ["n >= 3"]


OPERATOR = MatmulAttrs.contiguous((S, 4), (4, 4)).to_json()


@pytest.mark.parametrize(
    ("function", "text", "names", "sizes", "message"),
    [
        (cpu.MATMUL, OPERATOR.replace('"m":"s"', '"m":"s*"'), "s", [3], r"matmul: m is \"s\*\""),
        (cpu.MATMUL, OPERATOR.replace('"m":"s"', '"m":"s 3"'), "s", [3], 'nothing at "3"'),
        (cpu.MATMUL, OPERATOR.replace('"m":"s"', '"m":""'), "s", [3], "at its end"),
        (cpu.MATMUL, OPERATOR.replace('"m":"s"', '"m":"max(s, 1)"'), "s", [3], "div, mod or min, not max"),
        (cpu.MATMUL, OPERATOR.replace('"m":"s"', '"m":"%s"' % ("(" * 99)), "s", [3], "at most 64 levels"),
        (cpu.MATMUL, OPERATOR.replace('"m":"s"', '"m":"min(s)"'), "s", [3], "no expression"),
        (cpu.MATMUL, OPERATOR.replace("[4,1]", '[4,"t"]', 1), "s", [3], "(?s)matmul: a is .*not t"),
        (cpu.MATMUL, OPERATOR.replace('"m":"s"', '"m":"s - 5"'), "s", [3], "m is -2"),
        (cpu.MATMUL, OPERATOR.replace('"m":"s",', ""), "s", [3], "m is missing"),
        (cpu.MATMUL, OPERATOR[:-3] + '"', "s", [3], "end within a string"),
        (cpu.MATMUL, OPERATOR[:-1], "s", [3], "are not JSON"),
        (cpu.MATMUL, OPERATOR, "s,t", [3], '1 sizes for the names "s,t"'),
        (cpu.MATMUL, OPERATOR, "", [3], "1 sizes for the names"),
        (cpu.MATMUL, OPERATOR, "s", [4], "at least 16 elements"),
        ("uir.library.cpu.nothing", OPERATOR, "s", [3], "no function uir.library.cpu.nothing"),
    ],
)
def test_what_makes_no_operator_is_refused(
    function: str, text: str, names: str, sizes: list[int], message: str
) -> None:
    """The error names the operator and the field; nothing is written."""
    x, out = tvm.runtime.tensor(random(1, 3, 4)), tvm.runtime.tensor(np.ones((3, 4), np.float32))
    with pytest.raises(ValueError, match=message):
        tvm_ffi.get_global_func(FUNCTION)(x, x, function, text, names, tvm_ffi.Shape(sizes), out)
    assert np.array_equal(out.numpy(), np.ones((3, 4)))


@pytest.mark.parametrize(
    ("change", "size", "message"),
    [
        ("s", 2**31, r"The size s is 2147483648"),
        ("s", -1, r"The size s is -1"),
        ("s*s*s*s", 2**20, "s\\*s\\*s\\*s of a library operator is too large"),
        ("9223372036854775807 + s", 1, "is too large"),
        ("9223372036854775808", 1, "is too large"),
        ("-9223372036854775807 - 2*s", 1, "is too large"),
        ("div(8, s - 3)", 3, "is divided by 0"),
    ],
)
def test_sizes_that_no_tensor_has_are_refused(change: str, size: int, message: str) -> None:
    """Before anything runs, with the class that says so."""
    text = OPERATOR.replace('"m":"s"', f'"m":"{change}"')
    x = tvm.runtime.tensor(random(1, 3, 4))
    with pytest.raises(SizeError, match=message):
        tvm_ffi.get_global_func(FUNCTION)(x, x, cpu.MATMUL, text, "s", tvm_ffi.Shape([size]), x)


def test_sizes_within_64_bits_whose_elements_are_beyond() -> None:
    """2^31 - 1 rows and a row stride of almost as much twice over: no tensor has so many elements."""
    attributes = MatmulAttrs(
        m=S, n=4, k=4, a=OperandLayout((S * S, 1)), b=OperandLayout((4, 1)), out=OperandLayout((4, 1))
    )
    x = np.ones((3, 4), np.float32)
    with pytest.raises(ValueError, match="at least 9223372036854775807 elements"):
        call(cpu.MATMUL, attributes, {"s": 2**31 - 1}, [x, x], x)


@pytest.mark.parametrize("count", [0, 3, 6])
def test_too_few_arguments_are_refused(count: int) -> None:
    x = tvm.runtime.tensor(random(1, 3, 4))
    given = [x, x, cpu.MATMUL, OPERATOR, "s", tvm_ffi.Shape([3])][:count]
    with pytest.raises(ValueError, match="a shape of the sizes, outputs"):
        tvm_ffi.get_global_func(FUNCTION)(*given)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("b*s", 30),
        ("-2*b + 3*s*s - 1", 62),
        ("div(b*s, 4)*2 + mod(-b, 4)", 16),
        ("min(b, s) - div(-7, 2)", 9),
        ("(b + 1)*(s - 1)", 28),
    ],
)
def test_what_expressions_mean(text: str, number: int) -> None:
    """As Python has it, quotients rounded down."""
    sizes = {"b": 6, "s": 5}
    given = OPERATOR.replace('"m":"s"', json.dumps({"m": text}, separators=(",", ":"))[1:-1])
    assert json.loads(in_numbers("matmul", given, sizes))["m"] == number
    a, b = random(1, number, 4), random(2, 4, 4)
    out = tvm.runtime.tensor(np.zeros((number, 4), np.float32))
    tensors = [tvm.runtime.tensor(array) for array in (a, b)]
    tvm_ffi.get_global_func(FUNCTION)(*tensors, cpu.MATMUL, given, "b,s", tvm_ffi.Shape([6, 5]), out)
    assert_close(out.numpy(), a.astype(np.float64) @ b)


@given(
    way=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(0, 30)), max_size=8),
    b=st.integers(2, 60),
    s=st.integers(2, 60),
)
def test_texts_of_open_sizes_are_read_as_they_compute(
    way: list[tuple[int, int, int]], b: int, s: int
) -> None:
    """Polynomials with quotients, remainders and minima of each other, in whatever order."""
    operations = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, least)
    reached: list[Any] = [B, S, 1, 3, 8]
    for which, i, j in way:
        with contextlib.suppress(ArithmeticError):
            reached.append(operations[which](reached[i % len(reached)], reached[j % len(reached)]))
    sizes = {"b": b, "s": s}
    numbers = [at(size, sizes) for size in reached]
    if all(abs(number) < 2**40 for number in numbers):
        text = json.dumps({"strides": [str(size) for size in reached]})
        assert json.loads(in_numbers("any", text, sizes))["strides"] == numbers


def test_text_with_other_names_has_no_numbers() -> None:
    with pytest.raises(ValueError, match='matmul: m is "t"'):
        in_numbers("matmul", '{"m":"t"}', {"s": 1})
