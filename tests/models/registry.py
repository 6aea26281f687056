# SPDX-License-Identifier: Apache-2.0
"""The table of models that tests and benchmarks compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

Scale = Literal["full", "small"]
Built = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]

SEED = 20240229


@dataclass(frozen=True)
class ModelEntry:
    """One model.

    Attributes
    ----------
    name : str
        The key in `MODELS`.
    builder : Callable
        ``builder(scale) -> (module, inputs)``; use `build`, which fixes the seed.
    onnx : bool
        Whether the tests also take this model through ONNX.
    """

    name: str
    builder: Callable[[Scale], Built]
    onnx: bool

    def build(self, scale: Scale = "full") -> Built:
        """Build the model in eval mode, with example inputs; equal calls give equal weights and inputs.

        Parameters
        ----------
        scale : {"full", "small"}
            ``small`` has the same structure with fewer and narrower layers.

        Returns
        -------
        module : torch.nn.Module
            In eval mode, fp32, gradients off.
        inputs : tuple of torch.Tensor
            Positional example inputs.
        """
        if scale not in ("full", "small"):
            raise ValueError(f"scale must be 'full' or 'small', not {scale!r}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            module, inputs = self.builder(scale)
        return module.eval().requires_grad_(False), inputs


def perturb(module: torch.nn.Module) -> torch.nn.Module:
    """Move every parameter off its initial value: biases of 0 and scales of 1 would be simplified away."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.02)
    return module
