# SPDX-License-Identifier: Apache-2.0
"""Draw random functions for some minutes and compare what is compiled of them with NumPy.

``scripts/fuzz.py --minutes N --seed S`` prints its seed and, for a finding, the smallest program that still
shows it; exit code 1 then.  The same seed draws the same programs.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.schedules.check_program import check
from tests.schedules.strategies import Program, programs

#: Examples of one round; after each the clock is read and the seed moves on by one.
ROUND = 20


def main() -> int:
    """Fuzz as the command line says; 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None, help="default: random")
    parser.add_argument("--keep-going", action="store_true", help="collect findings instead of stopping")
    args = parser.parse_args()
    first = args.seed if args.seed is not None else random.SystemRandom().randrange(2**32)
    end = time.monotonic() + 60 * args.minutes
    print(f"seed {first}", flush=True)
    examples, findings, seed = 0, 0, first
    while time.monotonic() < end and (args.keep_going or not findings):
        done, failure = one_round(seed)
        examples += done
        if failure:
            findings += 1
            print(f"---- finding in round {seed} (rerun: --seed {seed})\n{failure}", flush=True)
        seed += 1
    print(f"{examples} functions in {seed - first} rounds from seed {first}: {findings} findings")
    return 1 if findings else 0


def one_round(seed: int) -> tuple[int, str]:
    """Examples tried, and the shrunk failure ("" for none)."""
    count = 0

    @seeded(seed)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(), st.integers(0, 2**16))
    def run(program: Program, inputs: int) -> None:
        nonlocal count
        count += 1
        check(program, inputs)

    try:
        run()
    except Exception:
        return count, traceback.format_exc()
    return count, ""


if __name__ == "__main__":
    sys.exit(main())
