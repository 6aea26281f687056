# SPDX-License-Identifier: Apache-2.0
"""Sources are valid wherever they are read, for each way in which an iOp reads."""

from __future__ import annotations

import pytest
from uir_tvm.verify import check, decide, valid

from .graphs import graph

HEAD = """
a = iPointer(reg, fp32, 64)
b = iPointer(reg, fp32, 64)
t = iPointer(reg, fp32, 64)
i = iPointer(reg, int32, 8)
d = iPointer(dram, fp32, 64)
"""

# iOp -> (the operand whose box is read from, the part of it that is missing); {} is the range at issue
CASES = {
    "unary": "unary.exp.fp32 t[0; (4,8); (8,1)], a[0; (4,8); (8,1); rows :{}]",
    "second operand": "binary.add.fp32 t[0; (4,8); (8,1)], a[0; (4,8); (8,1)], b[0; (4,8); (8,1); rows :{}]",
    "broadcast": "broadcast.row.unit.fp32 t[0; (4,8); (8,1)], a[0; (4,1); (1,1); rows :{}]",
    "transpose": "transpose.fp32 t[0; (8,4); (4,1)], a[0; (4,8); (8,1); rows :{}]",
    "factor rows": "contract.fp32 t[0; (4,4); (4,1)], a[0; (4,8); (8,1); rows :{}], b[0; (8,4); (4,1)]",
    "factor depth": "contract.fp32 t[0; (4,4); (4,1)], a[0; (4,4); (8,1)], b[0; (4,4); (4,1); rows :{}]",
    "index": "gather.fp32 t[0; (4,8); (8,1)], d[0; (8,8); (8,1)], i[0; (4,1); (1,1); rows :{}]",
    "scatter": "scatter.fp32 d[0; (8,8); (8,1)], a[0; (4,8); (8,1)], i[0; (4,1); (1,1); rows :{}]",
}


def faults(body: str, parallel=(4, 1)):
    return check(graph(HEAD + body, parallel), ("form", "shape", "dtype", "bounds"))


@pytest.mark.parametrize("name", CASES)
def test_missing_rows_are_found_and_whole_ranges_pass(name):
    """``:4 - pid`` lacks rows in unit 1 and above; ``:5 - pid`` has all four in two units."""
    (fault,) = faults(CASES[name].format("4 - pid"))
    assert fault.rule == "bounds"
    assert "outside its valid rows" in fault.what
    assert fault.witness["pid"] >= 1
    assert "rows 0:-pid + 4" in fault.limit
    assert not faults(CASES[name].format("5 - pid"), (2, 1))


def test_lower_ends_count_too():
    (fault,) = faults("unary.exp.fp32 t[0; (4,8); (8,1)], a[0; (4,8); (8,1); cols pid:]")
    assert fault.what == "unary.exp.fp32 reads 'a' outside its valid columns.".replace("columns", "cols")
    assert not faults("unary.exp.fp32 t[0; (4,8); (8,1); cols pid:], a[0; (4,8); (8,1); cols pid:]")


def test_a_target_as_narrow_as_its_source_passes():
    assert not faults("unary.exp.fp32 t[0; (4,8); (8,1); rows :4 - pid], a[0; (4,8); (8,1); rows :4 - pid]")
    assert not faults("unary.exp.fp32 t[0; (4,8); (8,1); rows :3 - pid], a[0; (4,8); (8,1); rows :4 - pid]")


def test_what_an_iop_may_leave_out_need_not_be_there():
    """A padded move and a reduction read what the source has."""
    assert not faults("move.reg.reg.fp32 t[0; (4,8); (8,1)], a[0; (4,8); (8,1); rows :4 - pid] [pad=0.0]")
    assert not faults("reduce.add.row.unit.fp32 t[0; (4,1); (1,1)], a[0; (4,8); (8,1); cols :4 - pid]")


def test_ranges_that_agree_only_on_the_domain_pass():
    """``pid % 4`` is ``pid`` in four units; intervals cannot know."""
    body = "unary.exp.fp32 t[0; (4,8); (8,1); rows :4 - pid], a[0; (4,8); (8,1); rows :4 - (pid % 4)]"
    assert not faults(body)
    (fault,) = faults(body.replace("4 - pid", "5 - pid"), (5, 1))
    # rows 0 .. 4 - pid of the target, but 3 - pid of the source; in unit 4 the remainder is 0 again
    assert 1 <= fault.witness["pid"] <= 3


def test_isl_and_what_comes_after_it_find_the_same(monkeypatch):
    """As where pid and loops have many values: isl, then enumeration, and at last a fault that says so."""

    def exhausted(question):
        raise valid.isl.Exhausted

    monkeypatch.setattr(decide, "FEW_POINTS", 0)
    test_ranges_that_agree_only_on_the_domain_pass()
    test_lower_ends_count_too()
    monkeypatch.setattr(valid.isl, "bounded", exhausted)
    test_ranges_that_agree_only_on_the_domain_pass()
    test_lower_ends_count_too()
    monkeypatch.setattr(decide, "MAX_POINTS", 0)
    body = "unary.exp.fp32 t[0; (4,8); (8,1); rows :4 - pid], a[0; (4,8); (8,1); rows :4 - (pid % 4)]"
    (fault,) = faults(body)
    assert "It is not proved that unary.exp.fp32 reads only valid rows of 'a'" in fault.what
