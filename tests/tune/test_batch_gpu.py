# SPDX-License-Identifier: Apache-2.0
"""Candidates for a GPU, out and back in: cubins of nvcc, and the runner on a stand-in of NVIDIA's driver.

What runs is the folder alone, in a Python that does not know this package.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import tvm
from uir_tvm.errors import ArtifactError
from uir_tvm.target import registry
from uir_tvm.target.cuda import toolchain
from uir_tvm.tune import batch_runner
from uir_tvm.tune.batch import Batch, export_batch, import_results, load_batch
from uir_tvm.tune.batch_runner import results as lines
from uir_tvm.tune.job import CRASHED, LOST, OK, REFUSED, TIMEOUT, WRONG, Job, Settings
from uir_tvm.tune.key import key_of
from uir_tvm.tune.spaces import design_spaces

from . import kernels
from .test_job import Subject

TARGET = "uir-cuda:h200"
#: Short, as one candidate hangs.
SETTINGS = Settings(repeats=3, min_repeat_seconds=1e-4, timeout_seconds=2.0)
RUNNER = pathlib.Path(batch_runner.__file__).parent
#: Candidates by what becomes of their launches.
MODES = ("wrong", "crash", "hang", "fail")

pytestmark = pytest.mark.skipif(toolchain.available() is None, reason="there is no compiler for CUDA sources")


def candidates() -> list[Job]:
    """The default schedule, and others of as many different grids as there are modes, and one more."""
    target = registry.resolve(TARGET, "gpu").target
    task = Subject("relu", kernels.kernel(target="uir-cuda"), target)
    jobs = [Job.of(task, settings=SETTINGS)]
    for columns in (1, 2, 4, 5, 8, 10, 20):
        sch = kernels.scheduled(task.func, columns, "cuda")
        space = attrs.evolve(design_spaces(task.func, target)[0], schedule=sch)
        jobs.append(Job.of(task, space, sch, settings=SETTINGS))
    return jobs
