# SPDX-License-Identifier: Apache-2.0
"""Shapes in which compilers of tile programs have lost a barrier: each is found, its twin is clean."""

from __future__ import annotations

import pathlib

import pytest
from uir_tvm.igraph import IGraph, parse_igraph
from uir_tvm.verify import check

FOLDER = pathlib.Path(__file__).parent / "failures"

#: By file: the pointer that is raced for, and what the witness must say.
FAILURES: dict[str, str] = {
    "overlap_across_iterations": "u",
    "ping_pong_off_by_one": "bs",
    "conditional_store": "line",
    "group_buffer_reused": "buf",
    "write_after_read": "tile",
    "dram_exchange_between_groups": "part",
    "overwrite_at_an_offset": "line",
}


def read(name: str) -> IGraph:
    return parse_igraph((FOLDER / f"{name}.igraph").read_text())


@pytest.mark.parametrize("name", FAILURES)
def test_the_race_is_found(name: str) -> None:
    """Two units, one element: the witness names both, and they are different units."""
    faults = check(read(name))
    assert faults and {f.rule for f in faults} == {"race"}, "\n".join(map(str, faults))
    for fault in faults:
        assert fault.witness["pid"] != fault.witness["pid'"]
        assert "element" in fault.witness
        assert f"'{FAILURES[name]}'" in str(fault) or f"{FAILURES[name]}[" in str(fault)
        assert "sync." in fault.remedy


@pytest.mark.parametrize("name", FAILURES)
def test_the_corrected_twin_is_clean(name: str) -> None:
    faults = check(read(f"{name}.fixed"))
    assert faults == [], "\n".join(map(str, faults))


def test_every_file_is_listed_and_has_a_twin() -> None:
    files = {p.name.removesuffix(".igraph") for p in FOLDER.glob("*.igraph")}
    assert files == set(FAILURES) | {f"{name}.fixed" for name in FAILURES}
