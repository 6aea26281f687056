# SPDX-License-Identifier: Apache-2.0
"""The hardware model of a schedule, and the sets of units that its groups can be cut into."""

from __future__ import annotations

import pytest
from uir_tvm.errors import ScheduleError
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.hardware_of import check_group

GROUPS = HardwareModel("groups-of-4", "test", 2, 4, 64 * 1024, 256 * 1024, 64)


@pytest.mark.parametrize(("size", "units", "divisors"), [(3, None, [1, 2, 4]), (0, 6, [1, 2, 3, 6])])
def test_a_refused_set_of_units_names_those_that_fit(size: int, units: int | None, divisors: list) -> None:
    with pytest.raises(ScheduleError) as caught:
        check_group(GROUPS, size, units)
    assert caught.value.remedy == f"use one of {divisors}"
    for divisor in divisors:
        check_group(GROUPS, divisor, units)
