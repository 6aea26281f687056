# SPDX-License-Identifier: Apache-2.0
"""A module of Ascend C on ``ext_dev`` runs on the host model, which checks it and counts its time."""

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

BLOCKS, LENGTH = 4, 256
SIZE = BLOCKS * LENGTH

#: Two kernels: y = 2 x through a workspace, then y + 1.
SOURCE = """#include "kernel_operator.h"
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


def text() -> str:
    """Both kernels, the second without the head that both share."""
    first = SOURCE.replace("KERNEL(", "twice(").replace("OPERATION", "Muls(t, t, 2.0f, 256)")
    second = SOURCE.replace("KERNEL(", "plus_one(").replace("OPERATION", "Adds(t, t, 1.0f, 256)")
    return first + "\n" + second[second.index('extern "C"') :]


@pytest.fixture
def kernel() -> DeviceKernel:
    launch = Launch("twice", BLOCKS, 1, 0, False, ("x", "half"), "aiv")
    return DeviceKernel(
        name="affine",
        source=text(),
        launches=(launch, attrs.evolve(launch, name="plus_one", params=("half", "y"))),
        params=(Parameter("x", "fp32", SIZE, "in"), Parameter("y", "fp32", SIZE, "out")),
        workspace=(Workspace("half", 4 * SIZE),),
        hardware="910b2",
        arch="dav-2201",
        kind="ascend",
        device=describe_device(hardware.get("910b2", "ascend")),
    )


def module(kernel: DeviceKernel) -> tvm_ffi.Module:
    return device_module({"affine_kernel": kernel}, registry.get("uir-ascend").place("model"))


def tensors() -> tuple[tvm.runtime.Tensor, tvm.runtime.Tensor]:
    device = tvm.ext_dev(0)
    x = np.arange(SIZE, dtype="float32")
    return tvm.runtime.tensor(x, device), tvm.runtime.empty((SIZE,), "float32", device)


def test_launches_run_in_order_through_the_workspace(kernel: DeviceKernel) -> None:
    built, (x, y) = module(kernel), tensors()
    built["affine_kernel"](x, y)
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy() + 1)
    assert built.inspect_source() == kernel.source
    assert str(tvm_ffi.get_global_func("uir.runtime.ext_dev.chosen")()) == "model"


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
    """The same text on the 910B4, whose memory and clock are slower, takes longer."""

    def seconds(name: str) -> float:
        described = describe_device(hardware.get(name, "ascend"))
        built, given = module(attrs.evolve(kernel, device=described)), tensors()
        with modelled.recording() as found:
            built["affine_kernel"](*given)
        return found.times.seconds

    assert seconds("910b4") > seconds("910b2")


def test_a_timeline_has_every_instruction_of_every_core(kernel: DeviceKernel) -> None:
    built, given = module(kernel), tensors()
    with modelled.recording(timeline=True) as found:
        built["affine_kernel"](*given)
    first, _ = found.times.launches
    assert {(event.core, event.name) for event in first.timeline if event.pipe == "V"} == {
        (core, "Muls") for core in range(BLOCKS)
    }
    assert all(0 <= event.start <= event.end <= first.seconds for event in first.timeline)


def test_outside_of_a_recording_nothing_is_noted(kernel: DeviceKernel) -> None:
    built = module(kernel)
    built["affine_kernel"](*tensors())
    with modelled.recording() as found:
        pass
    assert found.times.launches == ()


def test_a_missing_wait_is_a_finding_with_both_lines(kernel: DeviceKernel) -> None:
    wait = "  WaitFlag<HardEvent::MTE2_V>(0);\n"
    built = module(attrs.evolve(kernel, source=kernel.source.replace(wait, "\n", 1)))
    with pytest.raises(DeviceModelError) as caught:
        built["affine_kernel"](*tensors())
    assert "Muls(t, t, 2.0f, 256);" in caught.value.where and "pipe V" in caught.value.where
    assert "DataCopy(t, from" in caught.value.need and "pipe MTE2" in caught.value.need
    assert any(finding["kind"] == "race" for finding in caught.value.findings)
