# SPDX-License-Identifier: Apache-2.0
"""An executable for all sizes that a model leaves open, and the same seen for the sizes of a call."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable
from typing import Any

import attrs

from ..open_size import OpenSize, at
from ..symbolic_shapes import Sizes
from .executable import Executable, ModelInfo
from .tensors import TensorSpec


class SizedExecutable(Executable):
    """One executable that serves all sizes, for some of them: its code and memory are those of the whole.

    Parameters
    ----------
    whole : Executable
        Whose description has open sizes.
    sizes : mapping of str to int
        A number for each symbol.
    alone : callable
        Compiles an executable for these sizes alone: what is saved, and explained.
    seconds : mapping of str to float
        What was compiled for these sizes first.
    """

    def __init__(
        self, whole: Executable, sizes: Sizes, alone: Callable[[], Executable], seconds: dict[str, float]
    ) -> None:
        info = _in_numbers(whole.info, sizes)
        super().__init__(None, attrs.evolve(info, seconds=seconds), whole.kernel_graph, load=_shared(whole))
        self.whole, self._alone = whole, alone
        self._lock = whole._lock

    @functools.cached_property
    def _vm(self) -> Any:
        return self.whole._vm

    @functools.cached_property
    def standalone(self) -> Executable:
        """An executable for these sizes alone, compiled now."""
        return self._alone()

    def report(self, explain: bool = False) -> dict[str, Any]:
        """As of `Executable`; kernels are explained as they would be compiled for these sizes alone."""
        report = super().report()
        if explain:
            report["explain"] = self.standalone.report(explain=True)["explain"]
        return report

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write an executable for these sizes alone, as `Executable.save`."""
        return self.standalone.save(path)


def _shared(whole: Executable) -> Callable[[], Any]:
    return lambda: whole.library


def _in_numbers(info: ModelInfo, sizes: Sizes) -> ModelInfo:
    """A description with numbers for open sizes."""

    def spec(given: TensorSpec) -> TensorSpec:
        return TensorSpec(given.name, tuple(at(size, sizes) for size in given.shape), given.dtype)

    return attrs.evolve(
        info,
        inputs=tuple(map(spec, info.inputs)),
        outputs=tuple(map(spec, info.outputs)),
        graph=_numbers(info.graph, sizes),
    )


def _numbers(value: Any, sizes: Sizes) -> Any:
    if isinstance(value, OpenSize):
        return at(value, sizes)
    if isinstance(value, dict):
        return {key: _numbers(part, sizes) for key, part in value.items()}
    return [_numbers(part, sizes) for part in value] if isinstance(value, list) else value
