# SPDX-License-Identifier: Apache-2.0
"""Library operators of Ascend devices: on the host model, and what aclnn is asked for."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm._native import library_path
from uir_tvm.library import reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, OperandLayout
from uir_tvm.library.integer_matmul_attrs import IntegerMatmulAttrs
from uir_tvm.library.library_tables import library_of
from uir_tvm.target.ascend import library as ascend

from tests.without_torch import script

Array = np.ndarray[Any, Any]
#: Sums in float32, one rounding to the type: half an ulp, relative to the largest result.
TOLERANCE = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}


def random(seed: int, shape: tuple[int, ...], dtype: str) -> Array:
    wide = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return wide.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def close(got: Array, want: Array, dtype: str) -> bool:
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    return float(np.abs(got.astype(np.float64) - want).max(initial=0)) <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("dtype", sorted(ascend.TABLE.dtypes))
def test_a_product_on_the_host_model(dtype: str) -> None:
    """Strided operands and a residual; what the output's view leaves out keeps its values."""
    attrs = MatmulAttrs(
        batch=(2,),
        m=4,
        n=6,
        k=5,
        a=OperandLayout((48, 12, 1), 3),
        b=OperandLayout((0, 1, 9), 2),
        out=OperandLayout((48, 12, 1), 5),
        residual="before_activation",
    )
    shapes = ((2, 4, 12), (6, 9), (2, 4, 12))
    a, b, residual = (random(seed, shape, dtype) for seed, shape in enumerate(shapes))
    before = random(9, (2, 4, 12), dtype)
    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (a, b, residual, before)]
    tvm_ffi.get_global_func(ascend.MATMUL)(*tensors[:-1], attrs.to_json(), tensors[-1])
    assert close(tensors[-1].numpy(), reference.matmul(attrs, a, b, None, residual, out=before), dtype)


def test_a_convolution_on_the_host_model() -> None:
    attrs = Conv2dAttrs(input=(1, 3, 8, 8), weight=(4, 3, 3, 3), padding=(1, 1, 1, 1), bias=True)
    x, w, bias = (random(i, s, "float32") for i, s in enumerate((attrs.input, attrs.weight, (4,))))
    out = tvm.runtime.empty(attrs.output, "float32", tvm.ext_dev(0))
    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (x, w, bias)]
    tvm_ffi.get_global_func(ascend.CONV2D)(*tensors, attrs.to_json(), out)
    assert close(out.numpy(), reference.conv2d(attrs, x, w, bias), "float32")


def test_memory_of_the_host_is_refused() -> None:
    a = tvm_ffi.from_dlpack(random(1, (4, 4), "float32"))
    with pytest.raises(ValueError, match="copy it to the device"):
        tvm_ffi.get_global_func(ascend.MATMUL)(a, a, MatmulAttrs.contiguous((4, 4), (4, 4)).to_json(), a)


def test_it_is_the_library_of_the_target() -> None:
    assert library_of(["uir", "ascend"]) is ascend.TABLE


#: Products and convolutions of every form, by name: function, attributes, shapes of the operands, dtype.
CASES: dict[str, tuple[str, Any, list[tuple[int, ...]], str]] = {
    "plain": ("matmul", MatmulAttrs.contiguous((4, 5), (5, 6)), [(4, 5), (5, 6), (4, 6)], "float32"),
    "transposed": (
        "matmul",
        MatmulAttrs.contiguous((4, 5), (6, 5), transpose_b=True),
        [(4, 5), (6, 5), (4, 6)],
        "float16",
    ),
    "heads": (
        "matmul",
        MatmulAttrs(
            batch=(2, 3),
            m=4,
            n=4,
            k=5,
            a=OperandLayout((60, 5, 15, 1)),
            b=OperandLayout((60, 5, 1, 15)),
            out=OperandLayout((48, 16, 4, 1)),
        ),
        [(2, 4, 15), (2, 4, 15), (2, 3, 4, 4)],
        "float32",
    ),
    "bias": (
        "matmul",
        MatmulAttrs.contiguous((4, 5), (5, 6), bias=True),
        [(4, 5), (5, 6), (6,), (4, 6)],
        "bfloat16",
    ),
    "residual": (
        "matmul",
        MatmulAttrs.contiguous((2, 4, 5), (2, 5, 6), residual="before_activation"),
        [(2, 4, 5), (2, 5, 6), (2, 4, 6), (2, 4, 6)],
        "float32",
    ),
    "no rows": ("matmul", MatmulAttrs.contiguous((0, 5), (5, 6)), [(0, 5), (5, 6), (0, 6)], "float32"),
    "conv2d": (
        "conv2d",
        Conv2dAttrs(
            input=(2, 4, 9, 8), weight=(6, 2, 3, 2), strides=(2, 1), padding=(1, 2, 1, 2), groups=2, bias=True
        ),
        [(2, 4, 9, 8), (6, 2, 3, 2), (6,), (2, 6, 5, 11)],
        "float32",
    ),
}
#: What no device is asked for.
REFUSED: dict[str, tuple[str, Any, list[tuple[int, ...]], str]] = {
    "a factor": (
        "matmul",
        MatmulAttrs.contiguous((4, 5), (5, 6), alpha=0.5),
        [(4, 5), (5, 6), (4, 6)],
        "float32",
    ),
    "k is 0": ("matmul", MatmulAttrs.contiguous((4, 0), (0, 6)), [(4, 0), (0, 6), (4, 6)], "float32"),
    "float64": ("matmul", MatmulAttrs.contiguous((4, 5), (5, 6)), [(4, 5), (5, 6), (4, 6)], "float64"),
    "does not fit": ("matmul", MatmulAttrs.contiguous((8, 5), (5, 6)), [(4, 5), (5, 6), (4, 6)], "float32"),
}


def bytes_of(m: int, n: int, k: int) -> tuple[IntegerMatmulAttrs, list[Array]]:
    """A product of bytes, its operands, scale and result."""
    rng = np.random.default_rng(m + n)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (n, k)))
    return IntegerMatmulAttrs(m=m, n=n, k=k), [a, b, np.ones(1, np.float32), np.zeros((m, n), np.int32)]


#: Products of bytes, whose sums float32 holds.
BYTES = {
    "bytes": bytes_of(5, 6, 33),
    "a row of bytes": bytes_of(1, 7, 64),
    "no rows of bytes": bytes_of(0, 6, 8),
}


@pytest.fixture(scope="module")
def on_device(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array | str]:
    """Results of the cases, or errors, with stand-ins of the Ascend runtime in the place of the toolkit."""
    folder = tmp_path_factory.mktemp("aclnn")
    stand_in = library_path().with_name("libuir_acl.so")
    for name in ("libacl_rt.so", "libnnopbase.so", "libopapi.so"):
        (folder / name).symlink_to(stand_in)
    cases = {}
    for name, (function, attributes, shapes, dtype) in (CASES | REFUSED).items():
        for i, shape in enumerate(shapes):
            np.save(folder / f"{name}_{i}.npy", operand(i, shape, dtype))
        cases[name] = {"function": function, "attrs": attributes.to_json(), "dtypes": [dtype] * len(shapes)}
    for name, (byte_product, arrays) in BYTES.items():
        for i, array in enumerate(arrays):
            np.save(folder / f"{name}_{i}.npy", array)
        text, dtypes = byte_product.to_json(), [array.dtype.name for array in arrays]
        cases[name] = {"function": "integer_matmul", "attrs": text, "dtypes": dtypes}
    subprocess.run(
        script(pathlib.Path(__file__).with_name("fake") / "run_aclnn.py", folder),
        input=json.dumps(cases),
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        check=True,
        text=True,
        timeout=300,
    )
    errors = {name: folder / f"{name}_error.txt" for name in cases}
    return {
        name: path.read_text() if path.exists() else np.load(folder / f"{name}_out.npy")
        for name, path in errors.items()
    }


def operand(position: int, shape: tuple[int, ...], dtype: str) -> Array:
    """An operand of a case, rounded to its dtype, as float64."""
    return random(position + 1, shape, dtype).astype(np.float64)


@pytest.mark.parametrize("name", CASES)
def test_what_aclnn_is_asked_for_is_the_operator(on_device: dict[str, Any], name: str) -> None:
    function, attributes, shapes, dtype = CASES[name]
    arrays = [operand(i, shape, dtype) for i, shape in enumerate(shapes)]
    first, second, *more, out = arrays
    extra = {"bias" if attributes.bias else "residual": more[0]} if more else {}
    compute = getattr(reference, function)
    into = {"out": out} if function == "matmul" else {}
    want = compute(attributes, first, second, **extra, **into)
    assert isinstance(on_device[name], np.ndarray), on_device[name]
    assert close(on_device[name], want, dtype)


@pytest.mark.parametrize("name", BYTES)
def test_products_of_bytes(on_device: dict[str, Any], name: str) -> None:
    """By what stands for aclnn, and on the host model: the sums, exactly."""
    attributes, (a, b, scale, out) = BYTES[name]
    wanted = a.astype(np.int64) @ b.astype(np.int64).T
    assert isinstance(on_device[name], np.ndarray), on_device[name]
    np.testing.assert_array_equal(on_device[name], wanted)
    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (a, b, scale, out)]
    tvm_ffi.get_global_func(ascend.INTEGER_MATMUL)(*tensors[:-1], attributes.to_json(), tensors[-1])
    np.testing.assert_array_equal(tensors[-1].numpy(), wanted)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_device_is_not_asked_for(on_device: dict[str, Any], name: str) -> None:
    assert name in on_device[name], on_device[name]
