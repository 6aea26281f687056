# SPDX-License-Identifier: Apache-2.0
"""Masks that are rules about rows and columns: which are recognised, and that they leave the same open."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm
from torch import nn
from torch.export import Dim
from tvm import relax
from tvm.relax import op
from uir_tvm.kernel_graph import attention
from uir_tvm.kernel_graph.band import Band, band_of
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.options import CompileOptions
from uir_tvm.sizes.open_symbols import symbols_for
from uir_tvm.sizes.size_space import SizeSpace
from uir_tvm.target.registry import TARGETS

from .programs import arguments, assert_close, module, run, run_graph
from .test_attention import FUSING, Q, scores

LOWEST = float(np.finfo(np.float32).min)


def seen(first: int | None = None, last: int | None = None) -> np.ndarray:
    apart = np.arange(12)[None] - np.arange(12)[:, None]
    return (apart >= (-99 if first is None else first)) & (apart <= (99 if last is None else last))


def added(flags: np.ndarray, closed: float) -> Any:
    return lambda emit, x: emit(op.add(x, relax.const(np.where(flags, 0, closed).astype("float32"))))


def chosen(flags: np.ndarray, closed: float) -> Any:
    return lambda emit, x: emit(op.where(relax.const(flags), x, relax.const(closed, "float32")))


def computed(compare: Any, shift: int, closed: float = -math.inf) -> Any:
    """where(compare(j, i + shift), 0, closed), of positions."""

    def step(emit: Any, x: Any) -> Any:
        position = emit(op.arange(0, 12, 1, "int64"))
        row = emit(op.add(emit(op.reshape(position, (12, 1))), relax.const(shift, "int64")))
        flags = emit(compare(emit(op.reshape(position, (1, 12))), row))
        zero, low = relax.const(0.0, "float32"), relax.const(closed, "float32")
        return emit(op.add(x, emit(op.where(flags, zero, low))))

    return step


def filled(flags: np.ndarray, closed: float) -> Any:
    """The other way round: where flags are set the score is closed."""
    return lambda emit, x: emit(op.where(relax.const(~flags), relax.const(closed, "float32"), x))


def both(one: Any, other: Any) -> Any:
    return lambda emit, x: other(emit, one(emit, x))


@pytest.mark.parametrize(
    ("step", "bands"),
    [
        (added(seen(last=0), -math.inf), [Band(last=0)]),
        (added(seen(last=3), LOWEST), [Band(last=3)]),
        (chosen(seen(last=1), -math.inf), [Band(last=1)]),
        (chosen(seen(first=-4, last=0), LOWEST), [Band(-4, 0)]),
        (added(seen(first=-2), -math.inf), [Band(first=-2)]),
        (filled(seen(last=0), -math.inf), [Band(last=0)]),
        (filled(seen(first=-4, last=0), LOWEST), [Band(-4, 0)]),
        (computed(op.less_equal, 0), [Band(last=0)]),
        (computed(op.less, 3, LOWEST), [Band(last=2)]),
        (computed(op.greater, -5), [Band(first=-4)]),
        (both(computed(op.less_equal, 0), computed(op.greater, -5)), [Band(-4, 0)]),
    ],
)
def test_rules_are_recognised_and_are_no_data(
    step: Any, bands: list[Band], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Band] = []

    def spy(*args: Any) -> Band | None:
        band = band_of(*args)
        found.extend([] if band is None else [band])
        return band

    monkeypatch.setattr(attention, "band_of", spy)

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        return emit(op.matmul(emit(op.nn.softmax(step(emit, scores(emit, q, k)), -1)), v))

    mod, args = module(Q, body), arguments(Q)
    graph = build_with(mod, FUSING)
    (node,) = graph.custom_ops
    assert node.hero == "attention"
    assert len(node.inputs) == 3
    assert found == bands
    assert_close(run_graph(graph, args), run(mod, args), 3e-6)


@pytest.mark.parametrize(
    "step",
    [
        added(seen(last=0) | (np.arange(12)[None] == 11), -math.inf),  # one column more
        added(seen(last=0), -1e9),  # a number that scores may reach
        added(seen(first=2), LOWEST),  # rows without a key weigh all alike
        chosen(~seen(first=-2, last=2), -math.inf),
    ],
)
def test_other_masks_stay_data(step: Any) -> None:
    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        return emit(op.matmul(emit(op.nn.softmax(step(emit, scores(emit, q, k)), -1)), v))

    mod, args = module(Q, body), arguments(Q)
    graph = build_with(mod, FUSING)
    assert [len(node.inputs) for node in graph.custom_ops if node.hero == "attention"] == [4]
    assert_close(run_graph(graph, args), run(mod, args), 3e-6)


def symbols() -> tuple[SizeSpace, Any, Any]:
    """Rows n, and keys m."""
    space = SizeSpace(symbols_for({"n": (1, 16), "m": (1, 64)}, {"n": "n", "m": "m"}))
    return space, *(space.symbol(name) for name in "nm")


def test_bounds_may_be_sizes() -> None:
    _, n, m = symbols()
    band = Band(last=m - n)
    assert band == Band(last=m - n) != Band(last=n - m)
    assert band.both(Band(first=-3)) == Band(-3, m - n)
    assert not band.opens_rows(n, m) and not Band(first=n).opens_rows(12, 12)
    assert Band(first=-3).opens_rows(12, 12)


def test_places_that_floats_hold() -> None:
    """What any of the sizes may be, and where they have no end."""
    space, n, m = symbols()
    assert Band(last=m - n).is_exact(n, m) and Band(-5, 5).is_exact(12, 1 << 20)
    assert not Band(last=0).is_exact(12, 1 << 24) and not Band(last=1 << 24).is_exact(12, 12)
    endless = SizeSpace(symbols_for({"k": (1, None)}, {"k": "k"})).symbol("k")
    assert not Band(last=0).is_exact(12, endless)
    assert not space.conditions


class Masked(nn.Module):
    """The last rows of scores, which see the columns before them; their softmax is no attention's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        opened = torch.arange(columns)[None] <= torch.arange(rows)[:, None] + (columns - rows)
        return torch.softmax((x * 2).masked_fill(~opened, -math.inf), -1)


@pytest.mark.parametrize("target", TARGETS)
def test_masks_of_positions_are_compared_where_scores_are(target: str) -> None:
    """Neither positions nor the mask are a kernel's result."""
    dims = ({0: Dim("n", min=1, max=16), 1: Dim("m", min=1, max=64)},)
    program = torch.export.export(Masked(), (torch.zeros(5, 9),), dynamic_shapes=dims)
    executable = uir_tvm.compile(program, target=target, options=CompileOptions(variants="named"))
    for shape in [(5, 9), (16, 16), (1, 63)]:
        x = torch.randn(shape, generator=torch.Generator().manual_seed(shape[1]))
        torch.testing.assert_close(
            torch.as_tensor(np.asarray(executable(x))), Masked()(x), rtol=1e-5, atol=1e-6
        )
    (found,) = executable.report()["programs"]
    assert (found["groups"], found["kernels_by_sizes"]) == (1, [])
