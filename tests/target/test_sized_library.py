# SPDX-License-Identifier: Apache-2.0
"""Library operators of devices with sizes that are known at the call, on the host models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.hardware.library_costs import library_time
from uir_tvm.library import reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, OperandLayout
from uir_tvm.library.library_tables import LibraryTable, library_of
from uir_tvm.library.open_attrs import OpenAttrs
from uir_tvm.library.sized import FUNCTION, sized_texts
from uir_tvm.runtime.modelled import recording
from uir_tvm.sizes.open_symbols import OpenSymbol
from uir_tvm.sizes.size_space import SizeSpace

from ..device_targets import DEVICE_TARGETS, DeviceTarget, name_of

Array = np.ndarray[Any, Any]
SPACE = SizeSpace([OpenSymbol("b", 2, None, 53), OpenSymbol("s", 2, None, 59)])
B, S = SPACE.symbol("b"), SPACE.symbol("s")
SIZES = ({"b": 1, "s": 1}, {"b": 3, "s": 17}, {"b": 2, "s": 64}, {"b": 0, "s": 5})


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def call(
    function: str, attributes: OpenAttrs, sizes: dict[str, int], operands: list[Array], out: Array
) -> Array:
    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (*operands, out)]
    numbers = tvm_ffi.Shape([sizes[name] for name in attributes.symbols])
    sized = tvm_ffi.get_global_func(FUNCTION)
    sized(*tensors[:-1], *sized_texts(function, attributes), numbers, tensors[-1])
    return tensors[-1].numpy()


def close(got: Array, want: Array) -> bool:
    """Sums in float32, one rounding to float16: half an ulp, relative to the largest result."""
    return bool(np.all(np.abs(got.astype(np.float64) - want) <= 1e-3 * np.abs(want).max(initial=1.0)))


def table_of(target: DeviceTarget) -> LibraryTable:
    return library_of([str(key) for key in target.target().keys])


@pytest.mark.parametrize("target", DEVICE_TARGETS, ids=name_of)
def test_scores_of_heads_where_they_lie(target: DeviceTarget) -> None:
    row = 48
    attributes = MatmulAttrs(
        batch=(B, 2),
        m=S,
        n=S,
        k=8,
        a=OperandLayout((S * row, 8, row, 1)),
        b=OperandLayout((S * row, 8, 1, row), 16),
        out=OperandLayout((2 * S * S, S * S, S, 1)),
    )
    for sizes in SIZES:
        b, s = sizes["b"], sizes["s"]
        fused, out = random(1, b, s, row), random(2, b, 2, s, s)
        got = call(table_of(target).functions["matmul"], attributes, sizes, [fused, fused], out)
        assert close(got, reference.matmul(attributes.at(sizes), fused, fused, out=out))


@pytest.mark.parametrize("target", DEVICE_TARGETS, ids=name_of)
def test_convolutions_of_any_image(target: DeviceTarget) -> None:
    attributes = Conv2dAttrs(input=(B, 3, S, 2 * S), weight=(4, 3, 3, 3), padding=(1, 1, 1, 1))
    for sizes in SIZES:
        numbers = attributes.at(sizes)
        x, w, out = random(1, *numbers.input), random(2, *numbers.weight), random(3, *numbers.output)
        got = call(table_of(target).functions["conv2d"], attributes, sizes, [x, w], out)
        assert close(got, reference.conv2d(numbers, x, w))


@pytest.mark.parametrize("target", DEVICE_TARGETS, ids=name_of)
def test_a_product_of_nothing(target: DeviceTarget) -> None:
    """k = 0 is zeros on the host model."""
    attributes = MatmulAttrs.contiguous((3, S), (S, 4))
    empty, out = random(1, 0), random(2, 3, 4)
    got = call(table_of(target).functions["matmul"], attributes, {"s": 0}, [empty, empty], out)
    assert np.array_equal(got, np.zeros((3, 4)))


@pytest.mark.parametrize(
    "target", [each for each in DEVICE_TARGETS if library_time(each.hardware, "float16", 1, 1)], ids=name_of
)
def test_modelled_times_are_those_of_the_numbers(target: DeviceTarget) -> None:
    """A call is noted under its sizes in numbers, with the time of the same call without open sizes."""
    attributes = MatmulAttrs.contiguous((S, 64), (64, 32))
    function = table_of(target).functions["matmul"]
    a, b, out = random(1, 40, 64), random(2, 64, 32), random(3, 40, 32)
    with recording(hardware=target.hardware) as found:
        call(function, attributes, {"s": 40}, [a, b], out)
        numbers = attributes.at({"s": 40})
        tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (a, b, out)]
        tvm_ffi.get_global_func(function)(*tensors[:-1], numbers.to_json(), tensors[-1])
    sized, plain = found.times.launches
    assert sized.entry == plain.entry == "library matmul 40x64x32"
    assert sized.seconds == plain.seconds > 0
