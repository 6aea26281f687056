# SPDX-License-Identifier: Apache-2.0
"""State that has another length after every call, as ONNX decoders grow their past: results become inputs."""

from __future__ import annotations

import copy
import pathlib
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..errors import ArtifactError, ShapeError, StateError
from ..sizes.symbolic_shapes import OpenInput
from ..state_spec import GROWS, StateSpec, rows_of
from .model_stages import numbers
from .specialized import SpecializedExecutable


class GrowingState(MutableMapping[str, Any]):
    """Tensors by name, of the length that the calls so far gave them; empty ones before the first call."""

    def __init__(self, inputs: Mapping[str, OpenInput]) -> None:
        self.inputs = inputs
        #: What the last call left, or somebody set.
        self.tensors: dict[str, Any] = {}

    def begin(self, name: str, sizes: Mapping[str, int]) -> Any:
        """What a call gets: empty along the axes whose size no other input says."""
        if name in self.tensors:
            return self.tensors[name]
        import ml_dtypes  # noqa: F401  (NumPy then knows bfloat16 by its name)

        each = self.inputs[name]
        shape = [size if isinstance(size, int) else sizes.get(size, 0) for size in each.sizes]
        return np.zeros(shape, np.dtype(each.dtype))

    def __getitem__(self, name: str) -> Any:
        """A NumPy array: a copy of the values as they are now."""
        self._check(name)
        return np.array(numbers(self.begin(name, {})))

    def __setitem__(self, name: str, value: Any) -> None:
        self._check(name)
        want, dtype = self.inputs[name], str(value.dtype).removeprefix("torch.")
        fixed = [size in (have, want) for size, have in zip(want.sizes, value.shape, strict=False)]
        fits = all(ok or isinstance(size, str) for ok, size in zip(fixed, want.sizes, strict=False))
        if len(value.shape) != len(want.sizes) or dtype != want.dtype or not fits:
            raise ShapeError(
                f"`{name}` cannot be set to this.",
                need=f"{want.dtype}[{', '.join(map(str, want.sizes))}]",
                limit=f"given {dtype}{list(value.shape)}",
                remedy="pass what an earlier call left",
            )
        self.tensors[name] = np.array(numbers(value))

    def __delitem__(self, name: str) -> None:
        self._check(name)
        self.tensors.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)

    def _check(self, name: str) -> None:
        if name not in self.inputs:
            raise StateError(
                f"The state has no tensor {name!r}.",
                need="one of " + ", ".join(self.inputs),
                remedy="see report()",
            )


class GrowingExecutable:
    """An executable that is given, besides the caller's inputs, what its last call returned.

    Nothing is written in place, since every call leaves longer tensors: they are handed over as they are.

    Parameters
    ----------
    inner : SpecializedExecutable
        For any sizes.
    pairs : mapping of str to int
        Input -> the number of the result that is its next value.
    """

    def __init__(self, inner: SpecializedExecutable, pairs: Mapping[str, int]) -> None:
        self.inner, self.pairs = inner, dict(pairs)
        every = {each.name: each for each in inner.signature.inputs}
        self.state = GrowingState({name: every[name] for name in pairs})
        self._given = [each for each in inner.signature.inputs if each.name not in pairs]
        kept = tuple(spec for spec in inner.info.inputs if spec.name not in pairs)
        self.info = attrs.evolve(inner.info, inputs=kept)
        self._lock = threading.Lock()

    def __call__(self, *inputs: Any) -> Any:
        """Run the model on the caller's inputs; its results without those that are state.

        Raises
        ------
        ShapeError
            As of a `SpecializedExecutable`. The state then stays as it is, as after any call that fails.
        """
        results = self.flat(*inputs)
        return results[0] if len(results) == 1 else results

    def flat(self, *inputs: Any) -> tuple[Any, ...]:
        """The same, always as a tuple."""
        if len(inputs) != len(self._given):
            raise ShapeError(
                f"The executable takes {len(self._given)} inputs, {len(inputs)} were given.",
                need="; ".join(map(str, self.info.inputs)),
                remedy="pass one for each input, in this order; the state is the executable's",
            )
        named = dict(zip((each.name for each in self._given), inputs, strict=True))
        with self._lock:
            sizes = self._sizes(named)
            every = [
                named[each.name] if each.name in named else self.state.begin(each.name, sizes)
                for each in self.inner.signature.inputs
            ]
            results = self.inner.flat(*every)
            self.state.tensors = {name: results[at] for name, at in self.pairs.items()}
        taken = set(self.pairs.values())
        return tuple(result for at, result in enumerate(results) if at not in taken)

    def _sizes(self, named: Mapping[str, Any]) -> dict[str, int]:
        """The sizes that the caller's inputs say, by name."""
        rows = ((each.sizes, getattr(named[each.name], "shape", ())) for each in self._given)
        return {
            size: int(have)
            for sizes, shape in rows
            for size, have in zip(sizes, shape, strict=False)
            if isinstance(size, str)
        }

    def reset(self) -> None:
        """Give the state its initial values: none of any length."""
        with self._lock:
            self.state.tensors = {}

    def clone(self) -> GrowingExecutable:
        """An executable with this state, and from then on with its own; code and weights are shared."""
        made = copy.copy(self)
        made.state, made._lock = GrowingState(self.state.inputs), threading.Lock()
        made.state.tensors = dict(self.state.tensors)
        return made

    def report(self, explain: bool = False) -> dict[str, Any]:
        """That of the executable, and its state."""
        why = "every call leaves it with another length"
        specs = [
            StateSpec(name, np.shape(numbers(self.state.begin(name, {}))), each.dtype, GROWS, why)
            for name, each in self.state.inputs.items()
        ]
        return self.inner.report(explain) | {"state": rows_of(specs)}

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Refuse: a file holds no state that grows.

        Raises
        ------
        ArtifactError
        """
        raise ArtifactError(
            f"`{self.info.name}` grows its state with every call, which {path} cannot say.",
            need="state of a fixed shape",
            limit=", ".join(self.pairs),
            remedy="export the model with a cache of fixed length, or save `inner`, which returns it",
        )


def growing(
    inner: SpecializedExecutable, pairs: Mapping[str, str | int | None], outputs: Sequence[str]
) -> GrowingExecutable:
    """The executable with these pairs, whose results have these names."""
    places = {
        name: outputs.index(each) if isinstance(each, str) else int(each or 0) for name, each in pairs.items()
    }
    return GrowingExecutable(inner, places)
