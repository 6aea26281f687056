# SPDX-License-Identifier: Apache-2.0
"""One case with all peers: a row of the table."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from cases import build
from runners import reference
from shared_inputs import SharedInputs
from turns import ANSWER, READY, Peer, prepared, take_turns

#: Relative to the largest value: what fp32 models of some ten layers agree to.
AGREEMENT = 2e-4


def run_case(
    name: str,
    names: Sequence[str],
    seconds: float,
    threads: int,
    ready: float = READY,
    answer: float = ANSWER,
) -> dict[str, Any]:
    """One row of a case by name.

    Parameters
    ----------
    name : str
        Of `cases.NAMES`.
    names : sequence of str
        Peers (`runners.py`).
    seconds : float
        For each peer.
    threads : int
    ready, answer : float
        Seconds that a peer has until its first call has ended, and for an answer then.

    Returns
    -------
    dict
        Of `measured`; where torch cannot tell what is right, every peer has failed for that reason.
    """
    peers: dict[str, Peer] = {}
    with contextlib.ExitStack() as ends:
        try:
            module, inputs = build(name)
            shared = ends.enter_context(contextlib.closing(SharedInputs(inputs)))
            prepare = partial(prepared, file=shared.file)
            for peer in names:
                peers[peer] = Peer(name, peer, threads, prepare=prepare, ready=ready, answer=answer)
                ends.callback(peers[peer].stop)
            expected = reference(module, inputs)
        except Exception as error:  # a case that cannot be judged must not end the run
            return measured(name, {}, [], 0.0) | {"failed": dict.fromkeys(names, f"no reference: {error}")}
        return measured(name, peers, expected, seconds)


def measured(
    name: str, peers: Mapping[str, Peer], expected: Sequence[np.ndarray], seconds: float
) -> dict[str, Any]:
    """Seconds by peer, what failed and why, the largest difference to what is expected."""
    for peer in peers.values():  # all prepare at once; the turns come after
        peer.wait()
    take_turns([peer for peer in peers.values() if not peer.failed], seconds)
    errors = {each: peer.error(expected) for each, peer in peers.items() if not peer.failed}
    alive = {each: peer for each, peer in peers.items() if not peer.failed}
    return {
        "case": name,
        "seconds": {each: peer.median for each, peer in alive.items()},
        "errors": {each: errors[each] for each in alive},
        "wrong": [each for each in alive if not errors[each] <= AGREEMENT],
        "failed": {each: peer.failed for each, peer in peers.items() if peer.failed},
        "prepare": {each: peer.prepare for each, peer in alive.items()},
    }
