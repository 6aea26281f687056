# SPDX-License-Identifier: Apache-2.0
"""Every operator of PyTorch that exports gives what PyTorch gives, or is refused by a typed error.

``UIR_TEST_ALL=1`` runs every call of the tables (as ``scripts/sweep_torch.py``); without it those of
`tables.FAST`, in which each class of fault has its call, and which are not refused.
"""

from __future__ import annotations

import os

import pytest
import torch

from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of
from tests.frontend.torch_sweep import tables
from tests.frontend.torch_sweep.calls import Call
from tests.frontend.torch_sweep.run import RIGHT, agrees, difference, expected, sweep

SEED = 0
#: Numbers that a device's kernels must get right too: faults of importers are the same on every target.
REPRESENTATIVE = (
    "add alpha (f32[35]:edges f32[35]:edges.s)",
    "amax 1 (f32[3,5,4]:nan)",
    "argmax 1 (f32[3,5,4]:ninf)",
    "avg_pool2d divisor (f32[2,4,9,10])",
    "mean 1 (f16[2,2000,1]:pos)",
    "nearest to 13,17 (f32[2,3,10,12])",
    "selu (f16[35]:edges)",
)


def _check(calls: list[Call], target: str, *, refusals: bool = False) -> None:
    print(f"seed {SEED}")
    assert calls
    outcomes = list(sweep(calls, target, SEED, size=100))
    wrong = [o for o in outcomes if not (agrees(o) if refusals else o.state == RIGHT)]
    assert not wrong, "\n".join(f"{o.state} {o.call.name}: {o.text[:300]}" for o in wrong)


def test_fast_calls_are_as_pytorch_computes_them() -> None:
    calls = tables.table(fast=True)
    assert len(calls) == len(tables.FAST)
    _check(calls, "uir-cpu")


@pytest.mark.skipif(not os.environ.get("UIR_TEST_ALL"), reason="takes half an hour: UIR_TEST_ALL=1")
@pytest.mark.parametrize("name", sorted(tables.TABLES))
def test_all_calls_are_as_pytorch_computes_them_or_refused(name: str) -> None:
    _check(tables.table(name), "uir-cpu", refusals=True)


@pytest.mark.parametrize("device", DEVICE_TARGETS, ids=name_of)
def test_representative_calls_on_devices(device: DeviceTarget) -> None:
    known = {call.name: call for call in tables.table()}
    _check([known[name] for name in REPRESENTATIVE], device.name)


def test_the_comparison_finds_differences() -> None:
    """A wrong element, dtype, shape, sign of infinity or lost NaN is told."""
    call = Call("exp", torch.exp, "f32[35]:edges")
    item = expected(call, SEED)
    want = item.results[0]  # type: ignore[union-attr]
    assert not difference(call, want.clone(), want, None)
    assert difference(call, want.double(), want, None) and difference(call, want[1:], want, None)
    for index, value in ((0, 0.0), (1, -torch.inf), (5, want[5] * (1 + 1e-5))):
        other = want.clone()
        other[index] = value
        assert difference(call, other, want, None), index
