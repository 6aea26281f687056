# SPDX-License-Identifier: Apache-2.0
"""Threads that compile and run at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
import tvm
import uir_tvm
from tvm import relax
from uir_tvm import pipeline

from tests import tiny

THREADS = 4


def in_threads(work: Callable[[int], None]) -> None:
    """Do it in some threads that start together; the first error of any is raised here."""
    together, errors = threading.Barrier(THREADS), []

    def run(number: int) -> None:
        try:
            together.wait(30)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def by_uir(mod: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    """Through this package's door."""
    return uir_tvm.compile(mod)(x)


def by_tvm(mod: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    """Through TVM's."""
    machine = relax.VirtualMachine(tvm.compile(mod, target="uir-cpu"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(x)).numpy()


@pytest.mark.parametrize("door", [by_uir, by_tvm])
def test_threads_compile_at_the_same_time(door: Callable[[tvm.IRModule, np.ndarray], np.ndarray]) -> None:
    """TVM's builders of Relax functions are on one stack for all threads."""
    mod = tiny.module()

    def work(number: int) -> None:
        x = tiny.example(number)
        np.testing.assert_allclose(door(mod, x), tiny.expected(x), atol=tiny.TOLERANCE)

    in_threads(work)


def test_records_and_progress_are_those_of_the_thread() -> None:
    """What one thread compiles is not reported to another."""
    wanted = {number: (4 + number, 32) for number in range(THREADS)}
    modules = {
        number: tiny.elementwise(lambda x: relax.op.exp(relax.op.tanh(x)), (shape, "float32"))
        for number, shape in wanted.items()
    }

    def work(number: int) -> None:
        seen: list[tuple[str, int, int, str]] = []
        exe = uir_tvm.compile(modules[number], progress=lambda *what: seen.append(what))
        assert exe.info.outputs[0].shape == wanted[number] and len(exe.info.kernels) == 1
        assert [what for what in seen if what[0] == "kernels" and what[1]][-1][1:3] == (1, 1)

    in_threads(work)
    assert pipeline._RECORDS.get() is None
