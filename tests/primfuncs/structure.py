# SPDX-License-Identifier: Apache-2.0
"""One structure of the sweep: a function in any size and dtype, and what its parameters hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import ml_dtypes
import numpy as np
from tvm import tirx

#: Extents that no vector, tile or number of units divides, and one that they do.
SIZES = (37, 64)


def permutation(count: int, below: int, seed: int = 3) -> np.ndarray:
    """Different indices below a bound, in no order."""
    return np.random.default_rng(seed).permutation(below)[:count].astype("int32")


@attrs.frozen(eq=False)
class Structure:
    """A function of an extent and a dtype.

    Parameters
    ----------
    build : callable
        ``build(n, dtype)`` gives the PrimFunc.
    also : str, optional
        A dtype beside float32 for which it stands.
    dtype : str
        What it is built for otherwise.
    inputs : mapping of str to callable
        What parameters hold that random numbers are not fit for, by their extent.
    sizes : tuple of int
        The extents.
    """

    name: str
    build: Callable[[int, str], tirx.PrimFunc]
    also: str | None = None
    dtype: str = "float32"
    inputs: Mapping[str, Callable[[int], np.ndarray]] = attrs.field(factory=dict)
    sizes: tuple[int, ...] = SIZES

    def instances(self) -> Iterator[Instance]:
        """Every extent for the first dtype, the ragged one for the other."""
        for size in self.sizes:
            yield Instance(self, size, self.dtype)
        if self.also is not None:
            yield Instance(self, self.sizes[0], self.also)


@attrs.frozen
class Instance:
    """A structure of an extent and a dtype."""

    structure: Structure
    size: int
    dtype: str

    @property
    def name(self) -> str:
        """How reports and tests call it."""
        return f"{self.structure.name}-{self.size}-{self.dtype}"

    def function(self) -> tirx.PrimFunc:
        """The PrimFunc, called after the structure."""
        func = self.structure.build(self.size, self.dtype)
        return func.with_attr("global_symbol", self.structure.name)

    def arguments(self, func: tirx.PrimFunc, seed: int = 0) -> list[np.ndarray]:
        """Arrays for every parameter, outputs too: what a function leaves alone must not look right."""
        rng = np.random.default_rng(seed)
        return [self._array(param, rng) for param in func.params]

    def _array(self, param: Any, rng: np.random.Generator) -> np.ndarray:
        shape = tuple(int(extent) for extent in param.shape)
        dtype = np.dtype(ml_dtypes.bfloat16 if param.dtype == "bfloat16" else str(param.dtype))
        given = self.structure.inputs.get(str(param.name))
        if given is not None:
            return np.ascontiguousarray(given(self.size)).astype(dtype).reshape(shape)
        if dtype == np.bool_:
            return rng.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            return rng.integers(0, 5, shape).astype(dtype)
        return rng.uniform(-2, 2, shape).astype(dtype)
