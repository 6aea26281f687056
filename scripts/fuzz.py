# SPDX-License-Identifier: Apache-2.0
"""Draw random functions for some minutes and compare what is compiled of them with NumPy.

``scripts/fuzz.py --minutes N --seed S [--target uir-cuda]`` prints its seed and, for a finding, the
smallest program that still shows it; exit code 1 then.  The same seed draws the same programs.
"""

from __future__ import annotations

import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz_rounds import fuzz, of_round
from hypothesis import given
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.schedules.check_program import check
from tests.schedules.program import Program
from tests.schedules.strategies import programs

#: Examples of one round; after each the clock is read and the seed moves on by one.
ROUND = 20


def main() -> int:
    """Fuzz as the command line says; 1 when something was found."""
    examples = 0

    def one(seed: int, target: str) -> str:
        nonlocal examples
        done, failure = one_round(seed, target)
        examples += done
        return failure

    summary, findings = fuzz(__doc__, 5.0, one)
    print(f"{examples} functions in {summary}")
    return 1 if findings else 0


def one_round(seed: int, target: str) -> tuple[int, str]:
    """Examples tried, and the shrunk failure ("" for none)."""
    count = 0

    @seeded(seed)
    @of_round(ROUND, print_blob=True)
    @given(programs(), st.integers(0, 2**16))
    def run(program: Program, inputs: int) -> None:
        nonlocal count
        count += 1
        check(program, inputs, target)

    try:
        run()
    except Exception:
        return count, traceback.format_exc()
    return count, ""


if __name__ == "__main__":
    sys.exit(main())
