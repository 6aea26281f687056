# SPDX-License-Identifier: Apache-2.0
"""Compile one model of tests/models by one route and compare it with torch."""

from __future__ import annotations

import io
import time
from typing import Any

import attrs
import numpy as np
import torch
import uir_tvm

from tests.models import MODELS, Scale

#: Largest difference to torch, relative to the largest value: both compute in fp32 and differ in the
#: order of sums and by some ULP of transcendental functions, through tens of layers.
LIMIT = 1e-4


@attrs.frozen
class Outcome:
    """What became of one model."""

    name: str
    route: str
    seconds: float
    kernels: int
    #: Reasons by kernel that has no iGraph.
    fallbacks: dict[str, str]
    error: float

    @property
    def right(self) -> bool:
        """Near torch, and every kernel through an iGraph."""
        return self.error <= LIMIT and not self.fallbacks


def imported(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], route: str) -> Any:
    """What `uir_tvm.compile` takes: an exported program, or an ONNX model."""
    if route == "torch":
        return torch.export.export(module, inputs)
    import onnx

    file = io.BytesIO()
    torch.onnx.export(module, inputs, dynamo=True, verbose=False).save(file)
    return onnx.load_from_string(file.getvalue())


def check_model(
    name: str, route: str, scale: Scale, target: str = "uir-cpu", *, program: Any = None
) -> Outcome:
    """Compile, run, compare; a program that was read before is not read again."""
    module, inputs = MODELS[name].build(scale)
    with torch.no_grad():
        expected = flat(module(*inputs))
        program = program or imported(module, inputs, route)
    start = time.perf_counter()
    exe = uir_tvm.compile(program, target=target, name=name)
    seconds = time.perf_counter() - start
    got = flat(exe(*inputs))
    assert [g.shape for g in got] == [e.shape for e in expected]
    fallbacks = {k.name: k.fallback for k in exe.info.kernels if k.fallback}
    error = max(relative_error(g, e) for g, e in zip(got, expected, strict=True))
    return Outcome(name, route, seconds, len(exe.info.kernels), fallbacks, error)


def relative_error(got: np.ndarray, expected: np.ndarray) -> float:
    """Largest absolute difference over the largest absolute value; infinite where one is not finite."""
    if not np.isfinite(got).all():
        return float("inf")
    difference = np.abs(got.astype(np.float64) - expected).max(initial=0)
    return float(difference / max(float(np.abs(expected).max(initial=0)), np.finfo(np.float32).tiny))


def flat(result: Any) -> list[np.ndarray]:
    """The arrays of a nested result, in order."""
    if isinstance(result, torch.Tensor):
        return [result.numpy()]
    return [leaf for item in result for leaf in flat(item)]
