# SPDX-License-Identifier: Apache-2.0
"""What the fuzzers share: the command line, the clock, and the settings of a round of examples."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings


def fuzz(description: str | None, minutes: float, one_round: Callable[[int, str], str]) -> tuple[str, int]:
    """Rounds from a seed on, until the time is used up or something is found.

    Parameters
    ----------
    description : str
        For ``--help``.
    minutes : float
        Default of ``--minutes``.
    one_round : callable
        Seed and target -> the shrunk failure, or "" for none.

    Returns
    -------
    (str, int)
        A line that sums the rounds up, and the number of findings.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--seed", type=int, default=None, help="default: random")
    parser.add_argument("--target", default="uir-cpu", help="what runs it (a GPU on its host model)")
    parser.add_argument("--keep-going", action="store_true", help="collect findings instead of stopping")
    args = parser.parse_args()
    first = args.seed if args.seed is not None else random.SystemRandom().randrange(2**32)
    end = time.monotonic() + 60 * args.minutes
    print(f"seed {first}", flush=True)
    findings, seed = 0, first
    try:
        while time.monotonic() < end and (args.keep_going or not findings):
            failure = one_round(seed, args.target)
            if failure:
                findings += 1
                print(
                    f"---- finding in round {seed} (rerun: --target {args.target} --seed {seed})\n{failure}",
                    flush=True,
                )
            seed += 1
    except KeyboardInterrupt:
        print("interrupted")
    return f"{seed - first} rounds from seed {first}: {findings} findings", findings


def of_round(examples: int, **changes: Any) -> settings:
    """Settings of one round: as long as an example takes, nothing remembered, failures shrunk."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        **changes,
    )
