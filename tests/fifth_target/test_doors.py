# SPDX-License-Identifier: Apache-2.0
"""A target from outside of the package is one for every door: `uir_tvm.compile`, stock TVM, lists."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np
import pytest
import tvm
import uir_tvm
from uir_tvm import hardware
from uir_tvm.errors import TargetError
from uir_tvm.target import registry
from uir_tvm.target.record import register_target

from .. import tiny
from . import NAME, RECORD, registered


@pytest.fixture(autouse=True)
def target() -> Iterator[None]:
    with registered():
        yield


def test_a_model_compiles_runs_and_is_saved(tmp_path: pathlib.Path) -> None:
    exe = uir_tvm.compile(tiny.module(), NAME)
    x = tiny.example()
    np.testing.assert_allclose(exe(x), tiny.expected(x), atol=tiny.TOLERANCE)
    assert not exe.report()["fallbacks"] and exe.info.target == NAME
    assert exe.info.kernels[0].code["hardware"] == "board"
    exe.save(tmp_path / "m.uir")
    np.testing.assert_allclose(uir_tvm.load(tmp_path / "m.uir")(x), tiny.expected(x), atol=tiny.TOLERANCE)


def test_stock_tvm_knows_it() -> None:
    built = tvm.compile(tiny.module(), target=tvm.target.Target(NAME))
    x = tiny.example()
    found = tvm.relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x))
    np.testing.assert_allclose(found.numpy(), tiny.expected(x), atol=tiny.TOLERANCE)


def test_lists_have_it() -> None:
    rows = {row["target"]: row for row in registry.describe()}
    assert rows[NAME]["hardware models"] == "board, board-x2" and list(rows)[-1] == NAME
    assert hardware.get(None, RECORD.kind).name == "board"
    assert any(f"{NAME}: " in row["pays on"] for row in registry.describe_passes())


def test_nobody_takes_its_name_or_kind() -> None:
    with pytest.raises(ValueError, match="registered already"):
        register_target(RECORD)


def test_it_is_gone_when_it_is_removed() -> None:
    from uir_tvm import target_facts

    target_facts.remove(NAME)
    try:
        with pytest.raises(TargetError, match="no target"):
            registry.get(NAME)
    finally:
        target_facts.add(RECORD)
