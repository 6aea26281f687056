# SPDX-License-Identifier: Apache-2.0
"""Draw random schedules of random functions for some minutes; what is accepted must compute right.

``scripts/fuzz_schedules.py --minutes N --seed S [--target uir-cuda]`` prints its seed, how many schedules
were accepted, and why the others were refused.  A finding (a wrong result, or an error that is no typed
refusal) is shrunk to a small function, printed with the steps of its schedule and its iGraph; exit code 1
then.
"""

from __future__ import annotations

import collections
import logging
import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz_rounds import fuzz, of_round
from hypothesis import given
from hypothesis import seed as seeded
from hypothesis import strategies as st
from uir_tvm.target.registry import TARGETS

from tests.schedules.check_schedule import Finding, check
from tests.schedules.program import Program
from tests.schedules.strategies import programs

#: Examples of one round; after each the clock is read and the seed moves on by one.
ROUND = 25
#: What `check` says of a schedule that it took: a CPU, a device of groups, or a target's own device.
ACCEPTED = ("cpu", "groups", *sorted({row.kind for row in TARGETS.values()} - {"cpu"}))


def main() -> int:
    """Fuzz as the command line says; 1 when something was found."""
    # a refusal is counted here; compile_kernel would also warn of each
    logging.getLogger("uir_tvm").setLevel(logging.ERROR)
    outcomes: collections.Counter[str] = collections.Counter()
    summary, findings = fuzz(__doc__, 10.0, lambda seed, target: one_round(seed, target, outcomes))
    report(outcomes)
    print(summary)
    return 1 if findings else 0


def one_round(seed: int, target: str, outcomes: collections.Counter[str]) -> str:
    """Count the outcome of every example; the shrunk failure ("" for none)."""
    failed = False

    @seeded(seed)
    @of_round(ROUND, report_multiple_bugs=False)
    @given(programs(), st.integers(0, 2**16), st.data())
    def run(program: Program, inputs: int, data: st.DataObject) -> None:
        nonlocal failed
        try:
            outcome = check(program, data.draw, inputs, target)
        except Exception:
            failed = True
            raise
        if not failed:  # what shrinking tries is no sample
            outcomes[outcome] += 1

    try:
        run()
    except Finding as error:
        cause = traceback.format_exception(error.__cause__, limit=-4)
        return f"{error}\n--- from\n{''.join(cause)}"
    except Exception:
        return traceback.format_exc()
    return ""


def report(outcomes: collections.Counter[str]) -> None:
    """How many were accepted, and the reasons of the others, most frequent first."""
    total = max(1, sum(outcomes.values()))
    accepted = sum(outcomes[name] for name in ACCEPTED)
    parts = ", ".join(f"{outcomes[name]} {name}" for name in ACCEPTED if outcomes[name])
    print(f"{total} schedules, {accepted} accepted ({100 * accepted / total:.0f} %: {parts})")
    for reason, count in outcomes.most_common():
        if reason not in ACCEPTED:
            print(f"  {count:5d} refused: {reason}")


if __name__ == "__main__":
    sys.exit(main())
