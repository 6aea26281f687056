# SPDX-License-Identifier: Apache-2.0
"""Programs that serve all sizes, as a file keeps them and as a loaded model asks them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ..errors import FrontendError, NotCompiledError, SizeError
from ..sizes.saved_sizes import condition_text, holds, readable
from ..sizes.symbolic_shapes import OpenSignature, Sizes, sizes_text
from .executable import Executable
from .model_info import conditions_of
from .sized_executable import HeldMemory, SizedExecutable
from .stored_kernel import StoredKernel, loaded, stored
from .symbolic_programs import SizedProgram, SymbolicProgram

if TYPE_CHECKING:
    from .open_kernels import KernelBySizes


@attrs.define(eq=False)
class StoredProgram:
    """An executable for all sizes that its conditions admit.

    Attributes
    ----------
    symbols : tuple of str
        In the order in which its code takes them.
    conditions : tuple of str
        As `sizes.saved_sizes.holds` reads them, ranges first.
    usual : mapping of str to int
        Sizes that meet them.
    inputs, outputs : tuple of str
        The model's names of what it takes and gives.
    counts : mapping of str to Any
        Of a report: groups, library operators, kernels for all sizes.
    kernels : tuple of StoredKernel
        What is compiled for the sizes of a call.
    executable : Executable
    memory : HeldMemory
    uses : int
        Shapes that asked for it.
    alone : callable or None
        Compiles it for some sizes alone; None: it was loaded.
    is_new : bool
        Whether it was compiled here, and no shape has counted that yet.
    """

    symbols: tuple[str, ...]
    conditions: tuple[str, ...]
    usual: Sizes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    counts: Mapping[str, Any]
    kernels: tuple[StoredKernel | KernelBySizes, ...]
    executable: Executable
    memory: HeldMemory = attrs.Factory(HeldMemory)
    uses: int = 0
    alone: Callable[[Sizes], Executable] | None = None
    is_new: bool = False

    def admits(self, **sizes: int) -> bool:
        """Whether it serves a size for each symbol, by name."""
        return all(holds(text, sizes) for text in self.conditions)

    def at(self, sizes: Sizes) -> SizedExecutable:
        """Its executable for some sizes."""

        def alone() -> Executable:
            if self.alone is not None:
                return self.alone(sizes)
            raise NotCompiledError(
                f"`{self.executable.info.name}` has no code for {sizes_text(sizes)} alone.",
                limit="it was loaded, and its code serves all sizes",
                remedy="save it whole, or compile the model for these sizes: "
                + " ".join(f"--size {name}={size}" for name, size in sizes.items()),
            )

        numbers = {name: sizes[name] for name in self.symbols}
        seconds = dict(self.executable.info.seconds) if self.is_new else {}
        self.is_new = False
        return SizedExecutable(self.executable, self.memory, numbers, alone, seconds)

    def stored_kernels(self) -> list[StoredKernel]:
        """Its kernels as a file keeps them; ArtifactError where one has no such form."""
        info = self.executable.info
        return [stored(kernel, info.target, info.device) for kernel in self.kernels]

    def described(self) -> dict[str, Any]:
        """What a file says of it, beside its executable and its kernels."""
        return {
            "symbols": list(self.symbols),
            "conditions": list(self.conditions),
            "usual": dict(self.usual),
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "counts": dict(self.counts),
        }

    def to_json(self) -> dict[str, Any]:
        """A row of a report."""
        names = (*self.symbols, *self.executable.info.graph.get("found", ()))
        later = [
            {
                "kernel": kernel.name.partition("#")[0],
                "reason": kernel.reason,
                "sizes": [dict(zip(names, sizes, strict=True)) for sizes in kernel.made],
            }
            for kernel in self.kernels
        ]
        return {
            "conditions": list(self.conditions),
            "found": list(self.executable.info.graph.get("found", ())),
            "groups": self.counts["groups"],
            "shapes": self.uses,
            "kernels_for_all_sizes": self.counts["kernels_for_all_sizes"],
            "library": self.counts["library"],
            "kernels_by_sizes": later,
            "variants": conditions_of(self.executable.info.kernels),
            "figures": figures_of(self.executable, self.usual),
        }


def figures_of(executable: Executable, usual: Sizes) -> dict[str, Any]:
    """What a program moves and computes, for all of its sizes; empty of one kernel, which has no graph."""
    if executable.kernel_graph is None:
        return {}
    from ..explain.plain import plain
    from ..explain.program_figures import program_figures

    found: dict[str, Any] = plain(program_figures(json.loads(executable.kernel_graph.to_json()), usual))
    return found


class StoredPrograms:
    """The programs of a loaded model.

    Parameters
    ----------
    signature : OpenSignature
    asserted : sequence of str
        What the model asks of its sizes, as `sizes.saved_sizes.holds` reads it.
    programs : sequence of StoredProgram
    """

    def __init__(
        self, signature: OpenSignature, asserted: Sequence[str], programs: Sequence[StoredProgram]
    ) -> None:
        self._signature, self.asserted, self.programs = signature, tuple(asserted), tuple(programs)
        #: Why shapes are compiled by themselves; empty where they are not.
        self.why_not = ""

    def first(self, model: object) -> SizedProgram | None:
        """A program that serves all sizes, for some that it takes; None where there is none."""
        return SizedProgram(self.programs[0], self.programs[0].usual) if self.programs else None

    def of(self, model: object, shapes: Mapping[str, Sequence[int]]) -> SizedProgram | None:
        """The program for these shapes; None where there is none.

        Raises
        ------
        SizeError
            The model does not take them.
        """
        sizes = self._signature.bind(shapes)
        if not self._signature.related and self._signature.shapes(sizes) != dict(shapes):
            return None  # one name for several sizes
        for text in self.asserted:
            if not holds(text, sizes):
                raise SizeError(
                    f"The model cannot be computed with {sizes_text(sizes)}.",
                    need=text,
                    remedy="pass sizes that fit",
                )
        found = next((each for each in self.programs if each.admits(**sizes)), None)
        if found is None:
            return None
        found.uses += 1
        return SizedProgram(found, sizes)


def as_stored(program: SymbolicProgram | StoredProgram) -> StoredProgram:
    """A program that has its executable, as a file tells of it."""
    if isinstance(program, StoredProgram):
        return program
    assert program.executable is not None and program.whole is not None
    graph, space = program.whole.graph, program.space
    counts = {
        "groups": len(program.grouped.groups),
        "kernels_for_all_sizes": len(graph.kernels),
        "library": len(graph.library_ops),
    }
    return StoredProgram(
        tuple(space.symbols),
        (*space.range_texts, *(condition_text(c) for c in space.conditions if not space.is_found(c.size))),
        {name: space.representatives[name] for name in space.symbols},
        program.inputs,
        program.outputs,
        counts,
        tuple(program.whole.kernels.calls.values()),
        program.executable,
    )


def loaded_program(
    row: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]], executable: Executable
) -> StoredProgram:
    """The program that `StoredProgram.described` tells of.

    Raises
    ------
    FrontendError
        A condition that nobody reads.
    KeyError, TypeError
        It says too little, or something else.
    """
    info, symbols = executable.info, tuple(map(str, row["symbols"]))
    conditions = texts(row["conditions"], symbols)
    usual = {name: int(row["usual"][name]) for name in symbols}
    made = StoredProgram(
        symbols,
        conditions,
        usual,
        tuple(map(str, row["inputs"])),
        tuple(map(str, row["outputs"])),
        {name: int(row["counts"][name]) for name in ("groups", "kernels_for_all_sizes", "library")},
        tuple(loaded(each, info.target, info.device) for each in kernels),
        executable,
    )
    if not made.admits(**usual):
        raise FrontendError(f"The conditions of the program exclude its own sizes {sizes_text(usual)}.")
    return made


def texts(given: Sequence[Any], symbols: tuple[str, ...]) -> tuple[str, ...]:
    """Conditions in these symbols; FrontendError where one is none."""
    for text in given:
        if not isinstance(text, str) or not readable(text, symbols):
            raise FrontendError(f"{text!r} is no condition in {', '.join(symbols)}.")
    return tuple(given)
