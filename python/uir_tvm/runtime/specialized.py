# SPDX-License-Identifier: Apache-2.0
"""A model that is compiled at the call, for values of inputs or values that it computes."""

from __future__ import annotations

import pathlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import tvm
from tvm_ffi import structural_equal
from tvm_ffi.structural import structural_hash

from ..errors import ArtifactError, DynamicShapeError, ValueNeededError
from ..target import registry
from .executable import Executable, ModelInfo
from .model_stages import Look, ModelStage, OutsideOperator, Paths, StagedCall, key_of, numbers
from .tensors import Likeness, TensorSpec, check_inputs, from_tvm, is_torch, to_tvm

#: Specializations that are kept: those used last.
KEPT = 16
#: Why an operator runs outside kernels.
REASON = "the shape of its result depends on data"


class SpecializedExecutable:
    """A model that is compiled at the call, in stages where what it computes decides what follows.

    It is called like an `Executable`, with all inputs. Sizes that the model leaves open, and values of inputs
    that decide shapes or attributes, are constants of a compilation. A computed value that decides (a
    condition, a length, the shape of what NonZero finds) ends a stage: what follows is compiled when it is
    known. What was needed lately is not compiled again.

    Parameters
    ----------
    run_model : callable
        Imports the model in stages, with shapes and values of inputs by name, for a driver (`StagedCall`)
        that compiles and runs each; the outputs' names.
    compile_module : callable
        Executable for a stage.
    needed : ValueNeededError or DynamicShapeError
        Which inputs decide, and what the model takes.
    given : frozenset of str
        Inputs that already have a value, and are not passed.
    name, target, device : str
        As of `Executable`'s description.
    """

    def __init__(
        self,
        run_model: Callable[
            [Mapping[str, tuple[int, ...]], Mapping[str, np.ndarray], StagedCall], Sequence[str]
        ],
        compile_module: Callable[[tvm.IRModule], Executable],
        needed: ValueNeededError | DynamicShapeError,
        given: frozenset[str],
        name: str,
        target: str | tvm.target.Target,
        device: str,
    ) -> None:
        self._run_model, self._compile_module = run_model, compile_module
        #: Why one compilation does not do.
        self.needed = needed
        spec = registry.resolve(target, device)
        inputs = tuple(TensorSpec(*row) for row in needed.signature if row[0] not in given)
        place = registry.place_of(spec.target)
        self.info = ModelInfo(name, spec.name, inputs, (), (), {}, device=place.name)
        #: The inputs that decide, in the order in which they were found.
        self.deciding: list[str] = list(needed.inputs) if isinstance(needed, ValueNeededError) else []
        #: The inputs of any size.
        self.dynamic = [spec.name for spec in inputs if -1 in spec.shape]
        self._paths = Paths(KEPT)
        #: By structural hash: rounds of a loop are often one and the same module.
        self._compiled: weakref.WeakValueDictionary[int, Executable] = weakref.WeakValueDictionary()
        self._modules: weakref.WeakKeyDictionary[Executable, tvm.IRModule] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self.compiled = 0

    def __call__(self, *inputs: Any) -> Any:
        """Run the model, compiling first what was not needed before.

        Raises
        ------
        ShapeError
            A wrong number of inputs, or one of a wrong shape or dtype.
        FrontendError
            The model cannot be compiled for these values.
        """
        names, run = self._run(inputs)
        like = Likeness.of(inputs)
        results = tuple(_like(run.values[name], like) for name in names)
        return results[0] if len(results) == 1 else results

    def _run(self, inputs: Sequence[Any]) -> tuple[Sequence[str], StagedCall]:
        check_inputs(inputs, self.info.inputs)
        by_name = dict(zip((spec.name for spec in self.info.inputs), inputs, strict=True))
        shapes = {name: tuple(map(int, by_name[name].shape)) for name in self.dynamic}
        with self._lock:
            while True:
                values = {name: numbers(by_name[name]) for name in self.deciding}
                run = StagedCall(
                    self._paths, self._compile, dict(by_name), repr(shapes).encode() + key_of(values)
                )
                names: Sequence[str] | None = run.known()
                if names is not None:
                    return names, run
                try:
                    names = self._run_model(shapes, values, run)
                except ValueNeededError as error:
                    # known values show others that decide
                    more = [name for name in error.inputs if name not in self.deciding]
                    if not more:
                        raise
                    self.deciding += more
                    continue
                run.end(names)
                return names, run

    def _compile(self, module: tvm.IRModule) -> Executable:
        key = structural_hash(module, map_free_vars=True)
        found = self._compiled.get(key)
        if found is not None and structural_equal(self._modules[found], module, map_free_vars=True):
            return found
        made = self._compile_module(module)
        self.compiled += 1
        self._compiled[key], self._modules[made] = made, module
        return made

    def specialized(self, *inputs: Any) -> Executable:
        """The executable for these inputs; it takes those that do not decide.

        Raises
        ------
        ArtifactError
            The model runs in several stages.
        """
        _, run = self._run(inputs)
        actions = [self._paths.actions[place] for place in run.places[:-1]]
        if len(actions) == 1 and isinstance(actions[0], ModelStage):
            return actions[0].executable
        raise ArtifactError(
            f"`{self.info.name}` runs in {len(actions)} stages, each of which decides the next.",
            need="a model that is one graph for these inputs",
            remedy="call it as it is; report() lists what decides",
        )

    def report(self, explain: bool = False) -> dict[str, Any]:
        """What decides, how often it compiled, what runs outside kernels, and the reports of what is kept."""
        actions = self._paths.actions.values()
        stages = dict.fromkeys(action.executable for action in actions if isinstance(action, ModelStage))
        return {
            "model": self.info.name,
            "target": self.info.target,
            "device": self.info.device,
            "specialized_on": list(self.deciding),
            "dynamic_shapes": list(self.dynamic),
            "decided_at_run_time": sorted({n for a in actions if isinstance(a, Look) for n in a.names}),
            "outside_kernels": {a.operator: REASON for a in actions if isinstance(a, OutsideOperator)},
            "compiled": self.compiled,
            "specializations": [executable.report(explain) for executable in stages],
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
            need="; ".join(
                [
                    *(f"a shape of {name}" for name in self.dynamic),
                    *(f"a value of {name}" for name in self.deciding),
                ]
            )
            or "what it computes",
            remedy="compile with shapes={name: (...)} and values={name: array}, or save what "
            "specialized(*inputs) gives",
        )


def _like(value: Any, like: Likeness) -> Any:
    """A result as the caller's inputs are."""
    return value if is_torch(value) == like.torch else from_tvm(to_tvm(value), like)
