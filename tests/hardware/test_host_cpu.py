# SPDX-License-Identifier: Apache-2.0
"""What is read from the machine, on files of machines that differ from this one."""

from __future__ import annotations

import platform

import pytest
import tvm
from uir_tvm.hardware import host_cpu


@pytest.fixture
def sysfs(tmp_path, monkeypatch):
    """A maker of /sys/devices/system/cpu: rows of (level, type, size, shared_cpu_list, line)."""

    def make(rows, cpus=(0, 1)):
        monkeypatch.setattr(host_cpu, "cpus", lambda: list(cpus))
        for index, row in enumerate(rows):
            folder = tmp_path / f"cpu{cpus[0]}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            files = ("level", "type", "size", "shared_cpu_list", "coherency_line_size")
            for name, value in zip(files, row, strict=True):
                (folder / name).write_text(f"{value}\n")
        return tmp_path

    return make


def test_private_caches_are_taken_whole_and_the_instruction_cache_is_not(sysfs):
    root = sysfs(
        [
            (1, "Instruction", "64K", "0", 128),
            (1, "Data", "48K", "0", 64),
            (2, "Unified", "2048K", "0", 64),
            (3, "Unified", "32768K", "0-1", 64),
        ]
    )
    assert host_cpu.caches(root) == (48 * 1024, 2048 * 1024, 32768 * 1024, 64)


def test_threads_of_one_core_share_its_caches(sysfs):
    """Two worker threads on one core have half of its L1 and L2 each, and both reach all of L3."""
    shared = [(1, "Data", "32K", "0-1", 64), (2, "Unified", "1M", "0-1", 64), (3, "Unified", "8M", "0-7", 64)]
    root = sysfs(shared)
    assert host_cpu.caches(root) == (16 * 1024, 512 * 1024, 8 * 1024 * 1024, 64)


def test_a_sibling_outside_our_affinity_shares_nothing(sysfs):
    root = sysfs([(1, "Data", "32K", "0,4", 64), (2, "Unified", "1M", "0,4", 64)], cpus=(0, 1))
    assert host_cpu.caches(root) == (32 * 1024, 1024 * 1024, 0, 64)


def test_without_a_second_level_the_first_is_what_a_unit_has(sysfs):
    root = sysfs([(1, "Data", "32K", "0", 32)])
    assert host_cpu.caches(root) == (32 * 1024, 32 * 1024, 0, 32)


def test_without_any_source_the_smallest_is_assumed(tmp_path, monkeypatch):
    monkeypatch.setattr(host_cpu, "_from_lscpu", lambda: None)
    assert host_cpu.caches(tmp_path) == host_cpu.SMALLEST


@pytest.mark.parametrize(
    "flags, expected",
    [
        ({"avx2", "avx512f"}, (64, 32)),
        ({"sse2", "avx2"}, (32, 16)),
        ({"asimd"}, (16, 32)),
        ({"sse2"}, (16, 16)),
    ],
)
def test_vectors_by_flag(flags, expected):
    assert host_cpu.vectors(frozenset(flags)) == expected


@pytest.mark.parametrize("text, expected", [("48K", 49152), ("8M", 8388608), ("512", 512), ("32 KiB", 32768)])
def test_sizes(text, expected):
    assert host_cpu.parse_size(text) == expected


@pytest.mark.parametrize("text, expected", [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set())])
def test_cpu_lists(text, expected):
    assert host_cpu.parse_cpu_list(text) == expected


def test_this_machine_has_a_name_in_llvm():
    assert host_cpu.mcpu()


ZEN4 = frozenset(
    "abm avx avx2 avx512_bf16 avx512_bitalg avx512_vbmi2 avx512_vnni avx512_vpopcntdq avx512bw avx512cd "
    "avx512dq avx512f avx512ifma avx512vbmi avx512vl bmi1 bmi2 f16c fma gfni movbe pni popcnt sse4_1 sse4_2 "
    "sse4a ssse3 vaes vpclmulqdq".split()
)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86-64's flags")
def test_features_that_a_virtual_machine_hides_are_lacking():
    """A Zen 4 under a hypervisor without AVX-512: code for znver4 would be an illegal instruction."""
    hidden = frozenset(flag for flag in ZEN4 if not flag.startswith("avx512"))
    assert host_cpu.lacking("znver4", ZEN4) == []
    assert "avx512vnni" in host_cpu.lacking("znver4", hidden)
    assert host_cpu.lacking("x86-64-v4", hidden) != []
    assert host_cpu.lacking("x86-64-v3", hidden) == []


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86-64's flags")
@pytest.mark.parametrize(
    ("gone", "expected"), [((), "znver4"), (("avx512f",), "x86-64-v3"), (("avx512f", "avx2"), "x86-64-v2")]
)
def test_the_name_promises_nothing_that_is_missing(gone, expected, monkeypatch):
    monkeypatch.setattr(tvm.target.codegen, "llvm_get_system_cpu", lambda: "znver4")
    monkeypatch.setattr(host_cpu, "cpu_flags", lambda: ZEN4 - set(gone))
    assert host_cpu.mcpu.__wrapped__() == expected


def test_this_machine_has_what_its_name_promises():
    if platform.machine() in ("x86_64", "AMD64"):
        assert host_cpu.lacking(host_cpu.mcpu()) == []
