# SPDX-License-Identifier: Apache-2.0
"""What a graph could be otherwise, where measurements may know better than rules.

While a graph is built each such place, a *site*, asks which of its options to take.  A site is named by what
is computed there (sizes, types, code), so that equal ones of all models are one.  By default every site takes
its rule's answer.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping, Sequence

#: The rule's answer.
DEFAULT = ""
#: Kinds of options: threads at most, plain C++, a weight as it is, a kernel of our own; an operator left to
#: another kernel, products of one matrix that stay apart, operators that each have a kernel.
PLAIN, UNPACKED, KERNEL, APART = "plain", "unpacked", "own kernel", "apart"
THREADS = "threads "


class Choices:
    """Options by site.

    Parameters
    ----------
    chosen : mapping of str to str
        Site -> option; sites without one, or with one that is none of theirs, take their rule's answer.

    Attributes
    ----------
    sites : dict of str to tuple of str
        Every site that asked, with its options but for the default.
    """

    def __init__(self, chosen: Mapping[str, str] | None = None) -> None:
        self.chosen = dict(chosen or {})
        self.sites: dict[str, tuple[str, ...]] = {}

    def pick(self, site: str, options: Sequence[str]) -> str:
        """The option of a site; `DEFAULT` where nobody knows better."""
        if options:
            self.sites.setdefault(site, tuple(options))
        found = self.chosen.get(site, DEFAULT)
        return found if found in options else DEFAULT


_current: contextvars.ContextVar[Choices | None] = contextvars.ContextVar("uir_graph_choices", default=None)


@contextlib.contextmanager
def choosing(choices: Choices) -> Iterator[Choices]:
    """Graphs that are built inside ask these choices."""
    token = _current.set(choices)
    try:
        yield choices
    finally:
        _current.reset(token)


def asked() -> bool:
    """Whether anybody knows, or wants to know, of choices."""
    return _current.get() is not None


def pick(site: str, options: Sequence[str]) -> str:
    """The option of a site in the build that goes on; see `Choices.pick`."""
    choices = _current.get()
    return DEFAULT if choices is None else choices.pick(site, options)
