# SPDX-License-Identifier: Apache-2.0
"""Calls without the virtual machine: what they take, what they leave to it, and what they give."""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
import uir_tvm
from torch.export import Dim
from uir_tvm import threads
from uir_tvm.errors import ShapeError
from uir_tvm.runtime.direct_call import direct_of
from uir_tvm.runtime.executable import Executable

SHAPE = (6, 16)


class Pair(torch.nn.Module):
    """Two results of several kernels, nested."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        mixed = torch.softmax(x + y, -1)
        return {"rows": torch.softmax(self.linear(mixed), 0), "sum": mixed.sum(0) * 2}


class Scaled(torch.nn.Module):
    """One result of one input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 0.5, -1)


def compiled(module: torch.nn.Module, *args: torch.Tensor, **how: Any) -> Any:
    program = torch.export.export(module.eval(), args, **how)
    return uir_tvm.compile(program, options=uir_tvm.CompileOptions(faults="raise"))


@pytest.fixture(scope="module")
def scaled() -> Executable:
    made = compiled(Scaled(), torch.randn(SHAPE))
    assert isinstance(made, Executable) and made.direct is not None
    return made


@pytest.fixture(scope="module")
def pair() -> tuple[Executable, torch.nn.Module]:
    torch.manual_seed(0)
    module = Pair()
    made = compiled(module, torch.randn(SHAPE), torch.randn(SHAPE))
    assert isinstance(made, Executable) and made.direct is not None
    return made, module


def aligned(shape: tuple[int, ...], shift: int = 0) -> np.ndarray:
    """Normal numbers that begin so many bytes behind a multiple of 64."""
    size = int(np.prod(shape)) * 4
    room = np.zeros(size + 128, np.uint8)
    begin = -room.ctypes.data % 64 + shift
    made = room[begin : begin + size].view(np.float32).reshape(shape)
    made[...] = np.random.default_rng(0).standard_normal(shape)
    return made


def read_only(x: np.ndarray) -> np.ndarray:
    made = x.copy()
    made.flags.writeable = False
    return made


GIVEN: dict[str, Callable[[], Any]] = {
    "aligned": lambda: aligned(SHAPE),
    "allocated": lambda: aligned(SHAPE, 16),
    "odd": lambda: aligned(SHAPE, 4),
    "strides": lambda: aligned((6, 32))[:, ::2],
    "backwards": lambda: aligned(SHAPE)[::-1],
    "transposed": lambda: aligned(SHAPE[::-1]).T,
    "read-only": lambda: read_only(aligned(SHAPE)),
    "torch": lambda: torch.from_numpy(aligned(SHAPE)),
    "torch with strides": lambda: torch.from_numpy(aligned((6, 32)))[:, 1::2],
    "torch with gradient": lambda: torch.from_numpy(aligned(SHAPE)).requires_grad_(),
    "torch negated": lambda: torch.complex(torch.randn(SHAPE), torch.randn(SHAPE)).conj().imag,
    "tvm": lambda: tvm.runtime.tensor(aligned(SHAPE)),
}


@pytest.mark.parametrize("name", GIVEN)
def test_every_kind_of_tensor_gives_what_pytorch_gives(scaled: Executable, name: str) -> None:
    given = GIVEN[name]()
    made = scaled(given)
    of_torch = isinstance(given, torch.Tensor)
    assert type(made) is (torch.Tensor if of_torch else np.ndarray)
    if isinstance(made, np.ndarray):
        assert made.flags.writeable
    numbers = (
        given.detach() if of_torch else torch.from_numpy(np.array(getattr(given, "numpy", lambda: given)()))
    )
    torch.testing.assert_close(torch.as_tensor(made), Scaled()(numbers), rtol=2e-6, atol=1e-7)


def test_threads_are_there_before_a_program_is_prepared(
    scaled: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Library operators plan for them: in a process that compiled nothing, TVM would say one of two CPUs."""
    began: list[str] = []
    prepare = scaled.programs
    assert prepare is not None
    monkeypatch.setattr(threads, "ready", lambda: False)
    monkeypatch.setattr(threads, "before_running", lambda: began.append("threads"))
    monkeypatch.setitem(
        vars(scaled), "programs", lambda *given: (began.append("program"), prepare(*given))[1]
    )
    assert direct_of(scaled) is not None
    assert began == ["threads", "program"]


@pytest.mark.parametrize("name", ["aligned", "allocated", "torch", "torch with gradient", "tvm"])
def test_plain_tensors_need_no_machine(scaled: Executable, name: str) -> None:
    assert scaled.direct is not None and scaled.direct((GIVEN[name](),)) is not None


@pytest.mark.parametrize("name", ["strides", "odd", "torch negated"])
def test_views_are_left_to_the_machine(scaled: Executable, name: str) -> None:
    assert scaled.direct is not None and scaled.direct((GIVEN[name](),)) is None


@pytest.mark.parametrize(
    "given",
    [
        (),
        (torch.zeros(SHAPE), torch.zeros(SHAPE)),
        (torch.zeros(6, 17),),
        (torch.zeros(6, 16, 1),),
        (torch.zeros(SHAPE, dtype=torch.float64),),
        (np.zeros(SHAPE, np.int32),),
        (torch.zeros(SHAPE).to_sparse(),),
        (torch.zeros(SHAPE, device="meta"),),
        (torch.nested.nested_tensor([torch.zeros(16), torch.zeros(16)], layout=torch.jagged),),
        ([[1.0]],),
        (3.0,),
        (None,),
    ],
)
def test_what_does_not_fit_is_said_as_ever(scaled: Executable, given: tuple[Any, ...]) -> None:
    with pytest.raises(ShapeError):
        scaled(*given)


def test_results_are_nested_as_the_models(pair: tuple[Executable, torch.nn.Module]) -> None:
    exe, module = pair
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    made, by_name, numbers = exe(x, y), exe(y=y, x=x), exe(x.numpy(), y.numpy())
    assert list(made) == ["rows", "sum"] and isinstance(numbers["sum"], np.ndarray)
    with torch.no_grad():
        for key, value in module(x, y).items():
            torch.testing.assert_close(made[key], value, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(by_name[key], made[key], rtol=0, atol=0)
            torch.testing.assert_close(torch.from_numpy(numbers[key]), made[key], rtol=0, atol=0)


def test_the_machine_gives_the_same(pair: tuple[Executable, torch.nn.Module]) -> None:
    exe = pair[0]
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    made = exe.flat(x, y)
    by_machine = exe.run_tvm(*(tvm.runtime.tensor(each.numpy()) for each in (x, y)))
    for mine, other in zip(made, by_machine, strict=True):
        np.testing.assert_array_equal(mine.numpy(), other.numpy())


def test_results_are_the_callers_and_their_memory_is_used_again(scaled: Executable) -> None:
    x = torch.randn(SHAPE)
    first = scaled(x)
    before = first.clone()
    scaled(-x)
    torch.testing.assert_close(first, before, rtol=0, atol=0)
    kept = tvm_ffi.get_global_func("uir.runtime.kept_bytes")
    del first
    scaled(x)
    after = kept()
    for _ in range(200):
        scaled(x)
    assert kept() == after


# --- tensors of the caller ----------------------------------------------------------------------------


def into_aligned() -> Any:
    return aligned(SHAPE)


def into_odd() -> Any:
    return aligned(SHAPE, 4)


def into_strides() -> Any:
    return aligned((6, 32))[:, ::2]


def into_torch() -> Any:
    return torch.zeros(16, 6).T


def into_tvm() -> Any:
    return tvm.runtime.tensor(aligned(SHAPE))


@pytest.mark.parametrize("make", [into_aligned, into_odd, into_strides, into_torch, into_tvm])
@pytest.mark.parametrize("given", ["torch", "odd"])
def test_results_go_where_the_caller_says(scaled: Executable, make: Callable[[], Any], given: str) -> None:
    x, target = GIVEN[given](), make()
    expected = numbers(scaled(x))
    assert scaled(x, out=target) is target
    np.testing.assert_array_equal(numbers(target), expected)
    bound = scaled.bind(make())
    np.testing.assert_array_equal(numbers(bound(x)), expected)


def numbers(value: Any) -> np.ndarray:
    return value.numpy().copy() if hasattr(value, "numpy") else value


def test_a_result_over_its_own_input(scaled: Executable) -> None:
    room = aligned((7, 16))
    x, target = room[:6], room[1:]
    expected = scaled(x.copy())
    scaled(x, out=target)
    np.testing.assert_array_equal(target, expected)
    x = aligned(SHAPE)
    expected = scaled(x.copy())
    scaled(x, out=x)
    np.testing.assert_array_equal(x, expected)


def test_bound_results_are_nested(pair: tuple[Executable, torch.nn.Module]) -> None:
    exe = pair[0]
    targets = torch.zeros(6, 8), torch.zeros(16)
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    bound = exe.bind(targets)
    made = bound(x, y)
    assert made["rows"] is targets[0] and made["sum"] is targets[1]
    torch.testing.assert_close(targets[1], exe(x, y)["sum"], rtol=0, atol=0)
    assert bound(x, y=-y)["sum"] is targets[1]
    torch.testing.assert_close(targets[1], exe(x, -y)["sum"], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        ([], "1 results, 0 tensors"),
        (torch.zeros(6, 17), "wrong shape"),
        (torch.zeros(SHAPE, dtype=torch.float16), "wrong dtype"),
        (np.zeros((6, 17), np.float32), "wrong shape"),
        (read_only(np.zeros(SHAPE, np.float32)), "cannot be written"),
        (3, "is a int"),
    ],
)
def test_tensors_that_results_do_not_fit(scaled: Executable, outputs: Any, says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        scaled.bind(outputs)
    with pytest.raises(ShapeError, match=says):
        scaled(torch.zeros(SHAPE), out=outputs)


class Out(torch.nn.Module):
    """It has an argument of the name that calls have."""

    def forward(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + out, -1)


def test_an_argument_of_the_model_goes_before() -> None:
    exe = compiled(Out(), torch.randn(SHAPE), torch.randn(SHAPE))
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    torch.testing.assert_close(exe(x, out=y), exe(x, y), rtol=0, atol=0)


# --- threads, files, sizes ----------------------------------------------------------------------------


def test_threads_take_turns(pair: tuple[Executable, torch.nn.Module]) -> None:
    exe = pair[0]
    inputs = [(torch.randn(SHAPE), torch.randn(SHAPE)) for _ in range(4)]
    expected = [exe.flat(*each) for each in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            made = exe.flat(*inputs[number])
            if not all(torch.equal(a, b) for a, b in zip(made, expected[number], strict=True)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_saved_executable_needs_no_machine(
    pair: tuple[Executable, torch.nn.Module], tmp_path: pathlib.Path
) -> None:
    exe = pair[0]
    loaded = uir_tvm.load(exe.save(tmp_path / "pair.uir"))
    assert isinstance(loaded, Executable) and loaded.direct is not None
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    for mine, other in zip(loaded.flat(x, y), exe.flat(x, y), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)


class Open(torch.nn.Module):
    """Products, a reduction over an open axis, and what is compiled for sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.softmax(self.linear(torch.softmax(x, -1)), 0), x.reshape(-1) * 2


def test_open_sizes_need_no_machine() -> None:
    module = Open()
    exe = compiled(module, torch.randn(6, 16), dynamic_shapes=[{0: Dim("n", min=2, max=300)}])
    for count in (7, 300, 2, 7):
        x = torch.randn(count, 16)
        with torch.no_grad():
            torch.testing.assert_close(exe(x), module(x), rtol=1e-5, atol=1e-6)
    parts = [each.executable for each in exe._whole.values()]
    assert len(parts) == 3 and all(each.direct is not None for each in parts)


def test_what_is_found_while_it_runs_stays_with_the_machine() -> None:
    class Found(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[x > 0] * 2

    exe = uir_tvm.compile(torch.export.export(Found(), (torch.randn(8),)))
    x = torch.randn(8)
    torch.testing.assert_close(exe(x), x[x > 0] * 2)


class Products(torch.nn.Module):
    """Products with a weight, with a tensor, and a convolution, each with what follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.conv = torch.nn.Linear(16, 16), torch.nn.Conv2d(1, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(self.linear(x)) + x
        return y @ x.transpose(-1, -2), self.conv(y[None, None])


@pytest.mark.parametrize("is_open", [False, True])
def test_prepared_operators_of_the_library(is_open: bool) -> None:
    torch.manual_seed(0)
    module = Products()
    sizes = [{0: Dim("n", min=2, max=64)}] if is_open else None
    exe = compiled(module, torch.randn(8, 16), dynamic_shapes=sizes)
    calls = tvm_ffi.get_global_func("uir.library.cpu.set_enabled")
    for count in (8, 20) if is_open else (8,):
        x = torch.randn(count, 16)
        with torch.no_grad():
            expected = module(x)
        try:
            for enabled in (True, False, True):
                calls(enabled)  # plans that were made under other circumstances are found again
                for mine, other in zip(exe(x), expected, strict=True):
                    torch.testing.assert_close(mine, other, rtol=2e-5, atol=2e-6)
        finally:
            calls(True)
