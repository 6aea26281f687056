# SPDX-License-Identifier: Apache-2.0
"""Kernels for uir-ascend through stock TVM: built, run and modelled on ``ext_dev``, read as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.pipeline import compile_kernel
from uir_tvm.runtime import modelled
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target import registry

BANDWIDTH = hardware.get(None, "ascend").figures["dram_bytes_per_second"]


def built(example: Any) -> tvm.runtime.Module:
    func = example.func.with_attr("global_symbol", "kernel")
    return tvm.build(tvm.IRModule({"kernel": func}), target="uir-ascend")


def run(example: Any, module: tvm.runtime.Module) -> np.ndarray:
    device = tvm.ext_dev(0)
    inputs = [tvm.runtime.tensor(array, device) for array in example.inputs]
    (expected,) = example.expected
    out = tvm.runtime.empty(expected.shape, "float32", device)
    module["kernel"](*inputs, out)
    return out.numpy()


EXAMPLES = {
    "flat": lambda: from_relax(lambda x, y: op.add(x, y), [(64, 96), (64, 96)], lambda x, y: x + y),
    "tail": lambda: from_relax(lambda x: op.multiply(x, x), [(1000, 777)], lambda x: x * x),
    "row": lambda: from_relax(lambda x, y: op.multiply(x, y), [(300, 256), (256,)], lambda x, y: x * y),
    "columns": lambda: from_relax(lambda x: op.sum(x, axis=0), [(512, 300)], lambda x: x.sum(0)),
    "norm": lambda: from_relax(
        lambda x: op.nn.layer_norm(x, op.ones((256,), "float32"), op.zeros((256,), "float32"), axes=[-1]),
        [(200, 256)],
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
    ),
    "sum": lambda: from_relax(lambda x: op.sum(x, axis=-1), [(200, 512)], lambda x: x.sum(-1)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_kernels_are_right_on_the_host_model(name: str) -> None:
    """Sums of 512 terms of fp32 differ by some units of the last place of the largest partial sum."""
    example = EXAMPLES[name]()
    (expected,) = example.expected
    np.testing.assert_allclose(run(example, built(example)), expected, rtol=1e-5, atol=2e-4)


def test_the_module_shows_ascend_c() -> None:
    (device,) = [m for m in built(EXAMPLES["row"]()).imports if m.kind == "uir_device"]
    text = device.inspect_source()
    assert '#include "kernel_operator.h"' in text and 'extern "C" __global__ __aicore__ void' in text


def test_a_streaming_kernel_is_bound_by_memory() -> None:
    """Of what the memory's bandwidth allows, modelled, at least 85 %."""
    shape = (2048, 4096)
    example = from_relax(lambda x, y: op.add(x, y), [shape, shape], lambda x, y: x + y)
    module = built(example)
    with modelled.recording() as found:
        run(example, module)
    (launch,) = found.times.launches
    assert launch.bound == "memory"
    assert 3 * 4 * np.prod(shape) / BANDWIDTH > 0.85 * launch.seconds


def test_a_kernel_that_lacks_room_is_compiled_with_smaller_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles four times too large: what is alive of them, twice, would take more than a core has."""
    from uir_tvm.schedule.smaller import TILE_BYTES

    hw = hardware.get(None, "ascend")
    large = {**dict(hw.figures), TILE_BYTES: 4 * hw.figures[TILE_BYTES]}
    greedy = type(hw)(
        hw.name, hw.kind, hw.num_groups, hw.num_units, hw.reg_bytes, hw.sram_bytes, hw.vector_bytes, large
    )
    monkeypatch.setattr("uir_tvm.schedule.hardware_of.model_of_target", lambda target: greedy)
    func = from_relax(lambda x, y: op.add(x, y), [(4096, 4096)] * 2, lambda x, y: x + y).func
    record = compile_kernel(func, registry.get("uir-ascend").target(None, "model"), "add")
    assert not record.fallback and not record.lacked_room and record.candidate.shrink > 1
    assert not record.products["optimize"].faults
