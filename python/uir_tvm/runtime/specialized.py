# SPDX-License-Identifier: Apache-2.0
"""A model with inputs that decide shapes or attributes: compiled at the call for their values."""

from __future__ import annotations

import collections
import pathlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import tvm

from ..errors import ArtifactError, ValueNeededError
from ..target import registry
from .executable import Executable, ModelInfo
from .tensors import TensorSpec, check_inputs

#: Executables that are kept: of the values used last.
KEPT = 16


class SpecializedExecutable:
    """A model that is compiled at the call for the values of some of its inputs.

    It is called like an `Executable`, with all inputs. For values seen lately nothing is compiled.

    Parameters
    ----------
    compile_for : callable
        Executable for values of inputs by name, which it does not take any more.
    needed : ValueNeededError
        Which inputs decide, and what the model takes.
    given : frozenset of str
        Inputs that already have a value, and are not passed.
    name, target, device : str
        As of `Executable`'s description.
    """

    def __init__(
        self,
        compile_for: Callable[[Mapping[str, np.ndarray]], Executable],
        needed: ValueNeededError,
        given: frozenset[str],
        name: str,
        target: str | tvm.target.Target,
        device: str,
    ) -> None:
        self._compile_for = compile_for
        spec = registry.resolve(target, device)
        inputs = tuple(TensorSpec(*row) for row in needed.signature if row[0] not in given)
        place = registry.place_of(spec.target)
        self.info = ModelInfo(name, spec.name, inputs, (), (), {}, device=place.name)
        #: The inputs that decide, in the order in which they were found.
        self.deciding: list[str] = list(needed.inputs)
        self._kept: collections.OrderedDict[tuple[Any, ...], Executable] = collections.OrderedDict()
        self._lock = threading.Lock()
        self.compiled = 0

    def __call__(self, *inputs: Any) -> Any:
        """Run the model, compiling it first where the deciding inputs have new values.

        Raises
        ------
        ShapeError
            A wrong number of inputs, or one of a wrong shape or dtype.
        FrontendError
            The model cannot be compiled for these values.
        """
        check_inputs(inputs, self.info.inputs)
        by_name = dict(zip((spec.name for spec in self.info.inputs), inputs, strict=True))
        executable, deciding = self._executable(by_name)
        return executable(*[value for name, value in by_name.items() if name not in deciding])

    def _executable(self, by_name: Mapping[str, Any]) -> tuple[Executable, frozenset[str]]:
        with self._lock:
            while True:
                values = {name: _array(by_name[name]) for name in self.deciding}
                key = tuple((name, array.tobytes()) for name, array in values.items())
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key], frozenset(values)
                try:
                    made = self._compile_for(values)
                except ValueNeededError as error:
                    # known values show others that decide
                    more = [name for name in error.inputs if name not in self.deciding]
                    if not more:
                        raise
                    self.deciding += more
                    self._kept.clear()
                    continue
                self.compiled += 1
                self._kept[key] = made
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
                return made, frozenset(values)

    def specialized(self, *inputs: Any) -> Executable:
        """The executable for these inputs; it takes those that do not decide."""
        check_inputs(inputs, self.info.inputs)
        names = (spec.name for spec in self.info.inputs)
        return self._executable(dict(zip(names, inputs, strict=True)))[0]

    def report(self, explain: bool = False) -> dict[str, Any]:
        """Which inputs decide, how often it compiled, and the reports of what is kept."""
        return {
            "model": self.info.name,
            "target": self.info.target,
            "device": self.info.device,
            "specialized_on": list(self.deciding),
            "compiled": self.compiled,
            "specializations": [executable.report(explain) for executable in self._kept.values()],
        }

    def save(self, path: str | pathlib.Path) -> NoReturn:
        """Refuse: there is no code before the values are known.

        Raises
        ------
        ArtifactError
            Always; its remedy names the inputs.
        """
        raise ArtifactError(
            f"`{self.info.name}` is compiled at the call, and cannot be saved to {path}.",
            need="values of " + ", ".join(self.deciding),
            remedy="compile with values={name: array}, or save what specialized(*inputs) gives",
        )


def _array(value: Any) -> np.ndarray:
    """A tensor's numbers."""
    if isinstance(value, tvm.runtime.Tensor):
        return value.numpy()
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
