# SPDX-License-Identifier: Apache-2.0
"""TVM's threads: importing changes nothing for others; compiling and running for us set them right."""

from __future__ import annotations

import os
import pathlib
import subprocess

from .without_torch import program

VARIABLES = ("TVM_NUM_THREADS", "TVM_BIND_THREADS")

COMPILE = """
import os, sys
before = dict(os.environ)
import tvm
from tvm import te
import uir_tvm, uir_tvm.api
assert dict(os.environ) == before, "importing changes the environment"
x = te.placeholder((64, 64), name="x")
func = te.create_prim_func([x, te.compute((64, 64), lambda i, j: x[i, j] + 1.0, name="y")])
tvm.compile(func, target="llvm")
assert dict(os.environ) == before, "compiling for another target does"
uir_tvm.compile(func).save(sys.argv[1])
print(os.environ["TVM_NUM_THREADS"], os.environ["TVM_BIND_THREADS"])
print(tvm.get_global_func("runtime.NumThreads")())
"""

RUN = """
import os, sys, threading
import numpy as np
before, allowed = dict(os.environ), os.sched_getaffinity(0)
import tvm, uir_tvm
exe = uir_tvm.load(sys.argv[1])
def call():
    exe(np.zeros((64, 64), np.float32))
    assert os.sched_getaffinity(0) == allowed, "the caller is bound"
    print(tvm.get_global_func("runtime.NumThreads")())
call()
other = threading.Thread(target=call)
other.start()
other.join()
assert dict(os.environ) == before
"""


def output(code: str, *arguments: object, **environment: str) -> list[str]:
    """What Python prints, without these variables unless they are given."""
    env = {name: value for name, value in os.environ.items() if name not in (*VARIABLES, "OMP_NUM_THREADS")}
    done = subprocess.run(
        program(code, *arguments),
        capture_output=True,
        text=True,
        env={**env, **environment},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_threads_are_set_up_when_something_is_compiled_or_run(tmp_path: pathlib.Path) -> None:
    model = tmp_path / "model.uir"
    assert output(COMPILE, model, UIR_NUM_THREADS="2") == ["2", "0", "2"]
    # loaded alone: by TVM's API, for each thread that runs it
    assert output(RUN, model, UIR_NUM_THREADS="2") == ["2", "2"]
    # what the user said stands
    assert output(RUN, model, UIR_NUM_THREADS="2", TVM_NUM_THREADS="1") == ["1", "1"]
