# SPDX-License-Identifier: Apache-2.0
"""A module of BANG C on ``ext_dev`` runs on the host model, which checks it and counts its time."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm import hardware
from uir_tvm.errors import DeviceModelError
from uir_tvm.runtime import modelled
from uir_tvm.target import registry
from uir_tvm.target.device_kernel import DeviceKernel, Launch, Parameter, Workspace, describe_device
from uir_tvm.target.device_module import device_module

TASKS, LENGTH = 4, 256
SIZE = TASKS * LENGTH

#: Two kernels: y = 2 x through a workspace, then y + 1.
SOURCE = """#include <bang.h>

__nram__ char nram[1024];

__mlu_entry__ void KERNEL(float *x, float *y) {
  float *const t = (float *)(nram + 0);
  __memcpy_async(t, x + 256 * taskId, 1024, GDRAM2NRAM);
  __sync_io();
  OPERATION;
  __sync_compute();
  __memcpy_async(y + 256 * taskId, t, 1024, NRAM2GDRAM);
  __sync_io();
}
"""


def text() -> str:
    """Both kernels, the second without the head that both share."""
    first = SOURCE.replace("KERNEL(", "twice(").replace("OPERATION", "__bang_mul_scalar(t, t, 2.0f, 256)")
    second = SOURCE.replace("KERNEL(", "plus_one(").replace("OPERATION", "__bang_add_scalar(t, t, 1.0f, 256)")
    return first + "\n" + second[second.index("__mlu_entry__") :]


@pytest.fixture
def kernel() -> DeviceKernel:
    launch = Launch("twice", TASKS, 1, 0, False, ("x", "half"), "block")
    return DeviceKernel(
        name="affine",
        source=text(),
        launches=(launch, attrs.evolve(launch, name="plus_one", params=("half", "y"))),
        params=(Parameter("x", "fp32", SIZE, "in"), Parameter("y", "fp32", SIZE, "out")),
        workspace=(Workspace("half", 4 * SIZE),),
        hardware="mlu370-x8",
        arch="372",
        kind="bang",
        device=describe_device(hardware.get("mlu370-x8", "bang")),
    )


def module(kernel: DeviceKernel) -> tvm_ffi.Module:
    return device_module({"affine_kernel": kernel}, registry.get("uir-bang").place("model"))


def tensors() -> tuple[tvm.runtime.Tensor, tvm.runtime.Tensor]:
    device = tvm.ext_dev(0)
    x = np.arange(SIZE, dtype="float32")
    return tvm.runtime.tensor(x, device), tvm.runtime.empty((SIZE,), "float32", device)


@pytest.mark.parametrize("groups, units", [(4, 1), (1, 4)])
def test_launches_run_in_order_through_the_workspace(kernel: DeviceKernel, groups: int, units: int) -> None:
    """Tasks of a Block launch, and the four cores of a Union1 launch, number their parts alike."""
    launches = tuple(attrs.evolve(one, grid=groups, block=units) for one in kernel.launches)
    source = kernel.source
    if units == 4:  # the memory core runs the kernel, too
        source = source.replace(") {\n", ") {\n  if (__is_mpu()) return;\n")
    built, (x, y) = module(attrs.evolve(kernel, launches=launches, source=source)), tensors()
    built["affine_kernel"](x, y)
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy() + 1)
    assert built.inspect_source() == source


def test_what_was_saved_runs_and_is_modelled(kernel: DeviceKernel) -> None:
    """Code, figures and costs of the device travel with the module."""
    saved = tvm_ffi.get_global_func("uir.runtime.device_module_bytes")(module(kernel))
    built, (x, y) = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.uir_device")(saved), tensors()
    with modelled.recording() as found:
        built["affine_kernel"](x, y)
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy() + 1)
    assert [launch.kernel for launch in found.times.launches] == ["twice", "plus_one"]
    (row,) = found.times.table()
    assert row["kernel"] == "affine" and found.times.seconds > 0


def test_modelled_times_follow_the_devices_figures(kernel: DeviceKernel) -> None:
    """The same text on the MLU370-X4, whose clock is slower, takes longer."""

    def seconds(name: str) -> float:
        described = describe_device(hardware.get(name, "bang"))
        built, given = module(attrs.evolve(kernel, device=described)), tensors()
        with modelled.recording() as found:
            built["affine_kernel"](*given)
        return found.times.seconds

    assert seconds("mlu370-x4") > seconds("mlu370-x8")


def test_a_timeline_has_every_instruction_of_every_core(kernel: DeviceKernel) -> None:
    built, given = module(kernel), tensors()
    with modelled.recording(timeline=True) as found:
        built["affine_kernel"](*given)
    first, _ = found.times.launches
    computing = {(event.core, event.name) for event in first.timeline if event.pipe == "COMPUTE"}
    assert len(computing) == TASKS and {name for _, name in computing} == {"__bang_mul_scalar"}
    assert all(0 <= event.start <= event.end <= first.seconds for event in first.timeline)


def test_a_missing_wait_is_a_finding_with_both_lines(kernel: DeviceKernel) -> None:
    wait = "  __sync_io();\n  __bang_mul"
    built = module(attrs.evolve(kernel, source=kernel.source.replace(wait, "\n  __bang_mul", 1)))
    with pytest.raises(DeviceModelError) as caught:
        built["affine_kernel"](*tensors())
    assert "__bang_mul_scalar(t, t, 2.0f, 256);" in caught.value.where
    assert "__memcpy_async(t, x" in caught.value.need
    assert any(finding["kind"] == "race" for finding in caught.value.findings)
