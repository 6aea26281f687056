# SPDX-License-Identifier: Apache-2.0
"""Results against float64, before anything is timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import bundle
from .case import TIMES_TORCH, TOLERANCE, Case
from .ops import TorchOps


def reference(case: Case, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The case in float64, on the device of the tensors."""
    wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors]
    with torch.no_grad():
        return list(case.call(TorchOps(), wide))


def error_of(results: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> float:
    """The largest error of an element relative to the largest of its result; infinite where a number is none.

    Raises
    ------
    ValueError
        The results have other shapes or dtypes of another number.
    """
    shapes, expected = ([tuple(tensor.shape) for tensor in tensors] for tensors in (results, wanted))
    if shapes != expected:
        raise ValueError(f"shapes {shapes}, not {expected}")
    worst = 0.0
    for result, want in zip(results, wanted, strict=True):
        difference = (result.to(want.device).double() - want).abs().max() / want.abs().max().clamp(min=1e-30)
        worst = max(worst, float(difference) if bool(torch.isfinite(difference)) else float("inf"))
    return worst


def check(case: Case, module: bundle.Module, seeds: Sequence[int], device: str) -> dict[str, Any]:
    """Run the module on fresh inputs of each seed.

    Returns
    -------
    dict
        ``error`` of the module, ``torch_error`` of eager torch, ``tolerance``, ``right``.
    """
    ours = torch_error = 0.0
    for seed in seeds:
        tensors = case.tensors(seed, device)
        wanted = reference(case, tensors)
        ours = max(ours, error_of(run(module, tensors), wanted))
        with torch.no_grad():
            torch_error = max(torch_error, error_of(case.call(TorchOps(), tensors), wanted))
    floats = [spec.dtype for spec in case.inputs if spec.dtype in TOLERANCE]
    tolerance = TOLERANCE[floats[0]]
    if case.group == "model":
        tolerance = max(tolerance, TIMES_TORCH * torch_error)
    return {"error": ours, "torch_error": torch_error, "tolerance": tolerance, "right": ours <= tolerance}


def run(module: bundle.Module, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """One call; the results as torch tensors, after the device is done."""
    result = module.main(*[module.to_device(tensor) for tensor in tensors])
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return module.to_torch(result)
