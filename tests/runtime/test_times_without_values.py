# SPDX-License-Identifier: Apache-2.0
"""Modelled times of a model without its values are those with them, and say what hangs on values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import uir_tvm
from uir_tvm import CompileOptions
from uir_tvm.runtime.executable import Executable
from uir_tvm.runtime.modelled import LaunchTime, recording


class Model(torch.nn.Module):
    """Rows of a table at indices that a kernel computes, a product of the library, rows at its greatest."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Parameter(torch.randn(128, 128))
        self.weight = torch.nn.Parameter(torch.randn(128, 128))

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.relu(torch.softmax(self.table[ids * 3 + 1], -1) @ self.weight)
        return rows, self.table[torch.argmax(rows, -1)]


IDS = np.array([3, 0, 20, 7, 11, 2, 9, 14], np.int64)


@pytest.fixture(scope="module", params=["uir-ascend", "uir-bang"])
def exe(request: pytest.FixtureRequest) -> Executable:
    program = torch.export.export(Model(), (torch.from_numpy(IDS),))
    return uir_tvm.compile(program, request.param, options=CompileOptions(device="model"))


def figures(launch: LaunchTime) -> tuple[object, ...]:
    """What the model says of a launch."""
    return launch.entry, launch.kernel, launch.seconds, launch.bound, launch.pipes


def test_times_without_values_are_those_with_them(exe: Executable) -> None:
    """Of every kernel that does not look at what nobody computed, and operator of the library; later calls
    compute again."""
    wanted = exe.modelled(IDS)
    found = exe.modelled(IDS, values=False)
    pairs = [pair for pair in zip(found.launches, wanted.launches, strict=True) if not pair[0].assumed]
    assert len(pairs) >= len(wanted.launches) - 2
    assert [figures(one) for one, _ in pairs] == [figures(other) for _, other in pairs]
    assert all(one.computed and not one.assumed for one in wanted.launches)
    for result, reference in zip(exe(IDS), Model()(torch.from_numpy(IDS)), strict=True):
        np.testing.assert_allclose(np.asarray(result), reference.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_hangs_on_values_is_told(exe: Executable) -> None:
    """Rows at indices of the input are loaded as they are; those at the greatest of a product without values
    are assumed."""
    with recording(hardware=exe.hardware, values=False) as found:
        exe(IDS)
    looked = [one for one in found.times.launches if one.computed and not one.library and "take" in one.entry]
    assert [one.assumed for one in looked] == [False, True], [one.entry for one in found.times.launches]
    assert found.times.assumed_seconds >= looked[1].seconds > 0
    assert found.times.to_json()["assumed_seconds"] == found.times.assumed_seconds
