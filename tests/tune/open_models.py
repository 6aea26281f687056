# SPDX-License-Identifier: Apache-2.0
"""Small models that leave sizes open, and who measures their kernels in this process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm
from tvm import relax, te, tirx, topi
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.tune.evaluate import run_in_turns, run_job
from uir_tvm.tune.job import Job, Result
from uir_tvm.tune.measure import OnResult

WIDTH = 32
HIGHEST = 64


def rows_module(n: str = "n", m: str = "m") -> tvm.IRModule:
    """softmax(2 x) of (n, m, 32) numbers."""
    first, second = tirx.Var(n, "int64"), tirx.Var(m, "int64")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([first, second, tirx.IntImm("int64", WIDTH)], "float32"))
    with builder.function("main", [x], attrs={"tir_var_upper_bound": {n: HIGHEST, m: HIGHEST}}):
        with builder.dataflow():
            y = builder.emit(
                relax.op.nn.softmax(builder.emit(relax.op.multiply(x, relax.const(2.0, "float32"))))
            )
            result = builder.emit_output(y)
        builder.emit_func_output(result)
    return builder.get()


def expected(x: np.ndarray) -> np.ndarray:
    """What it computes, in float64."""
    e = np.exp(2 * x.astype("float64") - 2 * x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def open_kernel(n: str = "n", high: int = 256) -> tirx.PrimFunc:
    """softmax of (n, 32) numbers as one kernel."""
    rows = tirx.Var(n, "int64")
    x = te.placeholder((rows, WIDTH), name="x")
    func = te.create_prim_func([x, topi.nn.softmax(x, -1)]).with_attr("global_symbol", "softmax")
    return with_sizes(func, {n: Size(n, 1, high)})


class InProcess:
    """Measures in this process, without a worker's start."""

    name = "this process"
    workers = 1

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.confirmed: list[Job] = []

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """See `Measurer.measure`."""
        results = []
        for number, job in enumerate(jobs):
            self.jobs.append(job)
            results.append(run_job(job))
            if on_result is not None:
                on_result(number, results[-1])
        return results

    def confirm(self, jobs: Sequence[Job]) -> list[Result]:
        """See `Measurer.confirm`."""
        self.confirmed += jobs
        return run_in_turns(jobs)

    def close(self) -> None:
        """Nothing is held."""
