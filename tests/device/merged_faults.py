# SPDX-License-Identifier: Apache-2.0
"""Many faults in one text, of which the environment plants one: compiled once, judged one by one.

Compiling takes most of the time that judging a fault takes.  What orders accesses stands in statements of
its own line, so the right and the changed lines can stand in one text, ``if (planted_fault() == 3)
{ changed } else { right }`` on one line, and findings tell of the lines of the right text.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence

import attrs

from .judge_text import NEEDLESS, UNCOMPILED, Judge, Verdict
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


#: A call, maybe under a condition, that declares nothing and launches nothing.
_CALL = re.compile(r"(?:if \([^{]*\) )?[\w:]+(?:<[^()]*>)?\(.*\);")


def can_merge(source: str, fault: TextFault) -> bool:
    """Whether a fault changes nothing but calls in lines of their own."""
    lines, changed = source.split("\n"), fault.source.split("\n")
    if len(lines) != len(changed):
        return False
    both = [(_statement(a), _statement(b)) for a, b in zip(lines, changed, strict=True) if a != b]
    return all(
        _CALL.fullmatch(a) and "<<<" not in a and (b in ("", ";") or _CALL.fullmatch(b)) for a, b in both
    )


def merged(source: str, faults: Sequence[TextFault]) -> str:
    """The text with all faults, each behind its number.

    Parameters
    ----------
    source : str
        The right text.
    faults : sequence of TextFault
        Such as `can_merge` lets through.
    """
    lines = source.split("\n")
    changes: list[list[tuple[int, str]]] = [[] for _ in lines]
    for number, fault in enumerate(faults):
        for at, (right, changed) in enumerate(zip(lines, fault.source.split("\n"), strict=True)):
            if right != changed:
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
    """What becomes of each fault, in their order.

    Raises
    ------
    AssertionError
        The merged text without any of them is not judged as right.
    """
    together = [fault for fault in faults if can_merge(judge.kernel.source, fault)]
    text = merged(judge.kernel.source, together)
    nothing = judge(TextFault("none", 0, "nothing", text, True))
    if nothing.by == UNCOMPILED:
        # one of the faults is none that compiles
        together = []
    else:
        assert nothing.by == NEEDLESS, nothing
    numbers = {id(fault): number for number, fault in enumerate(together)}
    for fault in faults:
        if id(fault) not in numbers:
            yield judge(fault)
            continue
        with planting(numbers[id(fault)]):
            verdict = judge(attrs.evolve(fault, source=text))
        yield attrs.evolve(verdict, fault=fault)
