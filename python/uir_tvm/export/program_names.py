# SPDX-License-Identifier: Apache-2.0
"""What a project's text calls buffers and sizes, and what it says of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import attrs

from ..sizes.symbolic_shapes import Size
from .device_program import HostProgram, KernelStep
from .files import identifiers
from .size_code import FUNCTIONS, size_code

#: Names that a buffer cannot have in the program's text.
RESERVED = frozenset(
    "device storage stream and or not auto bool char class const do double else enum float for if int"
    " long new return short this true false void while register default switch union".split()
)


@attrs.frozen
class ProgramNames:
    """What the text calls things of the program.

    Parameters
    ----------
    program : HostProgram
    buffers : mapping of str to str
        By the buffers' names.
    sizes : mapping of str to str
        By the names of what is open.
    """

    program: HostProgram
    buffers: Mapping[str, str]
    sizes: Mapping[str, str]

    @staticmethod
    def of(program: HostProgram) -> ProgramNames:
        """The names of a program's text."""
        return ProgramNames(
            program,
            identifiers(program.buffers, RESERVED),
            identifiers(program.open.names, RESERVED | FUNCTIONS),
        )

    def at(self, buffer: str) -> str:
        """Where a buffer lies."""
        return f"storage.At(at::{self.buffers[buffer]})"

    def elements(self, buffer: str) -> str:
        """How many elements it has."""
        name = f"at::{self.buffers[buffer]}"
        return f"storage.Elements({name})" if self.program.open.names else f"{name}.elements"

    def size(self, size: Size) -> str:
        """A number, or what is known of it at a run."""
        return size_code(size, self.sizes)

    def listed(self, sizes: Iterable[Size]) -> str:
        """Several of them in braces."""
        return "{" + ", ".join(map(self.size, sizes)) + "}"

    def launch(self, step: KernelStep, call: Callable[[str], list[str]]) -> list[str]:
        """A launch of some blocks; none where there are no groups.

        Parameters
        ----------
        step : KernelStep
        call : callable
            Lines of the launch, of the text of its number of blocks.
        """
        if step.groups == "":
            return call(str(step.blocks))
        head = f"  if (const uint32_t blocks = Blocks({self.size(step.groups)}, {step.blocks})) {{"
        return [head, *(f"  {line}" for line in call("blocks")), "  }"]

    def known(self, body: str, sizes: str) -> str:
        """Lines that name the sizes that a function's body has."""
        return "".join(
            f"  const int64_t {name} = {sizes}[{number}];\n"
            for number, name in enumerate(self.sizes.values())
            if re.search(rf"\b{name}\b", body)
        )
