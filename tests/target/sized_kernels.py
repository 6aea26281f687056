# SPDX-License-Identifier: Apache-2.0
"""The kernels of graphs with sizes, for each target that has a device."""

from __future__ import annotations

import re

import numpy as np
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.target import registry

from tests.corpus.sized import SHARED, SIZED, Sized
from tests.device_targets import DeviceTarget

#: Sums of 24 numbers in another order, and functions within a few ULP.
CLOSE = 1e-5
BY_NAME = {one.name: one for one in (*SIZED, SHARED)}


def printed(row: DeviceTarget, one: Sized, size: str = "") -> DeviceKernel:
    """The kernel of a graph for a target, with another range of its size if one is given."""
    old = re.search(r"size n = .*", one.text()).group()  # type: ignore[union-attr]
    kernel = registry.get(row.name).lower(one.graph(row.hardware, {old: size} if size else None))
    assert isinstance(kernel, DeviceKernel)
    return kernel


def agree(one: Sized, got: np.ndarray, wanted: np.ndarray, hint: object) -> None:
    """Both are the same: to the bit where a graph only moves and adds."""
    got, wanted = got.reshape(-1), wanted.reshape(-1)
    if one.exact:
        np.testing.assert_array_equal(got, wanted, err_msg=str(hint))
    else:
        np.testing.assert_allclose(got, wanted, rtol=CLOSE, atol=CLOSE, err_msg=str(hint))
