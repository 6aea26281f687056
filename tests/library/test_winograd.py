# SPDX-License-Identifier: Apache-2.0
"""Convolutions of 3x3 windows by Winograd's way, beside sums of products."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from attrs import evolve
from uir_tvm.errors import ShapeError
from uir_tvm.library import cpu, reference
from uir_tvm.library.attrs import LAYOUTS
from uir_tvm.library.cpu import Conv2dAttrs

LAST = {"input_layout": "NHWC", "output_layout": "NHWC", "packed": True}
#: (n, c, h, w), outputs, padding: results of odd sizes and of one pixel, without padding and with more than
#: a window needs, images that threads share, channels in no whole vectors, one row, panels of two widths.
SHAPES: dict[str, tuple[tuple[int, int, int, int], int, tuple[int, int, int, int]]] = {
    "even": ((1, 16, 8, 6), 16, (1, 1, 1, 1)),
    "odd": ((2, 8, 7, 9), 24, (1, 1, 1, 1)),
    "no padding": ((3, 17, 9, 6), 43, (0, 0, 0, 0)),
    "one pixel": ((1, 5, 3, 3), 19, (0, 0, 0, 0)),
    "one row": ((2, 12, 1, 31), 8, (1, 1, 1, 1)),
    "wide padding": ((1, 9, 5, 4), 33, (3, 0, 2, 4)),
    "bands": ((3, 40, 19, 20), 72, (1, 1, 1, 1)),
    "deep": ((1, 600, 5, 5), 40, (1, 1, 1, 1)),
}


#: All of these with the code of each width of vectors.
pytestmark = pytest.mark.usefixtures("vectors")


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def made(name: str, plan: str = "winograd", **more: Any) -> Conv2dAttrs:
    given, outputs, padding = SHAPES[name]
    weight = (outputs, given[1], 3, 3)
    return Conv2dAttrs(input=given, weight=weight, padding=padding, plan=plan, **{**LAST, **more})


def images(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Of (n, c, h, w), with the channels last."""
    n, c, h, w = shape
    return random(seed, n, h, w, c)


def lying(values: np.ndarray, layout: str) -> np.ndarray:
    """Images with the channels last in the order of a layout."""
    return values if layout == "NHWC" else np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def run(attrs: Conv2dAttrs, x: np.ndarray, weight: Any, *more: np.ndarray) -> np.ndarray:
    """The registered function's result, in the order of its layout."""
    n, o, h, w = attrs.output
    out = lying(np.full((n, h, w, o), 7.0, np.float32), attrs.output_layout)
    *rest, result = map(tvm_ffi.from_dlpack, (*more, out))
    cpu._function("conv2d")(tvm_ffi.from_dlpack(x), weight, *rest, attrs.to_json(), result)
    return out


def error(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize("sides", list(itertools.product(LAYOUTS, LAYOUTS)), ids="-".join)
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(threads: int, name: str, sides: tuple[str, str]) -> None:
    """As the reference says, whatever the sizes, and wherever the channels lie."""
    attrs = made(name, input_layout=sides[0], output_layout=sides[1])
    x, w = lying(images(1, attrs.input), sides[0]), random(2, *attrs.weight)
    assert cpu.describe(attrs)["plan"] == "winograd"
    assert error(run(attrs, x, cpu.pack_weight(w, attrs)), reference.conv2d(attrs, x, w)) < 3e-6


@pytest.mark.parametrize(
    "activation",
    "none relu silu sigmoid tanh leaky_relu(0.1) clip(-0.5,0.75) hard_sigmoid(0.2,0.5) "
    "hard_swish(0.25,0.5)".split(),
)
@pytest.mark.parametrize("residual", ["none", "before_activation", "after_activation"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_epilogues(activation: str, residual: str, layout: str) -> None:
    """A bias, an activation, a residual before or after it; channels in no whole vectors."""
    attrs = made("no padding", bias=True, residual=residual, activation=activation, output_layout=layout)
    x, w = images(1, attrs.input), random(2, *attrs.weight) / 12
    bias = random(3, attrs.weight[0])
    other = [lying(images(4, attrs.output), layout)] * (residual != "none")
    got = run(attrs, x, cpu.pack_weight(w, attrs), bias, *other)
    assert cpu.describe(attrs)["plan"] == "winograd"
    assert error(got, reference.conv2d(attrs, x, w, bias, *other)) < 3e-6


def test_what_it_does_not_compute() -> None:
    """Asked for where there is none, it is computed in another way."""
    for more in ({"strides": (2, 2)}, {"dilation": (2, 2)}, {"packed": False}):
        assert cpu.describe(made("bands", **more))["plan"] != "winograd", more
    assert cpu.describe(made("bands", activation="gelu_erf"))["plan"] != "winograd"
    grouped = Conv2dAttrs(input=(1, 8, 9, 9), weight=(8, 4, 3, 3), groups=2, plan="winograd", **LAST)
    assert cpu.describe(grouped)["plan"] != "winograd"


def test_direct_sums_are_kept() -> None:
    """With the plan "direct" nothing goes Winograd's way, where infinities make NaN, but reach no further."""
    direct = Conv2dAttrs(
        input=(1, 64, 20, 20), weight=(64, 64, 3, 3), padding=(1, 1, 1, 1), plan="direct", **LAST
    )
    other = evolve(direct, plan="winograd")
    assert cpu.describe(direct)["plan"] != "winograd" == cpu.describe(other)["plan"]
    x, w = images(1, direct.input), random(2, *direct.weight)
    x[0, 8, 9, 0] = np.inf
    results = [run(each, x, cpu.pack_weight(w, each)) for each in (direct, other)]
    reached = np.zeros((1, 20, 20, 1), bool)
    reached[:, 7:10, 8:11] = True
    for result in results:
        assert np.array_equal(np.isfinite(result), np.broadcast_to(~reached, result.shape))
    assert not np.isnan(results[0]).any()
    assert np.isnan(results[1]).any()


def test_a_weight_is_stored_as_it_is_and_transformed_once(vectors: str) -> None:
    """The blob gives back every bit, serves other plans, and two calls keep one transformed weight."""
    attrs = made("bands")
    # a weight of its own: what other vectors have transformed alike is kept in the process
    x, w = images(1, attrs.input), random(zlib.crc32(vectors.encode()), *attrs.weight)
    blob = cpu.pack_weight(w, attrs)
    assert np.array_equal(cpu.unpack_weight(blob).view(np.float32).reshape(w.shape), w)
    before = cpu.available().converted_bytes
    first = run(attrs, x, blob)
    kept = cpu.available().converted_bytes - before
    assert kept >= w.nbytes * 16 // 9
    assert np.array_equal(run(attrs, x, blob), first)
    assert cpu.available().converted_bytes - before == kept
    assert error(run(evolve(attrs, plan="direct"), x, blob), first) < 3e-6


def test_products_have_no_such_plan() -> None:
    with pytest.raises(ShapeError, match="plan"):
        cpu.MatmulAttrs.contiguous((2, 3), (3, 4), plan="winograd")
    text = cpu.MatmulAttrs.contiguous((2, 3), (3, 4), plan="plain").to_json().replace("plain", "direct")
    with pytest.raises(ValueError, match="plan must be"):
        cpu._function("describe")(text, "float32")


def test_what_is_computed_so() -> None:
    """Of few channels, of few pixels and large weights, sums of products are as fast."""

    def plan(n: int, c: int, size: int, o: int) -> str:
        attrs = Conv2dAttrs(input=(n, c, size, size), weight=(o, c, 3, 3), padding=(1, 1, 1, 1), **LAST)
        return str(cpu.describe(attrs)["plan"])

    assert plan(1, 64, 56, 64) == plan(1, 128, 28, 128) == plan(2, 24, 20, 40) == "winograd"
    assert "winograd" not in {plan(1, 4, 56, 64), plan(1, 8, 28, 8), plan(1, 512, 7, 512)}


#: Images, channels, rows and columns, output channels: microseconds by direct sums (the faster of tiles and
#: oneDNN) and by Winograd's way, on two threads of a Zen 3 with a second cache of 512 KiB.
MEASURED = {
    (1, 16, 56, 16): (158.0, 128.3),
    (1, 16, 8, 16): (7.0, 5.6),
    (1, 4, 64, 64): (222.0, 306.8),
    (1, 64, 64, 4): (457.3, 364.4),
    (1, 32, 112, 32): (2357.2, 1555.8),
    (1, 64, 56, 64): (2354.7, 1251.3),
    (1, 128, 28, 128): (2251.8, 1203.6),
    (1, 256, 14, 256): (2406.1, 1255.1),
    (1, 512, 7, 512): (2837.9, 3044.4),
    (1, 512, 28, 512): (38227.3, 22434.4),
    (1, 64, 7, 64): (39.1, 26.6),
    (1, 256, 7, 256): (603.5, 376.2),
    (1, 64, 3, 64): (8.6, 8.2),
    (1, 24, 15, 40): (43.1, 30.6),
    (1, 8, 112, 16): (322.1, 334.6),
}


def gain(lanes: int, cache: int, beyond: float, n: int, c: int, size: int, o: int) -> float:
    attrs = Conv2dAttrs(input=(n, c, size, size), weight=(o, c, 3, 3), padding=(1, 1, 1, 1), **LAST)
    return float(cpu._function("winograd_gain")(attrs.to_json(), lanes, cache, beyond))


def test_the_estimate_is_what_was_measured() -> None:
    """Ratios within a fifth, of all sizes."""
    for shape, (direct, winograd) in MEASURED.items():
        assert gain(8, 512 << 10, 32.0, *shape) == pytest.approx(direct / winograd, rel=0.2), shape


def test_the_estimate_counts_what_is_read() -> None:
    """Winograd's way gains with larger and faster caches, and less where vectors are wide beside them."""
    shape = (1, 256, 64, 64)
    assert gain(16, 2 << 20, 10.0, *shape) > gain(16, 1 << 20, 10.0, *shape) > gain(16, 1 << 20, 4.0, *shape)
    assert gain(8, 512 << 10, 10.0, *shape) > gain(16, 512 << 10, 10.0, *shape)
    with pytest.raises(ValueError, match="second cache"):
        gain(8, 0, 32.0, *shape)
