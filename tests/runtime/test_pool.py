# SPDX-License-Identifier: Apache-2.0
"""Threads of kernels that C++ calls alone: who launches waits for nobody that has not begun."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import threading

import pytest
import torch
import tvm_ffi
import uir_tvm
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T
from uir_tvm import environment
from uir_tvm.errors import SizeError
from uir_tvm.runtime.executable import Executable

from tests.without_torch import program

#: Enough for several threads.
SHAPE = (1024, 128)


class Steps(torch.nn.Module):
    """Kernels and a product, all of them worth several threads."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(SHAPE[1], 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.linear(torch.softmax(x, -1)), -1)


@pytest.fixture(scope="module")
def steps() -> tuple[Executable, torch.nn.Module]:
    torch.manual_seed(0)
    module = Steps().eval()
    exe = uir_tvm.compile(torch.export.export(module, (torch.randn(SHAPE),)))
    assert isinstance(exe, Executable) and exe.direct is not None
    return exe, module


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_any_number_of_threads_computes_the_same(
    steps: tuple[Executable, torch.nn.Module], count: int
) -> None:
    exe, module = steps
    x = torch.randn(SHAPE)
    with torch.no_grad():
        expected = module(x)
    exe(x)  # after which this thread is configured
    choose = tvm_ffi.get_global_func("uir.runtime.set_threads")
    try:
        choose(count)
        for _ in range(20):
            torch.testing.assert_close(exe(x), expected, rtol=2e-5, atol=1e-7)
    finally:
        choose(environment.num_threads())


def test_many_callers_get_their_own_results(steps: tuple[Executable, torch.nn.Module]) -> None:
    exe, module = steps
    others = [exe, *(uir_tvm.compile(torch.export.export(module, (torch.randn(SHAPE),))) for _ in range(2))]
    inputs = [torch.randn(SHAPE) for _ in range(6)]
    with torch.no_grad():
        expected = [module(x) for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(30):
            made = others[number % len(others)](inputs[number])
            if not torch.allclose(made, expected[number], rtol=2e-5, atol=1e-7):
                wrong.append(number)

    callers = [threading.Thread(target=work, args=(number,)) for number in range(len(inputs))]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert not wrong


def test_steps_that_wait_for_each_other_need_no_second_thread() -> None:
    """A recurrence, for several callers at one time: the bits are the same, whoever computes them."""
    torch.manual_seed(0)
    exe = uir_tvm.compile(torch.nn.LSTM(128, 128).eval(), args=(torch.randn(24, 5, 128),))
    assert exe.direct is not None
    inputs = [torch.randn(24, 5, 128) for _ in range(4)]
    expected = [exe(x)[0] for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            if not torch.equal(exe(inputs[number])[0], expected[number]):
                wrong.append(number)

    choose = tvm_ffi.get_global_func("uir.runtime.set_threads")
    try:
        for count in (0, 1, 2, 5):
            choose(count)
            callers = [threading.Thread(target=work, args=(number,)) for number in range(len(inputs))]
            for each in callers:
                each.start()
            for each in callers:
                each.join()
    finally:
        choose(environment.num_threads())
    assert not wrong


def _in_a_process(program: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """With three threads."""
    file = folder / "program.py"
    file.write_text(textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "UIR_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_forked_process_has_threads_of_its_own() -> None:
    code = """
        import os
        import numpy as np
        import uir_tvm
        from tvm import relax
        x = relax.Var("x", relax.TensorType((2048, 256), "float32"))
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            with builder.dataflow():
                y = builder.emit_output(relax.op.nn.softmax(x))
            builder.emit_func_output(y)
        exe = uir_tvm.compile(builder.get())
        given = np.random.default_rng(0).standard_normal((2048, 256)).astype("float32")
        expected = np.array(exe(given))
        child = os.fork()
        if child == 0:
            os._exit(0 if all(np.array_equal(exe(given), expected) for _ in range(50)) else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert np.array_equal(exe(given), expected)
        print("both")
    """
    environment = {**os.environ, "UIR_NUM_THREADS": "3"}
    done = subprocess.run(program(code), env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "both", done.stderr


def test_a_process_forked_amid_a_call_of_another_thread(tmp_path: pathlib.Path) -> None:
    """What that thread holds, nobody gives back in the child: a call there does not wait for it."""
    program = """
        import os, signal, threading
        import numpy as np, tvm_ffi, uir_tvm
        from tvm.script import ir as I, relax as R, tirx as T

        here, within, goes_on = os.getpid(), threading.Event(), threading.Event()

        @tvm_ffi.register_global_func("uir.test.pool.wait")
        def wait():
            if os.getpid() == here:
                within.set()
                goes_on.wait()

        @I.ir_module
        class Waits:
            @T.prim_func
            def double(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")) -> None:
                T.evaluate(T.call_packed("uir.test.pool.wait"))
                for i in range(8):
                    y[i] = x[i] * T.float32(2)

            @R.function
            def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
                cls = Waits
                with R.dataflow():
                    y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((8,), "float32"))
                    R.output(y)
                return y

        goes_on.set()
        exe, x = uir_tvm.compile(Waits), np.arange(8, dtype="float32")
        exe(x)
        assert within.is_set() and exe.direct is not None
        goes_on.clear(), within.clear()
        amid = threading.Thread(target=exe, args=(x,))
        amid.start()
        within.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if all((exe(x) == 2 * x).all() for _ in range(3)) else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        goes_on.set()
        amid.join()
        assert (exe(x) == 2 * x).all()
        print("both")
    """
    done = _in_a_process(program, tmp_path)
    assert done.stdout.strip() == "both", done.stderr


REFUSED: set[int] = set()


@tvm_ffi.register_global_func("uir.test.pool.refuse", override=True)
def _refuse(number: int) -> None:
    if number in REFUSED:
        raise SizeError(f"There is no row {number}.")


@I.ir_module
class Rows:
    @T.prim_func
    def rows(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")) -> None:
        for i in T.parallel(8):
            T.evaluate(T.call_packed("uir.test.pool.refuse", i))
            y[i] = x[i]

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Rows
        with R.dataflow():
            y = R.call_tir(cls.rows, (x,), out_ty=R.Tensor((8,), "float32"))
            R.output(y)
        return y


@pytest.mark.parametrize("refused", [{0}, {7}, {0, 7}])
def test_what_a_task_raises_is_raised_by_the_call(refused: set[int]) -> None:
    exe = uir_tvm.compile(Rows)
    x = torch.arange(8, dtype=torch.float32)
    assert torch.equal(exe(x), x)
    REFUSED.update(refused)
    try:
        for _ in range(20):
            with pytest.raises(SizeError, match="There is no row"):
                exe(x)
    finally:
        REFUSED.clear()
    assert torch.equal(exe(x), x)
