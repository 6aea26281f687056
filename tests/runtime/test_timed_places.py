# SPDX-License-Identifier: Apache-2.0
"""Kernels are called and timed where they run; who cannot time them says why."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np
import pytest
import tvm
from uir_tvm import pipeline
from uir_tvm.device.kind import counts_time
from uir_tvm.errors import DeviceError
from uir_tvm.igraph import IGraph
from uir_tvm.runtime.timed_places import (
    CALLS,
    LEAST_CALLS,
    Amid,
    Modelled,
    Timed,
    TimedCall,
    require,
)
from uir_tvm.target import registry
from uir_tvm.tune.reference_results import arguments_of, reference_of
from uir_tvm.verify.agreement import differences

from tests.tune.test_job import subject


@pytest.mark.parametrize("name", registry.TARGETS)
def test_who_times_what(name: str) -> None:
    """The CPU, and host models that count time; devices where they are there."""
    spec = registry.get(name)
    for place in spec.places:
        target = spec.target(None, place.name)
        counts = place.name != "model" or counts_time(registry.get(name).kind)
        if counts and not place.absent():
            require(target)
        else:
            with pytest.raises(DeviceError, match=re.escape(f"{name} on {place.name}")) as refused:
                require(target)
            assert "remedy" in str(refused.value)


@pytest.mark.parametrize("target", ["uir-cpu", "uir-bang:mlu590"])
def test_samples_are_means_of_enough_calls(target: str) -> None:
    """On the CPU, and by way of a device's memory, where a host model stands for the device."""
    task = subject(target)
    record = pipeline.compile_kernel(task.func, task.target, "relu")
    reference = reference_of(str(tvm.ir.save_json(task.func)), 0)
    runner = Timed(TimedCall(record, task.func, task.target, reference.arguments, {}))
    called = runner.call()
    assert not called.faults
    assert len(called.results) == len(task.func.params)
    assert not differences(reference, called.results)
    assert 0 < runner.sample(0.001) < 1


def test_calls_on_a_cpu_come_after_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each, what the kernel reads is written again, and nothing that it writes."""
    task = subject("uir-cpu")
    record = pipeline.compile_kernel(task.func, task.target, "relu")
    arguments = reference_of(str(tvm.ir.save_json(task.func)), 0).arguments
    runner = Amid(TimedCall(record, task.func, task.target, arguments, {}))
    runner.call()
    assert 0 < runner.sample(0.0) < 1
    read, *_, written = runner.tensors
    for tensor in (read, written):
        tensor.copyfrom(np.full(tensor.shape, 7, tensor.dtype))
    work = runner.between
    assert work is not None
    work()
    np.testing.assert_array_equal(read.numpy(), runner.arguments[0])
    assert (written.numpy() == 7).all()

    between: list[int] = []
    monkeypatch.setattr(runner, "between", lambda *_: between.append(1))
    runner.sample(0.0)
    assert len(between) == LEAST_CALLS
    runner.sample(10.0)
    assert len(between) == LEAST_CALLS + CALLS


def test_what_a_kernel_leaves_out_is_a_fault() -> None:
    """The host model knows which bytes nobody wrote."""
    task = subject("uir-bang:mlu590")
    record = pipeline.compile_kernel(task.func, task.target, "relu")
    arguments = arguments_of(task.func, 0)
    whole = Modelled(TimedCall(record, task.func, task.target, arguments, {}))
    assert not whole.call().faults
    assert whole.sample(0.0) > 0
    assert whole.bound
    graph = record.optimized
    assert graph is not None
    half = attrs.evolve(record, products={**record.products, "source": _of_half_the_groups(graph)})
    (fault,) = Modelled(TimedCall(half, task.func, task.target, arguments, {})).call().faults
    assert "nothing wrote" in fault


def _of_half_the_groups(graph: IGraph) -> Any:
    """What the printer makes of a graph of which only half of the groups run."""
    kernel = registry.get("uir-bang").lower(graph, None)
    (launch,) = kernel.launches
    text = re.sub(r"dim = \{(\d+), ", lambda m: f"dim = {{{int(m[1]) // 2}, ", kernel.source)
    return attrs.evolve(kernel, source=text, launches=(launch,))
