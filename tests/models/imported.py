# SPDX-License-Identifier: Apache-2.0
"""Models as the front end gives them, each read once a process: what follows is the same for all who ask."""

from __future__ import annotations

import functools

import torch
import tvm
from uir_tvm import api

from . import MODELS, Scale

__all__ = ["imported"]


@functools.cache
def imported(name: str, scale: Scale = "small") -> tvm.IRModule:
    """The Relax module of a model of torch."""
    module, inputs = MODELS[name].build(scale)
    with torch.no_grad():
        return api.import_model(torch.export.export(module, inputs))
