# SPDX-License-Identifier: Apache-2.0
"""Modules of Ascend C and BANG C on ``ext_dev`` run on their host models, which check them and count time."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm import hardware
from uir_tvm.device.device_kernel import DeviceKernel, KernelParameter, Launch, Workspace, describe_device
from uir_tvm.errors import DeviceModelError
from uir_tvm.runtime import modelled
from uir_tvm.target import registry
from uir_tvm.target.device_module import device_module

PARTS, LENGTH = 4, 256
SIZE = PARTS * LENGTH

ASCEND_C = """#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void KERNEL(GM_ADDR x, GM_ADDR y) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 1024);
  LocalTensor<float> t = ub.GetWithOffset<float>(256, 0);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, 1024);
  to.SetGlobalBuffer((__gm__ float*)y, 1024);
  DataCopy(t, from[256 * GetBlockIdx()], 256);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  OPERATION;
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(to[256 * GetBlockIdx()], t, 256);
}
"""
BANG_C = """#include <bang.h>

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


@attrs.frozen
class Device:
    """A device and a text for it: 2 x to a workspace, by one kernel, and 1 more, by another."""

    target: str
    kind: str
    arch: str
    #: A preset, and one whose clock is slower.
    preset: str
    slower: str
    core: str
    #: A kernel, where it begins behind the head that both share, and the calls of the two.
    source: str
    head: str
    twice: str
    plus_one: str
    #: The pipe that computes, and the functions in its timeline.
    pipe: str
    function: str
    #: A wait before the computation and what stays of it without one; the copy that it waits for, its pipe.
    wait: tuple[str, str]
    copy: str
    copies: str

    @property
    def text(self) -> str:
        """Both kernels, the second without the head."""
        first = self.source.replace("KERNEL(", "twice(").replace("OPERATION", self.twice)
        second = self.source.replace("KERNEL(", "plus_one(").replace("OPERATION", self.plus_one)
        return first + "\n" + second[second.index(self.head) :]

    @property
    def kernel(self) -> DeviceKernel:
        launch = Launch("twice", PARTS, 1, 0, False, ("x", "half"), self.core)
        return DeviceKernel(
            name="affine",
            source=self.text,
            launches=(launch, attrs.evolve(launch, name="plus_one", params=("half", "y"))),
            params=(KernelParameter("x", "fp32", SIZE, "in"), KernelParameter("y", "fp32", SIZE, "out")),
            workspace=(Workspace("half", 4 * SIZE),),
            hardware=self.preset,
            arch=self.arch,
            kind=self.kind,
            device=describe_device(hardware.get(self.preset, self.kind)),
        )

    def module(self, **changed: object) -> tvm_ffi.Module:
        """The kernel as a module, with some of its fields changed."""
        kernel = attrs.evolve(self.kernel, **changed)
        return device_module({"affine_kernel": kernel}, registry.get(self.target).place("model"))


DEVICES = {
    "ascend": Device(
        "uir-ascend",
        "ascend",
        "dav-2201",
        "910b2",
        "910b4",
        "aiv",
        ASCEND_C,
        'extern "C"',
        "Muls(t, t, 2.0f, 256)",
        "Adds(t, t, 1.0f, 256)",
        "V",
        "Muls",
        ("  WaitFlag<HardEvent::MTE2_V>(0);\n", "\n"),
        "DataCopy(t, from",
        "MTE2",
    ),
    "bang": Device(
        "uir-bang",
        "bang",
        "372",
        "mlu370-x8",
        "mlu370-x4",
        "block",
        BANG_C,
        "__mlu_entry__",
        "__bang_mul_scalar(t, t, 2.0f, 256)",
        "__bang_add_scalar(t, t, 1.0f, 256)",
        "COMPUTE",
        "__bang_mul_scalar",
        ("  __sync_io();\n  __bang_mul", "\n  __bang_mul"),
        "__memcpy_async(t, x",
        "IO",
    ),
}


@pytest.fixture(params=DEVICES.values(), ids=list(DEVICES))
def device(request: pytest.FixtureRequest) -> Device:
    return request.param


def tensors() -> tuple[tvm.runtime.Tensor, tvm.runtime.Tensor]:
    on = tvm.ext_dev(0)
    x = np.arange(SIZE, dtype="float32")
    return tvm.runtime.tensor(x, on), tvm.runtime.empty((SIZE,), "float32", on)


def test_launches_run_in_order_through_the_workspace(device: Device) -> None:
    built, (x, y) = device.module(), tensors()
    built["affine_kernel"](x, y)
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy() + 1)
    assert built.inspect_source() == device.text
    assert str(tvm_ffi.get_global_func("uir.runtime.ext_dev.chosen")()) == "model"


def test_cores_of_a_cluster_number_their_parts_as_tasks_do() -> None:
    """The four cores of a Union1 launch; its memory core runs the kernel, too."""
    bang = DEVICES["bang"]
    launches = tuple(attrs.evolve(one, grid=1, block=PARTS) for one in bang.kernel.launches)
    source = bang.text.replace(") {\n", ") {\n  if (__is_mpu()) return;\n")
    built, (x, y) = bang.module(launches=launches, source=source), tensors()
    built["affine_kernel"](x, y)
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy() + 1)


def test_what_was_saved_runs_and_is_modelled(device: Device) -> None:
    """Code, figures and costs of the device travel with the module."""
    saved = tvm_ffi.get_global_func("uir.runtime.device_module_bytes")(device.module())
    built, (x, y) = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.uir_device")(saved), tensors()
    with modelled.recording() as found:
        built["affine_kernel"](x, y)
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy() + 1)
    assert [launch.kernel for launch in found.times.launches] == ["twice", "plus_one"]
    (row,) = found.times.table()
    assert row["kernel"] == "affine" and found.times.seconds > 0


def test_modelled_times_follow_the_devices_figures(device: Device) -> None:
    """The same text takes longer on a device whose clock is slower."""

    def seconds(name: str) -> float:
        described = describe_device(hardware.get(name, device.kind))
        built, given = device.module(device=described), tensors()
        with modelled.recording() as found:
            built["affine_kernel"](*given)
        return found.times.seconds

    assert seconds(device.slower) > seconds(device.preset)


def test_a_timeline_has_every_instruction_of_every_core(device: Device) -> None:
    built, given = device.module(), tensors()
    with modelled.recording(timeline=True) as found:
        built["affine_kernel"](*given)
    first, _ = found.times.launches
    computing = {(event.core, event.name) for event in first.timeline if event.pipe == device.pipe}
    assert len(computing) == PARTS and {name for _, name in computing} == {device.function}
    assert all(0 <= event.start <= event.end <= first.seconds for event in first.timeline)


def test_outside_of_a_recording_nothing_is_noted(device: Device) -> None:
    built = device.module()
    built["affine_kernel"](*tensors())
    with modelled.recording() as found:
        pass
    assert found.times.launches == ()


def test_a_missing_wait_is_a_finding_with_both_lines(device: Device) -> None:
    built = device.module(source=device.text.replace(*device.wait, 1))
    with pytest.raises(DeviceModelError) as caught:
        built["affine_kernel"](*tensors())
    where, need = caught.value.where, caught.value.need
    assert device.twice + ";" in where and f"pipe {device.pipe}" in where
    assert device.copy in need and f"pipe {device.copies}" in need
    assert any(finding["kind"] == "race" for finding in caught.value.findings)
