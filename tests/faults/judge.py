# SPDX-License-Identifier: Apache-2.0
"""Who catches a planted fault: the verifier, the check of equivalence, or nobody though there is one."""

from __future__ import annotations

import attrs
from uir_tvm import verify
from uir_tvm.errors import UirError, VerifyError
from uir_tvm.igraph import IGraph

from . import oracle
from .equality import Reference

#: Verdicts beside the rules of the verifier.
EQUIVALENCE, BITS, EQUIVALENT = "equivalence", "bits", "equivalent"
UNSHOWN, MISSED, CRASH = "unshown", "MISSED", "CRASH"
#: All verdicts in the order of the table's columns.
VERDICTS: tuple[str, ...] = (*verify.ALL, EQUIVALENCE, BITS, EQUIVALENT, UNSHOWN, MISSED, CRASH)
#: Inputs on which graphs that seem equivalent are compared bit by bit.
BIT_CASES = 12
#: Those that fail a run.
FAILURES = (UNSHOWN, MISSED, CRASH)


@attrs.frozen
class Verdict:
    """What became of one planted fault, and in a line why."""

    by: str
    why: str = ""


def judge(reference: Reference, planted: IGraph) -> Verdict:
    """Ask the verifier, then the check of equivalence; what passes both must be shown to be the same.

    The check is asked as after an extraction (exact arithmetic, numbers within what rounding may do), then
    for equal bits (``bits``): a softmax without its maximum is the same but for rounding and overflow.
    ``equivalent`` says that the graph computes the same bits on every kind of input, and that no two units
    meet without a barrier between; ``unshown`` that the latter is too long to replay.
    """
    rule = EQUIVALENCE
    try:
        verify.verify(planted)
        verify.equivalent(reference.held, planted)
        rule = BITS
        verify.equivalent(reference.held, planted, bits=True, methods=["values"], cases=BIT_CASES)
    except VerifyError as error:
        return Verdict(rule if error.rule == EQUIVALENCE else error.rule, error.what)
    except UirError as error:
        return Verdict(EQUIVALENCE, error.what)
    except Exception as error:
        return Verdict(CRASH, f"{type(error).__name__}: {error}")
    why = reference.difference(planted)
    if why:
        return Verdict(MISSED, why)
    try:
        race = oracle.first_conflict(planted)
    except oracle.TooLarge:
        return Verdict(UNSHOWN, "too large to replay")
    return Verdict(EQUIVALENT) if race is None else Verdict(MISSED, f"a race: {race}")


def alarm(graph: IGraph) -> str:
    """What the verifier holds against a graph that is right; "" for nothing."""
    try:
        found = verify.check(graph)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return found[0].what if found else ""
