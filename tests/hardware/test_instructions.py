# SPDX-License-Identifier: Apache-2.0
"""Instructions: what LLVM says of a processor, and what the machine's flags say of itself."""

import pytest
import tvm
from uir_tvm.hardware import host_cpu, instructions


def test_a_wider_processor_uses_more() -> None:
    def used(mcpu: str) -> set[str]:
        return set(instructions.used_by(tvm.target.Target({"kind": "llvm", "mcpu": mcpu})))

    assert {"avx2", "fma"} <= used("x86-64-v3") < used("x86-64-v4")
    assert "avx512f" in used("x86-64-v4") - used("x86-64-v3")


def test_missing_is_what_no_flag_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "cpu_flags", lambda: frozenset({"sse4_2", "avx2"}))
    assert instructions.missing(["sse4.2", "avx2", "avx512f"]) == ["avx512f"]


def test_a_machine_that_tells_nothing_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "cpu_flags", lambda: frozenset())
    assert instructions.missing(["avx512f"]) == []


def test_this_machine_has_what_its_own_code_uses() -> None:
    own = tvm.target.Target({"kind": "llvm", "mcpu": host_cpu.mcpu()})
    assert instructions.missing(instructions.used_by(own)) == []
