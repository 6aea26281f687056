# SPDX-License-Identifier: Apache-2.0
"""What is compiled for some shapes of a model that leaves sizes open."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..sizes.symbolic_shapes import Sizes, sizes_text
from .executable import Executable


@attrs.define(eq=False)
class Specialization:
    """The executable of some shapes.

    Parameters
    ----------
    shapes : mapping of str to tuple of int
        By input; of a number the number as a tuple of one.
    sizes : mapping of str to int
        Of symbols.
    executable : Executable
    inputs : tuple of int
        The places of the inputs that it takes, in its order.
    made : str
        ``ahead of time``, ``at the call`` or ``loaded``.
    end : bytes
        Where its path through the model ends (`Paths`).
    calls : int
    last_used : float
        Seconds since 1970; 0: never.
    """

    shapes: Mapping[str, tuple[int, ...]]
    sizes: Sizes
    executable: Executable
    inputs: tuple[int, ...]
    made: str
    end: bytes = b""
    calls: int = 0
    last_used: float = 0.0

    def __str__(self) -> str:
        return sizes_text(self.sizes) or str(self.shapes)

    def taken(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The inputs that the executable takes, of all."""
        return [inputs[place] for place in self.inputs]

    def used(self) -> None:
        """Count a call."""
        self.calls += 1
        self.last_used = time.time()

    def to_json(self) -> dict[str, Any]:
        """A row of a report."""
        used = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.last_used)) if self.last_used else None
        return {
            "sizes": dict(self.sizes),
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            "made": self.made,
            "seconds": sum(self.executable.info.seconds.values()),
            "calls": self.calls,
            "last_used": used,
        }
