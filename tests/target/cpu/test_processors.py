# SPDX-License-Identifier: Apache-2.0
"""Processors by LLVM's names: what is derived of them, and what code for them uses."""

from __future__ import annotations

import re

import pytest
import tvm
from uir_tvm import hardware
from uir_tvm.errors import TargetError
from uir_tvm.hardware import host_cpu
from uir_tvm.target.cpu import processors
from uir_tvm.target.cpu.processors import CORES, Processor, has_avx512
from uir_tvm.target.registry import TARGETS, resolve

from .emulator import compiled_for_its_processor
from .support import graph_of, parsed

OTHER = "aarch64" if processors.this_machine() == "x86_64" else "x86_64"


@pytest.mark.parametrize(
    ("name", "machine", "vectors"),
    [
        ("skylake-avx512", "x86_64", (64, 32)),
        ("haswell", "x86_64", (32, 16)),
        ("sandybridge", "x86_64", (16, 16)),
        ("znver4,-avx512f", "x86_64", (32, 16)),
        ("neoverse-n1", "aarch64", (16, 32)),
        ("neoverse-n2", "aarch64", (16, 32)),
        ("neoverse-v1", "aarch64", (32, 32)),
        ("a64fx", "aarch64", (64, 32)),
        ("a64fx,-sve", "aarch64", (16, 32)),
        ("generic,aarch64", "aarch64", (16, 32)),
    ],
)
def test_vectors_follow_from_instructions(name: str, machine: str, vectors: tuple[int, int]) -> None:
    found = Processor.named(name)
    assert found is not None and found.machine == machine and found.vectors == vectors
    model = hardware.get(name)
    assert (model.vector_bytes, model.figures["vector_registers"]) == vectors


@pytest.mark.parametrize("name", ["haswell", "znver4,-avx512f,16cores", f"generic,{OTHER},8cores"])
def test_names_are_read_as_they_are_written(name: str) -> None:
    found = Processor.named(name)
    assert found is not None and found.name == name


@pytest.mark.parametrize("name", ["foo", "haswell,foo", "haswell,2cores,4cores", "haswell,aarch64", " "])
def test_what_is_no_processor_is_no_hardware_model(name: str) -> None:
    with pytest.raises(TargetError, match="a processor of LLVM"):
        hardware.get(name)
    assert Processor.named(name) is None


def test_cores_are_those_of_the_name_or_what_is_assumed_of_other_machines() -> None:
    other = "neoverse-n1" if OTHER == "aarch64" else "haswell"
    assert hardware.get(f"{other},16cores").num_groups == 16
    assert hardware.get(other).num_groups == CORES


def test_a_target_of_tvm_is_for_the_processor_that_it_names() -> None:
    config = {"kind": "llvm", "keys": ["uir", "cpu"], "mcpu": "neoverse-v1", "num-cores": 8}
    target = tvm.target.Target({**config, "mtriple": "aarch64-linux-gnu"})
    assert resolve(target).name == "uir-cpu:neoverse-v1,8cores"
    bare = tvm.target.Target({"kind": "llvm", "keys": ["uir", "cpu"]})
    assert resolve(bare).name == "uir-cpu"
    here = tvm.target.Target({"kind": "llvm", "keys": ["uir", "cpu"], "mcpu": host_cpu.mcpu()})
    assert resolve(here).name == "uir-cpu"


@pytest.mark.parametrize(
    ("name", "multiplication"),
    [("neoverse-v1", r"fmul\s+z\d+\.s"), ("neoverse-n1", r"fmul\s+v\d+\.4s"), ("haswell", r"vmulps\s.*ymm")],
)
def test_code_uses_the_vectors_of_the_processor(name: str, multiplication: str) -> None:
    """Instructions of SVE only where vectors are longer than NEON's; no AVX-512 for a processor without it.

    Stores that bypass the caches, and their fence, are x86's.
    """
    piece = "[0; (1,64); (64,1)]"
    body = parsed(
        "x = iPointer(dram, fp32, 64, in)\no = iPointer(dram, fp32, 64, out)\na = iPointer(reg, fp32, 64)",
        f"unary.muls.fp32 a{piece}, x{piece} [3.0]\nmove.reg.dram.fp32 o{piece}, a{piece} [hint=stream]",
    )
    graph = graph_of(list(body.pointers), list(body.body), hardware=hardware.get(name))
    text = str(compiled_for_its_processor(graph).mod.inspect_source("asm"))
    assert re.search(multiplication, text)
    assert "zmm" not in text and ("sfence" in text) == (name == "haswell")


def test_a_machine_is_told_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    place = TARGETS["uir-cpu"].place()
    assert place.unable(hardware.get("host")) == ""
    other = "neoverse-n1" if OTHER == "aarch64" else "haswell"
    assert OTHER in place.unable(hardware.get(other))
    if OTHER == "aarch64":
        monkeypatch.setattr(host_cpu, "cpu_flags", lambda: frozenset({"sse2", "avx", "fma"}))
        assert "avx512f" in place.unable(hardware.get("skylake-avx512"))


@pytest.mark.parametrize(("there", "lacks"), [("32", ""), ("64", ""), ("16", "256 bits"), ("", "")])
def test_vectors_of_sve_may_be_too_short(tmp_path, monkeypatch, there: str, lacks: str) -> None:
    """Code of fixed length runs where vectors are as long or longer."""
    file = tmp_path / "length"
    if there:
        file.write_text(there + "\n")
    monkeypatch.setattr(processors, "SVE_LENGTH", file)
    found = processors._shorter_vectors("aarch64", 32)
    assert lacks in found and bool(found) == bool(lacks)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("znver4", True),
        ("znver4,-avx512f", False),
        ("haswell", False),
        ("a64fx", False),
    ],
)
def test_avx512_is_what_llvm_says_of_the_processor(name: str, expected: bool) -> None:
    """Not what vectors of 64 bytes suggest: those of a64fx are SVE's."""
    assert has_avx512(hardware.get(name)) == expected
