# SPDX-License-Identifier: Apache-2.0
"""Convolutions of images with the channels first and last, on every pair of sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm_ffi
from attrs import evolve
from uir_tvm.library import cpu, reference
from uir_tvm.library.attrs import LAYOUTS
from uir_tvm.library.cpu import Conv2dAttrs

#: Those that tiles apply, and one that they leave to the library.
ACTIVATION_TEXTS = (
    "none relu silu sigmoid tanh leaky_relu(0.1) clip(-0.5,0.75) hard_sigmoid(0.2,0.5) hard_swish(0.25,0.5) "
    "gelu_erf"
).split()

#: Windows that tiles compute on CPUs with AVX2: beside the image on every side, in steps, with places between
#: taps, of panels of two widths; sums of few products.
WINDOWS: dict[str, dict[str, Any]] = {
    "window in steps": {
        "input": (2, 20, 9, 8),
        "weight": (43, 20, 3, 3),
        "strides": (2, 1),
        "padding": (1, 0, 1, 2),
        "dilation": (1, 2),
    },
    "short sums": {"input": (1, 3, 6, 7), "weight": (16, 3, 4, 2), "padding": (3, 1, 0, 1)},
}
#: Windows of one pixel for few pixels: whole and other numbers of vectors, tiles that are not full, pixels
#: that are left out, one pixel.
PRODUCTS: dict[str, dict[str, Any]] = {
    "few pixels": {"input": (1, 40, 7, 7), "weight": (72, 40, 1, 1)},
    "whole vectors": {"input": (2, 33, 5, 6), "weight": (112, 33, 1, 1)},
    "every other pixel": {"input": (2, 24, 9, 7), "weight": (67, 24, 1, 1), "strides": (2, 3)},
    "one pixel": {"input": (1, 90, 1, 1), "weight": (130, 90, 1, 1)},
}
#: More images than threads, images that threads share, channels in no whole vectors, groups, bands of rows,
#: weights larger than images, images that go together.
CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "shared image": {"input": (3, 32, 20, 18), "weight": (64, 32, 3, 3), "padding": (1, 1, 1, 1)},
    "odd channels": {
        "input": (2, 5, 13, 9),
        "weight": (19, 5, 5, 3),
        "strides": (2, 1),
        "padding": (2, 0, 1, 1),
    },
    "depthwise": {"input": (2, 24, 11, 9), "weight": (24, 1, 3, 3), "padding": (1, 1, 1, 1), "groups": 24},
    "groups": {"input": (1, 12, 9, 9), "weight": (20, 3, 3, 3), "groups": 4, "dilation": (2, 1)},
    "bands": {"input": (1, 64, 80, 70), "weight": (72, 64, 1, 1)},
    "large weight": {"input": (1, 256, 4, 4), "weight": (200, 256, 3, 3), "padding": (1, 1, 1, 1)},
    "pixels": {"input": (7, 16, 1, 1), "weight": (9, 16, 1, 1)},
    **PRODUCTS,
    **WINDOWS,
}
CASES = [(name, x, out) for name in CONVOLUTIONS for x in LAYOUTS for out in LAYOUTS]


#: All of these with the code of each width of vectors.
pytestmark = pytest.mark.usefixtures("vectors")


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(attrs: Conv2dAttrs, x: np.ndarray, w: np.ndarray, *more: np.ndarray) -> np.ndarray:
    """The registered function's result, in the order of its layout."""
    weight = cpu.pack_weight(w, attrs) if attrs.packed else tvm_ffi.from_dlpack(w)
    out = lying(np.zeros(attrs.output, np.float32), attrs.output_layout)
    given = map(tvm_ffi.from_dlpack, (*more, out))
    *rest, result = given
    cpu._function("conv2d")(tvm_ffi.from_dlpack(x), weight, *rest, attrs.to_json(), result)
    return out


def lying(images: np.ndarray, layout: str) -> np.ndarray:
    """Images (n, c, h, w) in the order of a layout."""
    return np.ascontiguousarray(images if layout == "NCHW" else images.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(("name", "x_layout", "out_layout"), CASES, ids="-".join)
def test_any_two_layouts(library: bool, threads: int, name: str, x_layout: str, out_layout: str) -> None:
    """Bias, residual and activation; packed and not."""
    for packed, residual in ((False, "before_activation"), (True, "after_activation"), (True, "none")):
        attrs = Conv2dAttrs(
            **CONVOLUTIONS[name],
            bias=True,
            residual=residual,
            activation="relu",
            packed=packed,
            input_layout=x_layout,
            output_layout=out_layout,
        )
        x, w = lying(random(1, *attrs.input), x_layout), random(2, *attrs.weight)
        more = [random(3, attrs.weight[0])]
        if residual != "none":
            more.append(lying(random(4, *attrs.output), out_layout))
        want = reference.conv2d(attrs, x, w, *more)
        # sums of k products in float32 err by about sqrt(k) * 6e-8 of the largest
        assert np.abs(run(attrs, x, w, *more) - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_nothing_is_reordered_between_channels_last(name: str) -> None:
    """The library has fast code for it, which reads and writes tensors where they lie."""
    if not cpu.available():
        pytest.skip("oneDNN is not installed")
    attrs = Conv2dAttrs(**CONVOLUTIONS[name], activation="relu", packed=True, threads=1)
    found = cpu.describe(evolve(attrs, input_layout="NHWC", output_layout="NHWC"))
    assert found["plan"] in ("channels last", "tiles", "winograd")
    assert found["reorders"] == 0
    assert not found["implementation"].startswith("ref")


@pytest.mark.parametrize("name", [*PRODUCTS, *WINDOWS])
@pytest.mark.parametrize("activation", ACTIVATION_TEXTS)
def test_every_activation_of_a_tile(vectors: str, name: str, activation: str) -> None:
    """Of sums from about -30 to 30, with the residual in every place."""
    if name in WINDOWS and vectors.startswith("avx512 in"):
        pytest.skip("those vectors have no tiles of windows: what computes them is tested with the CPU's own")
    for residual in cpu.RESIDUALS:
        attrs = Conv2dAttrs(
            **CONVOLUTIONS[name],
            bias=residual != "none",
            residual=residual,
            activation=activation,
            packed=True,
            input_layout="NHWC",
            output_layout="NHWC",
        )
        x, w = lying(random(1, *attrs.input), "NHWC"), random(2, *attrs.weight)
        more = [random(3, attrs.weight[0])] if attrs.bias else []
        if residual != "none":
            more.append(lying(random(4, *attrs.output), "NHWC"))
        want = reference.conv2d(attrs, x, w, *more)
        plain = evolve(attrs, bias=False, residual="none", activation="none")
        # each product errs by 6e-8 of itself, whatever a clip leaves of the sum; and the activation by 3 ulp
        limit = 6e-8 * reference.conv2d(plain, np.abs(x), np.abs(w)).max() + 1e-5 * np.abs(want).max()
        assert np.abs(run(attrs, x, w, *more) - want).max() <= limit


@pytest.mark.parametrize("activation", ["none", "relu", "silu", "hard_swish(0.25,0.5)", "clip(-1,1)"])
def test_tiles_keep_nan(activation: str) -> None:
    """A pixel that is no number has none as its result, and its neighbours are what they were."""
    attrs = Conv2dAttrs(
        **PRODUCTS["whole vectors"],
        activation=activation,
        packed=True,
        input_layout="NHWC",
        output_layout="NHWC",
    )
    if cpu.describe(attrs)["plan"] != "tiles":
        pytest.skip("this CPU has no AVX2")
    x, w = lying(random(1, *attrs.input), "NHWC"), random(2, *attrs.weight)
    want = run(attrs, x, w)
    x[1, 3, 2, 5] = np.nan
    got = run(attrs, x, w)
    assert np.isnan(got[1, 3, 2]).all()
    got[1, 3, 2] = want[1, 3, 2]
    np.testing.assert_array_equal(got, want)


def test_threads_share_few_pixels(threads: int) -> None:
    """Pixels, not rows, of seven: 24 and 25 of 49. Of one pixel they share the channels of the result."""
    shared = {"packed": True, "input_layout": "NHWC", "output_layout": "NHWC"}
    found = cpu.describe(Conv2dAttrs(input=(1, 1024, 7, 7), weight=(16, 1024, 1, 1), **shared))
    if found["plan"] != "tiles":
        pytest.skip("this CPU has no AVX2")
    assert found["parts"] == [threads, 1]
    found = cpu.describe(Conv2dAttrs(input=(1, 512, 1, 1), weight=(512, 512, 1, 1), **shared))
    assert (found["plan"], found["parts"]) == ("tiles", [1, threads])


@pytest.mark.parametrize(
    ("size", "channels", "residual", "plan"),
    [
        (7, 512, "none", "tiles"),
        (14, 256, "before_activation", "tiles"),
        (56, 64, "before_activation", "channels last"),
        (56, 64, "after_activation", "tiles"),
    ],
)
def test_tiles_where_they_were_faster(
    vectors: str, size: int, channels: int, residual: str, plan: str
) -> None:
    """Of 3x3 windows in direct sums: few results of long sums, and residuals that oneDNN adds in a pass."""
    attrs = Conv2dAttrs(
        input=(1, channels, size, size),
        weight=(channels, channels, 3, 3),
        padding=(1, 1, 1, 1),
        activation="silu",
        residual=residual,
        packed=True,
        plan="direct",
        input_layout="NHWC",
        output_layout="NHWC",
    )
    isa = cpu.available().isa
    if "avx512" in isa or "avx2" not in isa or vectors.startswith("avx512"):
        pytest.skip("measured with AVX2 and without AVX512")
    assert cpu.describe(attrs)["plan"] == plan


def test_threads_share_the_rows_of_all_images(threads: int) -> None:
    if not cpu.available():
        pytest.skip("oneDNN is not installed")
    attrs = Conv2dAttrs(input=(3, 64, 40, 40), weight=(64, 64, 3, 3), output_layout="NHWC")
    found = cpu.describe(evolve(attrs, input_layout="NHWC"))
    assert (found["tasks"], found["steps"]) == ((1, 3) if threads == 1 else (2, 4))


@pytest.mark.parametrize("change", ['"input_layout":"CHWN"', '"output_layout":7'])
def test_unknown_layouts_are_refused(change: str) -> None:
    attrs = Conv2dAttrs(input=(1, 4, 4, 4), weight=(4, 4, 1, 1))
    text = attrs.to_json()[:-1] + "," + change + "}"
    with pytest.raises(ValueError, match=change.partition('"')[2].partition('"')[0]):
        cpu._function("describe")(text, "float32")


def test_the_text_of_sizes_keeps_layouts() -> None:
    """They are names, no expressions of sizes."""
    text = Conv2dAttrs(
        input=(1, 4, 5, 5), weight=(4, 4, 1, 1), input_layout="NHWC", output_layout="NHWC"
    ).to_json()
    in_numbers = tvm_ffi.get_global_func("uir.library.in_numbers")
    opened = text.replace('"input":[1,', '"input":["n",')
    assert str(in_numbers(cpu.CONV2D, opened, "n", tvm_ffi.Shape((3,)))) == text.replace("[1,4,5", "[3,4,5")
