# SPDX-License-Identifier: Apache-2.0
"""Kernels for uir-bang through stock TVM: built, run and modelled on ``ext_dev``, read as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.errors import CodegenError
from uir_tvm.runtime import modelled
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target.bang.lower import lower

from tests.extracted import extracted

HARDWARE = hardware.get(None, "bang")
BANDWIDTH = HARDWARE.figures["dram_bytes_per_second"]


def built(example: Any) -> tvm.runtime.Module:
    func = example.func.with_attr("global_symbol", "kernel")
    return tvm.build(tvm.IRModule({"kernel": func}), target="uir-bang")


def run(example: Any, module: tvm.runtime.Module) -> np.ndarray:
    device = tvm.ext_dev(0)
    inputs = [tvm.runtime.tensor(array, device) for array in example.inputs]
    (expected,) = example.expected
    out = tvm.runtime.empty(expected.shape, "float32", device)
    module["kernel"](*inputs, out)
    return out.numpy()


EXAMPLES = {
    "flat": lambda: from_relax(lambda x, y: op.add(x, y), [(64, 96), (64, 96)], lambda x, y: x + y),
    "tail": lambda: from_relax(lambda x: op.multiply(x, x), [(1000, 77)], lambda x: x * x),
    "row": lambda: from_relax(lambda x, y: op.multiply(x, y), [(300, 256), (256,)], lambda x, y: x * y),
    "columns": lambda: from_relax(lambda x: op.sum(x, axis=0), [(512, 300)], lambda x: x.sum(0)),
    "sum": lambda: from_relax(lambda x: op.sum(x, axis=-1), [(200, 512)], lambda x: x.sum(-1)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_kernels_are_right_on_the_host_model(name: str) -> None:
    """Sums of 512 terms of fp32 differ by some units of the last place of the largest partial sum."""
    example = EXAMPLES[name]()
    (expected,) = example.expected
    np.testing.assert_allclose(run(example, built(example)), expected, rtol=1e-5, atol=2e-4)


def test_the_module_shows_bang_c() -> None:
    """Kernels and their launchers in one text; small functions are launched on single cores."""
    (device,) = [m for m in built(EXAMPLES["row"]()).imports if m.kind == "uir_device"]
    text = device.inspect_source()
    assert "#include <bang.h>" in text and "__mlu_entry__ void" in text
    assert "_launch(cnrtQueue_t queue" in text and "cnrtFuncTypeBlock" in text


def test_a_streaming_kernel_is_bound_by_memory() -> None:
    """Of what the memory's bandwidth allows, modelled, at least 85 %."""
    shape = (1024, 4096)
    example = from_relax(lambda x, y: op.add(x, y), [shape, shape], lambda x, y: x + y)
    module = built(example)
    with modelled.recording() as found:
        run(example, module)
    (launch,) = found.times.launches
    assert launch.bound == "memory"
    assert 3 * 4 * np.prod(shape) / BANDWIDTH > 0.85 * launch.seconds


def test_every_core_has_a_part_of_a_large_kernel() -> None:
    """Block launches count cores: as many groups of one unit as the device has cores."""
    example = from_relax(lambda x: op.multiply(x, x), [(1 << 20,)], lambda x: x * x)
    kernel = lower(extracted(apply_default(example.func, HARDWARE), HARDWARE))
    (launch,) = kernel.launches
    assert (launch.grid, launch.block, launch.core) == (16, 1, "block")


@pytest.mark.parametrize("groups, units", [(17, 1), (8, 2), (5, 4)])
def test_launches_that_the_device_has_not_are_refused(groups: int, units: int) -> None:
    example = from_relax(lambda x: op.multiply(x, x), [(1 << 12,)], lambda x: x * x)
    graph = extracted(apply_default(example.func, HARDWARE), HARDWARE)
    with pytest.raises(CodegenError, match=rf"\({groups}, {units}\) units") as caught:
        lower(graph.replace(num_groups=groups, num_units=units))
    assert "a core each, or of 4, a cluster each" in caught.value.need
