# SPDX-License-Identifier: Apache-2.0
"""The state of an executable: tensors on its device that calls read and leave changed."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np
import tvm

from ..errors import StateError
from ..state_spec import StateSpec
from .tensors import Likeness, TensorSpec, check_inputs, from_tvm, to_tvm


class ModelState(MutableMapping[str, Any]):
    """Tensors by name: what is read is a copy, what is set is copied in.

    Parameters
    ----------
    specs : sequence of StateSpec
    initial : sequence of tvm.runtime.Tensor
        The values before the first call, in the host's memory; they are not changed.
    device : tvm.runtime.Device
    name : str
        The model's.
    """

    def __init__(
        self,
        specs: Sequence[StateSpec],
        initial: Sequence[tvm.runtime.Tensor],
        device: tvm.runtime.Device,
        name: str,
    ) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self.initial, self.device, self.name = tuple(initial), device, name
        #: What the executable is called with: the same tensors at every call.
        self.tensors = tuple(tvm.runtime.empty(spec.shape, spec.dtype, device) for spec in specs)
        #: Held while a call writes it.
        self.lock = threading.RLock()
        #: What ended a call too early; one list for all that go on with these tensors.
        self._failures: list[BaseException] = []
        self.reset()

    def reset(self) -> None:
        """The initial values; after a failed call, too, the state can be used again."""
        with self.lock:
            for tensor, value in zip(self.tensors, self.initial, strict=True):
                tensor.copyfrom(value)
            self._failures.clear()

    def copied(self) -> ModelState:
        """The same values in memory of their own."""
        made = ModelState(tuple(self.specs.values()), self.initial, self.device, self.name)
        with self.lock:
            self.check()
            for mine, other in zip(made.tensors, self.tensors, strict=True):
                other.copyto(mine)
        return made

    def ordered(self, names: Sequence[str]) -> ModelState:
        """The same tensors in another order: what one call leaves, calls with either find."""
        if list(names) == list(self.specs):
            return self
        made = copy.copy(self)
        made.specs = {name: self.specs[name] for name in names}
        places = [list(self.specs).index(name) for name in names]
        made.tensors = tuple(self.tensors[at] for at in places)
        made.initial = tuple(self.initial[at] for at in places)
        return made

    def failed(self, error: BaseException) -> None:
        """Note that a call ended while it may have written some of it."""
        self._failures[:] = [error]

    def check(self) -> None:
        """Refuse to go on with state of which a failed call wrote a part.

        Raises
        ------
        StateError
            It names the failure.
        """
        if self._failures:
            (failure,) = self._failures
            raise StateError(
                f"The state of `{self.name}` cannot be used: a call failed while it was written.",
                where=f"{type(failure).__name__}: {failure}".splitlines()[0],
                need="state of which no part is of that call",
                remedy="call reset(), or set every tensor of the state",
            )

    def __getitem__(self, name: str) -> Any:
        """A NumPy array: the values as they are now."""
        with self.lock:
            self.check()
            return self._tensor(name).numpy().copy()

    def torch(self, name: str) -> Any:
        """The same as a torch tensor."""
        with self.lock:
            self.check()
            host = self._tensor(name).copyto(tvm.cpu())
        return from_tvm(host, Likeness(True, False))

    def __setitem__(self, name: str, value: Any) -> None:
        """Copy a NumPy, torch or TVM tensor of the same shape and dtype in."""
        self.update({name: value})

    def update(self, values: Any = (), /, **named: Any) -> None:  # type: ignore[override]
        """Set several tensors, checked before one is changed; setting all makes failed state usable."""
        given: dict[str, Any] = {**dict(values), **named}
        for name, value in given.items():
            self._check(name, value)
        with self.lock:
            if set(given) < set(self.specs):
                self.check()
            for name, value in given.items():
                # by way of the host where it lies on another device
                self._tensor(name).copyfrom(to_tvm(value, tvm.cpu()))
            if set(given) == set(self.specs):
                self._failures.clear()

    def __delitem__(self, name: str) -> None:
        raise StateError(
            f"The state of `{self.name}` keeps `{name}`.",
            need="all of its tensors",
            remedy="set it to zeros, or call reset()",
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    def __repr__(self) -> str:
        return f"ModelState({'; '.join(map(str, self.specs.values()))})"

    def _tensor(self, name: str) -> tvm.runtime.Tensor:
        if name not in self.specs:
            raise StateError(
                f"The state of `{self.name}` has no tensor {name!r}.",
                need="one of " + (", ".join(self.specs) or "none: the model has no state"),
                remedy="see info.state (uir inspect)",
            )
        return self.tensors[list(self.specs).index(name)]

    def _check(self, name: str, value: Any) -> None:
        self._tensor(name)
        spec = self.specs[name]
        check_inputs([value], [TensorSpec(name, spec.shape, spec.dtype)])


def check_same_state(mine: ModelState, other: ModelState) -> None:
    """Refuse to go on with state of other names, shapes, dtypes, or on another device.

    Raises
    ------
    StateError
    """
    sides = (mine, other)
    rows = [sorted((s.name, s.shape, s.dtype) for s in each.specs.values()) for each in sides]
    if rows[0] == rows[1] and mine.device == other.device:
        return
    need, limit = (
        f"on {each.device}: " + (", ".join(f"{n}: {d}{list(s)}" for n, s, d in row) or "no state")
        for each, row in zip(sides, rows, strict=True)
    )
    raise StateError(
        f"`{mine.name}` cannot go on with the state of `{other.name}`.",
        need=need,
        limit=limit,
        remedy="compile both from one model, with caches of the same size",
    )


def initial_of(specs: Sequence[StateSpec], stored: bytes) -> list[tvm.runtime.Tensor]:
    """Initial values, of those that are not zeros from a file.

    Raises
    ------
    ValueError
        There are fewer or more bytes than these need.
    """
    made, at = [], 0
    for spec in specs:
        array = np.zeros(spec.shape, _dtype(spec.dtype))
        if not spec.zeros:
            part = stored[at : at + array.nbytes]
            array = np.frombuffer(part, array.dtype).reshape(spec.shape).copy()
            at += array.nbytes
        made.append(tvm.runtime.tensor(array))
    if at != len(stored):
        raise ValueError(f"{len(stored)} bytes of state, not {at}")
    return made


def stored_of(specs: Sequence[StateSpec], initial: Sequence[tvm.runtime.Tensor]) -> bytes:
    """The initial values that are not zeros, one after the other."""
    rows = zip(specs, initial, strict=True)
    return b"".join(value.numpy().tobytes() for spec, value in rows if not spec.zeros)


def is_zeros(value: tvm.runtime.Tensor) -> bool:
    """Whether all bits of a tensor are zero."""
    return not any(value.numpy().tobytes())


def _dtype(name: str) -> np.dtype:
    import ml_dtypes  # noqa: F401  (NumPy then knows bfloat16 by its name)

    return np.dtype(name)
