# SPDX-License-Identifier: Apache-2.0
"""Images stay with the channels last between convolutions of the library, whatever stands between them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from attrs import evolve
from tvm import relax
from uir_tvm.kernel_graph import KernelGraph
from uir_tvm.target.cpu.library import TABLE

from .programs import arguments, assert_close, check, constant, module, number, run, run_graph

op = relax.op
nn = relax.op.nn
IMAGES = {"x": ((2, 3, 12, 10), "float32")}
FIRST_TO_LAST, LAST, LAST_TO_FIRST = ("NCHW", "NHWC"), ("NHWC", "NHWC"), ("NHWC", "NCHW")
FIRST = ("NCHW", "NCHW")


def conv(emit: Any, x: Any, weight: tuple[int, ...], seed: int = 0, **attrs: Any) -> Any:
    return emit(nn.conv2d(x, constant(*weight, seed=seed, low=-0.3, high=0.3), **attrs))


def layouts(graph: KernelGraph) -> list[tuple[str, str]]:
    """Of input and output of every convolution."""
    return [
        (node.attrs.input_layout, node.attrs.output_layout)
        for node in graph.library_ops
        if node.kind == "conv2d"
    ]


def copies(graph: KernelGraph) -> int:
    return sum("copy" in node.ops for node in graph.custom_ops)


def between(*steps: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A network with something between two convolutions."""

    def body(emit: Any, x: Any) -> Any:
        x = conv(emit, x, (20, 3, 3, 3), padding=1)
        for step in steps:
            x = step(emit, x)
        return conv(emit, x, (5, int(x.ty.shape[1]), 1, 1), seed=1)

    return body


def gate(emit: Any, x: Any) -> Any:
    """Squeeze and excitation."""
    squeezed = emit(op.mean(x, [2, 3], keepdims=True))
    return emit(op.multiply(x, emit(op.sigmoid(conv(emit, squeezed, (20, 20, 1, 1), seed=4)))))


def beside(emit: Any, x: Any) -> Any:
    """Two branches side by side."""
    return emit(op.concat([x, conv(emit, x, (7, 20, 1, 1), seed=3)], axis=1))


#: What may stand between.
STEPS: dict[str, tuple[Callable[[Any, Any], Any], ...]] = {
    "nothing": (),
    "activation of the library": (lambda emit, x: emit(nn.relu(x)),),
    "numbers": (lambda emit, x: emit(op.minimum(emit(op.maximum(x, number(-0.5))), number(0.5))),),
    "a normalisation's rest": (
        lambda emit, x: emit(op.exp(x)),
        lambda emit, x: emit(op.multiply(x, constant(1, 20, 1, 1))),
        lambda emit, x: emit(op.add(x, constant(20, 1, 1, seed=2))),
    ),
    "max pool": (lambda emit, x: emit(nn.max_pool2d(x, (3, 3), (2, 2), (1, 1))),),
    "max pool that hangs over": (lambda emit, x: emit(nn.max_pool2d(x, (2, 2), (3, 3), ceil_mode=True)),),
    "average pool": (lambda emit, x: emit(nn.avg_pool2d(x, (3, 2), (2, 1), (1, 0))),),
    "adaptive pool": (lambda emit, x: emit(nn.adaptive_avg_pool2d(x, (4, 5))),),
    "resize": (
        lambda emit, x: emit(
            op.image.resize2d(x, (18, 15), None, "NCHW", "nearest_neighbor", "asymmetric", "floor")
        ),
    ),
    "rows and columns": (
        lambda emit, x: emit(op.take(x, relax.const([0, 0, 3, 2], "int64"), axis=2)),
        lambda emit, x: emit(op.take(x, relax.const([1, 1, 5, 5, 9], "int64"), axis=-1)),
    ),
    "gate": (gate,),
    "branches": (beside,),
    "pool and branches": (lambda emit, x: emit(nn.max_pool2d(x, (2, 2), (2, 2))), beside),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_may_stand_between(name: str) -> None:
    """The edges alone are brought from one layout into the other."""
    graph = check(IMAGES, between(*STEPS[name]))
    found = layouts(graph)
    assert (found[0], found[-1]) == (FIRST_TO_LAST, LAST_TO_FIRST)
    assert all(layout == LAST for layout in found[1:-1])
    assert copies(graph) == 0


@pytest.mark.parametrize("times", [1, 3])
def test_repeated_pixels_are_rows_of_channels(times: int) -> None:
    """A resize by whole factors is a view, which one kernel writes out pixel by pixel."""

    def repeated(emit, x):
        return emit(op.repeat(emit(op.repeat(x, 2, 2)), times, 3))

    graph = check(IMAGES, between(repeated))
    assert layouts(graph) == [FIRST_TO_LAST, LAST_TO_FIRST]
    assert copies(graph) == 1


def test_residuals_lie_as_what_they_are_added_to() -> None:
    """A block of a residual network, whose input is read by a shortcut too."""

    def body(emit, x):
        x = emit(nn.relu(conv(emit, x, (16, 3, 3, 3), padding=1)))
        y = emit(nn.relu(conv(emit, x, (16, 16, 3, 3), seed=1, padding=1)))
        y = conv(emit, y, (16, 16, 3, 3), seed=2, padding=1)
        y = emit(nn.relu(emit(op.add(y, x))))
        return conv(emit, y, (4, 16, 1, 1), seed=3)

    graph = check(IMAGES, body)
    assert layouts(graph) == [FIRST_TO_LAST, LAST, LAST, LAST_TO_FIRST]
    assert [node.attrs.residual for node in graph.library_ops][2] == "before_activation"
    assert len(graph.nodes) == 4


def test_a_classifier_reads_the_mean_of_pixels() -> None:
    def body(emit, x):
        x = conv(emit, x, (16, 3, 3, 3))
        mean = emit(op.mean(x, [2, 3]))
        return emit(op.matmul(mean, constant(16, 6, seed=1)))

    graph = check(IMAGES, body)
    assert layouts(graph) == [FIRST_TO_LAST]
    assert copies(graph) == 0


def test_every_channel_of_a_pixel_is_summed() -> None:
    def body(emit, x):
        return emit(op.sum(conv(emit, x, (16, 3, 3, 3)), [1], keepdims=True))

    assert layouts(check(IMAGES, body)) == [FIRST_TO_LAST]


def test_a_part_of_the_channels_goes_on() -> None:
    """A convolution reads a slice, which is copied as it lies."""

    def body(emit, x):
        x = conv(emit, x, (12, 3, 3, 3))
        half = emit(op.strided_slice(x, [1], [4], [12]))
        return conv(emit, half, (4, 8, 1, 1), seed=1)

    graph = check(IMAGES, body)
    assert layouts(graph) == [FIRST_TO_LAST, LAST_TO_FIRST]
    assert copies(graph) == 1


def group_norm(emit: Any, x: Any) -> Any:
    return emit(nn.group_norm(x, constant(20), constant(20, seed=1), 4, 1, [2, 3]))


def shuffled(emit: Any, x: Any) -> Any:
    pairs = emit(op.reshape(x, (2, 4, 5, 12, 10)))
    return emit(op.reshape(emit(op.exp(emit(op.permute_dims(pairs, (0, 2, 1, 3, 4))))), (2, 20, 12, 10)))


def turned(emit: Any, x: Any) -> Any:
    """Every pixel's channels added to those of the input, which lies otherwise."""
    return emit(op.add(emit(op.exp(x)), constant(1, 20, 12, 10)))


@pytest.mark.parametrize("step", [group_norm, shuffled, turned])
def test_what_does_not_take_channels_last(step: Callable[[Any, Any], Any]) -> None:
    """Convolutions around it write and read as before, and nothing is copied between them."""
    graph = check(IMAGES, between(step))
    assert layouts(graph) == [FIRST, FIRST]
    assert copies(graph) == 0


def test_results_of_the_model_have_channels_first() -> None:
    def body(emit, x):
        first = conv(emit, x, (8, 3, 3, 3))
        return first, conv(emit, first, (8, 8, 3, 3), seed=1)

    assert layouts(check(IMAGES, body)) == [FIRST, FIRST]


def test_a_library_without_it_gets_channels_first() -> None:
    build = import_module("uir_tvm.kernel_graph.build")
    mod = module(IMAGES, between(*STEPS["branches"]))
    args = arguments(IMAGES)
    plain = build.build_with(mod, evolve(TABLE, channels_last=False))
    assert set(layouts(plain)) == {FIRST}
    assert_close(run_graph(plain, args), run(mod, args))
