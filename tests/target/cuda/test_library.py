# SPDX-License-Identifier: Apache-2.0
"""What cuBLASLt and cuDNN are asked for: stand-ins on the host compute it, and the result must be right.

Tensors in host memory that say that they are on a GPU reach the libraries as a GPU's would.
"""

from __future__ import annotations

import ctypes
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.errors import LibraryError
from uir_tvm.library import reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, OperandLayout
from uir_tvm.library.integer_matmul_attrs import IntegerMatmulAttrs
from uir_tvm.library.library_tables import library_of
from uir_tvm.library.sized import FUNCTION as SIZED
from uir_tvm.library.sized import sized_texts
from uir_tvm.sizes.open_symbols import OpenSymbol
from uir_tvm.sizes.size_space import SizeSpace
from uir_tvm.target.cuda import library as cuda

Array = np.ndarray[Any, Any]
FAKES = pathlib.Path(__file__).with_name("fake")
#: The stand-ins sum in double and round once: half an ulp of the type, relative to the largest result.
TOLERANCE = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
#: Codes of DLPack for the element types.
CODES = {
    "float32": (2, 32),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float64": (2, 64),
    "int8": (0, 8),
    "int32": (0, 32),
}


@pytest.fixture(scope="module")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ctypes.CDLL]]:
    """Both stand-ins, compiled and in the place of the libraries."""
    folder = tmp_path_factory.mktemp("fakes")
    cuda.locate()
    set_path = tvm_ffi.get_global_func("uir.library.cuda.set_path")
    loaded = {}
    for name, source in (("cublasLt", "cublaslt"), ("cudnn", "cudnn")):
        library = folder / f"lib{name}.so"
        flags = ["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["gcc", *flags, "-o", library, FAKES / f"{source}.c", "-lm"], check=True)
        set_path(name, str(library))
        loaded[name] = ctypes.CDLL(str(library))
        loaded[name].fake_stream.restype = ctypes.c_void_p
    yield loaded
    for name in loaded:
        set_path(name, "")


class _OnDevice:
    """A NumPy array whose DLPack capsule names another device (and bfloat16, which NumPy cannot)."""

    def __init__(self, array: Array, device: int) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **_: Any) -> Any:
        code, bits = CODES[self.array.dtype.name]
        plain = self.array.view(np.uint16) if bits == 16 else self.array
        capsule = plain.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, b"dltensor")
        # DLTensor: data (8 bytes), device type, device id, ndim (4 each), type code and bits (1 each).
        ctypes.c_int32.from_address(address + 8).value = self.device
        ctypes.c_uint8.from_address(address + 20).value = code
        ctypes.c_uint8.from_address(address + 21).value = bits
        return capsule


def on_gpu(array: Array) -> Any:
    return tvm_ffi.from_dlpack(_OnDevice(array, 2))


def random(seed: int, shape: tuple[int, ...], dtype: str = "float32") -> Array:
    wide = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return wide.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def check(
    attrs: MatmulAttrs | Conv2dAttrs, out: tuple[int, ...], *inputs: Array, dtype: str = "float32"
) -> None:
    """Run on the stand-in and compare with float64."""
    matmul = isinstance(attrs, MatmulAttrs)
    channels = attrs.n if isinstance(attrs, MatmulAttrs) else attrs.weight[0]
    more = {}
    if attrs.bias:
        more["bias"] = random(7, (channels,), dtype)
    if attrs.residual != "none":
        more["residual"] = random(8, out, dtype)
    result = np.full(out, 3, inputs[0].dtype)
    before = result.copy()
    function = tvm_ffi.get_global_func(cuda.MATMUL if matmul else cuda.CONV2D)
    function(*map(on_gpu, (*inputs, *more.values())), attrs.to_json(), on_gpu(result))
    if isinstance(attrs, MatmulAttrs):
        want = reference.matmul(attrs, *inputs, **more, out=before)
    else:
        want = reference.conv2d(attrs, *inputs, **more)
    scale = max(1.0, float(np.abs(want).max()))
    assert float(np.abs(result.astype(np.float64) - want).max()) <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("dtype", sorted(cuda.TABLE.dtypes))
@pytest.mark.parametrize("activation", ["none", "relu", "gelu_tanh"])
@pytest.mark.parametrize("residual", ["none", "before_activation"])
def test_epilogues(fakes: Any, dtype: str, activation: str, residual: str) -> None:
    """Bias of the columns, residual before the activation, scale: for every type."""
    for bias in (False, True):
        attrs = MatmulAttrs.contiguous(
            (13, 24), (24, 40), bias=bias, residual=residual, activation=activation, alpha=0.25
        )
        check(attrs, (13, 40), random(1, (13, 24), dtype), random(2, (24, 40), dtype), dtype=dtype)


def test_sizes_that_are_known_at_the_call(fakes: Any) -> None:
    """The descriptors are those of the numbers, of each size anew; no rows are no call."""
    space = SizeSpace([OpenSymbol("s", 2, None, 59)])
    attrs = MatmulAttrs.contiguous((space.symbol("s"), 24), (24, 40), bias=True)
    texts, b, bias = sized_texts(cuda.MATMUL, attrs), random(2, (24, 40)), random(3, (40,))
    for s in (5, 1, 33, 0):
        a, out = random(s, (s, 24)), np.full((s, 40), 3, np.float32)
        operands = map(on_gpu, (a, b, bias))
        tvm_ffi.get_global_func(SIZED)(*operands, *texts, tvm_ffi.Shape([s]), on_gpu(out))
        np.testing.assert_allclose(out, a @ b + bias, rtol=1e-5, atol=1e-5)


def whole_numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 8, 32), (3, 12, 36), (16, 4, 4), (5, 64, 65532)])
def test_products_of_bytes(fakes: Any, m: int, n: int, k: int) -> None:
    """Exact in int32, also where float32 is not; rows of any number."""
    a, b, out = whole_numbers(m, k), whole_numbers(n, k), np.full((m, n), 3, np.int32)
    attributes = IntegerMatmulAttrs(m=m, n=n, k=k)
    tvm_ffi.get_global_func(cuda.INTEGER_MATMUL)(*map(on_gpu, (a, b)), attributes.to_json(), on_gpu(out))
    np.testing.assert_array_equal(out, a.astype(np.int64) @ b.astype(np.int64).T)
    assert fakes["cublasLt"].fake_count(4) == 72


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 10}, "n is 10"),
        ({"k": 33}, "k is 33"),
        ({"a": "float32"}, "operand 1 is no int8"),
        ({"out": "float32"}, "operand out is no int32"),
    ],
)
def test_refused_products_of_bytes(fakes: Any, change: dict[str, Any], message: str) -> None:
    m, n, k = 3, change.get("n", 8), change.get("k", 32)
    a, b = whole_numbers(m, k).astype(change.get("a", "int8")), whole_numbers(n, k)
    out = np.zeros((m, n), change.get("out", "int32"))
    attributes = IntegerMatmulAttrs(m=m, n=n, k=k)
    function = tvm_ffi.get_global_func(cuda.INTEGER_MATMUL)
    with pytest.raises(ValueError, match=message):
        function(*map(on_gpu, (a, b)), attributes.to_json(), on_gpu(out))


def test_products_of_nothing(fakes: Any) -> None:
    """Nothing is written where the result has no elements; a sum of no products is refused."""
    function = tvm_ffi.get_global_func(cuda.MATMUL)
    out = np.full((3, 4), 3, np.float32)
    for a, b in (((0, 5), (5, 4)), ((3, 0), (0, 4))):
        operands = (on_gpu(np.zeros(shape, np.float32)) for shape in (a, b))
        text = MatmulAttrs.contiguous(a, b).to_json()
        if a[0] == 0:
            function(*operands, text, on_gpu(out))
        else:
            with pytest.raises(ValueError, match="k is 0"):
                function(*operands, text, on_gpu(out))
    assert np.array_equal(out, np.full((3, 4), 3))


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("m", [1, 5])
@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("k", [1, 9])
def test_transposes(fakes: Any, transpose_a: bool, transpose_b: bool, m: int, n: int, k: int) -> None:
    """Both orders of both operands, dimensions of one element among them."""
    a, b = ((k, m) if transpose_a else (m, k)), ((n, k) if transpose_b else (k, n))
    for bias in (False, True):
        attrs = MatmulAttrs.contiguous(a, b, transpose_a=transpose_a, transpose_b=transpose_b, bias=bias)
        check(attrs, (m, n), random(1, a), random(2, b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 5, 8), (8, 6)),
        ((3, 5, 8), (3, 8, 6)),
        ((2, 3, 5, 8), (2, 3, 8, 6)),
        ((2, 3, 5, 8), (3, 8, 6)),
        ((2, 1, 5, 8), (1, 3, 8, 6)),
        ((2, 1, 4, 5, 8), (2, 3, 1, 8, 6)),
        ((5, 8), (4, 8, 6)),
    ],
)
def test_batches(fakes: Any, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Batches that join into one, that repeat an operand, and that need more than one call."""
    attrs = MatmulAttrs.contiguous(a, b, bias=True, residual="before_activation", activation="relu")
    check(attrs, (*attrs.batch, attrs.m, attrs.n), random(1, a), random(2, b))


def test_calls_of_a_batch(fakes: Any) -> None:
    """A batch that shares the weight is one product of more rows; heads of a batch are one call an image."""
    count = fakes["cublasLt"].fake_count
    before = count(3)
    attrs = MatmulAttrs.contiguous((6, 4, 8), (8, 5))
    check(attrs, (6, 4, 5), random(1, (6, 4, 8)), random(2, (8, 5)))
    assert count(3) == before + 1
    batch, heads, length, size = 2, 3, 5, 4
    # queries and keys as (batch, length, heads, size); the result as (batch, heads, length, length)
    strides = (length * heads * size, size, heads * size, 1)
    scores = MatmulAttrs(
        batch=(batch, heads),
        m=length,
        n=length,
        k=size,
        a=OperandLayout(strides),
        b=OperandLayout((*strides[:2], 1, heads * size)),
        out=OperandLayout((heads * length * length, length * length, length, 1)),
        alpha=0.5,
    )
    shape = (batch, length, heads, size)
    check(scores, (batch, heads, length, length), random(1, shape), random(2, shape))
    assert count(3) == before + 1 + batch


def test_views_and_offsets(fakes: Any) -> None:
    """Operands inside of larger tensors; what the output's view leaves out keeps its values."""
    attrs = MatmulAttrs(
        m=4,
        n=6,
        k=5,
        a=OperandLayout((12, 1), 3),
        b=OperandLayout((1, 9), 2),
        out=OperandLayout((11, 1), 5),
        residual="before_activation",
    )
    check(attrs, (4, 12), random(1, (4, 12)), random(2, (6, 9)))


def test_plans_are_made_once(fakes: Any) -> None:
    """The second call asks for no algorithm; TF32 and another alignment do, and say so to the library."""
    lt = fakes["cublasLt"]
    attrs = MatmulAttrs.contiguous((8, 16), (16, 24), activation="gelu_tanh", alpha=0.125)
    memory = np.zeros(2048, np.float32)
    start = -(memory.ctypes.data // 4) % 64
    a = memory[start : start + 128].reshape(8, 16)
    b, out = (np.zeros(2048, np.float32)[:size] for size in (384, 192))
    function = tvm_ffi.get_global_func(cuda.MATMUL)

    def run(a: Array) -> int:
        before = lt.fake_count(2)
        function(on_gpu(a), on_gpu(b.reshape(16, 24)), attrs.to_json(), on_gpu(out.reshape(8, 24)))
        return lt.fake_count(2) - before

    assert run(a) == 1 and lt.fake_count(4) == 68
    assert run(a) == 0
    shifted = memory[start + 1 : start + 129].reshape(8, 16)
    assert run(shifted) == 1 and lt.fake_count(5) == 4
    cuda.allow_tf32(True)
    try:
        assert run(a) == 1 and lt.fake_count(4) == 77
    finally:
        cuda.allow_tf32(False)


def test_the_stream_is_tvms(fakes: Any) -> None:
    attrs = MatmulAttrs.contiguous((2, 3), (3, 4))
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 0x1234):
        check(attrs, (2, 4), random(1, (2, 3)), random(2, (3, 4)))
    assert fakes["cublasLt"].fake_stream() == 0x1234
    check(attrs, (2, 4), random(1, (2, 3)), random(2, (3, 4)))
    assert fakes["cublasLt"].fake_stream() is None


@pytest.mark.parametrize("residual", ["none", "before_activation"])
@pytest.mark.parametrize("activation", ["none", "relu"])
@pytest.mark.parametrize("bias", [False, True])
def test_conv2d(fakes: Any, residual: str, activation: str, bias: bool) -> None:
    """Stride, dilation, padding and groups, with every epilogue that the table lets through."""
    attrs = Conv2dAttrs(
        input=(2, 4, 9, 8),
        weight=(6, 2, 3, 2),
        strides=(2, 1),
        padding=(1, 2, 1, 2),
        dilation=(1, 2),
        groups=2,
        bias=bias,
        residual=residual,
        activation=activation,
        alpha=0.5,
    )
    check(attrs, attrs.output, random(1, attrs.input), random(2, attrs.weight))
    assert fakes["cudnn"].fake_count(3) == 3, "float32 is not rounded to TF32"


@pytest.mark.parametrize("dtype", sorted(cuda.TABLE.dtypes))
def test_on_the_host_model(dtype: str) -> None:
    """On memory of the host model the CPU computes; what the output's view leaves out keeps its values."""
    attrs = MatmulAttrs(
        batch=(2,),
        m=4,
        n=6,
        k=5,
        a=OperandLayout((48, 12, 1), 3),
        b=OperandLayout((0, 1, 9), 2),
        out=OperandLayout((48, 12, 1), 5),
        bias=True,
        residual="before_activation",
        activation="gelu_tanh",
    )
    shapes = {"a": (2, 4, 12), "b": (6, 9), "bias": (6,), "residual": (2, 4, 12)}
    arrays = {name: random(seed, shape, dtype) for seed, (name, shape) in enumerate(shapes.items())}
    before = random(9, (2, 4, 12), dtype)

    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (*arrays.values(), before)]
    tvm_ffi.get_global_func(cuda.MATMUL)(*tensors[:-1], attrs.to_json(), tensors[-1])
    got = tensors[-1].numpy()
    want = reference.matmul(attrs, *arrays.values(), out=before)
    scale = max(1.0, float(np.abs(want).max()))
    assert float(np.abs(got.astype(np.float64) - want).max()) <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        (MatmulAttrs.contiguous((4, 4), (4, 4), activation="silu"), "relu, gelu_tanh"),
        (
            MatmulAttrs.contiguous((4, 4), (4, 4), activation="relu", residual="after_activation"),
            "residual after",
        ),
        (
            MatmulAttrs(
                m=4, n=2, k=2, a=OperandLayout((4, 2)), b=OperandLayout((2, 1)), out=OperandLayout((2, 1))
            ),
            "operand 1 has the strides",
        ),
        (
            MatmulAttrs(
                m=4, n=2, k=4, a=OperandLayout((0, 1)), b=OperandLayout((2, 1)), out=OperandLayout((2, 1))
            ),
            "operand 1 has the strides",
        ),
        (MatmulAttrs.contiguous((4, 4), (4, 4), packed=True), "packed for the CPU"),
        (MatmulAttrs.contiguous((8, 4), (4, 4)), "does not fit"),
    ],
)
def test_refusals(fakes: Any, attrs: MatmulAttrs, message: str) -> None:
    more = [on_gpu(random(3, (4, 4)))] if attrs.residual != "none" else []
    with pytest.raises(ValueError, match=message):
        tvm_ffi.get_global_func(cuda.MATMUL)(
            *(on_gpu(random(seed, (4, 4))) for seed in (1, 2)),
            *more,
            attrs.to_json(),
            on_gpu(random(4, (4, 4))),
        )


def test_conv2d_refusals(fakes: Any) -> None:
    shapes = {"input": (1, 2, 5, 5), "weight": (3, 2, 3, 3)}
    for attrs, message in (
        (Conv2dAttrs(**shapes, padding=(1, 1, 0, 0)), "opposite sides"),  # type: ignore[arg-type]
        (Conv2dAttrs(**shapes, activation="tanh"), "none, relu"),  # type: ignore[arg-type]
    ):
        out = np.zeros(attrs.output, np.float32)
        with pytest.raises(ValueError, match=message):
            tvm_ffi.get_global_func(cuda.CONV2D)(
                on_gpu(random(1, attrs.input)), on_gpu(random(2, attrs.weight)), attrs.to_json(), on_gpu(out)
            )


def test_no_algorithm(fakes: Any) -> None:
    fakes["cublasLt"].fake_answer_none(1)
    try:
        with pytest.raises(Exception, match="no algorithm for a matmul of m 3, n 11, k 5"):
            check(MatmulAttrs.contiguous((3, 5), (5, 11)), (3, 11), random(1, (3, 5)), random(2, (5, 11)))
    finally:
        fakes["cublasLt"].fake_answer_none(0)


def test_a_missing_library(fakes: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """The error says what is needed and which package brings it."""
    if cuda._package_file(cuda.LIBRARIES["cublasLt"]):
        pytest.skip("the library is installed")
    set_path = tvm_ffi.get_global_func("uir.library.cuda.set_path")
    before = cuda.available().path
    set_path("cublasLt", str(tmp_path / "absent.so"))
    try:
        with pytest.raises(LibraryError, match="pip install nvidia-cublas"):
            cuda.require()
        with pytest.raises(Exception, match="cuBLASLt cannot be loaded"):
            check(MatmulAttrs.contiguous((3, 5), (5, 2)), (3, 2), random(1, (3, 5)), random(2, (5, 2)))
    finally:
        set_path("cublasLt", before)
    assert cuda.available("cublasLt").version == 130100 and cuda.available("cudnn").version == 91300


def test_table() -> None:
    """The table promises no more than the operators take."""
    assert library_of(["uir", "cuda", "gpu"]) is cuda.TABLE
    table = cuda.TABLE
    assert table.allows(["bias", "residual", "gelu_tanh"]) and not table.allows(["gelu_tanh", "residual"])
    assert table.allows(["bias", "relu"], "conv2d") and not table.allows(["bias", "gelu_tanh"], "conv2d")
    assert table.takes("matmul", "bfloat16", "bfloat16", "bfloat16") and not table.takes("matmul", "float64")
