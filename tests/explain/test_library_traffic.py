# SPDX-License-Identifier: Apache-2.0
"""Work of library operators by their attributes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from uir_tvm.explain.library_traffic import library_work
from uir_tvm.hardware.rates import Rates, rates_of
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs
from uir_tvm.library.work import WORK

from . import graphs


def node(kind: str, attributes: MatmulAttrs | Conv2dAttrs, shapes: list[tuple[int, ...]]) -> dict:
    """A graph of one library node: operands, then the result."""
    tensors = [
        {"name": f"t{k}", "shape": list(s), "dtype": "float32", "bytes": 4 * math.prod(s)}
        for k, s in enumerate(shapes)
    ]
    names = [t["name"] for t in tensors]
    entry = {
        "type": "library",
        "kind": kind,
        "attrs": json.loads(attributes.to_json()),
        "ops": [f"library.{kind}", "add"],
        "inputs": names[:-1],
        "outputs": names[-1:],
        "bytes_read": sum(t["bytes"] for t in tensors[:-1]),
    }
    return {"nodes": [entry, entry], "tensors": tensors}


def test_a_matmul() -> None:
    """2 x (8 x 16 by 16 x 4): 2048 operations at 2 G/s, 4 (256 + 128 + 64) bytes at 1 GB/s; called twice."""
    graph = node(
        "matmul", MatmulAttrs.contiguous((2, 8, 16), (2, 16, 4)), [(2, 8, 16), (2, 16, 4), (2, 8, 4)]
    )
    (work,) = library_work(graph, rates_of(graphs.DEVICE))
    assert (work.calls, work.flops, work.bytes, work.limit) == (2, 2048, 4 * (256 + 128 + 64), "dram")
    assert work.modelled_seconds == pytest.approx(4 * 448e-9)
    assert work.name == "library matmul 2x8x16x4 + add"


def test_a_convolution() -> None:
    """Per element of the result (1, 6, 4, 4) two operations for each of 2 channels and 9 taps."""
    attributes = Conv2dAttrs(input=(1, 4, 4, 4), weight=(6, 2, 3, 3), padding=(1, 1, 1, 1), groups=2)
    (work,) = library_work(node("conv2d", attributes, [(1, 4, 4, 4), (6, 2, 3, 3), (1, 6, 4, 4)]), Rates())
    assert work.flops == 6 * 16 * 2 * 18
    assert (work.modelled_seconds, work.limit) == (None, "")


@pytest.mark.parametrize(
    ("changes", "share"),
    [({}, 16 / 36), ({"plan": "direct"}, 1), ({"strides": (2, 2)}, 1), ({"dilation": (2, 2)}, 1)],
)
def test_a_convolution_of_fewer_multiplications(changes: dict[str, Any], share: float) -> None:
    """The time at full rates is of the way that takes the fewest; the report says that there are two."""
    given = {"input": (1, 8, 16, 16), "weight": (8, 8, 3, 3), "padding": (1, 1, 1, 1), **changes}
    attributes = Conv2dAttrs(**given)
    shapes = [(1, 8, 16, 16), (8, 8, 3, 3), attributes.output]
    (work,) = library_work(node("conv2d", attributes, shapes), rates_of(graphs.DEVICE))
    assert work.flops == 2 * math.prod(attributes.output) * 8 * 9
    assert work.least_flops == pytest.approx(work.flops * share)
    assert ("Winograd" in work.name) == (share < 1)
    assert work.limit == "arithmetic"
    assert work.modelled_seconds == pytest.approx(work.least_flops / (2 * 10**9))


def test_every_kind_of_library_operator_is_known() -> None:
    from uir_tvm.library.library_tables import library_of

    tables = [library_of([kind]) for kind in ("cpu", "cuda", "ascend", "bang")]
    assert {name for table in tables for name in table.functions} == set(WORK)
