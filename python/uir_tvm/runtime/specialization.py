# SPDX-License-Identifier: Apache-2.0
"""What is compiled for some shapes of a model that leaves sizes open."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

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
    is_offered : bool
        Whether C++ may find it by the shapes of a call (`CallsByShapes`).
    counted : numpy.ndarray
        What C++ counts: calls, and when the last one was, as `last_used`.
    calls, last_used : int
        The same by way of Python.
    """

    shapes: Mapping[str, tuple[int, ...]]
    sizes: Sizes
    executable: Executable
    inputs: tuple[int, ...]
    made: str
    end: bytes = b""
    is_offered: bool = False
    counted: np.ndarray = attrs.Factory(lambda: np.zeros(2, np.int64))
    _calls: int = 0
    _last_used: int = 0

    def __str__(self) -> str:
        return sizes_text(self.sizes) or str(self.shapes)

    def taken(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The inputs that the executable takes, of all."""
        return [inputs[place] for place in self.inputs]

    def used(self) -> None:
        """Count a call."""
        self._calls += 1
        self._last_used = time.time_ns()

    @property
    def calls(self) -> int:
        """How often it was called."""
        return self._calls + int(self.counted[0])

    @property
    def last_used(self) -> int:
        """When it was called last, in nanoseconds since 1970; 0: never."""
        return max(self._last_used, int(self.counted[1]))

    def copied(self, executable: Executable) -> Specialization:
        """The same by another executable, which no path through the model leads to."""
        return attrs.evolve(
            self, executable=executable, end=b"", is_offered=False, counted=self.counted.copy()
        )

    def to_json(self) -> dict[str, Any]:
        """A row of a report."""
        last = self.last_used
        used = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(last // 10**9)) if last else None
        return {
            "sizes": dict(self.sizes),
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            "made": self.made,
            "seconds": sum(self.executable.info.seconds.values()),
            "calls": self.calls,
            "last_used": used,
        }
