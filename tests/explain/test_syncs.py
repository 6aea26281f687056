# SPDX-License-Identifier: Apache-2.0
"""Syncs with the accesses that need them, and those that nothing needs."""

from __future__ import annotations

from uir_tvm.explain.syncs import syncs

from . import graphs

WHOLE = "s[0; (1,128); (128,1)]"


def test_the_pair_that_a_sync_is_for() -> None:
    """The other unit's half of b is written by a move and read by the contraction."""
    (use,) = syncs(graphs.graph(graphs.STAGED))
    assert (use.position, use.scope, use.executions, use.needed) == (2, "sram", 1, True)
    assert use.proved and use.decided_by == "points"
    assert use.pointer == "s" and use.carried == ""
    assert use.first.startswith("iOp 0 (move) writes s[") and use.second.startswith(
        "iOp 3 (contract) reads s["
    )


def test_a_needless_sync_is_called_so() -> None:
    body = graphs.STAGED + f"sync.sram {WHOLE}, {WHOLE}\n"
    assert [use.needed for use in syncs(graphs.graph(body))] == [True, False]


def test_executions_are_those_of_its_loops() -> None:
    inside = graphs.SOFTMAX.replace("}", f"sync.sram {WHOLE}, {WHOLE}\n}}").replace(
        "for r", "s = iPointer(sram, fp32, 128)\nfor r"
    )
    (use,) = syncs(graphs.graph(inside))
    assert (use.executions, use.needed) == (8, False)


def test_no_syncs() -> None:
    assert syncs(graphs.graph(graphs.SOFTMAX)) == ()
