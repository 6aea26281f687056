# SPDX-License-Identifier: Apache-2.0
"""Models for another machine: they are saved with a linker for it, and refuse to run here."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile

import pytest
import torch
import uir_tvm
from uir_tvm.errors import ArtifactError, DeviceError
from uir_tvm.runtime import linker
from uir_tvm.runtime.artifact_errors import MACHINE_AT, MACHINES
from uir_tvm.target.cpu.processors import this_machine
from uir_tvm.target.registry import resolve

OTHER, TARGET = (
    ("aarch64", "uir-cpu:neoverse-n1") if this_machine() == "x86_64" else ("x86_64", "uir-cpu:haswell")
)


@pytest.fixture(scope="module")
def softmax() -> uir_tvm.Executable:
    program = torch.export.export(torch.nn.Softmax(-1), (torch.randn(8, 40),))
    return uir_tvm.compile(program, target=TARGET)


def test_it_does_not_run_here(softmax: uir_tvm.Executable) -> None:
    with pytest.raises(DeviceError, match=OTHER):
        softmax(torch.randn(8, 40))


def test_it_is_linked_for_the_other_machine(softmax: uir_tvm.Executable, tmp_path) -> None:
    names = [name.format(f"{OTHER}-linux-gnu") for name in linker.COMPILERS]
    if not any(map(shutil.which, names)):
        pytest.skip(f"needs {' or '.join(names)}")
    softmax.save(tmp_path / "model.uir")
    with zipfile.ZipFile(tmp_path / "model.uir") as archive:
        library, manifest = archive.read("model.so"), json.loads(archive.read("manifest.json"))
    (machine,) = struct.unpack_from("<H", library, MACHINE_AT)
    assert MACHINES[machine] == OTHER
    assert {"neon", "avx2"} & set(manifest["instructions"])
    with pytest.raises(ArtifactError, match="another kind of machine"):
        uir_tvm.load(tmp_path / "model.uir")(torch.randn(8, 40))


def test_without_a_linker_for_it_the_error_says_which(softmax, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(linker, "COMPILERS", ("no-such-{}",))
    with pytest.raises(ArtifactError, match=f"no-such-{OTHER}-linux-gnu"):
        softmax.save(tmp_path / "model.uir")


def test_code_of_this_machine_is_linked_as_ever() -> None:
    assert linker.linker_for(resolve("uir-cpu").target) is None
