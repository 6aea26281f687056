# SPDX-License-Identifier: Apache-2.0
"""What a model with open sizes has before it is called: code for chosen sizes, for all, and in a file."""

from __future__ import annotations

import contextlib
import pathlib
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArtifactError, NotCompiledError, SizeError
from ..shared_constants import SharedConstants, sharing
from ..sizes.saved_sizes import holds
from ..sizes.symbolic_shapes import OpenSignature, Sizes, sizes_text
from .executable import Executable
from .model_info import ModelInfo
from .model_stages import AheadOfTime, Paths, StagedCall, start_of
from .not_compiled import by_shape, lacking, not_one, nothing_to_save
from .open_inputs import Key, key_of_shapes
from .specialization import Specialization
from .stored_programs import StoredProgram, StoredPrograms, as_stored
from .symbolic_programs import SizedProgram, SymbolicPrograms, needs_numbers

if TYPE_CHECKING:
    from ..frontend.open_model import OpenModel

#: How a specialization was made for which somebody asked before a call.
AHEAD = "ahead of time"


class AheadOfCalls:
    """The part of a `SpecializedExecutable` that no call needs."""

    info: ModelInfo
    signature: OpenSignature
    deciding: list[str]
    dynamic: list[str]
    _model: OpenModel | None
    _paths: Paths
    _whole: dict[Key, Specialization]
    _constants: SharedConstants
    _programs: SymbolicPrograms | StoredPrograms
    _lock: threading.Lock

    @abstractmethod
    def _import(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, np.ndarray],
        run: StagedCall,
        alone: bool = False,
    ) -> Sequence[str]:
        """Drive a run by the model."""

    @abstractmethod
    def _with_state(self, executable: Executable) -> Executable:
        """An executable that works on this one's state."""

    @abstractmethod
    def _compile(self, module: Any | SizedProgram) -> Executable:
        """The executable of a stage."""

    @abstractmethod
    def _remember(self, key: Key, shapes: Mapping[str, tuple[int, ...]], run: StagedCall, made: str) -> None:
        """Find what a run made by its shapes."""

    def make(self, sizes: Sizes) -> Specialization:
        """Compile for these sizes ahead of a call; what is made so is never forgotten.

        Raises
        ------
        ShapeError, SizeError
            A symbol without a size, a name that is no symbol, or a size outside of its range.
        ArtifactError
            Values decide what is compiled.
        """
        shapes = self.signature.shapes(sizes)
        if self.deciding:
            raise ArtifactError(
                "The model cannot be compiled ahead of time.",
                limit=f"values of {', '.join(self.deciding)} decide what is compiled",
                need="values for them",
                remedy="pass values={name: array} (--value)",
            )
        return self._ahead(shapes, AHEAD, alone=True)

    def _ahead(self, shapes: Mapping[str, tuple[int, ...]], made: str, alone: bool) -> Specialization:
        """What is compiled for some shapes without a call."""
        key = key_of_shapes(shapes, self.signature)
        with self._lock:
            if key not in self._whole:
                run = AheadOfTime(self._paths, self._compile, {}, start_of(shapes, {}))
                run.end(self._import(shapes, {}, run, alone=alone))
                self._remember(key, shapes, run, made)
            return self._whole[key]

    def make_whole(self) -> None:
        """Compile what serves all sizes, ahead of a call.

        Raises
        ------
        NotCompiledError
            Nothing does, for a reason that the error tells.
        """
        programs = self._programs
        with self._lock:
            if self.wholes:
                return
            with sharing(self._constants):
                program = None if self.deciding else programs.first(self._model)
            if program is not None:
                self._compile(program)
            if self.wholes:
                return
        why = [programs.why_not, *(getattr(each, "why_numbers", "") for each in programs.programs)]
        if self.deciding:
            why = [f"values of {', '.join(self.deciding)} decide what is compiled"]
        raise by_shape(self.info.name, self.signature, why)

    @property
    def wholes(self) -> tuple[StoredProgram, ...]:
        """What serves all sizes that its conditions admit, of what was compiled so far."""
        made = (each for each in self._programs.programs if each.executable is not None)
        return tuple(as_stored(each) for each in made)

    def asserted(self) -> tuple[str, ...]:
        """What the model asks of its sizes, as `sizes.saved_sizes.holds` reads it.

        Raises
        ------
        OpenSizeError
            A condition of PyTorch's has no text.
        """
        if isinstance(self._programs, StoredPrograms):
            return self._programs.asserted
        form = None if self._model is None else self._model.symbolic
        return () if form is None else form.asserted()

    def find(self, sizes: Sizes) -> Specialization:
        """The one that was made for these sizes; fewer do where they say which.

        Raises
        ------
        ShapeError, SizeError
            A name that is no symbol, or a size outside of its range.
        NotCompiledError
            None was made for them, or several were; of what serves all sizes, some are not said.
        """
        self.signature.known(sizes)
        found = [each for each in self._whole.values() if sizes.items() <= each.sizes.items()]
        if len(found) == 1 and (sizes or not self.wholes):
            return found[0]
        if self.wholes and set(sizes) == set(self.signature.symbols):
            return self._ahead(self.signature.shapes(sizes), "for all sizes", alone=False)
        missing = [name for name in self.signature.symbols if name not in sizes]
        if self.wholes and missing and not found:
            self.signature.check(sizes)
            raise lacking(self.info.name, missing, sizes, self._there())
        raise not_one(self.info.name, self.signature, sizes, self._there(), len(found))

    def whole_at(self, sizes: Sizes) -> tuple[Executable, dict[str, int]]:
        """The executable of the one program that serves all sizes, and sizes to tell its figures at.

        Parameters
        ----------
        sizes : mapping of str to int
            Some of the symbols; others have their usual sizes.

        Raises
        ------
        ShapeError
            A name that is no symbol.
        SizeError
            Sizes that the program does not serve.
        OpenSizeError
            It finds sizes while it runs.
        """
        self.signature.known(sizes)
        self.signature.check(sizes)
        (program,) = self.wholes
        if found := program.executable.info.graph.get("found"):
            raise needs_numbers(found)
        numbers = {**program.usual, **sizes}
        broken = next((text for text in program.conditions if not holds(text, numbers)), "")
        if broken:
            raise SizeError(
                f"`{self.info.name}` does not serve {sizes_text(numbers)}.",
                need=broken,
                limit=" and ".join(program.conditions),
                remedy="say other sizes: " + " ".join(f"--size {name}=..." for name in program.symbols),
            )
        return program.executable, numbers

    def _there(self) -> list[str]:
        """What there is code for."""
        return [*(" and ".join(each.conditions) for each in self.wholes), *map(str, self._whole.values())]

    @property
    def specializations(self) -> tuple[Specialization, ...]:
        """What one executable computes each, in the order in which they were made."""
        return tuple(self._whole.values())

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write one file that serves all sizes, and the shapes that were compiled by themselves.

        Where code was compiled ahead of time (`CompileOptions.specialize`), or none serves all sizes, it has
        the shapes that were compiled so far. `uir_tvm.load` gives a `SpecializedExecutable` that picks by the
        shapes of its inputs, and refuses those that it has no code for (`NotCompiledError`).

        Raises
        ------
        ArtifactError
            Nothing is compiled yet, or a value decides what is; a kernel of what serves all sizes has no form
            to store; or the file cannot be written.
        """
        if not any(each.made == AHEAD for each in self._whole.values()):
            with contextlib.suppress(NotCompiledError):
                self.make_whole()
        if not self._whole and not self.wholes:
            needed = [
                *(f"a shape of {name}" for name in self.dynamic),
                *(f"a value of {name}" for name in self.deciding),
            ]
            raise nothing_to_save(self.info.name, path, needed)
        from .bundle import save

        return save(self, pathlib.Path(path))  # type: ignore[arg-type]

    def add(self, specialization: Specialization) -> None:
        """Take in what was made elsewhere."""
        self._with_state(specialization.executable)
        self._whole[key_of_shapes(specialization.shapes, self.signature)] = specialization
