# SPDX-License-Identifier: Apache-2.0
"""Library operators on the CPU against float64, with oneDNN and without, on one and two threads."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from attrs import evolve
from tvm import relax
from uir_tvm.errors import ShapeError
from uir_tvm.library import cpu, reference
from uir_tvm.library.cpu import Conv2dAttrs, MatmulAttrs, OperandLayout
from uir_tvm.target.cpu.processors import PANELS_OF_64

Array = np.ndarray[Any, Any]

#: Relative to the largest result. Sums of k products in float32 err by about sqrt(k) * 6e-8 of it (k <= 4608
#: here), the library's activations by some 1e-7; half types round the result once: 2^-11 and 2^-8.
TOLERANCE = {"float32": 1e-5, "float64": 1e-14, "float16": 2e-3, "bfloat16": 1e-2}


def random(seed: int, *shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(dtype)


def tensor(array: Array) -> Any:
    return tvm.runtime.tensor(np.ascontiguousarray(array))


def run(attrs: MatmulAttrs | Conv2dAttrs, first: Array, second: Array, *more: Array, out: Array) -> Array:
    """Call the registered function as Relax does; returns the output buffer."""
    weight = cpu.pack_weight(tensor(second), attrs) if attrs.packed else tensor(second)
    result = tensor(out)
    name = cpu.MATMUL if isinstance(attrs, MatmulAttrs) else cpu.CONV2D
    tvm_ffi.get_global_func(name)(tensor(first), weight, *[tensor(m) for m in more], attrs.to_json(), result)
    return result.numpy()


def assert_close(got: Array, want: Array, dtype: str = "float32") -> None:
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    assert float(np.abs(got.astype(np.float64) - want).max(initial=0)) <= TOLERANCE[dtype] * scale


def check_matmul(
    attrs: MatmulAttrs, a: Array, b: Array, out_shape: tuple[int, ...], dtype: str = "float32"
) -> None:
    kind = a.dtype
    more = {}
    if attrs.bias:
        more["bias"] = random(7, attrs.n, dtype=kind)
    if attrs.residual != "none":
        more["residual"] = random(8, *out_shape, dtype=kind)
    before = np.full(out_shape, 3, kind)
    got = run(attrs, a, b, *more.values(), out=before)
    assert_close(got, reference.matmul(attrs, a, b, **more, out=before), dtype)


#: A text of every activation.
ACTIVATION_TEXTS = (
    *reference.ACTIVATIONS,
    "leaky_relu(0.1)",
    "clip(-0.5,0.75)",
    "hard_sigmoid(0.2,0.5)",
    "hard_swish(0.16666666666666666,0.5)",
)


def test_every_activation_has_a_text() -> None:
    assert [reference.activation_name(text) for text in ACTIVATION_TEXTS] == list(cpu.EPILOGUES["activation"])


@pytest.mark.parametrize("activation", ACTIVATION_TEXTS)
@pytest.mark.parametrize("residual", cpu.RESIDUALS)
def test_every_epilogue(library: bool, activation: str, residual: str) -> None:
    """Every activation with every place of the residual, bias, with and without a scale, packed and not."""
    for alpha in (1.0, 0.125):
        for packed in (False, True):
            attrs = MatmulAttrs.contiguous(
                (37, 50),
                (50, 70),
                bias=True,
                residual=residual,
                activation=activation,
                alpha=alpha,
                packed=packed,
            )
            check_matmul(attrs, random(1, 37, 50), random(2, 50, 70), (37, 70))


@pytest.mark.parametrize("rows", [1, 11])
@pytest.mark.parametrize("activation", ["none", "relu", "silu", "hard_sigmoid(0.2,0.5)", "gelu_erf"])
def test_few_rows_by_a_packed_weight(library: bool, threads: int, activation: str, rows: int) -> None:
    """In the middle of what holds them: offsets of the rows, and of the result with its residual."""
    k, n = 77, 130
    attrs = MatmulAttrs(
        m=rows,
        n=n,
        k=k,
        a=OperandLayout((k, 1), 5),
        b=OperandLayout((n, 1), 0),
        out=OperandLayout((n, 1), 9),
        bias=True,
        residual="before_activation",
        activation=activation,
        packed=True,
    )
    check_matmul(attrs, random(1, rows * k + 8), random(2, k, n), (rows * n + 12,))


def test_which_products_of_many_rows_are_panels() -> None:
    """Of AVX2, and of AVX512 on processors where that was measured."""
    isa, processor = cpu.available().isa, str(tvm.target.codegen.llvm_get_system_cpu())
    panels = "avx512" not in isa or processor in PANELS_OF_64
    if "avx" not in isa:
        pytest.skip("panels are for AVX2 and AVX512")
    plan = cpu.describe(MatmulAttrs.contiguous((128, 384), (384, 300), packed=True))["plan"]
    assert (plan == "panels") == panels


def test_few_rows_are_read_in_tiles_unless_their_weight_is_another_s() -> None:
    isa = cpu.available().isa
    if "avx" not in isa:
        pytest.skip("tiles are for AVX2 and AVX512")
    many = cpu.describe(MatmulAttrs.contiguous((128, 384), (384, 300), packed=True))["plan"]
    # panels of AVX512 are where they were measured
    most = 32 if "avx512" not in isa else 5 if many == "panels" else 1
    for rows, plan in ((1, "tiles"), (most, "tiles"), (most + 1, many)):
        attrs = MatmulAttrs.contiguous((rows, 384), (384, 300), packed=True)
        assert cpu.describe(attrs)["plan"] == plan
        # what tiles of many rows read, those of few do too
        shared = plan if many == "panels" else "direct"
        assert cpu.describe(evolve(attrs, packed_for=2048))["plan"] == shared


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (1, 1, 1),
        (1, 384, 384),
        (7, 1, 5),
        (5, 7, 3),
        (128, 384, 1),
        (1, 13, 1),
        (129, 65, 193),
        (33, 300, 401),
    ],
)
def test_ragged_sizes(library: bool, threads: int, m: int, k: int, n: int) -> None:
    """Sizes of one element and sizes that no tile divides."""
    for packed in (False, True):
        check_matmul(
            MatmulAttrs.contiguous((m, k), (k, n), packed=packed), random(1, m, k), random(2, k, n), (m, n)
        )


@pytest.mark.parametrize(
    "shapes",
    [((0, 5), (5, 6)), ((4, 0), (0, 6)), ((4, 5), (5, 0)), ((0, 4, 5), (0, 5, 6)), ((2, 0), (3, 0, 4))],
)
def test_products_of_nothing(library: bool, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """An empty result, or zeros with the rest of the epilogue."""
    attrs = MatmulAttrs.contiguous(*shapes, bias=True, activation="sigmoid")
    a, b = (random(seed, *shape) for seed, shape in enumerate(shapes))
    check_matmul(attrs, a, b, (*attrs.batch, attrs.m, attrs.n))


def test_a_weight_without_elements_is_not_packed() -> None:
    with pytest.raises(ShapeError, match="is of a weight without elements"):
        cpu.pack_weight(random(1, 0, 4), MatmulAttrs.contiguous((3, 0), (0, 4)))


@pytest.mark.parametrize("residual", ["none", "before_activation"])
@pytest.mark.parametrize("packed", [False, True])
def test_results_of_one_column(library: bool, threads: int, residual: str, packed: bool) -> None:
    """The library computes them as rows: batches that become rows, others, and a bias of one number."""
    epilogue = {"bias": True, "residual": residual, "activation": "relu"}
    for a, b in (((130, 70), (70, 1)), ((3, 40, 70), (70, 1)), ((3, 40, 70), (3, 70, 1))):
        attrs = MatmulAttrs.contiguous(a, b, **epilogue)
        attrs = evolve(attrs, packed=packed and attrs.packable)
        check_matmul(attrs, random(1, *a), random(2, *b), (*attrs.batch, attrs.m, 1))
    strided = MatmulAttrs(
        m=9,
        n=1,
        k=5,
        a=OperandLayout((1, 9)),
        b=OperandLayout((3, 1), 1),
        out=OperandLayout((4, 1), 2),
        **epilogue,
    )
    check_matmul(strided, random(3, 5, 9), random(4, 5, 3), (9, 4))


def test_results_of_one_column_are_no_reference_code() -> None:
    if not cpu.available():
        pytest.skip("no library")
    for packed in (False, True):
        described = cpu.describe(MatmulAttrs.contiguous((128, 384), (384, 1), packed=packed))
        assert described["plan"] == "direct" and not described["implementation"].startswith("ref")


def test_the_layout_of_a_weight_is_that_of_its_sizes_alone() -> None:
    """What was packed before makes no difference: a panel of one row is not taken for a narrower result."""
    of_library = {"packed": True, "activation": "gelu_erf"}  # which tiles leave to it
    wide, narrow = (MatmulAttrs.contiguous((1, 24), (24, n), **of_library) for n in (384, 192))
    weight = random(1, 24, 384)
    cpu.pack_weight(random(2, 24, 192), narrow)
    again = MatmulAttrs.contiguous((2, 24), (24, 384), **of_library)
    one, other = (np.from_dlpack(cpu.pack_weight(weight, each)) for each in (wide, again))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_transposed_operands(library: bool, threads: int, transpose_a: bool, transpose_b: bool) -> None:
    a, b = (
        random(1, *((90, 64) if transpose_a else (64, 90))),
        random(2, *((100, 90) if transpose_b else (90, 100))),
    )
    for packed in (False, True):
        attrs = MatmulAttrs.contiguous(
            a.shape, b.shape, transpose_a=transpose_a, transpose_b=transpose_b, packed=packed, bias=True
        )
        check_matmul(attrs, a, b, (64, 100))


def test_attention_without_copies(library: bool, threads: int) -> None:
    """Scores and mixing read heads where the projection wrote them, [b, s, h * d], and write there."""
    b, s, h, d = 2, 33, 3, 16
    heads = OperandLayout((s * h * d, d, h * d, 1))
    heads_transposed = OperandLayout((s * h * d, d, 1, h * d))
    scores = OperandLayout((h * s * s, s * s, s, 1))
    q, k, p = random(1, b, s, h * d), random(2, b, s, h * d), random(3, b, h, s, s)
    attrs = MatmulAttrs(batch=(b, h), m=s, n=s, k=d, a=heads, b=heads_transposed, out=scores, alpha=d**-0.5)
    check_matmul(attrs, q, k, (b, h, s, s))
    attrs = MatmulAttrs(batch=(b, h), m=s, n=d, k=s, a=scores, b=heads, out=heads)
    check_matmul(attrs, p, k, (b, s, h * d))


def test_slices_of_one_fused_projection(library: bool) -> None:
    """q and k as slices of one [s, 3 * h * d] buffer: offsets and row strides."""
    s, h, d = 20, 2, 8
    row = 3 * h * d
    attrs = MatmulAttrs(
        batch=(h,),
        m=s,
        n=s,
        k=d,
        a=OperandLayout((d, row, 1)),
        b=OperandLayout((d, 1, row), h * d),
        out=OperandLayout((s * s, s, 1)),
    )
    fused = random(1, s, row)
    check_matmul(attrs, fused, fused, (h, s, s))


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3, 8, 9), (9, 10)), ((2, 1, 8, 9), (3, 9, 10)), ((8, 9), (2, 3, 9, 10)), ((2, 2, 3, 4, 5), (5, 6))],
)
def test_broadcast_batch(library: bool, threads: int, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    attrs = MatmulAttrs.contiguous(a, b, residual="before_activation", activation="relu")
    check_matmul(attrs, random(1, *a), random(2, *b), (*attrs.batch, attrs.m, attrs.n))


def test_output_view_without_unit_stride(library: bool) -> None:
    """No fast library code writes such a layout; the elements between stay as they were."""
    attrs = MatmulAttrs(
        m=5,
        n=4,
        k=3,
        a=OperandLayout((6, 2)),
        b=OperandLayout((2, 7), 1),
        out=OperandLayout((3, 20), 2),
        residual="after_activation",
    )
    check_matmul(attrs, random(1, 5, 6), random(2, 5, 7), (5, 20))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_types(library: bool, threads: int, dtype: str) -> None:
    """Half types are summed in float32 and rounded once, float64 in float64."""
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    for packed in (False, True):
        attrs = MatmulAttrs.contiguous((33, 70), (70, 50), activation="silu", bias=True, packed=packed)
        check_matmul(attrs, random(1, 33, 70, dtype=kind), random(2, 70, 50, dtype=kind), (33, 50), dtype)


def test_half_rounds_as_numpy_does() -> None:
    """Every float16 value survives a product with 1, and values between are rounded to nearest even."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    values = every[~np.isnan(every)]
    enable = tvm_ffi.get_global_func("uir.library.cpu.set_enabled")
    enable(False)
    try:
        attrs = MatmulAttrs.contiguous((values.size, 1), (1, 1))
        out = np.zeros((values.size, 1), np.float16)
        got = run(attrs, values.reshape(-1, 1), np.ones((1, 1), np.float16), out=out)
        assert np.array_equal(got[:, 0], values)
        middle = (values.astype(np.float32) * np.float32(1.0003)).astype(np.float32)
        got = run(attrs, middle.reshape(-1, 1), np.ones((1, 1), np.float32), out=out)
        with np.errstate(over="ignore"):
            assert np.array_equal(got[:, 0], middle.astype(np.float16))
    finally:
        enable(True)


CONVOLUTIONS = [
    {"input": (1, 64, 14, 14), "weight": (64, 64, 3, 3), "padding": (1, 1, 1, 1)},
    {"input": (2, 3, 32, 32), "weight": (16, 3, 7, 7), "strides": (2, 2), "padding": (3, 3, 3, 3)},
    {"input": (1, 32, 9, 9), "weight": (130, 32, 1, 1), "strides": (2, 2)},
    {"input": (1, 3, 32, 32), "weight": (40, 3, 16, 16), "strides": (16, 16)},
    {"input": (2, 32, 9, 8), "weight": (32, 1, 3, 3), "padding": (1, 1, 1, 1), "groups": 32},
    {
        "input": (1, 6, 9, 9),
        "weight": (10, 3, 3, 3),
        "groups": 2,
        "dilation": (2, 1),
        "padding": (0, 2, 1, 0),
    },
    {"input": (1, 512, 7, 7), "weight": (96, 512, 3, 3), "padding": (1, 1, 1, 1)},
    {"input": (1, 1, 1, 1), "weight": (1, 1, 3, 3), "padding": (1, 1, 1, 1)},
]


@pytest.mark.parametrize("shape", CONVOLUTIONS, ids=lambda s: "x".join(map(str, s["weight"])))
def test_conv2d(library: bool, threads: int, shape: dict[str, Any]) -> None:
    """Strides, padding, dilation, groups, bias, residual and activation; packed and not."""
    for packed in (False, True):
        attrs = Conv2dAttrs(
            **shape, bias=True, residual="before_activation", activation="relu", packed=packed
        )
        x, w = random(1, *attrs.input), random(2, *attrs.weight)
        bias, residual = random(3, attrs.weight[0]), random(4, *attrs.output)
        got = run(attrs, x, w, bias, residual, out=np.zeros(attrs.output, np.float32))
        assert_close(got, reference.conv2d(attrs, x, w, bias, residual))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_conv2d_of_other_types(library: bool, dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    attrs = Conv2dAttrs(input=(1, 8, 9, 9), weight=(8, 8, 3, 3), padding=(1, 1, 1, 1), activation="silu")
    x, w = random(1, *attrs.input, dtype=kind), random(2, *attrs.weight, dtype=kind)
    assert_close(run(attrs, x, w, out=np.zeros(attrs.output, kind)), reference.conv2d(attrs, x, w), dtype)


def test_packed_weight_survives_another_layout(library: bool) -> None:
    """A weight packed with the library serves without it, and the other way round."""
    enable = tvm_ffi.get_global_func("uir.library.cpu.set_enabled")
    attrs = Conv2dAttrs(input=(1, 32, 9, 9), weight=(72, 32, 3, 3), packed=True)
    x, w = random(1, *attrs.input), random(2, *attrs.weight)
    blob = cpu.pack_weight(w, attrs)
    assert np.array_equal(cpu.unpack_weight(blob).view(np.float32).reshape(w.shape), w)
    enable(not library)
    out = tensor(np.zeros(attrs.output, np.float32))
    for _ in range(2):  # the second time from the cache of converted weights
        tvm_ffi.get_global_func(cpu.CONV2D)(tensor(x), blob, attrs.to_json(), out)
        assert_close(out.numpy(), reference.conv2d(attrs, x, w))


def test_damaged_packed_weight_is_refused() -> None:
    """Each kind of damage to the header, and truncation, end in an error, never in a read outside."""
    attrs = MatmulAttrs.contiguous((4, 5), (5, 6), packed=True)
    good = np.from_dlpack(cpu.pack_weight(random(1, 5, 6), attrs)).copy()
    matmul = tvm_ffi.get_global_func(cpu.MATMUL)
    x, out = tensor(random(2, 4, 5)), tensor(np.zeros((4, 6), np.float32))
    bad = [good[:-1], good[:100], np.zeros_like(good)]
    for byte in (0, 8):  # magic, version
        changed = good.copy()
        changed[byte] ^= 0xFF
        bad.append(changed)
    for blob in bad:
        with pytest.raises(ValueError, match="packed weight"):
            matmul(x, tensor(blob), attrs.to_json(), out)


def test_packed_weight_of_another_shape_is_refused() -> None:
    blob = cpu.pack_weight(random(1, 6, 5), MatmulAttrs.contiguous((4, 6), (6, 5), packed=True))
    attrs = MatmulAttrs.contiguous((4, 5), (5, 6), packed=True)
    with pytest.raises(ValueError, match="another shape"):
        tvm_ffi.get_global_func(cpu.MATMUL)(
            tensor(random(2, 4, 5)), blob, attrs.to_json(), tensor(np.zeros((4, 6), np.float32))
        )


def test_weight_with_a_batch_is_not_packed() -> None:
    with pytest.raises(ShapeError, match="cannot be packed"):
        cpu.pack_weight(random(1, 2, 5, 6), MatmulAttrs.contiguous((2, 4, 5), (2, 5, 6)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": (3, 5)}, "at least 20 elements"),
        ({"b": (5, 5)}, "at least 30 elements"),
        ({"out": (4, 5)}, "at least 24 elements"),
        ({"bias": (5,)}, "6 elements"),
        ({"a": "int32"}, "float16, bfloat16, float32 and float64"),
        ({"bias": "float64"}, "another type"),
    ],
)
def test_operands_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    """Nothing outside of a tensor is ever read or written: extents are checked before the call."""
    shapes: dict[str, tuple[int, ...]] = {"a": (4, 5), "b": (5, 6), "bias": (6,), "out": (4, 6)}
    types = dict.fromkeys(shapes, "float32")
    for name, value in change.items():
        (types if isinstance(value, str) else shapes)[name] = value
    a, b, bias, out = (tensor(np.zeros(shapes[n], types[n])) for n in ("a", "b", "bias", "out"))
    attrs = MatmulAttrs.contiguous((4, 5), (5, 6), bias=True)
    with pytest.raises(ValueError, match=message):
        tvm_ffi.get_global_func(cpu.MATMUL)(a, b, bias, attrs.to_json(), out)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"batch":[],"m":0}', '{"batch":[1,1,1,1],"m":1}'])
def test_malformed_attributes_are_refused(text: str) -> None:
    x = tensor(np.zeros((1, 1), np.float32))
    with pytest.raises(ValueError, match="matmul"):
        tvm_ffi.get_global_func(cpu.MATMUL)(x, x, text, x)


def test_wrong_number_of_arguments_is_refused() -> None:
    x = tensor(np.zeros((1, 1), np.float32))
    attrs = MatmulAttrs.contiguous((1, 1), (1, 1), bias=True)
    with pytest.raises(ValueError, match="5: two inputs, bias"):
        tvm_ffi.get_global_func(cpu.MATMUL)(x, x, attrs.to_json(), x)


def test_large_work_is_split_and_small_work_is_not() -> None:
    """One thread's share must pay for waking the other."""
    if cpu.available().threads < 2:
        pytest.skip("TVM's pool has one thread")
    if not cpu.available():
        pytest.skip("no library")
    large = cpu.describe(MatmulAttrs.contiguous((128, 384), (384, 1536)))
    small = cpu.describe(MatmulAttrs.contiguous((4, 16), (16, 16)))
    assert np.prod(large["parts"]) == 2
    assert np.prod(small["parts"]) == 1


def test_relax_module_with_memory_planning() -> None:
    """call_dps_packed with constants, a packed weight used twice, and TVM's own memory planning; exported."""
    w1, w2, bias = random(1, 64, 96), random(2, 96, 64), random(3, 96)
    up = MatmulAttrs.contiguous((32, 64), (64, 96), bias=True, activation="gelu_erf", packed=True)
    down = MatmulAttrs.contiguous((32, 96), (96, 64), residual="after_activation")
    packed = relax.const(np.from_dlpack(cpu.pack_weight(w1, up)))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((32, 64), "float32"))

    def call(attrs: MatmulAttrs, shape: tuple[int, int], *operands: Any) -> Any:
        arguments = relax.Tuple([*operands, tvm.ir.StringImm(attrs.to_json())])
        return builder.emit(
            relax.op.call_dps_packed(cpu.MATMUL, arguments, relax.TensorType(shape, "float32"))
        )

    with builder.function("main", [x]):
        with builder.dataflow():
            h = call(up, (32, 96), x, packed, relax.const(bias))
            y = call(down, (32, 64), h, relax.const(w2), x)
            z = builder.emit_output(call(up, (32, 96), y, packed, relax.const(bias)))
        builder.emit_func_output(z)
    machine = relax.VirtualMachine(tvm.compile(builder.finalize(), target="llvm"), tvm.cpu())

    value = random(4, 32, 64)
    got = machine["main"](tensor(value)).numpy()
    blank = {n: np.zeros((32, n), np.float32) for n in (64, 96)}
    h_ref = reference.matmul(up, value, w1, bias, out=blank[96])
    y_ref = reference.matmul(down, h_ref, w2, None, value, out=blank[64])
    assert_close(got, reference.matmul(up, y_ref, w1, bias, out=blank[96]))
