# SPDX-License-Identifier: Apache-2.0
"""The rule on addresses: what an allocation gives passes, and every way to spoil it is found."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import IGraph
from uir_tvm.optimize import allocate
from uir_tvm.verify import check

from .graphs import clean
from .test_capacity import add, build, fill

BODY = fill("a") + fill("b") + add("c", "a", "b") + fill("d") + add("e", "c", "d")


def placed(**changes: object) -> IGraph:
    """The graph with its addresses, some of them changed (None: left out)."""
    graph = allocate.run(build(BODY))
    addresses = {str(k): v for k, v in graph.attrs["addresses"].items()} | changes
    kept = {name: value for name, value in addresses.items() if value is not None}
    return graph.replace(attrs=dict(graph.attrs.items()) | {"addresses": kept, "peak": {"reg": 4096}})


def test_an_allocation_passes():
    graph = allocate.run(build(BODY))
    clean(graph)
    assert dict(graph.attrs["peak"].items()) == {"reg": 2048, "sram": 0}


#: changed addresses -> words of the fault
SPOILT = {
    "both alive": ({"a": 0, "b": 512}, "'a' and 'b' share the bytes 512 to 1023 of reg while both are alive"),
    "not exactly in place": ({"a": 0, "b": 2048, "c": 512}, "'a' and 'c' share the bytes 512 to 1023"),
    "missing": ({"a": None}, "The pointer 'a' has no address"),
    "not aligned": ({"a": 3088}, "The address 3088 of 'a' is not aligned"),
    "before the memory": ({"a": -1024}, "The address -1024 of 'a' is not aligned"),
    "no number": ({"a": "x"}, "no mapping from names to byte offsets"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_spoilt_addresses_are_found(name):
    changes, words = SPOILT[name]
    found = check(placed(**changes))
    assert "addresses" in [f.rule for f in found]
    assert any(words in str(f) for f in found), "\n".join(map(str, found))
    assert all(f.remedy for f in found)


def test_the_moment_is_shown_at_which_the_later_one_is_made():
    found = [f for f in check(placed(a=0, b=512)) if f.rule == "addresses"]
    # b's own first iOp; then c's, which shares bytes with both
    assert [f.where.partition("[")[0] for f in found] == ["fill.fp32 b", "binary.add.fp32 c"]


def test_addresses_beyond_the_memory_are_the_capacity_rules():
    found = check(placed(a=4096))
    assert "capacity" in [f.rule for f in found]
    assert "5120 bytes of reg" in str(found)


def test_a_peak_that_is_too_small_is_found():
    graph = allocate.run(build(BODY))
    told = graph.replace(attrs=dict(graph.attrs.items()) | {"peak": {"reg": 1024, "sram": 0}})
    (fault,) = check(told)
    assert (fault.rule, fault.need) == ("addresses", "2048 bytes, the end of the highest pointer")
