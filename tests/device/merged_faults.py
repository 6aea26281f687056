# SPDX-License-Identifier: Apache-2.0
"""Many faults in one text, of which the environment plants one: compiled once, judged one by one.

Compiling takes most of the time that judging a fault takes.  What orders accesses stands in statements of
its own line, so the right and the changed lines can stand in one text, ``if (planted_fault() == 3)
{ changed } else { right }`` on one line, and findings tell of the lines of the right text.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

import attrs

from .judge_text import Judge, Verdict
from .text_faults import TextFault

_VARIABLE = "UIR_TEST_FAULT"

#: In front of the text, whose lines keep their numbers.
_CHOICE = f"""#include <stdlib.h>
static inline int planted_fault() {{
  const char *number = getenv("{_VARIABLE}");
  return number ? atoi(number) : -1;
}}
#line 1
"""


def merged(source: str, faults: Sequence[TextFault]) -> str:
    """The text with all faults, each behind its number.

    Parameters
    ----------
    source : str
        The right text.
    faults : sequence of TextFault
        Changes of whole statements, in lines that stay as many.
    """
    lines = source.split("\n")
    changes: list[list[tuple[int, str]]] = [[] for _ in lines]
    for number, fault in enumerate(faults):
        for at, (right, changed) in enumerate(zip(lines, fault.source.split("\n"), strict=True)):
            if right != changed:
                assert _statement(right).endswith(";"), f"no statement: {right}"
                changes[at].append((number, _statement(changed)))
    for at, planted in enumerate(changes):
        if planted:
            ways = [f"if (planted_fault() == {number}) {{ {changed} }} else " for number, changed in planted]
            lines[at] = "".join(ways) + f"{{ {_statement(lines[at])} }}"
    return _CHOICE + "\n".join(lines)


def _statement(line: str) -> str:
    return line.split("//")[0].strip()


@contextlib.contextmanager
def planting(number: int) -> Iterator[None]:
    """Within it, kernels of a merged text have the fault of this number."""
    os.environ[_VARIABLE] = str(number)
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def judge_all(judge: Judge, faults: Sequence[TextFault]) -> Iterator[Verdict]:
    """What becomes of each fault.

    Raises
    ------
    AssertionError
        The merged text without any of them is not judged as right.
    """
    text = merged(judge.kernel.source, faults)
    nothing = judge(TextFault("none", 0, "nothing", text, True))
    assert nothing.by == "NEEDLESS", nothing
    for number, fault in enumerate(faults):
        with planting(number):
            verdict = judge(attrs.evolve(fault, source=text))
        yield attrs.evolve(verdict, fault=fault)
