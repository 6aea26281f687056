# SPDX-License-Identifier: Apache-2.0
"""What an executable says of itself and of its kernels: plain data, also of files that are only looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import attrs

from ..state_spec import StateSpec
from .tensors import TensorSpec


class StepRows(Sequence[Mapping[str, Any]]):
    """Rows that are made when the first of them is read: the figures of a graph take as long as a pass.

    Parameters
    ----------
    make : callable
        Makes all of them.
    """

    def __init__(self, make: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
        self._make = make

    @cached_property
    def _rows(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self._make())

    @overload
    def __getitem__(self, at: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Mapping[str, Any]]: ...

    def __getitem__(self, at: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._rows == tuple(other)

    __hash__ = None  # type: ignore[assignment]


def _mappings(given: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    return tuple(given)


def _steps(given: Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return given if isinstance(given, StepRows) else tuple(given)


@attrs.frozen
class KernelInfo:
    """What a saved executable still knows of a kernel: texts, not objects."""

    name: str
    hero: str
    recipe: str
    #: Why TVM's own lowering took it; empty when it went through an iGraph.
    fallback: str
    #: Text by stage name (tir, igraph, optimize, source).
    texts: Mapping[str, str] = attrs.field(factory=dict)
    seconds: Mapping[str, float] = attrs.field(factory=dict)
    #: In how many parts, one after the other, the target runs it (see `uir_tvm.optimize.split`).
    phases: int = 1
    #: What each pass over its iGraph did: ``pass``, ``changed``, ``note`` (figures), ``fault`` (why refused).
    passes: Sequence[Mapping[str, Any]] = attrs.field(default=(), converter=_steps)
    #: Of a kernel in source text: its launches, what the printer decided, what the compiler says (registers).
    code: Mapping[str, Any] = attrs.field(factory=dict)
    #: Every candidate that was tried: the fields of `uir_tvm.refusal.Attempt`.
    attempts: tuple[Mapping[str, Any], ...] = attrs.field(default=(), converter=_mappings)
    #: Where it was found again: ``memory``, ``disk`` (`uir_tvm.kernel_cache`); empty: it was made.
    kept: str = ""
    #: Its variants in the order in which a launch asks for them: ``kernel``, ``condition``, ``recipe``,
    #: ``ranges`` (``name``, ``low``, ``high``, ``multiple_of`` of sizes of its function), in source text also
    #: ``source`` and ``code``.
    variants: tuple[Mapping[str, Any], ...] = attrs.field(default=(), converter=_mappings)


def conditions_of(kernels: Iterable[KernelInfo]) -> dict[str, list[str]]:
    """Of each kernel that has variants, when a launch takes them."""
    return {each.name: [str(row["condition"]) for row in each.variants] for each in kernels if each.variants}


@attrs.frozen
class ModelInfo:
    """What an executable says of itself."""

    name: str
    target: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    kernels: tuple[KernelInfo, ...]
    #: Summary of the kernel graph: counts and bytes.
    graph: Mapping[str, Any]
    #: Seconds by stage of the compilation.
    seconds: Mapping[str, float] = attrs.field(factory=dict)
    #: The Relax function ``main`` that calls the kernels and the library.
    relax: str = ""
    #: Name of the place where it runs (`uir_tvm.target.place`): cpu, gpu or model.
    device: str = "cpu"
    #: How arguments and results are nested (`uir_tvm.structure.Structure` as JSON); None: they are flat.
    structure: Mapping[str, Any] | None = None
    #: What calls leave changed for the next one, in the order in which ``main`` takes it behind the inputs.
    state: tuple[StateSpec, ...] = ()
    #: What is checked of positions before a call (`runtime.position_checks`).
    positions: tuple[Mapping[str, Any], ...] = ()


def changed_by_pass(kernels: Sequence[KernelInfo]) -> dict[str, int]:
    """How many kernels each pass changed, in the order of the passes; some run twice."""
    out: dict[str, int] = {}
    for kernel in kernels:
        changed = {step["pass"] for step in kernel.passes if step["changed"]}
        for name in dict.fromkeys(step["pass"] for step in kernel.passes):
            out[name] = out.get(name, 0) + (name in changed)
    return out
