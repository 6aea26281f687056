# SPDX-License-Identifier: Apache-2.0
"""Chains of convolutions compute what their parts do one after the other, whatever the vectors and bands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from attrs import evolve
from uir_tvm.errors import ShapeError
from uir_tvm.library import cpu
from uir_tvm.library.attrs import Conv2dAttrs
from uir_tvm.library.chain_attrs import Conv2dChainAttrs, by_channel, chain_reference
from uir_tvm.library.work import work_of

LAST = {"input_layout": "NHWC", "output_layout": "NHWC"}
PIXELS = {"packed": True, "plan": "tiles", **LAST}


def _function(name: str) -> Any:
    cpu.locate()
    return tvm_ffi.get_global_func(f"uir.library.cpu.{name}")


@pytest.fixture(params=list(_function("tile_vectors")()) or ["none"])
def vectors(request: pytest.FixtureRequest) -> Iterator[str]:
    """The vectors that this CPU has; none: one convolution after the other."""
    if request.param != "none":
        _function("set_tile_vectors")(request.param)
    yield request.param
    if request.param != "none":
        _function("set_tile_vectors")(next(iter(_function("tile_vectors")())))


def chain(
    images: tuple[int, int, int, int],
    channels: int,
    outputs: int = 0,
    *,
    window: tuple[int, int] = (3, 3),
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, ...] = (1, 1, 1, 1),
    dilation: tuple[int, int] = (1, 1),
    before: bool = True,
    activations: tuple[str, str, str] = ("clip(0,6)", "clip(0,6)", "none"),
    residual: str = "none",
    bias: bool = True,
) -> Conv2dChainAttrs:
    """(n, c, h, w) -> `channels` -> windows -> `outputs`, 0: the windows are the last."""
    n, c, h, w = images
    parts = []
    first, second, third = activations
    if before:
        parts.append(
            Conv2dAttrs(input=images, weight=(channels, c, 1, 1), bias=bias, activation=first, **PIXELS)
        )
    parts.append(
        Conv2dAttrs(
            input=(n, channels, h, w),
            weight=(channels, 1, *window),
            groups=channels,
            strides=strides,
            padding=padding,
            dilation=dilation,
            bias=bias,
            activation=second,
            **LAST,
        )
    )
    if outputs:
        parts.append(
            Conv2dAttrs(
                input=parts[-1].output,
                weight=(outputs, channels, 1, 1),
                bias=bias,
                activation=third,
                residual=residual,
                **PIXELS,
            )
        )
    return Conv2dChainAttrs(parts=parts)


def operands(it: Conv2dChainAttrs, seed: int = 0) -> tuple[list[Any], list[np.ndarray], np.ndarray]:
    """What the operator takes, what the reference takes, and where the result goes."""
    rng = np.random.default_rng(seed)
    n, c, h, w = it.parts[0].input
    x = rng.standard_normal((n, h, w, c)).astype(np.float32)
    given: list[Any] = [x]
    plain = [x]
    for part in it.parts:
        weight = (rng.standard_normal(part.weight) / np.sqrt(np.prod(part.weight[1:]))).astype(np.float32)
        if part.packed:
            an_image = evolve(part, input=(1, *part.input[1:]))
            given.append(cpu.pack_weight(weight, an_image))
        else:
            weight = np.ascontiguousarray(weight[:, 0].transpose(1, 2, 0))
            given.append(weight)
        plain.append(weight)
        if part.bias:
            given.append(rng.standard_normal(part.weight[0]).astype(np.float32))
            plain.append(given[-1])
    n, o, h, w = it.parts[-1].output
    if it.parts[-1].residual != "none":
        given.append(rng.standard_normal((n, h, w, o)).astype(np.float32))
        plain.append(given[-1])
    return given, plain, np.full((n, h, w, o), np.nan, np.float32)


def call(text: str, given: list[Any], out: np.ndarray) -> None:
    tensors = [tvm_ffi.from_dlpack(each) if isinstance(each, np.ndarray) else each for each in given]
    _function("conv2d_chain")(*tensors, text, tvm_ffi.from_dlpack(out))


#: Bands of a row and of all rows, borders of every side, steps, holes, no bias, ends of every kind.
CASES: dict[str, Conv2dChainAttrs] = {
    "expanded": chain((1, 24, 14, 13), 96, 24, residual="before_activation"),
    "residual after": chain(
        (2, 24, 9, 9), 48, 24, residual="after_activation", activations=("relu", "relu", "relu")
    ),
    "steps": chain((2, 16, 15, 12), 48, 40, strides=(2, 2)),
    "steps of rows alone": chain((1, 16, 9, 12), 32, 16, strides=(3, 1), window=(3, 3)),
    "wide windows": chain((1, 16, 11, 10), 64, 32, window=(5, 5), padding=(2, 2, 2, 2)),
    "wide windows in steps": chain(
        (1, 8, 11, 10), 32, 7, window=(5, 5), strides=(2, 2), padding=(2, 1, 3, 2)
    ),
    "holes": chain((1, 16, 12, 12), 32, 16, dilation=(2, 2), padding=(2, 2, 2, 2)),
    "no padding": chain((1, 16, 8, 7), 32, 16, padding=(0, 0, 0, 0)),
    "padding beyond": chain((1, 16, 5, 4), 32, 16, padding=(4, 3, 5, 2)),
    "windows of a row": chain((1, 16, 6, 9), 32, 16, window=(1, 7), padding=(0, 3, 0, 3)),
    "few pixels": chain((3, 16, 2, 2), 32, 16),
    "no bias": chain((1, 16, 8, 8), 32, 16, bias=False),
    "only behind": chain((1, 32, 12, 12), 32, 16, before=False),
    "only before": chain((2, 12, 12, 9), 48),
    "other activations": chain(
        (1, 16, 9, 9), 48, 24, activations=("hard_swish(0.16666667,0.5)", "silu", "sigmoid")
    ),
    "one after the other, for an activation": chain(
        (1, 16, 9, 9), 48, 24, activations=("gelu_erf", "relu", "none")
    ),
    "one after the other, for channels": chain((1, 16, 9, 9), 20, 24, activations=("silu", "silu", "none")),
    "more than a cache": chain((1, 16, 60, 112), 96, 24),
}


@pytest.mark.parametrize("name", CASES)
def test_a_chain_computes_what_its_parts_do(vectors: str, name: str) -> None:
    it = CASES[name]
    given, plain, out = operands(it)
    call(it.to_json(), given, out)
    wanted = chain_reference(it, *plain)
    np.testing.assert_allclose(out, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    told = json.loads(_function("describe_chain")(it.to_json()))
    staged = name.startswith("one after") or vectors == "none"
    assert told["plan"] == ("staged" if staged else "bands")


def test_nan_and_infinite_weights_beside_an_image_stay(vectors: str) -> None:
    """As a convolution by itself: what is beside an image are zeros, and zero times infinity is NaN."""
    it = chain((1, 16, 6, 6), 32, 16)
    given, plain, out = operands(it)
    plain[0][0, 3, 3, :] = np.nan
    plain[3][0, 0, 5] = np.inf  # of the window's first tap
    call(it.to_json(), given, out)
    with np.errstate(invalid="ignore"):
        wanted = chain_reference(it, *plain)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(wanted))
    assert np.isnan(out).any()


def test_attributes_travel_as_text() -> None:
    it = CASES["expanded"]
    assert Conv2dChainAttrs.from_json(it.to_json()) == it
    assert not it.is_open and it.symbols == ()
    assert [by_channel(part) for part in it.parts] == [False, True, False]
    work = work_of("conv2d_chain", it.to_json())
    assert work.operations == sum(work_of("conv2d", part.to_json()).operations for part in it.parts)
    assert work.elements < sum(work_of("conv2d", part.to_json()).elements for part in it.parts)


def test_what_is_no_chain_is_refused() -> None:
    it = CASES["expanded"]
    first, windows, last = it.parts
    for parts in (
        (first, last),
        (windows, windows),
        (first,),
        (last, windows, first),
        (first, windows, last, last),
    ):
        with pytest.raises(ShapeError, match="no chain"):
            Conv2dChainAttrs(parts=parts)
    for parts in (
        (evolve(first, residual="before_activation"), windows),
        (evolve(first, output_layout="NCHW"), windows),
        (evolve(first, packed=False), windows),
        (evolve(first, alpha=2.0), windows),
    ):
        with pytest.raises(ShapeError, match="no chain"):
            Conv2dChainAttrs(parts=parts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: text.replace('"packed":true', '"packed":false'),
            "neither a packed weight nor a window",
        ),
        (lambda text: text.replace('"NHWC"', '"NCHW"'), "channels first"),
        (lambda text: text.replace('"parts":[', '"parts":[{},'), "is missing from the attributes"),
        (lambda text: text.replace('"parts":[', '"parts":[3,'), "must be a list of JSON objects"),
        (lambda text: text.replace('"input":[1,96', '"input":[2,96'), "other images"),
        (lambda text: text[:-3], "are not JSON"),
    ],
)
def test_the_operator_refuses_other_texts(change: Any, message: str) -> None:
    it = CASES["expanded"]
    given, _, out = operands(it)
    with pytest.raises(ValueError, match=message) as told:
        call(change(it.to_json()), given, out)
    assert "Library operator conv2d_chain" in str(told.value)


def test_the_operator_refuses_other_operands() -> None:
    it = CASES["expanded"]
    given, _, out = operands(it)
    with pytest.raises(ValueError, match="got 8 arguments"):
        call(it.to_json(), given[:-2], out)
    with pytest.raises(ValueError, match="out"):
        call(it.to_json(), given, out[:, :-1].copy())
    with pytest.raises(ValueError, match="weight 1"):
        call(it.to_json(), [*given[:3], given[3][:2].copy(), *given[4:]], out)
    with pytest.raises(ValueError, match="bias 0"):
        call(it.to_json(), [*given[:2], given[2].astype(np.float64), *given[3:]], out)


def test_no_images_are_nothing_to_compute() -> None:
    it = chain((0, 16, 6, 6), 32, 16)
    given, _, out = operands(it)
    call(it.to_json(), given, out)
    assert out.size == 0
