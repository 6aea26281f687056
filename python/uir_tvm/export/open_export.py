# SPDX-License-Identifier: Apache-2.0
"""A model that serves all sizes, for a project: one executable, what is open, inputs to check with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ..errors import ExportError, SizeError
from ..runtime.executable import Executable
from ..runtime.specialized import SpecializedExecutable
from ..runtime.stored_programs import StoredProgram
from ..runtime.tensors import check_inputs, random_inputs
from ..sizes.symbolic_shapes import Sizes, in_terms_of, sizes_text
from .open_sizes import OpenSizes
from .size_code import condition_code

#: What a project is that takes no sizes at a run.
_ALONE = "compile the model for the sizes of the project (uir compile --size NAME=37), and export that"


@attrs.frozen(eq=False)
class OpenExport:
    """One program for all sizes.

    Parameters
    ----------
    model : SpecializedExecutable
    program : StoredProgram
    open : OpenSizes
    """

    model: SpecializedExecutable
    program: StoredProgram
    open: OpenSizes

    @staticmethod
    def of(model: SpecializedExecutable) -> OpenExport:
        """The program of a model.

        Raises
        ------
        ExportError
            It has several programs, finds sizes while it runs, or has kernels that exist for the sizes of a
            call alone.
        NotCompiledError
            Nothing serves all of its sizes.
        """
        if not model.wholes:
            model.make_whole()
        if len(model.wholes) > 1:
            raise ExportError(
                f"`{model.info.name}` has {len(model.wholes)} programs, each for sizes of its own.",
                need="one program: a project has the code of one",
                limit="; ".join(" and ".join(each.conditions) for each in model.wholes),
                remedy="compile the model, and save it before it is called; or " + _ALONE,
            )
        program = model.wholes[0]
        found = program.executable.info.graph.get("found", ())
        if found:
            raise ExportError(
                f"`{model.info.name}` finds {', '.join(found)} while it runs.",
                need="sizes that are known before a run, for its memory and launches",
                remedy="compute what decides them outside of the model, and pass it as an input",
            )
        later = program.to_json()["kernels_by_sizes"]
        if later:
            raise ExportError(
                f"`{model.info.name}` has kernels that are compiled for the sizes of a call.",
                need="kernels for all sizes",
                limit="; ".join(f"{row['kernel']}: {row['reason'].splitlines()[0]}" for row in later),
                remedy=_ALONE,
            )
        asked = (str(in_terms_of(text, {})) for text in (*program.conditions, *model.asserted()))
        known = {name: name for name in program.symbols}
        conditions = tuple(text for text in dict.fromkeys(asked) if condition_code(text, known) != "true")
        return OpenExport(model, program, OpenSizes(program.symbols, conditions, program.usual))

    @property
    def executable(self) -> Executable:
        """Its description has open sizes."""
        return self.program.executable

    def check_data(
        self, inputs: Sequence[Any] | None, sizes: OpenSizes
    ) -> tuple[Sizes, Sequence[Any], Sequence[Any]]:
        """Sizes, inputs and outputs to check a project with.

        Parameters
        ----------
        inputs : sequence of array, optional
            The model's; default: random ones of small sizes.
        sizes : OpenSizes
            With all conditions of the project.

        Raises
        ------
        ShapeError
            Inputs that the model does not take.
        """
        chosen = sizes.small() if inputs is None else self._sizes_of(inputs, sizes)
        exe = self.program.at(chosen)
        given = random_inputs(exe.info.inputs) if inputs is None else self._taken(inputs)
        check_inputs(given, exe.info.inputs)
        return chosen, given, exe.flat(*given)

    def _sizes_of(self, inputs: Sequence[Any], sizes: OpenSizes) -> Sizes:
        """The sizes that inputs have."""
        specs = self.model.info.inputs
        check_inputs(inputs, specs)
        shapes = {spec.name: tuple(value.shape) for spec, value in zip(specs, inputs, strict=True)}
        found = self.model.signature.bind(shapes)
        broken = sizes.broken(found)
        if broken:
            raise SizeError(
                f"The project does not take {sizes_text(found)}.", need=broken, remedy="pass inputs that fit"
            )
        return {name: found[name] for name in sizes.names}

    def _taken(self, inputs: Sequence[Any]) -> list[Any]:
        """Those of the model's inputs that the program takes."""
        by_name = dict(zip((spec.name for spec in self.model.info.inputs), inputs, strict=True))
        return [by_name[name] for name in self.program.inputs]
