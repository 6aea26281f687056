# SPDX-License-Identifier: Apache-2.0
"""Launches without values take the same modelled time, and compute where scalar code reads memory."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pytest
from uir_tvm.device.launch import DeviceArray, LaunchResult

from tests.device import ascend_texts, bang_texts

SIZE = 4096

#: Loads, arithmetic with and without waits, a store: of x and y to z, a part for each core.
ASCEND = """
  LocalTensor<float> a = ub.GetWithOffset<float>(1024, 0), b = ub.GetWithOffset<float>(1024, 4096);
  const int at = 1024 * GetBlockIdx();
  DataCopy(a, gx[at], 1024);
  DataCopy(b, gy[at], 1024);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  Add(a, a, b, 64, 16, {1, 1, 1, 8, 8, 8}); PipeBarrier<PIPE_V>();
  Muls(b, a, 2.0f, 1000); PipeBarrier<PIPE_V>();
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  DataCopyPad(gz[at], b, {1, 4000, 0, 0});
"""
BANG = """
  const int at = 1024 * taskId;
  __memcpy_async(a, x + at, 4096, GDRAM2NRAM);
  __memcpy_async(b, y + at, 4096, GDRAM2NRAM);
  __sync_io();
  __bang_add(a, a, b, 1024);
  __bang_mul_scalar(b, a, 2.0f, 1000);
  __sync_compute();
  __memcpy_async(z + at, b, 4000, NRAM2GDRAM);
  __sync_io();
"""
#: The same, and a store of an element that scalar code reads.
ASCEND_SCALAR = ASCEND + "  PipeBarrier<PIPE_ALL>(); gz.SetValue(at + 1, b.GetValue(0));\n"
BANG_SCALAR = BANG + "  z[at + 1] = b[0];\n"


@attrs.frozen
class Device:
    """A device with its texts, and how one runs with all cores at work and time counted."""

    text: str
    scalar: str
    launch: Callable[..., LaunchResult]
    #: Whether its memory has a cache that the model knows.
    cache: bool


def on_ascend(body: str, arrays: list, values: bool) -> LaunchResult:
    """On four vector cores."""
    return ascend_texts.run(ascend_texts.text(body), arrays, blocks=4, timed=True, values=values)


def on_bang(body: str, arrays: list, values: bool) -> LaunchResult:
    """On four cores."""
    return bang_texts.run(bang_texts.text(body), arrays, groups=4, on=bang_texts.DEVICE, values=values)


DEVICES = {
    "ascend": Device(ASCEND, ASCEND_SCALAR, on_ascend, True),
    "bang": Device(BANG, BANG_SCALAR, on_bang, False),
}
every_device = pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))


def arrays() -> list[np.ndarray]:
    """x, y, and a z whose elements are all the same."""
    x, y = np.random.default_rng(3).standard_normal((2, SIZE)).astype(np.float32)
    return [x, y, np.full(SIZE, 7, np.float32)]


@every_device
def test_times_are_those_of_a_launch_that_computes(device: Device) -> None:
    """Figure for figure; memory stays as it is."""
    whole, alone = arrays(), arrays()
    wanted = device.launch(device.text, whole, True).check()
    found = device.launch(device.text, alone, False).check()
    assert wanted.computed and not found.computed
    assert found.modelled == wanted.modelled and found.counters == wanted.counters
    assert wanted.modelled["seconds"] > 0
    parts = whole[2].reshape(4, -1)[:, :1000]
    assert np.array_equal(parts, (2 * (whole[0] + whole[1])).reshape(4, -1)[:, :1000])
    assert np.all(alone[2] == 7)


@every_device
def test_a_kernel_whose_scalar_code_reads_computes(device: Device) -> None:
    """What it reads may decide what it does."""
    whole, alone = arrays(), arrays()
    wanted = device.launch(device.scalar, whole, True).check()
    found = device.launch(device.scalar, alone, False).check()
    assert found.computed and found.modelled == wanted.modelled
    assert np.array_equal(alone[2], whole[2]) and alone[2][1] == 2 * (alone[0][0] + alone[1][0])


@every_device
def test_a_fault_that_needs_no_values_is_found(device: Device) -> None:
    """Bounds are checked with and without."""
    for values in (True, False):
        given = [*arrays()[:2], np.zeros(SIZE - 1024, np.float32)]
        assert {one.kind for one in device.launch(device.text, given, values).findings} == {"out-of-bounds"}


@every_device
def test_times_that_are_kept_are_of_launches_alike(device: Device) -> None:
    """Tensors in one place are another launch than tensors in two: a cache holds what was read before."""
    x, y, z = (DeviceArray(SIZE, np.float32).fill(array) for array in arrays())
    bytes_moved = set()
    for given in ([x, y, z], [y, x, z], [x, x, z], [x, y, z]):
        found = device.launch(device.text, given, False).check()
        assert found.modelled == device.launch(device.text, given, True).check().modelled
        bytes_moved.add(found.modelled["pipes"]["memory"]["bytes"])
    assert len(bytes_moved) == (2 if device.cache else 1)
    assert np.array_equal(z.array.reshape(4, -1)[:, 0], (2 * (x.array + y.array)).reshape(4, -1)[:, 0])
