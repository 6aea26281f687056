# SPDX-License-Identifier: Apache-2.0
"""Versions of vendors' toolkits for which texts are spelled apart, and how users choose among them.

One of a target at most: its option of `CompileOptions` and of ``uir compile``, the variable of the
environment, the attribute that tells the printer, and the line of a text that says what it was printed for.
What is spelled apart stands in the printer's table (`uir_tvm.target.apis.Api.spellings`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

__all__ = ["Toolkit"]


@attrs.frozen
class Toolkit:
    """A toolkit of a vendor's.

    Parameters
    ----------
    option : str
        The field of `CompileOptions`, the option of the command, the attribute of the graph: ``cncc``.
    target : str
        The target whose texts it compiles.
    name : str
        What texts and messages call it: ``cncc``, ``CANN``.
    what : str
        What it is, for help.
    language : str
        What is printed.
    needs : Mapping[str, str]
        Version -> what it takes to build a text for it; in the order of the versions.
    default : str
        The version that texts are for where nothing is said.
    remedy : str
        How to find out which version one has.
    """

    option: str
    target: str
    name: str
    what: str
    language: str
    needs: Mapping[str, str]
    default: str
    remedy: str

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions, earliest first."""
        return tuple(self.needs)

    @property
    def variable(self) -> str:
        """The variable of the environment that chooses a version: ``UIR_CNCC``."""
        return f"UIR_{self.option.upper()}"

    @property
    def help(self) -> str:
        """What the option does, in a sentence."""
        return f"{self.target}: the version of {self.what} that the kernels are printed for."

    def said_by(self, sources: Iterable[str]) -> str:
        """The version that texts say they are printed for (the latest); the default's where there is no text.

        Parameters
        ----------
        sources : iterable of str
            Printed texts; a line ``// for CHIP, NAME VERSION`` begins each.
        """
        line = re.compile(rf"^// for [^,\n]+, {self.name} (\S+)$", re.MULTILINE)
        found = {version for text in sources for version in line.findall(text)}
        return max(found, key=self.versions.index, default=self.default)
