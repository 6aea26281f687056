# SPDX-License-Identifier: Apache-2.0
"""All peers of a benchmark read their inputs from the same memory, without copies, and none changes it."""

from __future__ import annotations

import contextlib
import importlib
import mmap
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import tvm

from .shared_inputs_read import pages_of, prepared

#: Types, a length that fills no page, one number, nothing at all.
INPUTS = [
    torch.arange(4096.0).reshape(64, 64),
    torch.arange(1025),
    torch.tensor(True),
    torch.empty(0, 3),
    torch.randn(3, 7, dtype=torch.float16),
]


@pytest.fixture
def shared_inputs() -> Any:
    """The module `shared_inputs`."""
    return importlib.import_module("shared_inputs")


@pytest.fixture
def file(shared_inputs: Any) -> Iterator[pathlib.Path]:
    """Of INPUTS."""
    with contextlib.closing(shared_inputs.SharedInputs(INPUTS)) as shared:
        yield shared.file


def test_inputs_are_what_they_were(shared_inputs: Any, file: pathlib.Path) -> None:
    """Each of its type and shape, from a page on."""
    found = shared_inputs.mapped(file, INPUTS)
    assert [each.dtype for each in found] == [each.dtype for each in INPUTS]
    assert all(map(torch.equal, found, INPUTS))
    assert all(each.data_ptr() % mmap.PAGESIZE == 0 for each in found)


def test_inputs_of_nothing(shared_inputs: Any) -> None:
    """A case without inputs, and one whose inputs have no elements."""
    for inputs in ([], [torch.empty(0)]):
        with contextlib.closing(shared_inputs.SharedInputs(inputs)) as shared:
            assert [each.shape for each in shared_inputs.mapped(shared.file, inputs)] == [
                each.shape for each in inputs
            ]


def test_processes_have_the_same_pages(shared_inputs: Any, file: pathlib.Path) -> None:
    """One that writes into them has a copy from then on, also after the file is closed."""
    asked_process = importlib.import_module("asked_process")
    here, *_ = shared_inputs.mapped(file, INPUTS)
    total = float(INPUTS[0].sum())
    peers = [asked_process.AskedProcess(prepared, file, INPUTS) for _ in range(2)]
    try:
        for each in peers:
            each.first(60.0)
        assert [each.ask(60.0, "pages") for each in peers] == [pages_of(here)] * 2
        assert peers[0].ask(60.0, "zeros") == 0.0
        assert [each.ask(60.0, "sum") for each in peers] == [0.0, total]
        assert float(here.sum()) == total
    finally:
        for each in peers:
            each.stop()


def test_tvm_takes_them_as_they_are(shared_inputs: Any, file: pathlib.Path) -> None:
    first, *_ = shared_inputs.mapped(file, INPUTS)
    assert torch.from_dlpack(tvm.runtime.from_dlpack(first)).data_ptr() == first.data_ptr()


def test_onnx_runtime_takes_them_as_they_are(shared_inputs: Any, file: pathlib.Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    first, *_ = shared_inputs.mapped(file, INPUTS)
    assert onnxruntime.OrtValue.ortvalue_from_numpy(first.numpy()).data_ptr() == first.data_ptr()


def test_a_case_is_run_on_them(one_case: Any, monkeypatch: Any) -> None:
    """Every peer is told the same file, and can map it until all of them are stopped."""
    files = []

    class Told:
        failed = "it is not run"

        def __init__(self, *_: Any, prepare: Any, **__: Any) -> None:
            files.append(prepare.keywords["file"])

        def wait(self) -> None:
            assert files[0].exists()

        stop = wait

    monkeypatch.setattr(one_case, "Peer", Told)
    found = one_case.run_case("mean 128x512", ["one", "two"], 0.0, 1)
    assert found["failed"] == dict.fromkeys(["one", "two"], Told.failed)
    assert files[0] == files[1] and not files[0].exists()
