# SPDX-License-Identifier: Apache-2.0
"""One token of a whole language model as one CUDA graph: its structure, and replays on stand-ins."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import tvm
from uir_tvm.errors import TargetError
from uir_tvm.import_model import import_model
from uir_tvm.kernel_graph import build, cuda_graph, to_relax, vm_passes
from uir_tvm.llm.exported import exported
from uir_tvm.llm.read_model import packed_model

from ..kernel_graph import captured
from ..kernel_graph.captured import GPU, Graphs, captures, launches, machine_of, outside
from .small import model

graphs = captured.graphs
LAYERS, ROOM = 2, 12
#: One token at one place.
TOKEN = {"input_ids": (1, 1), "cache_position": (1,)}


@functools.cache
def step(weights: str | None, on_gpu: bool = True) -> tuple[tvm.IRModule, tvm.IRModule]:
    """The program of a token, lowered plainly and with its launches captured; for LLVM, or a GPU."""
    program = exported(packed_model(model(LAYERS), weights), ROOM, ROOM)
    target = tvm.target.Target(GPU) if on_gpu else "llvm"
    graph = to_relax(build(import_model(program, TOKEN), target))
    plain = vm_passes(None)(graph)
    with tvm.transform.PassContext(config={cuda_graph.OPTION: True}):
        return plain, vm_passes(tvm.target.Target(GPU))(cuda_graph.with_fixed_memory(graph, len(TOKEN)))


@pytest.mark.parametrize("weights", ["float16", "q4"])
def test_a_token_is_one_graph(weights: str) -> None:
    """Of all layers: kernels, products of the library, writes of keys and values; copies alone are left."""
    plain, made = step(weights)
    (name,) = captures(made)
    assert launches(made, name) == launches(plain, "main") >= 8 * LAYERS
    assert set(outside(made)) == {cuda_graph.COPY, cuda_graph.BY_ADDRESS}
    # tokens, positions, logits and the most likely token
    assert outside(made).count(cuda_graph.COPY) == 4
    assert made[name].script().count("update") >= 2 * LAYERS


def test_what_breaks_capture_is_named() -> None:
    _, made = step("q4")
    kernel = next(gvar.name_hint for gvar in made.functions if "packed_product" in gvar.name_hint)
    with pytest.raises(TargetError, match=f"kernel {kernel} cannot be captured") as caught:
        cuda_graph.refuse_host(made, {kernel: "its reason"})
    assert "its reason" in caught.value.render()


def test_replays_are_the_tokens_of_plain_calls(graphs: Graphs) -> None:
    """Two conversations in turns: each is captured once, and goes on with its own keys and values."""
    plain, made = (machine_of(mod) for mod in step(None, on_gpu=False))
    shapes = [(1, 2, ROOM, 8)] * (2 * LAYERS)
    states = [[_zeros(shapes) for _ in range(2)] for _ in range(2)]
    token = 7
    for turn in range(8):
        args = np.array([[token]], np.int64), np.array([turn // 2], np.int64)
        wanted, got = (
            [each.numpy() for each in main(*map(tvm.runtime.tensor, args), *state)]
            for main, state in zip((plain, made), states[turn % 2], strict=True)
        )
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
        token = 5 + int(wanted[1][0]) % 40 if turn % 2 else token
    for kept, other in ((a, b) for pair in states for a, b in zip(*pair, strict=True)):
        np.testing.assert_array_equal(kept.numpy(), other.numpy())
        assert np.abs(kept.numpy()).max() > 0
    assert len(graphs.captured) == 2


def _zeros(shapes: list[tuple[int, ...]]) -> list[Any]:
    return [tvm.runtime.tensor(np.zeros(shape, np.float32)) for shape in shapes]
