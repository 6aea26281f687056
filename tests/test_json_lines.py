# SPDX-License-Identifier: Apache-2.0
"""Lines that were added stay, wherever a crash cuts the file."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.errors import DatabaseError
from uir_tvm.json_lines import JsonLines

from .without_torch import program

VALUES = st.lists(st.one_of(st.integers(), st.text(), st.lists(st.floats(allow_nan=False))), min_size=1)


def lines(path: pathlib.Path) -> JsonLines:
    return JsonLines(path, DatabaseError)


@given(values=VALUES, data=st.data())
def test_a_cut_costs_the_last_line_alone(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], data: st.DataObject
) -> None:
    """Wherever the last line is cut off: what stood before is read, what is added stands behind it."""
    path = tmp_path_factory.mktemp("lines") / "f.json"
    lines(path).add(values)
    whole = path.read_bytes()
    last = len(json.dumps(values[-1], separators=(",", ":"))) + 1
    cut = data.draw(st.integers(0, last))
    path.write_bytes(whole[: len(whole) - cut])
    kept = lines(path).read()
    assert kept[: len(values) - 1] == values[:-1] and len(kept) <= len(values)
    lines(path).add(["new"])
    assert lines(path).read() in ([*values[:-1], "new"], [*values, "new"], [*kept, "new"])
    assert lines(path).read()[: len(kept)] == kept


def test_damage_elsewhere_is_told(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('[1]\n{"a\n[2]\n')
    with pytest.raises(DatabaseError, match="Line 2"):
        lines(path).read()


def test_a_file_is_replaced_as_a_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f.json"
    lines(path).replace([1, 2])
    lines(path).replace([3])
    assert lines(path).read() == [3] and [p.name for p in tmp_path.iterdir()] == ["f.json"]


def test_nothing_can_be_written_where_there_is_no_folder(tmp_path: pathlib.Path) -> None:
    absent = lines(tmp_path / "absent" / "f.json")
    for write in (absent.add, absent.replace):
        with pytest.raises(DatabaseError, match="cannot be written"):
            write([1])


def test_processes_take_turns(tmp_path: pathlib.Path) -> None:
    """Four processes add a hundred long lines each: all are there, none is torn."""
    path = tmp_path / "f.json"
    # what they need is loaded once
    code = """
import os, pathlib, sys
from uir_tvm.errors import DatabaseError
from uir_tvm.json_lines import JsonLines
for n in range(4):
    if not os.fork():
        status = 1
        try:
            file = JsonLines(pathlib.Path(sys.argv[1]), DatabaseError)
            for i in range(100):
                file.add([[n, i, "x" * 3000]])
            status = 0
        finally:
            os._exit(status)
sys.exit(any(os.wait()[1] for _ in range(4)))
"""
    subprocess.run(program(code, path), check=True, timeout=120)
    found = lines(path).read()
    assert sorted(line[:2] for line in found) == [[n, i] for n in range(4) for i in range(100)]
