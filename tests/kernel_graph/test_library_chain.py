# SPDX-License-Identifier: Apache-2.0
"""Convolutions that follow each other are one call of the library, where what lies between is wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from tvm import relax
from uir_tvm.kernel_graph import KernelGraph
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.library.library_tables import LibraryTable
from uir_tvm.target.cpu.library import CHAINS, TABLE

from .programs import arguments, assert_close, constant, module, run, run_graph

op = relax.op
nn = relax.op.nn
IMAGES = {"x": ((2, 3, 12, 10), "float32")}
#: The table for images of any size.
NARROW = evolve(TABLE, chains=evolve(CHAINS, min_bytes=1))


def conv(emit: Any, x: Any, outputs: int, seed: int, **attrs: Any) -> Any:
    """Of single pixels."""
    weight = constant(outputs, int(x.ty.shape[1]), 1, 1, seed=seed, low=-0.3, high=0.3)
    made = emit(nn.conv2d(x, weight, **attrs))
    return emit(op.add(made, constant(1, outputs, 1, 1, seed=seed + 50, low=-0.3, high=0.3)))


def windows(emit: Any, x: Any, seed: int, **attrs: Any) -> Any:
    """For each channel."""
    channels = int(x.ty.shape[1])
    weight = constant(channels, 1, 3, 3, seed=seed, low=-0.3, high=0.3)
    made = emit(nn.conv2d(x, weight, groups=channels, padding=1, **attrs))
    return emit(
        op.nn.relu(emit(op.add(made, constant(1, channels, 1, 1, seed=seed + 50, low=-0.3, high=0.3))))
    )


def block(emit: Any, x: Any, wide: int, outputs: int, seed: int, **attrs: Any) -> Any:
    """An inverted residual block, without the residual."""
    return conv(
        emit,
        windows(emit, emit(op.clip(conv(emit, x, wide, seed), 0, 6)), seed + 1, **attrs),
        outputs,
        seed + 2,
    )


def network(body: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Something between a first and a last convolution."""

    def made(emit: Any, x: Any) -> Any:
        first = emit(nn.conv2d(x, constant(16, 3, 3, 3, seed=0, low=-0.3, high=0.3), padding=1))
        return conv(emit, body(emit, first), 5, 90)

    return made


def check(body: Callable[[Any, Any], Any], table: LibraryTable) -> KernelGraph:
    """The graph with that table, whose results are those of TVM's own lowering."""
    mod, args = module(IMAGES, network(body)), arguments(IMAGES)
    graph = build_with(mod, table)
    assert graph.fallbacks == ()
    assert_close(run_graph(graph, args), run(mod, args))
    return graph


def chains_of(graph: KernelGraph) -> list[Any]:
    return [node for node in graph.library_ops if node.kind == "conv2d_chain"]


def inverted(emit: Any, x: Any) -> Any:
    return emit(op.add(block(emit, x, 48, 16, 1), x))


def in_steps(emit: Any, x: Any) -> Any:
    return block(emit, x, 48, 24, 1, strides=2)


def separable(emit: Any, x: Any) -> Any:
    """Windows and pixels in turns: each pair is a chain."""
    for seed in (1, 11):
        x = emit(op.nn.relu(conv(emit, windows(emit, x, seed), 32, seed + 1)))
    return x


def gated(emit: Any, x: Any) -> Any:
    """What follows the windows is no convolution."""
    wide = windows(emit, emit(op.nn.relu(conv(emit, x, 32, 1))), 2)
    gate = emit(op.sigmoid(emit(op.mean(wide, [2, 3], keepdims=True))))
    return emit(op.multiply(wide, gate))


@pytest.mark.parametrize(
    ("body", "chains", "parts"), [(inverted, 1, 3), (in_steps, 1, 3), (separable, 2, 2), (gated, 1, 2)]
)
def test_chains_are_found_and_right(body: Callable[..., Any], chains: int, parts: int) -> None:
    graph = check(body, NARROW)
    assert [len(node.attrs.parts) for node in chains_of(graph)] == [parts] * chains
    assert chains_of(check(body, evolve(TABLE, chains=None))) == []


def test_a_residual_is_a_chains_last_operand() -> None:
    (node,) = chains_of(check(inverted, NARROW))
    assert [part.residual for part in node.attrs.parts] == ["none", "none", "before_activation"]
    assert node.ops[0] == "library.conv2d_chain"
    assert node.inputs[-1].name == node.inputs[0].name  # what the block begins with


def test_narrow_images_are_left_to_their_convolutions() -> None:
    assert chains_of(check(inverted, TABLE)) == []


def test_what_others_read_stays() -> None:
    def body(emit: Any, x: Any) -> Any:
        wide = emit(op.nn.relu(conv(emit, x, 32, 1)))
        seen = windows(emit, wide, 2)
        gate = emit(op.sigmoid(emit(op.mean(wide, [2, 3], keepdims=True))))
        return emit(op.multiply(conv(emit, seen, 32, 3), gate))

    graph = check(body, NARROW)
    (node,) = chains_of(graph)
    assert [part.packed for part in node.attrs.parts] == [False, True]  # the convolution before them stays


def test_channels_that_are_no_whole_vectors_stay() -> None:
    def body(emit: Any, x: Any) -> Any:
        return block(emit, x, 40, 16, 1)

    assert chains_of(check(body, NARROW)) == []


def test_activations_that_tiles_lack_stay_apart() -> None:
    def body(emit: Any, x: Any) -> Any:
        return conv(emit, windows(emit, emit(op.nn.gelu(conv(emit, x, 32, 1))), 2), 16, 3)

    (node,) = chains_of(check(body, NARROW))
    assert [part.activation for part in node.attrs.parts] == ["relu", "none"]
