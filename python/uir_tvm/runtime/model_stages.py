# SPDX-License-Identifier: Apache-2.0
"""What a model that is compiled at the call did so far: its stages, and what each answer led to.

A model runs in actions: stages that are compiled, values that are looked at, operators outside kernels. Each
leads to the next by its answer: what was looked at, or the shapes that came out. Equal answers lead to the
same actions, so that a call whose answers were all seen before compiles nothing.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import tvm

from ..errors import ArtifactError, ShapeError
from .executable import Executable

if TYPE_CHECKING:
    from ..frontend.open_model import HostFunction

#: Values by name while a model runs.
Values = dict[str, Any]


@attrs.frozen(eq=False)
class ModelStage:
    """A compiled part of the model."""

    executable: Executable
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def run(self, values: Values) -> bytes:
        """Run it; there is one answer."""
        made = self.executable.flat(*[values[name] for name in self.inputs])
        values.update(zip(self.outputs, made, strict=True))
        return b""


@attrs.frozen(eq=False)
class Look:
    """Values that decide what follows; the answer is their numbers."""

    names: tuple[str, ...]

    def run(self, values: Values) -> bytes:
        """Look at them."""
        return b"".join(_described(numbers(values[name]), True) for name in self.names)


@attrs.frozen(eq=False)
class OutsideOperator:
    """An operator outside kernels, and why; the answer is its results' shapes."""

    operator: str
    reason: str
    function: HostFunction
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def run(self, values: Values) -> bytes:
        """Compute it on the host."""
        given = [numbers(values[name]) for name in self.inputs]
        try:
            made = [np.asarray(part) for part in self.function(given)]
        except (IndexError, ValueError) as error:  # NumPy's, of operands that do not fit each other
            named = zip(self.inputs, given, strict=True)
            shapes = ", ".join(f"{name}: {list(array.shape)}" for name, array in named)
            raise ShapeError(
                f"{self.operator} cannot be computed: {error}",
                where=shapes,
                need="operands as the ONNX standard asks",
                remedy="check the model's inputs, or the node before it",
            ) from error
        values.update(zip(self.outputs, made, strict=True))
        return b"".join(_described(array, False) for array in made)


@attrs.frozen(eq=False)
class Results:
    """The end: the names of the model's outputs."""

    names: tuple[str, ...]

    def run(self, values: Values) -> bytes:
        """There is nothing to do."""
        return b""


Action = ModelStage | Look | OutsideOperator | Results


class Paths:
    """The actions that answers led to.

    Parameters
    ----------
    kept : int
        Paths from the inputs to the outputs that are kept: those used last.
    """

    def __init__(self, kept: int) -> None:
        self.actions: dict[bytes, Action] = {}
        self._kept, self._used = kept, collections.OrderedDict[bytes, tuple[bytes, ...]]()
        self._pinned: dict[bytes, tuple[bytes, ...]] = {}

    def use(self, places: Sequence[bytes], pinned: bool = False) -> None:
        """Note that a path was gone to its end, and forget the one that was not for longest.

        One that is pinned is never forgotten, and does not count.
        """
        if pinned or places[-1] in self._pinned:
            self._pinned[places[-1]] = tuple(places)
            self._used.pop(places[-1], None)
            return
        self._used[places[-1]] = tuple(places)
        self._used.move_to_end(places[-1])
        if len(self._used) > self._kept:
            self._used.popitem(last=False)
            paths = (*self._used.values(), *self._pinned.values())
            alive = {place for path in paths for place in path}
            self.actions = {place: action for place, action in self.actions.items() if place in alive}

    def again(self, end: bytes) -> None:
        """Note that a path that is known was gone again."""
        if end in self._used:  # else it is pinned
            self._used.move_to_end(end)


class StagedCall:
    """One call: goes along known actions, and drives the import where they end.

    It is the driver of `uir_tvm.frontend.onnx.run_onnx`, which asks for the same actions in the same order
    when the answers are the same: those that ran already are not run again.

    Parameters
    ----------
    paths : Paths
        Known actions; new ones are added.
    compile_module : callable
        Executable for a stage, a module or what else `run` is given.
    values : dict
        The model's inputs by name.
    start : bytes
        Of the values that the whole compilation is specialised on.
    """

    def __init__(
        self, paths: Paths, compile_module: Callable[[Any], Executable], values: Values, start: bytes
    ) -> None:
        self.values = values
        self._paths, self._compile = paths, compile_module
        #: Where each action stands: a digest of all answers before it.
        self.places = [_digest(b"", start)]
        self._done = 0

    def known(self) -> tuple[str, ...] | None:
        """Run known actions; the outputs' names where they reach the end."""
        while True:
            action = self._paths.actions.get(self.places[-1])
            if action is None:
                return None
            if isinstance(action, Results):
                self._paths.use(self.places)
                return action.names
            self._go(action)

    def end(self, names: Sequence[str]) -> None:
        """The import came to the end."""
        self._paths.actions[self.places[-1]] = Results(tuple(names))
        self._paths.use(self.places)

    def run(self, module: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """See `StageRunner.run`."""
        self._next(lambda: ModelStage(self._compile(module), tuple(inputs), tuple(outputs)))

    def values_of(self, names: Sequence[str]) -> list[np.ndarray]:
        """See `StageRunner.values_of`."""
        self._next(lambda: Look(tuple(names)))
        return [numbers(self.values[name]) for name in names]

    def compute(
        self,
        operator: str,
        reason: str,
        function: HostFunction,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> list[np.ndarray]:
        """See `StageRunner.compute`."""
        self._next(lambda: OutsideOperator(operator, reason, function, tuple(inputs), tuple(outputs)))
        return [numbers(self.values[name]) for name in outputs]

    def _next(self, make: Callable[[], Action]) -> None:
        self._done += 1
        if self._done < len(self.places):
            return
        place = self.places[-1]
        if place not in self._paths.actions:
            self._paths.actions[place] = make()
        self._go(self._paths.actions[place])

    def _go(self, action: Action) -> None:
        self.places.append(_digest(self.places[-1], action.run(self.values)))


class AheadOfTime(StagedCall):
    """A call without values: what would run is only compiled.

    Raises
    ------
    ArtifactError
        A computed value decides what follows, so that nothing can be compiled before it is known.
    """

    def end(self, names: Sequence[str]) -> None:
        """The import came to the end; what was made is never forgotten."""
        self._paths.actions[self.places[-1]] = Results(tuple(names))
        self._paths.use(self.places, pinned=True)

    def _go(self, action: Action) -> None:
        if isinstance(action, Look | OutsideOperator):
            what = ", ".join(action.names if isinstance(action, Look) else action.outputs)
            raise ArtifactError(
                "The model cannot be compiled ahead of time.",
                limit=f"{what} decides what follows, and is known when the model runs",
                need="a model that is one graph for these sizes",
                remedy="compile it without specialize",
            )
        self.places.append(_digest(self.places[-1], b""))


def numbers(value: Any) -> np.ndarray:
    """A tensor's numbers."""
    if isinstance(value, tvm.runtime.Tensor):
        return value.numpy()
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def key_of(values: Mapping[str, np.ndarray]) -> bytes:
    """Equal for equal arrays of equal names."""
    return b"".join(name.encode() + _described(array, True) for name, array in values.items())


def start_of(shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, np.ndarray]) -> bytes:
    """Where the path of a call of these shapes, and of values that decide, begins."""
    return repr(dict(shapes)).encode() + key_of(values)


def _described(array: np.ndarray, whole: bool) -> bytes:
    head = f"{array.dtype.name}{array.shape};".encode()
    return head + array.tobytes() if whole else head


def _digest(before: bytes, answer: bytes) -> bytes:
    return hashlib.sha256(before + answer).digest()
