# SPDX-License-Identifier: Apache-2.0
"""Models with state: what calls leave in it, step by step as PyTorch does, and what abuse leaves."""

from __future__ import annotations

import copy
import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm
from torch.export import Dim
from tvm_ffi.core import Error as FfiError
from uir_tvm.errors import PositionError, ShapeError, StateError
from uir_tvm.runtime.executable import Executable
from uir_tvm.runtime.executable_state import ModelState
from uir_tvm.runtime.open_kernels import OpenKernels
from uir_tvm.runtime.tensors import to_tvm

LENGTH, HEADS, SIZE = 12, 2, 4


class Decoder(torch.nn.Module):
    """One attention over a cache of keys and values, and a counter of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(HEADS * SIZE, 3 * HEADS * SIZE)
        self.register_buffer("keys", torch.zeros(1, HEADS, LENGTH, SIZE))
        self.register_buffer("values", torch.zeros(1, HEADS, LENGTH, SIZE))
        self.register_buffer("calls", torch.full((1,), 5, dtype=torch.int64))

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            part.view(1, -1, HEADS, SIZE).transpose(1, 2) for part in self.project(x).chunk(3, -1)
        )
        self.keys.index_copy_(2, place, key)
        self.values[:, :, place] = value
        self.calls += 1
        seen = torch.arange(LENGTH) <= place[:, None]
        scores = (query @ self.keys.transpose(-2, -1)).masked_fill(~seen, -1e9)
        return (scores.softmax(-1) @ self.values).transpose(1, 2).reshape(x.shape)


def compiled(target: str = "uir-cpu", count: int = 1, model: Any = None) -> tuple[Executable, Any]:
    """An executable that takes so many rows at once, and the module."""
    torch.manual_seed(0)
    module = (model or Decoder()).eval()
    device = "auto" if target == "uir-cpu" else "model"
    options = uir_tvm.CompileOptions(device=device, faults="raise")
    args = torch.randn(1, count, HEADS * SIZE), torch.arange(count)
    exe = uir_tvm.compile(copy.deepcopy(module), target, args=args, options=options, name=f"of {count}")
    assert isinstance(exe, Executable)
    return exe, module


@pytest.fixture(scope="module")
def decoder() -> tuple[Executable, Any]:
    """One for steps of a row, on the CPU."""
    return compiled()


def rows(count: int, seed: int) -> torch.Tensor:
    """Input of so many rows."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((1, count, 8)).astype("float32"))


def contents(exe: Executable) -> dict[str, np.ndarray]:
    """What the state holds."""
    return {name: exe.state[name] for name in exe.state}


def same(exe: Executable, module: Any) -> None:
    """The state is the module's."""
    for name, value in contents(exe).items():
        np.testing.assert_allclose(value, getattr(module, name).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["uir-cpu", "uir-cuda", "uir-ascend", "uir-bang"])
def test_prefill_and_steps_as_torch(target: str) -> None:
    prefill, module = compiled(target, 4)
    step, _ = compiled(target)
    step.share_state(prefill)
    with torch.no_grad():
        torch.testing.assert_close(prefill(rows(4, 0), torch.arange(4)), module(rows(4, 0), torch.arange(4)))
        for place in range(4, 4 + (6 if target == "uir-cpu" else 2)):
            given = rows(1, place), torch.tensor([place])
            torch.testing.assert_close(step(*given), module(*given))
            same(prefill, module)
        # a position that nobody knows before the call, and that lies beyond the state, writes nothing
        for place in (LENGTH, -LENGTH - 1):
            step.run_tvm(*(to_tvm(each, step.device) for each in (rows(1, 0), torch.tensor([place]))))
            module.calls += 1
            same(prefill, module)
    updates = [kernel for kernel in step.info.kernels if kernel.name.startswith("update")]
    assert updates and all(kernel.recipe == "update" and not kernel.fallback for kernel in updates)
    row = 4 * HEADS * SIZE
    assert {(s.name, s.how, s.written, s.copied) for s in step.info.state} == {
        ("keys", "in place", row, 0),
        ("values", "in place", row, 0),
        ("calls", "in place", 8, 0),
    }


def test_clones_and_reset_do_not_meet(decoder: tuple[Executable, Any]) -> None:
    exe, module = decoder
    exe.reset()
    modules = [copy.deepcopy(module), copy.deepcopy(module)]
    exes = [exe, exe.clone()]
    with torch.no_grad():
        for place in range(3):
            for at in (0, 1, 1):
                given = rows(1, 7 * place + at), torch.tensor([place])
                torch.testing.assert_close(exes[at](*given), modules[at](*given))
        third = exes[1].clone()
        exes[1].reset()
        same(exes[0], modules[0])
        same(third, modules[1])
        same(exes[1], module)
        assert exes[1].state["calls"] == [5] and third.library is exe.library


def test_a_position_beyond_the_state_is_refused_before_anything_is_written(
    decoder: tuple[Executable, Any],
) -> None:
    exe, _ = decoder
    exe.reset()
    exe(rows(1, 0), torch.tensor([LENGTH - 1]))
    before = contents(exe)
    for place in (LENGTH, -LENGTH - 1, 2**40):
        with pytest.raises(PositionError, match=r"lies beyond the state") as caught:
            exe(rows(1, 1), torch.tensor([place]))
        assert "keys" in caught.value.where and str(LENGTH) in caught.value.need
    with pytest.raises(ShapeError):
        exe(rows(2, 1), torch.tensor([0]))
    for name, value in contents(exe).items():
        np.testing.assert_array_equal(value, before[name])


def failing_by_machine(exe: Executable) -> Callable[[], None]:
    """Let calls fail after the machine ran; what this returns ends that."""
    main, vars(exe)["_program"] = exe._main, None

    def fails(*given: Any) -> Any:
        main(*given)
        raise RuntimeError("the device is gone")

    vars(exe)["_main"] = fails
    return lambda: vars(exe).update(_main=main)


def failing_directly(exe: Executable) -> Callable[[], None]:
    """The same where C++ calls the kernels."""
    direct = exe.direct
    assert direct is not None
    run = direct.run

    def fails(*given: Any) -> Any:
        run(*given)
        return FfiError("RuntimeError", "the device is gone", "")

    vars(direct)["run"] = fails
    return lambda: vars(direct).update(run=run)


@pytest.mark.parametrize("fail", [failing_by_machine, failing_directly])
def test_a_failed_call_leaves_state_that_is_refused(
    decoder: tuple[Executable, Any], fail: Callable[[Executable], Callable[[], None]]
) -> None:
    exe = decoder[0].clone()
    exe(rows(1, 0), torch.tensor([0]))
    kept, end = contents(exe), fail(exe)
    with pytest.raises(RuntimeError, match="gone"):
        exe(rows(1, 1), torch.tensor([1]))
    end()
    uses: list[Callable[[], Any]] = [
        lambda: exe(rows(1, 1), torch.tensor([1])),
        lambda: exe.state["keys"],
        lambda: exe.state.update(calls=kept["calls"]),
        exe.clone,
    ]
    for use in uses:
        with pytest.raises(StateError, match="while it was written") as caught:
            use()
        assert "the device is gone" in caught.value.where and "reset()" in caught.value.remedy
    exe.state.update(kept)
    with torch.no_grad():
        again = decoder[0].clone()
        again.state.update(kept)
        torch.testing.assert_close(
            exe(rows(1, 1), torch.tensor([1])), again(rows(1, 1), torch.tensor([1])), rtol=0, atol=0
        )


def test_state_is_a_mapping_of_copies(decoder: tuple[Executable, Any]) -> None:
    exe = decoder[0].clone()
    exe.reset()
    exe.state["keys"][:] = 3
    assert not exe.state["keys"].any(), "what was read is a copy"
    exe.state["keys"] = torch.full((1, HEADS, LENGTH, SIZE), 2.0)
    assert (exe.state.torch("keys") == 2).all() and list(exe.state) == ["keys", "values", "calls"]
    with pytest.raises(StateError, match="no tensor 'other'"):
        exe.state["other"]
    with pytest.raises(ShapeError, match="wrong dtype"):
        exe.state.update(keys=np.zeros((1, HEADS, LENGTH, SIZE), "float32"), calls=np.zeros(1, "int32"))
    assert (exe.state["keys"] == 2).all(), "nothing was set"
    with pytest.raises(StateError, match="keeps `keys`"):
        del exe.state["keys"]


def test_only_equal_state_is_shared(decoder: tuple[Executable, Any]) -> None:
    other = uir_tvm.compile(torch.nn.Linear(4, 4).eval(), args=(torch.randn(1, 4),))
    with pytest.raises(StateError, match="cannot go on"):
        decoder[0].share_state(other)
    assert not other.state and other.report()["state"] == []


def test_a_file_keeps_what_the_state_begins_as(
    decoder: tuple[Executable, Any], tmp_path: pathlib.Path
) -> None:
    exe, module = decoder
    loaded = uir_tvm.load(exe.save(tmp_path / "decoder.uir"))
    same(loaded, module)
    assert loaded.info == exe.info and loaded.report()["state"] == exe.report()["state"]
    exe.reset()
    given = rows(1, 3), torch.tensor([2])
    torch.testing.assert_close(loaded(*given), exe(*given), rtol=0, atol=0)
    assert json.dumps(loaded.report()["state"])


def test_steps_take_no_memory(decoder: tuple[Executable, Any]) -> None:
    exe = decoder[0].clone()
    tensors = exe.state.tensors
    given = rows(1, 0), torch.tensor([0])
    for _ in range(20):
        exe(*given)
    before = resident()
    for _ in range(300):
        exe(*given)
    assert resident() - before < 1 << 20 and exe.state.tensors is tensors


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_state_of_the_class_is_typed() -> None:
    assert issubclass(PositionError, StateError) and issubclass(PositionError, IndexError)
    assert ModelState((), (), None, "none").tensors == ()


@pytest.mark.parametrize("kernels", ["for all sizes", "by sizes"])
def test_one_state_serves_all_sizes(
    kernels: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels == "by sizes":
        monkeypatch.setattr(OpenKernels, "refusal", lambda *_: "asked for")
    module = Decoder().eval()
    length = Dim("n", max=LENGTH)
    exe = uir_tvm.compile(
        copy.deepcopy(module),
        args=(rows(4, 0), torch.arange(4)),
        dynamic_shapes=({1: length}, {0: length}),
        options=uir_tvm.CompileOptions(faults="raise"),
    )
    with pytest.raises(StateError, match="not known yet"):
        exe.state  # noqa: B018
    place = 0
    with torch.no_grad():
        for count in (4, 1, 3, 1):
            given = rows(count, place), torch.arange(place, place + count)
            torch.testing.assert_close(exe(*given), module(*given))
            place += count
        (program,) = exe.report()["programs"]
        assert bool(program["kernels_by_sizes"]) is (kernels == "by sizes")
        other = exe.clone()
        exe.reset()
        same(other, module)
        given = rows(1, 9), torch.tensor([place])
        torch.testing.assert_close(other(*given), module(*given))
    with pytest.raises(PositionError, match=f"Position {LENGTH}"):
        other(rows(3, 0), torch.arange(LENGTH - 2, LENGTH + 1))
    same(other, module)
    if kernels == "for all sizes":
        loaded = uir_tvm.load(exe.save(tmp_path / "decoder.uir"))
        given = rows(3, 1), torch.arange(3)
        torch.testing.assert_close(loaded(*given), exe(*given))
        assert loaded.state["calls"] == exe.state["calls"] == [6]
