# SPDX-License-Identifier: Apache-2.0
"""A model that leaves sizes open, read and grouped once for all sizes that meet its conditions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import tvm

from ..errors import UirError, last_line
from ..open_size import Condition, SizeSpace
from ..open_symbols import LEAST, symbols_for
from ..structure import STRUCTURE
from ..symbolic_shapes import Sizes

if TYPE_CHECKING:
    from ..frontend.open_model import OpenModel
    from ..kernel_graph import GroupedProgram

log = logging.getLogger(__name__)

#: Programs that are made of one model: more would say that its conditions say too little.
MOST = 8

#: Readings of a model until what stands for all sizes answers as the sizes of the call do.
MOST_TRIED = 12

#: A normalised module with symbols -> its operators in groups.
Group = Callable[[tvm.IRModule, SizeSpace], "GroupedProgram"]


@attrs.define(eq=False)
class SymbolicProgram:
    """A model's operators in groups, for all sizes that its conditions admit.

    Attributes
    ----------
    space : SizeSpace
    grouped : GroupedProgram
    structure : str or None
        How results are nested (`uir_tvm.structure.Structure` as JSON text).
    admits : callable
        Of a size for each symbol, by name.
    uses : int
        Shapes that were compiled of it.
    """

    space: SizeSpace
    grouped: GroupedProgram
    structure: str | None
    admits: Callable[..., bool]
    uses: int = 0

    def to_json(self) -> dict[str, Any]:
        """A row of a report."""
        ranges = [
            f"{s.low} <= {s.name}" + (f" <= {s.high}" if s.high is not None else "")
            for s in self.space.symbols.values()
        ]
        conditions = [*ranges, *map(str, self.space.conditions)]
        return {"conditions": conditions, "groups": len(self.grouped.groups), "shapes": self.uses}


@attrs.frozen(eq=False)
class SizedProgram:
    """A program for numbers, which is what is compiled."""

    program: SymbolicProgram
    sizes: Sizes

    def grouped(self) -> GroupedProgram:
        """Its operators in groups, in numbers."""
        return self.program.grouped.at(self.program.space, self.sizes)


class SymbolicPrograms:
    """The programs of one model, made as shapes ask for them.

    Parameters
    ----------
    group : callable or None
        None: every shape is imported by itself.
    why_not : str
        Why, then.
    """

    def __init__(self, group: Group | None, why_not: str = "") -> None:
        self._group = group
        #: Why shapes are imported by themselves; empty where they are not.
        self.why_not = why_not
        self.programs: list[SymbolicProgram] = []

    def of(self, model: OpenModel, shapes: Mapping[str, Sequence[int]]) -> SizedProgram | None:
        """What is compiled for these shapes; None where the model is imported for them alone.

        Raises
        ------
        SizeError
            The model does not take them.
        """
        form = model.symbolic
        if form is None or self._group is None:
            self.why_not = self.why_not or "the front end reads this model for numbers"
            return None
        sizes = model.signature.bind(shapes)
        if not model.signature.related and model.signature.shapes(sizes) != dict(shapes):
            return None  # one name for several sizes
        form.check(sizes)
        if any(size < LEAST for size in sizes.values()):
            return None
        found = self._admitting(sizes)
        while found is None and not self.why_not and len(self.programs) < MOST:
            self._make(model, sizes)
            found = self._admitting(sizes)
        if found is None:
            return None
        found.uses += 1
        return SizedProgram(found, sizes)

    def _admitting(self, sizes: Sizes) -> SymbolicProgram | None:
        """The first program whose conditions sizes meet."""
        return next((each for each in self.programs if each.admits(**sizes)), None)

    def _make(self, model: OpenModel, sizes: Sizes) -> None:
        """One more program, of which comparisons answer as for these sizes; or the reason why there is none.

        A program besides others is made of these sizes alone.
        """
        alike: list[Condition] = []
        for _ in range(MOST_TRIED):
            near = len(self.programs) > 0 or len(alike) == MOST_TRIED - 1
            if self._made_with(model, sizes, alike, near):
                return

    def _made_with(self, model: OpenModel, sizes: Sizes, alike: list[Condition], near: bool) -> bool:
        """Whether that is all; else one more condition is known that representatives have to meet."""
        assert model.symbolic is not None and self._group is not None
        ranges = {name: model.signature.ranges.get(name, (0, None)) for name in model.signature.symbols}

        def holds(numbers: Sizes) -> bool:
            return all(each.holds(numbers) for each in alike)

        symbols = symbols_for(ranges, model.symbolic.variables, sizes, None if near else holds)
        space = SizeSpace(symbols, sizes)
        try:
            module = model.symbolic.module(space)
            grouped = self._group(module, space)
        except MemoryError:
            raise
        except Exception as error:  # what reads numbers raises many kinds where there are none
            if space.unlike is not None:
                alike.append(space.unlike)
                return False
            what = (
                error.what if isinstance(error, UirError) else f"{type(error).__name__}: {last_line(error)}"
            )
            self.why_not = what
            log.info("shapes are imported one by one: %s", what, exc_info=error)
            return True
        structure = str(module.attrs[STRUCTURE]) if module.attrs and STRUCTURE in module.attrs else None
        self.programs.append(SymbolicProgram(space, grouped, structure, space.admits()))
        return True
