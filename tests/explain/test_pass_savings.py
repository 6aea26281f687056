# SPDX-License-Identifier: Apache-2.0
"""The passes that the text of an optimised iGraph names."""

from __future__ import annotations

from uir_tvm.explain.pass_savings import Figure, PassEffect, pass_effects


def test_comments_above_the_graph() -> None:
    text = (
        "# store_load_forwarding: iops 9 -> 7, bytes 96 -> 64\n# hoist: refused (it is full)\n"
        "hardware h {\n}\n# not: so\n"
    )
    assert pass_effects(text) == (
        PassEffect("store_load_forwarding", "iops 9 -> 7, bytes 96 -> 64"),
        PassEffect("hoist", "it is full", refused=True),
    )
    forwarding, hoist = pass_effects(text)
    assert forwarding.figures == (Figure("iops", 9, 7), Figure("bytes", 96, 64)) and not forwarding.refused
    assert hoist.figures == () and hoist.refused
    assert pass_effects("igraph k on host parallel (1, 1) {\n}") == ()
