# SPDX-License-Identifier: Apache-2.0
"""Rates: what a model states, what the host measures, and what nobody knows, each with its source."""

from __future__ import annotations

import pathlib

import pytest
import uir_tvm
from tvm import relax
from uir_tvm import hardware
from uir_tvm.hardware import copy_rate, host_cpu
from uir_tvm.hardware.rates import rates_of
from uir_tvm.igraph import HardwareModel
from uir_tvm.target.cpu import presets as cpu

from tests import tiny


def model(figures: dict[str, object], kind: str = "test", name: str = "dev") -> HardwareModel:
    """A device with these figures."""
    return HardwareModel(name, kind, 4, 2, 4096, 2048, 32, figures)  # type: ignore[call-arg]


def test_stated_figures_are_believed() -> None:
    rates = rates_of(model({"dram_bytes_per_second": 2e9, "flops_per_second": 3e9}))
    assert rates.memory_of(10**12).rate.per_second == 2e9 and rates.contract.per_second == 3e9
    assert "hardware model" in rates.contract.source
    assert rates.operations.per_second is None and "no figure" in rates.operations.source


@pytest.mark.parametrize("name", [n for n in hardware.names("cpu") if n != "host"])
def test_models_of_processor_classes_have_no_rates(name: str) -> None:
    rates = rates_of(hardware.get(name))
    assert rates.operations.per_second is None and rates.memory_of(1).rate.per_second is None


@pytest.mark.parametrize("name", hardware.names("cuda"))
def test_gpus_have_the_rates_of_their_data_sheets(name: str) -> None:
    rates = rates_of(hardware.get(name, "cuda"))
    assert None not in (rates.operations.per_second, rates.contract.per_second, rates.sram.per_second)
    assert "data sheet" in rates.operations.source and "data sheet" in rates.contract.source
    memory = rates.memory_of(10**12).rate.per_second
    # every one of them computes more than it moves: 10 to 100 fp32 operations for a word of dram
    assert memory is not None and 10 < 4 * (rates.operations.per_second or 0) / memory < 300


def test_the_host_is_estimated_and_measured() -> None:
    host = hardware.get()
    rates = rates_of(host)
    *caches, memory = rates.memory
    assert caches and memory.capacity_bytes is None
    assert [c.capacity_bytes for c in caches] == sorted(c.capacity_bytes or 0 for c in caches)
    for row in rates.memory:
        # no machine copies less than 10 MB/s or more than 100 TB/s
        assert row.rate.per_second is not None and 1e7 < row.rate.per_second < 1e14
        assert row.rate.source.startswith("measured copy")
    if host_cpu.clock() is not None:
        assert rates.operations.source.startswith("estimate") and rates.contract.per_second is not None
        assert rates.contract.per_second == 2 * (rates.operations.per_second or 0)
    assert [row.rate for row in rates_of(host).memory] == [row.rate for row in rates.memory], "measured once"


def test_no_memory_is_measured_for_those_who_ask_for_other_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of twice a last cache of 480 MiB takes seconds: a compilation must not wait for it."""

    def measured(footprint: int, threads: int) -> float:
        raise AssertionError(f"a copy of {footprint} bytes was measured")

    monkeypatch.setattr(cpu, "copy_bytes_per_second", measured)
    rates = rates_of(hardware.get())
    assert rates.steps and rates.operations.source
    softmax = tiny.elementwise(relax.op.nn.softmax, ((32, 100), "float32"))
    assert uir_tvm.compile(softmax, target="uir-cpu").report()["kernels_through_igraph"] == 1
    with pytest.raises(AssertionError, match="was measured"):
        _ = rates.memory[-1].rate


def test_what_is_measured_fits_into_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def measured(footprint: int, threads: int) -> float:
        asked.append(footprint)
        return 1e9

    monkeypatch.setattr(cpu, "copy_bytes_per_second", measured)
    monkeypatch.setattr(host_cpu, "memory_bytes", lambda: 128 << 20)
    _ = rates_of(hardware.get()).memory[-1].rate
    assert asked[0] <= 16 << 20


def test_a_graph_of_another_processor_has_no_rates_here() -> None:
    host = hardware.get()
    other = model(dict(host.figures.items()) | {"mcpu": "pentium"}, "cpu", "host")
    rates = rates_of(other)
    assert rates.operations.per_second is None and "pentium" in rates.operations.source


def test_a_model_may_overrule_what_is_measured() -> None:
    host = hardware.get()
    stated = model(dict(host.figures.items()) | {"dram_bytes_per_second": 1e9}, "cpu", "host")
    assert [row.rate.per_second for row in rates_of(stated).memory] == [1e9]


def test_the_clock_is_the_limit_or_what_cpuinfo_says(tmp_path: pathlib.Path) -> None:
    info = tmp_path / "cpuinfo"
    assert host_cpu.clock(tmp_path, info) is None
    info.write_text("processor : 0\ncpu MHz\t\t: 2400.5\n\ncpu MHz\t\t: 1200.0\n")
    assert host_cpu.clock(tmp_path, info) == (2400.5e6, "cpuinfo's present clock")
    for n in host_cpu.cpus():
        folder = tmp_path / f"cpu{n}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "cpuinfo_max_freq").write_text("3500000\n")
    assert host_cpu.clock(tmp_path, info) == (3.5e9, "cpufreq's limit")


def test_a_copy_is_counted_in_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second a look, one thread: 8 KiB there and back, repeated to 64 KiB."""
    monkeypatch.setattr(copy_rate, "LEAST_BYTES", 1 << 16)
    ticks = iter(range(100))
    monkeypatch.setattr(copy_rate.time, "thread_time", lambda: float(next(ticks)))
    copy_rate.copy_bytes_per_second.cache_clear()
    try:
        assert copy_rate.copy_bytes_per_second(16384, 1) == 1 << 16
    finally:
        copy_rate.copy_bytes_per_second.cache_clear()


def test_every_instruction_set_has_its_pipes() -> None:
    assert set(cpu.FMA_PER_CYCLE) == {flag for flag, _ in host_cpu.VECTORS}


@pytest.mark.parametrize(
    ("flags", "pipes"), [((), 1), (("sse2",), 1), (("avx2",), 2), (("avx512f", "avx2"), 2)]
)
def test_arithmetic_is_of_the_best_instruction_set(
    flags: tuple[str, ...], pipes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_cpu, "cpu_flags", lambda: set(flags))
    monkeypatch.setattr(host_cpu, "clock", lambda: host_cpu.Clock(1e9, "a test"))
    host = hardware.get()
    operations, contract = cpu._host_arithmetic(host)
    assert operations.per_second == cpu._workers(host) * (host.vector_bytes // 4) * pipes * 1e9
    assert contract.per_second == 2 * operations.per_second


def test_vector_cores_of_ascend_add_64_numbers_a_cycle() -> None:
    """256 bytes of fp32 in each of 48 cores at 1.8 GHz."""
    assert rates_of(hardware.get("910b2", "ascend")).operations.per_second == 48 * 64 * 1.8e9


@pytest.mark.parametrize(("third", "caches"), [(2.5, ["L2", "L3", "memory"]), (2, ["L2", "memory"])])
def test_a_last_cache_counts_that_is_more_than_all_second_ones(third: float, caches: list[str]) -> None:
    host = hardware.get()
    second = cpu._workers(host) * (1 << 20)
    figures = dict(host.figures.items()) | {"l2_bytes": 1 << 20, "l3_bytes": int(third * second)}
    rows = cpu._host_memory(model(figures, "cpu", "host"))
    assert [row.name for row in rows] == caches
    # a kernel may count on half of each
    halves = [second // 2, int(third * second) // 2][: len(caches) - 1]
    assert [row.capacity_bytes for row in rows] == [*halves, None]
