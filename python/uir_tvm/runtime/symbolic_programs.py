# SPDX-License-Identifier: Apache-2.0
"""A model that leaves sizes open, read and grouped once for all sizes that meet its conditions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import tvm

from ..errors import OpenSizeError, ShapeError, SizeError, UirError, last_line
from ..sizes.open_symbols import LEAST_OF_MANY, symbols_for
from ..sizes.saved_sizes import condition_text
from ..sizes.size_condition import Condition, settled
from ..sizes.size_space import SizeSpace
from ..sizes.symbolic_shapes import Sizes
from ..structure import STRUCTURE
from .sized_executable import HeldMemory

if TYPE_CHECKING:
    from ..frontend.open_model import OpenModel, SymbolicForm
    from ..kernel_graph import GroupedProgram, KernelGraph
    from .executable import Executable
    from .open_kernels import OpenKernels

log = logging.getLogger(__name__)

#: Programs that are made of one model: more would say that its conditions say too little.
MOST = 8

#: Readings of a model until what stands for all sizes answers as the sizes of the call do.
MOST_TRIED = 12

#: Sizes that models are likely to take where primes are none.
USUAL = (64, 128, 96, 48, 32, 16, 8, 4, 2, 512, 1024)

#: A normalised module with symbols -> its operators in groups.
Group = Callable[[tvm.IRModule, SizeSpace], "GroupedProgram"]


@attrs.frozen(eq=False)
class OpenGraph:
    """A program's kernels and library calls for all sizes, and what made its kernels."""

    graph: KernelGraph
    kernels: OpenKernels


#: Operators in groups -> the kernel graph for all sizes.
Assemble = Callable[["GroupedProgram", SizeSpace], OpenGraph]


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
    inputs, outputs : tuple of str
        The model's names of what it takes and gives.
    whole : OpenGraph or None
        None: it is compiled for each shape by itself, `why_numbers` says why.
    executable : Executable or None
        Of the whole, for all sizes; made by the first shape that asks.
    memory : HeldMemory
        Of that executable.
    uses : int
        Shapes that were compiled of it.
    initial : tuple of tvm.runtime.Tensor
        What the model's state begins as.
    """

    space: SizeSpace
    grouped: GroupedProgram
    structure: str | None
    admits: Callable[..., bool]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    whole: OpenGraph | None = None
    why_numbers: str = ""
    executable: Executable | None = None
    memory: HeldMemory = attrs.Factory(HeldMemory)
    uses: int = 0
    initial: tuple[tvm.runtime.Tensor, ...] = ()

    def leave(self, error: Exception) -> None:
        """Compile for each shape from now on: what serves all cannot be built."""
        self.whole, self.why_numbers = None, _said(error)
        log.info("a program is compiled for each shape: %s", self.why_numbers, exc_info=error)

    def to_json(self) -> dict[str, Any]:
        """A row of a report."""
        conditions = [*self.space.range_texts, *map(condition_text, self.space.conditions)]
        row = {"conditions": conditions, "groups": len(self.grouped.groups), "shapes": self.uses}
        if self.whole is None:
            return row | {"compiled_by_shape": self.why_numbers}
        graph = self.whole.graph
        later = [
            {
                "kernel": call.kernel.group.name,
                "reason": next(node.reason for node in graph.specialized_ops if node.attrs is call),
                "sizes": [dict(zip(self.space.names, sizes, strict=True)) for sizes in call.made],
            }
            for call in self.whole.kernels.calls.values()
        ]
        return row | {
            "found": list(self.space.found),
            "kernels_for_all_sizes": len(graph.kernels),
            "library": len(graph.library_ops),
            "kernels_by_sizes": later,
            "variants": {
                name: [each.condition for each in record.variants]
                for name, record in self.whole.kernels.records.items()
                if record.variants
            },
            **({} if self.executable is None else {"figures": self._figures(self.executable)}),
        }

    def _figures(self, executable: Executable) -> dict[str, Any]:
        from .stored_programs import figures_of  # which asks for this module

        return figures_of(executable, {name: self.space.representatives[name] for name in self.space.symbols})


@attrs.frozen(eq=False)
class SizedProgram:
    """A program for numbers, which is what is compiled."""

    #: A `SymbolicProgram`, or that of a file (`stored_programs.StoredProgram`).
    program: Any
    sizes: Sizes
    #: Whether these sizes alone are compiled, not all.
    alone: bool = False

    def grouped(self) -> GroupedProgram:
        """Its operators in groups, in numbers.

        Raises
        ------
        OpenSizeError
            It finds sizes while it runs.
        """
        if self.program.space.found:
            raise needs_numbers(self.program.space.found)
        made: GroupedProgram = self.program.grouped.at(self.program.space, self.sizes)
        return made


class SymbolicPrograms:
    """The programs of one model, made as shapes ask for them.

    Parameters
    ----------
    group : callable or None
        None: every shape is imported by itself.
    assemble : callable or None
        None: every shape is compiled by itself.
    why_not : str
        Why, then.
    """

    def __init__(self, group: Group | None, why_not: str = "", assemble: Assemble | None = None) -> None:
        self._group, self._assemble = group, assemble
        #: Why shapes are imported by themselves; empty where they are not.
        self.why_not = why_not
        self.programs: list[SymbolicProgram] = []
        #: Whether the model is read for sizes of 1 together with others; where it cannot, for those alone.
        self._ones = True
        #: Conditions of the first reading with ones, where it has any: fewer without are better.
        self._asked: int | None = None

    def again(self, programs: Iterable[SymbolicProgram]) -> SymbolicPrograms:
        """Some of what was made, for one more executable of the same model: its counts are its own."""
        made = SymbolicPrograms(self._group, self.why_not, self._assemble)
        made.programs = [attrs.evolve(each, uses=0) for each in programs]
        made._ones, made._asked = self._ones, self._asked
        return made

    def of(self, model: OpenModel | None, shapes: Mapping[str, Sequence[int]]) -> SizedProgram | None:
        """What is compiled for these shapes; None where the model is imported for them alone.

        Raises
        ------
        SizeError
            The model does not take them.
        """
        form = None if model is None else model.symbolic
        if model is None or form is None or self._group is None:
            self.why_not = self.why_not or "the front end reads this model for numbers"
            return None
        sizes = model.signature.bind(shapes)
        if not model.signature.related and model.signature.shapes(sizes) != dict(shapes):
            return None  # one name for several sizes
        form.check(sizes)
        found = self._admitting(sizes)
        while found is None and not self.why_not and len(self.programs) < MOST:
            if min(sizes.values(), default=self._least(form)) < self._least(form):
                return None
            self._make(model, sizes)
            found = self._admitting(sizes)
        if found is None:
            return None
        found.uses += 1
        return SizedProgram(found, sizes)

    def first(self, model: OpenModel | None) -> SizedProgram | None:
        """A program that serves all sizes, for some that the model takes; None where there is none."""
        found = [each for each in self.programs if each.whole is not None]
        if found:
            return SizedProgram(found[0], found[0].space.representatives)
        if model is None or model.symbolic is None:
            return None
        for sizes in _usual(model):
            if not self.programs and not self.why_not:
                self._make(model, sizes, may_agree=True)
            if self.programs and self.programs[0].whole is not None:
                return SizedProgram(self.programs[0], self.programs[0].space.representatives)
            try:
                made = self.of(model, model.signature.shapes(sizes))
            except SizeError:
                continue  # sizes that were made up may disagree
            if made is None:
                return None
            made.program.uses -= 1  # no call has these sizes
            return made if made.program.whole is not None else None
        self.why_not = self.why_not or "the model takes none of the sizes that were tried"
        return None

    def _again(self, form: SymbolicForm, sizes: Sizes, asked: int) -> bool:
        """Whether the model is read once more, without sizes of 1 or with them: where less is asked."""
        if self._asked is None:
            small = min(sizes.values(), default=0) < LEAST_OF_MANY
            if not asked or small or self._least(form) >= LEAST_OF_MANY:
                return False
            self._asked, self._ones = asked, False
            return True
        if self._ones or asked < self._asked:
            return False
        self._ones = True
        return True

    def _least(self, form: SymbolicForm) -> int:
        """Sizes below this are compiled by themselves."""
        return form.least if self._ones else max(form.least, LEAST_OF_MANY)

    def _admitting(self, sizes: Sizes) -> SymbolicProgram | None:
        """The first program whose conditions sizes meet."""
        return next((each for each in self.programs if each.admits(**sizes)), None)

    def _make(self, model: OpenModel, sizes: Sizes, may_agree: bool = False) -> None:
        """One more program, of which comparisons answer as for these sizes; or the reason why there is none.

        A program besides others is made of these sizes alone. Where no call has these sizes, those that must
        agree may do so.
        """
        alike: list[Condition] = []
        for _ in range(MOST_TRIED):
            near = len(self.programs) > 0 or len(alike) == MOST_TRIED - 1
            if self._made_with(model, sizes, alike, near, may_agree):
                return
            if may_agree:
                found = settled(alike).items()
                sizes = {**sizes, **{name: sizes[to] if isinstance(to, str) else to for name, to in found}}

    def _made_with(
        self, model: OpenModel, sizes: Sizes, alike: list[Condition], near: bool, may_agree: bool
    ) -> bool:
        """Whether that is all; else one more condition is known that representatives have to meet."""
        form = model.symbolic
        assert form is not None and self._group is not None
        ranges = {name: model.signature.ranges.get(name, (0, None)) for name in model.signature.symbols}

        def holds(numbers: Sizes) -> bool:
            return all(each.holds(numbers) for each in alike) and _takes(form, numbers)

        symbols = symbols_for(
            ranges, form.variables, sizes, None if near else holds, self._least(form), settled(alike)
        )
        space = SizeSpace(symbols, sizes, may_agree)
        try:
            module = form.module(space)
            grouped = self._group(module, space)
        except MemoryError:
            raise
        except Exception as error:  # what reads numbers raises many kinds where there are none
            if space.refused is not None:
                raise space.refused from None
            if space.unlike is None and self._asked is not None and not self.programs and not self._ones:
                self._ones = True  # it was read with them
                return False
            if space.unlike is None and self._least(form) < LEAST_OF_MANY and not self.programs:
                log.info("sizes of 1 are compiled by themselves: %s", _said(error), exc_info=error)
                self._ones = False
                return any(size < LEAST_OF_MANY for size in sizes.values())
            if space.unlike is None:
                self.why_not = _said(error)
                log.info("shapes are imported one by one: %s", self.why_not, exc_info=error)
                return True
        else:
            if space.unlike is None and not self.programs and self._again(form, sizes, len(space.conditions)):
                return False
            structure = str(module.attrs[STRUCTURE]) if module.attrs and STRUCTURE in module.attrs else None
            whole, why = self._whole(grouped, space)
        if space.unlike is not None:
            alike.append(space.unlike)
            return False
        space.settle()
        if whole is None and space.found:
            self.why_not = why
            return True
        from ..model_state import state_of  # asks for Relax, which programs from files do without

        program = grouped.program
        given = program.inputs[: len(program.inputs) - len(program.state)]
        inputs = form.inputs or tuple(value.name for value in given)
        outputs = tuple(f"output{index}" for index in range(len(program.outputs)))
        initial = tuple(each.initial for each in state_of(module))
        self.programs.append(
            SymbolicProgram(
                space, grouped, structure, space.admits(), inputs, outputs, whole, why, initial=initial
            )
        )
        return True

    def _whole(self, grouped: GroupedProgram, space: SizeSpace) -> tuple[OpenGraph | None, str]:
        """The kernel graph for all sizes; or the reason why there is none."""
        if self._assemble is None:
            return None, "the target takes numbers"
        try:
            return self._assemble(grouped, space), ""
        except MemoryError:
            raise
        except Exception as error:  # what reads numbers raises many kinds where there are none
            log.info("a program is compiled for each shape: %s", _said(error), exc_info=error)
            return None, _said(error)


def _takes(form: SymbolicForm, sizes: Sizes) -> bool:
    """Whether a model asserts nothing that excludes sizes."""
    try:
        form.check(sizes)
    except ShapeError:
        return False
    return True


def _usual(model: OpenModel) -> Iterator[Sizes]:
    """Sizes that a model takes, primes first."""
    assert model.symbolic is not None
    signature, variables = model.signature, model.symbolic.variables
    ranges = {name: signature.ranges.get(name, (0, None)) for name in signature.symbols}
    symbols = symbols_for(ranges, variables, least=model.symbolic.least)
    primes = {symbol.name: symbol.representative for symbol in symbols}
    tried: list[Sizes] = [primes, dict(zip(primes, reversed(primes.values()), strict=True))]
    for number in USUAL:
        ends = {s.name: max(s.low, number if s.high is None else min(number, s.high)) for s in symbols}
        tried += [ends, {name: primes[name] if at else ends[name] for at, name in enumerate(ends)}]
    for sizes in tried:
        try:
            if signature.bind(signature.shapes(sizes)) == sizes:
                model.symbolic.check(sizes)
                yield sizes
        except ShapeError:
            continue


def needs_numbers(found: Iterable[str]) -> OpenSizeError:
    """The error of what needs numbers for a program that finds sizes."""
    return OpenSizeError(
        f"The model finds {', '.join(found)} while it runs.",
        need="a number for every size",
        remedy="compute what decides them outside of the model, and pass it as an input",
    )


def _said(error: Exception) -> str:
    return error.what if isinstance(error, UirError) else f"{type(error).__name__}: {last_line(error)}"
