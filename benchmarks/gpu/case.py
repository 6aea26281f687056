# SPDX-License-Identifier: Apache-2.0
"""What is measured: a function of tensors, their shapes, and how right its result must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

#: Largest error of an element, relative to the largest of the result, that a kernel may have: some units in
#: the last place of its type (2^-24, 2^-11, 2^-8), since transcendental functions and long sums add some.
TOLERANCE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2}
#: A model rounds after every operator: it may err by this many times torch's own error.
TIMES_TORCH = 2.0


@dataclass(frozen=True)
class Input:
    """One argument.

    Parameters
    ----------
    shape : tuple of int
    dtype : str
    kind : str
        ``normal`` (times scale), ``ids`` (integers below ``limit``), ``mask`` (true with probability 0.8),
        ``angles`` (cosines or sines) or ``ones`` (1 plus normal times scale).
    scale : float
    limit : int
    weight : bool
        Whether it stays in the same memory from call to call, as a model's weights do.
    """

    shape: tuple[int, ...]
    dtype: str = "bfloat16"
    kind: str = "normal"
    scale: float = 1.0
    limit: int = 0
    weight: bool = False

    @property
    def nbytes(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count * getattr(torch, self.dtype).itemsize

    def make(self, seed: int, device: str) -> torch.Tensor:
        """The tensor of a seed; equal seeds give equal tensors on one kind of device."""
        generator = torch.Generator(device).manual_seed(seed)
        dtype = getattr(torch, self.dtype)
        if self.kind == "ids":
            return torch.randint(self.limit, self.shape, generator=generator, device=device).to(dtype)
        if self.kind == "mask":
            return torch.rand(self.shape, generator=generator, device=device) < 0.8
        values = torch.randn(self.shape, generator=generator, device=device) * self.scale
        if self.kind == "angles":
            values = torch.cos(values)
        if self.kind == "ones":
            values = 1.0 + values
        return values.to(dtype)


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Parameters
    ----------
    name : str
    function : callable
        Of a vocabulary (`ops`) and the tensors.
    inputs : tuple of Input
    group : str
        ``operator`` or ``model``.
    streaming : bool
        Whether it does little else than move memory: its rate is compared with that of a copy.
    flops : float
        Of its matrix products.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    group: str = "operator"
    streaming: bool = False
    flops: float = 0.0
    note: str = field(default="", compare=False)

    def tensors(self, seed: int, device: str) -> list[torch.Tensor]:
        """All arguments; weights are the same for every seed of one case."""
        return [
            spec.make((1 if spec.weight else 1 + seed) * 1000 + index, device)
            for index, spec in enumerate(self.inputs)
        ]

    def call(self, ops: Any, tensors: Any) -> tuple[Any, ...]:
        """The results as a tuple."""
        result = self.function(ops, *tensors)
        return result if isinstance(result, tuple) else (result,)

    @property
    def input_bytes(self) -> int:
        return sum(spec.nbytes for spec in self.inputs)

    @property
    def changing(self) -> int:
        """How many arguments come before the weights."""
        return next((at for at, spec in enumerate(self.inputs) if spec.weight), len(self.inputs))
