# SPDX-License-Identifier: Apache-2.0
"""Products of bytes are exact in 32 bits, whatever instructions compute them, and end as NumPy says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from uir_tvm.errors import ShapeError
from uir_tvm.library import cpu
from uir_tvm.library.integer_attrs import IntegerAttrs, IntegerEnding, integer_product, pack_integers
from uir_tvm.library.work import work_of

#: Odd sizes, windows, strides, padding of every side, and windows with holes.
CASES: dict[str, dict[str, Any]] = {
    "rows": {"image": (37, 1, 1, 33), "weight": (21, 1, 1)},
    "one row": {"image": (1, 1, 1, 64), "weight": (48, 1, 1)},
    "windows": {"image": (2, 9, 11, 3), "weight": (32, 3, 5), "strides": (2, 1), "padding": (1, 2, 0, 3)},
    "holes": {"image": (1, 8, 8, 16), "weight": (16, 3, 3), "padding": (2, 2, 2, 2), "dilation": (2, 2)},
}
#: float32 factors and terms are multiplied and added in one or two roundings.
TOLERANCE = {"int32": 0, "float32": 1e-4, "uint8": 1, "int8": 1}


def _function(name: str) -> Any:
    cpu.locate()
    return tvm_ffi.get_global_func(f"uir.library.cpu.{name}")


@pytest.fixture(params=list(tvm_ffi.get_global_func("uir.library.cpu.integer_vectors")()))
def vectors(request: pytest.FixtureRequest) -> Iterator[str]:
    """The instructions that this CPU has."""
    _function("set_integer_vectors")(request.param)
    yield request.param
    _function("set_integer_vectors")(next(iter(_function("integer_vectors")())))


def _run(
    x: np.ndarray, weight: np.ndarray, it: IntegerAttrs, ending: IntegerEnding, dtype: str
) -> np.ndarray:
    out = np.empty(it.output, dtype)
    given = [tvm_ffi.from_dlpack(part) for part in (x, pack_integers(weight, ending))]
    _function("integer_product")(*given, it.to_json(), tvm_ffi.from_dlpack(out))
    return out


def _numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_products_are_exact_and_end_as_numpy_says(vectors: str, name: str, wide: bool) -> None:
    rng = np.random.default_rng(len(name))
    sizes = CASES[name]
    outputs, inputs = sizes["weight"][0], np.prod(sizes["weight"][1:]) * sizes["image"][3]
    weight = rng.integers(-255 if wide else -128, 256 if wide else 128, (outputs, inputs))
    weight = weight.astype(np.int16 if wide else np.int8)
    ending = IntegerEnding(
        start=rng.integers(-1000, 1000, outputs).astype(np.int32),
        factor=(rng.random(outputs) * 0.002).astype(np.float32),
        term=(rng.standard_normal(outputs) * 10).astype(np.float32),
        low=-100,
        high=100,
    )
    for dtype in ("uint8", "int8"):
        x = _numbers(rng, dtype, sizes["image"])
        for out, zero in (("int32", 0), ("float32", 0), ("uint8", 120), ("int8", 5)):
            it = IntegerAttrs(**sizes, zero=7, out_zero=zero, wide=wide)
            got, wanted = _run(x, weight, it, ending, out), integer_product(x, weight, it, ending, out)
            difference = np.abs(got.astype(np.float64) - wanted).max()
            assert difference <= TOLERANCE[out], (vectors, dtype, out)


def test_the_greatest_bytes_do_not_saturate(vectors: str) -> None:
    """255 * 127 twice is more than 16 bits hold."""
    it = IntegerAttrs(image=(8, 1, 1, 64), weight=(16, 1, 1))
    x, weight = np.full((8, 1, 1, 64), 255, np.uint8), np.full((16, 64), 127, np.int8)
    assert (_run(x, weight, it, IntegerEnding.nothing(16), "int32") == 64 * 255 * 127).all(), vectors


def test_halves_are_rounded_to_even(vectors: str) -> None:
    it = IntegerAttrs(image=(6, 1, 1, 1), weight=(1, 1, 1))
    x = np.array([1, 3, 5, 251, 253, 255], np.uint8).reshape(6, 1, 1, 1)
    nothing = IntegerEnding.nothing(1)
    half = IntegerEnding(start=nothing.start, factor=nothing.factor / 2, term=nothing.term, low=0, high=255)
    got = _run(x, np.ones((1, 1), np.int8), it, half, "uint8")
    assert got.reshape(-1).tolist() == [0, 2, 2, 126, 126, 128], vectors


def test_what_does_not_fit_is_refused() -> None:
    it = IntegerAttrs(image=(2, 1, 1, 8), weight=(3, 1, 1))
    weight, nothing = np.ones((3, 8), np.int8), IntegerEnding.nothing(3)
    with pytest.raises(ValueError, match="neither int8 nor uint8"):
        _run(np.ones((2, 1, 1, 8), np.int32), weight, it, nothing, "int32")
    with pytest.raises(ValueError, match="operand 1 does not fit"):
        _run(np.ones((2, 1, 1, 9), np.int8), weight, it, nothing, "int32")
    with pytest.raises(ValueError, match="operand 2 does not fit"):
        _run(np.ones((2, 1, 1, 8), np.int8), weight[:, :4], it, nothing, "int32")
    with pytest.raises(ShapeError, match="weight is"):
        IntegerAttrs(image=(2, 1, 1, 8), weight=(0, 1, 1))
    with pytest.raises(ValueError, match="larger than the padded image"):
        _function("integer_bytes")(IntegerAttrs(image=(1, 2, 2, 8), weight=(3, 3, 3)).to_json())


def test_work() -> None:
    it = IntegerAttrs(image=(1, 8, 8, 16), weight=(32, 3, 3), padding=(1, 1, 1, 1))
    work = work_of("integer_product", it.to_json())
    assert work.operations == 2 * 8 * 8 * 32 * 9 * 16 and work.sizes == "1x8x8x16 by 32x3x3"
