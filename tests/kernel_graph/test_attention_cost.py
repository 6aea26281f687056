# SPDX-License-Identifier: Apache-2.0
"""Which way attention goes: by prices, by the table where there are none, or as it is asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op
from uir_tvm import CompileOptions
from uir_tvm.errors import UirError
from uir_tvm.kernel_graph import KernelGraph, build
from uir_tvm.options import ATTENTIONS
from uir_tvm.target import registry

from .programs import module

#: Models that do not depend on the machine of the tests.
MODELS = {"uir-cpu": "avx2-4core", "uir-cuda": "a100", "uir-ascend": "910b2", "uir-bang": "mlu370-x8"}


def graph_of(
    target: str,
    heads: tuple[int, int],
    rows: int,
    keys: int,
    head: int,
    dtype: str,
    attention: str = "auto",
    last: int | None = None,
) -> KernelGraph:
    """Attention of query heads on heads of keys; row i sees keys up to i + ``last``, or all."""
    own, shared = heads
    inputs = {
        "q": ((1, own, rows, head), dtype),
        "k": ((1, shared, keys, head), dtype),
        "v": ((1, shared, keys, head), dtype),
    }

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        if own > shared:
            wide = [emit(op.reshape(x, (1, shared, 1, keys, head))) for x in (k, v)]
            wide = [emit(op.broadcast_to(x, (1, shared, own // shared, keys, head))) for x in wide]
            k, v = (emit(op.reshape(x, (1, own, keys, head))) for x in wide)
        scores = emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))
        scaled = emit(op.multiply(scores, relax.const(head**-0.5, dtype)))
        if last is not None:
            seen = relax.const(np.tri(rows, keys, last, bool))
            scaled = emit(op.where(seen, scaled, relax.const(-math.inf, dtype)))
        return emit(op.matmul(emit(op.nn.softmax(scaled, -1)), v))

    record = registry.get(target)
    return build(
        module(inputs, body), record.target(MODELS[target], record.places[-1].name), attention=attention
    )


#: What the host models count for both ways, us, and with it which way is right.
MODELLED = {
    ("uir-ascend", (4, 4), 128, 128, 64, "float16"): (6.6, 5.2),
    ("uir-ascend", (16, 16), 64, 64, 32, "float16"): (6.8, 5.2),
    ("uir-ascend", (8, 8), 256, 256, 64, "float16"): (10.0, 14.7),
    ("uir-ascend", (8, 8), 16, 1024, 128, "float16"): (9.4, 14.4),
    ("uir-ascend", (12, 12), 197, 197, 64, "float16"): (20.1, 64.4),
    ("uir-bang", (16, 16), 64, 64, 32, "float16"): (10.9, 6.0),
    ("uir-bang", (4, 4), 128, 128, 64, "float16"): (9.4, 10.5),
    ("uir-bang", (8, 2), 1, 1024, 64, "float16"): (6.3, 11.2),
    ("uir-bang", (8, 8), 256, 256, 64, "float32"): (55.8, 62.8),
}


@pytest.mark.parametrize("case", MODELLED)
def test_the_price_goes_the_way_of_the_model(case: Any) -> None:
    """Both prices are within two and a half times of what the host model counts, and in its order."""
    graph = graph_of(*case)
    (price,) = [each for each in graph.fusion if each.candidate == "attention"]
    apart, one = MODELLED[case]
    for way, modelled in ((price.apart, apart), (price.together, one)):
        assert modelled / 2.5 < 1e6 * way.seconds < 2.5 * modelled
    assert price.merged == (one <= apart)
    (found,) = graph.attentions
    assert found.fused == price.merged and ("modelled" in found.reason) != found.fused


@pytest.mark.parametrize(("target", "modelled"), [("uir-ascend", 39.8e-6), ("uir-bang", 270.0e-6)])
def test_the_price_knows_of_blocks_that_the_diagonal_closes(target: str, modelled: float) -> None:
    """A third less where units walk two thirds of the blocks that there are."""

    def price(last: int) -> float:
        graph = graph_of(target, (12, 12), 512, 512, 64, "float16", last=last)
        (found,) = [each for each in graph.fusion if each.candidate == "attention"]
        return found.together.seconds

    assert price(0) < 0.8 * price(500)
    assert modelled / 2.5 < price(0) < 2.5 * modelled


def test_on_a_gpu_the_usual_stays_and_prices_decide_the_rest() -> None:
    """Of fp16 with full tiles one kernel stays; of fp32 small sizes are one, and large ones the library's."""

    def fused(*case: Any) -> bool:
        return graph_of("uir-cuda", *case).attentions[0].fused

    assert fused((12, 12), 512, 512, 64, "float16")
    assert fused((2, 2), 4, 40, 80, "float32")
    assert not fused((8, 8), 1024, 1024, 128, "float32")


@pytest.mark.parametrize(
    ("heads", "size", "head", "dtype"), [(64, 1024, 64, "float16"), (32, 2048, 128, "float32")]
)
def test_on_a_gpu_closed_blocks_are_left_out_of_the_price(
    heads: int, size: int, head: int, dtype: str
) -> None:
    """Half of the blocks, and some of a group's own; a rule that closes a single key closes no block.

    Where all groups run at once, the last one is waited for, which has all blocks.
    """

    def one(heads: int, last: int) -> float:
        graph = graph_of("uir-cuda", (heads, heads), size, size, head, dtype, last=last)
        (price,) = [each for each in graph.fusion if each.candidate == "attention"]
        return price.together.seconds

    assert 0.45 < one(heads, 0) / one(heads, size - 2) < 0.7
    assert one(1, 0) == one(1, size - 2)


def test_a_cpu_has_no_price() -> None:
    """What its table says was measured: all heads up to 256 are one kernel."""
    graph = graph_of("uir-cpu", (8, 2), 1, 1024, 64, "float16")
    assert graph.attentions[0].fused and not [each for each in graph.fusion if each.candidate == "attention"]


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("rows", [1, 64])
def test_either_way_can_be_asked_for(target: str, rows: int) -> None:
    """Of the same attention one kernel, or products of the library around a softmax, on every target."""
    kernel, library = (graph_of(target, (4, 2), rows, 64, 32, "float16", way) for way in ATTENTIONS[1:])
    assert [node.hero for node in kernel.custom_ops] == ["attention"] and not kernel.library_ops
    assert kernel.attentions[0].fused
    assert "attention" not in [node.hero for node in library.custom_ops]
    assert "CompileOptions.attention is 'library'" in library.attentions[0].reason
    assert not library.fallbacks and not kernel.fallbacks


def test_another_way_is_refused() -> None:
    with pytest.raises(UirError, match="'flash' is no way to compute attention") as raised:
        CompileOptions(attention="flash")
    assert "auto, kernel, library" in str(raised.value) and "--attention" in str(raised.value)
