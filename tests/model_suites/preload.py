# SPDX-License-Identifier: Apache-2.0
"""What a process that checks an architecture loads first: `run.sweep` starts copies of one that has it."""

from __future__ import annotations

import importlib
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

#: Modules that are imported when they are first needed; nothing of them runs here.
MODULES = (
    "tests.model_suites.check",
    "torch._dynamo",
    "torch._export.serde.serialize",
    "torch._functorch.aot_autograd",
    "transformers.generation",
    "transformers.loss.loss_utils",
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
    "uir_tvm.frontend.torch",
    "uir_tvm.kernel_graph",
    "uir_tvm.optimize",
    "uir_tvm.pipeline",
    "uir_tvm.schedules",
    "uir_tvm.target.cpu",
)

for name in MODULES:
    try:
        importlib.import_module(name)
    except ImportError:  # a library that is not installed: its architectures say so
        continue
