# SPDX-License-Identifier: Apache-2.0
"""Blocks of keys that the diagonal closes for a tile of rows are left out on devices; results stay right."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from tvm import relax
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.device.run_text import run
from uir_tvm.igraph import IGraph, Loop
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.optimize import optimize
from uir_tvm.runtime.kernel import signature_of
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.attention.blocks import (
    blocks_of_tiles,
    busiest,
    end_within,
    pays_to_spread,
    step_of,
)
from uir_tvm.target.registry import TARGETS

from tests.extracted import extracted

from ..kernel_graph.programs import module
from ..open_functions import OpenFunction, attended, attention_of
from .attention_kernels import FUSING

MODELS = {"uir-bang": hardware.get("mlu370-x8", "bang"), "uir-ascend": hardware.get("910b2", "ascend")}


@attrs.frozen
class Case:
    """Heads, queries, keys, size of a head; ``last``: row i sees keys up to i + last; ``window`` of them."""

    heads: int
    rows: int
    keys: int
    head: int
    last: int = 0
    window: int = 0

    def open(self, i: Any, j: Any) -> Any:
        """Which keys a row sees."""
        seen = j <= i + self.last
        return seen & (j > i + self.last - self.window) if self.window else seen

    def opened(self) -> np.ndarray:
        """The same, of all rows and keys."""
        return np.asarray(self.open(np.arange(self.rows)[:, None], np.arange(self.keys)[None, :]))


CASES = {
    "square": Case(2, 256, 256, 32),
    "turns": Case(8, 256, 256, 32),
    "whole heads": Case(32, 256, 256, 16),
    "a turn that not all units have": Case(7, 320, 320, 16),
    "ragged": Case(2, 300, 300, 32),
    "behind earlier tokens": Case(2, 256, 512, 32, last=256),
    "window": Case(2, 256, 256, 32, window=100),
    "few rows": Case(2, 16, 512, 32, last=496),
    "rows without a key": Case(1, 256, 256, 32, last=-100),
}

#: Those in which a tile has several blocks, and every tile one.
ENDED = {
    "uir-bang": {*CASES} - {"few rows", "rows without a key"},
    "uir-ascend": {"turns", "whole heads", "a turn that not all units have", "ragged"},
}


def optimized(case: Case, target: str) -> IGraph:
    """The graph after the target's passes."""
    dtype = "float16"
    inputs = {
        "q": ((1, case.heads, case.rows, case.head), dtype),
        "k": ((1, case.heads, case.keys, case.head), dtype),
        "v": ((1, case.heads, case.keys, case.head), dtype),
    }

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        x = emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))
        x = emit(op.multiply(x, relax.const(case.head**-0.5, dtype)))
        x = emit(op.where(relax.const(case.opened()), x, relax.const(-math.inf, dtype)))
        return emit(op.matmul(emit(op.nn.softmax(x, -1)), v))

    (node,) = [n for n in build_with(module(inputs, body), FUSING).custom_ops if n.hero == "attention"]
    graph = extracted(apply_default(node.prim_func, MODELS[target]), MODELS[target])
    # products between cores leave nothing to be loaded ahead, which a pipeline takes for a reason to go on
    passes = [name for name in TARGETS[target].passes if name != "multibuffer" or target == "uir-bang"]
    return optimize(graph, passes).graph


def ended(graph: IGraph) -> list[Loop]:
    """The loops that units end."""

    def walk(body: Any) -> Any:
        for node in body:
            if isinstance(node, Loop):
                yield node
                yield from walk(node.body)

    return [loop for loop in walk(graph.body) if "rounds" in loop.attrs]


def attention(case: Case, q: Any, k: Any, v: Any) -> np.ndarray:
    q, k, v = (x.astype("float64") for x in (q, k, v))
    x = np.where(case.opened(), q @ k.swapaxes(-1, -2) * case.head**-0.5, -np.inf)
    weights = np.exp(x - x.max(-1, keepdims=True, initial=-1e30))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ v)


@pytest.mark.compares_itself
@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("name", CASES)
def test_blocks_that_the_diagonal_closes_are_left_out_and_the_rest_is_right(name: str, target: str) -> None:
    """Loops end where there are several blocks and every tile has one."""
    case = CASES[name]
    graph = optimized(case, target)
    assert bool(ended(graph)) == (name in ENDED[target])
    rng = np.random.default_rng(3)
    q, k, v = (
        rng.standard_normal((1, case.heads, n, case.head)).astype("float16")
        for n in (case.rows, case.keys, case.keys)
    )
    (got,) = run(TARGETS[target].lower(graph), [q, k, v]).check().outputs.values()
    with np.errstate(invalid="ignore"):
        want = attention(case, q, k, v)
    seen = case.opened().any(-1)
    got = np.asarray(got).astype("float64").reshape(want.shape)
    np.testing.assert_allclose(got[..., seen, :], want[..., seen, :], rtol=0, atol=2.0**-9 * 4)


@pytest.mark.compares_itself
@pytest.mark.parametrize("target", MODELS)
def test_causal_attention_takes_less_than_one_that_sees_all(target: str) -> None:
    """By the model, where units take turns: each has early tiles and late ones."""
    busy = {}
    for name, last in {"nearly all": 510, "causal": 0}.items():
        product = TARGETS[target].lower(optimized(Case(12, 512, 512, 64, last=last), target))
        rng = np.random.default_rng(3)
        arrays = [rng.standard_normal((1, 12, 512, 64)).astype("float16") for _ in range(3)]
        busy[name] = sum(each.modelled["seconds"] for each in run(product, arrays).check().results)
    assert busy["causal"] < 0.8 * busy["nearly all"]


def test_tiles_of_rows_walk_the_blocks_up_to_their_diagonal() -> None:
    assert blocks_of_tiles(256, 64, 128, 0) == [1, 1, 2, 2]
    assert blocks_of_tiles(100, 64, 32, 28) == [3, 5]
    assert end_within([1, 2], 2)
    assert not end_within([0, 2], 2) and not end_within([1, 3], 2) and not end_within([], 2)
    assert not end_within([1], 1)


def test_tiles_of_a_head_go_to_many_units() -> None:
    """Each then has early and late ones: of 12 heads of 8 tiles on 16 units, six turns each."""
    blocks = blocks_of_tiles(512, 64, 128, 0)
    assert blocks == [1, 1, 2, 2, 3, 3, 4, 4]
    assert busiest(blocks, 12, 16, spread=False) == 18
    assert busiest(blocks, 12, 16, spread=True) == 16
    assert 12 * sum(blocks) == 15 * 16
    assert pays_to_spread(blocks, 12, 16)
    # whole heads for each unit: nothing to gain
    assert not pays_to_spread(blocks, 32, 16)
    # some units have no tile in the last turn
    assert step_of(21, 16) == 0 and step_of(32, 16) == 8
    assert busiest([1, 2, 3], 7, 16, spread=True) == 4


def opened(target: str, causal: bool, heads: int = 2, most: int = 512, length: int = 448) -> float:
    """Modelled seconds of heads of up to ``most`` queries and keys, so many there; its results are right."""
    sizes = {"s": length}
    shapes = [(1, heads, "s", 64)] * 3
    function = OpenFunction(
        "attention", shapes, attention_of(causal), attended(causal), ranges={"s": (1, most)}
    )
    model = MODELS[target]
    passes = [name for name in TARGETS[target].passes if name != "multibuffer" or target == "uir-bang"]
    graph = optimize(extracted(apply_default(function.func(), model), model), passes).graph
    inputs = function.inputs(sizes)
    ran = run(TARGETS[target].lower(graph, signature_of(graph)), inputs, sizes=sizes).check()
    np.testing.assert_allclose(
        ran.outputs["out"].reshape(inputs[0].shape), function.reference(*inputs), rtol=0, atol=1e-4
    )
    return float(sum(each.modelled["seconds"] for each in ran.results))


@pytest.mark.parametrize(("target", "most"), [("uir-ascend", 0.8), ("uir-bang", 1.5)])
def test_a_causal_mask_on_open_sizes_costs_little(target: str, most: float) -> None:
    """Places are compared in fp32 there too, by vectors; bounds leave closed blocks out."""
    assert opened(target, True) < most * opened(target, False)


@pytest.mark.parametrize("length", [1, 64, 65, 129])
def test_short_ones_of_open_sizes_are_right_on_uir_bang(length: int) -> None:
    """No block but the first, one that the diagonal closes for the first tile, and ends of a row."""
    assert opened("uir-bang", True, length=length) > 0


def test_a_causal_mask_on_many_open_tiles_saves_time_on_uir_bang() -> None:
    """Each core has several tiles of rows: half of their blocks are closed, and cost a comparison."""
    assert opened("uir-bang", True, 4, 1024, 1024) < 0.95 * opened("uir-bang", False, 4, 1024, 1024)
