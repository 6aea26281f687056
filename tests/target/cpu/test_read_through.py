# SPDX-License-Identifier: Apache-2.0

"""Reads of copies become reads of what was copied, but never of what has changed since."""

from __future__ import annotations

from uir_tvm.igraph.text import print_iop
from uir_tvm.optimize.webs import rename
from uir_tvm.target.cpu.read_through import read_through

from .support import parsed

POINTERS = """x = iPointer(dram, fp32, 64, in)
g = iPointer(dram, fp32, 16, in)
w = iPointer(dram, fp32, 64, inout)
o = iPointer(dram, fp32, 64, out)
a = iPointer(reg, fp32, 64)
b = iPointer(reg, fp32, 64)
c = iPointer(reg, fp32, 64)"""


def after(body: str) -> list[str]:
    """The iOps left, as text."""
    return [print_iop(iop) for iop, _ in read_through(rename(parsed(POINTERS, body))).walk()]


def test_chain_of_copies() -> None:
    found = after(
        """move.dram.reg.fp32 a[0; (1,16); (16,1)], g[0; (1,16); (16,1)]
        broadcast.col.unit.fp32 b[0; (4,16); (16,1)], a[0; (1,16); (16,1)]
        unary.exp.fp32 o[0; (4,16); (16,1)], b[0; (4,16); (16,1)]"""
    )
    assert found == ["unary.exp.fp32 o[0; (4,16); (16,1)], g[0; (4,16); (0,1)]"]


def test_part_of_a_copy() -> None:
    found = after(
        """move.dram.reg.fp32 a[0; (4,16); (16,1)], x[0; (4,16); (16,1)]
        unary.exp.fp32 o[0; (4,8); (16,1)], a[8; (4,8); (16,1)]
        unary.neg.fp32 o[8; (4,8); (16,1)], a[0; (4,8); (16,1)]"""
    )
    assert "x[8; (4,8); (16,1)]" in found[0] and "x[0; (4,8); (16,1)]" in found[1]
    assert len(found) == 2


REPEATED = """for k in 2 {
          move.dram.reg.fp32 a[0; (1,16); (16,1); ONE; cols :10], g[0; (1,16); (16,1); ONE; cols :10]
          broadcast.col.unit.fp32 b[0; (2,16); (16,1); ALL; cols :10], a[0; (1,16); (16,1); ONE; cols :10]
          unary.exp.fp32 o[32*k; (2,16); (16,1); ALL; cols :10], b[0; (2,16); (16,1); ALL; cols :10]
        }"""


def test_a_row_that_is_repeated_is_there_where_any_of_the_rows_is() -> None:
    rows = "rows :3 - 2*k"
    assert after(REPEATED.replace("ONE", rows).replace("ALL", rows)) == [
        "unary.exp.fp32 o[32*k; (2,16); (16,1); rows :-2*k + 3; cols :10], "
        "g[0; (2,16); (0,1); rows :-2*k + 3; cols :10]"
    ]


def test_a_row_that_may_lack_where_others_are_is_not_read_through() -> None:
    assert len(after(REPEATED.replace("ONE", "rows :2 - 2*k").replace("ALL", "rows :3 - 2*k"))) == 2


def test_not_past_a_write() -> None:
    body = """move.dram.reg.fp32 a[0; (4,16); (16,1)], w[0; (4,16); (16,1)]
        fill.fp32 w[0; (4,16); (16,1)] [0]
        unary.exp.fp32 o[0; (4,16); (16,1)], a[0; (4,16); (16,1)]"""
    assert len(after(body)) == 3


def test_not_past_a_write_later_in_a_loop() -> None:
    body = """move.dram.reg.fp32 a[0; (1,16); (16,1)], w[0; (1,16); (16,1)]
        for k in 4 {
          unary.exp.fp32 o[16*k; (1,16); (16,1)], a[0; (1,16); (16,1)]
          fill.fp32 w[16*k; (1,16); (16,1)] [0]
        }"""
    assert len(after(body)) == 3


def test_not_a_strided_read_in_every_pass() -> None:
    body = """move.dram.reg.fp32 a[0; (4,16); (16,1)], x[0; (4,16); (1,4)]
        unary.exp.fp32 o[0; (4,16); (16,1)], a[0; (4,16); (16,1)]"""
    assert len(after(body)) == 2


def test_a_value_of_its_own_per_pointer() -> None:
    """A temporary written anew is another one, so both copies can go."""
    found = after(
        """move.dram.reg.fp32 a[0; (4,16); (16,1)], x[0; (4,16); (16,1)]
        unary.exp.fp32 b[0; (4,16); (16,1)], a[0; (4,16); (16,1)]
        move.dram.reg.fp32 a[0; (4,16); (16,1)], w[0; (4,16); (16,1)]
        binary.add.fp32 o[0; (4,16); (16,1)], b[0; (4,16); (16,1)], a[0; (4,16); (16,1)]"""
    )
    assert len(found) == 2 and "w[0;" in found[1]


def test_a_partial_write_keeps_the_rest() -> None:
    found = after(
        """move.dram.reg.fp32 a[0; (4,16); (16,1)], x[0; (4,16); (16,1)]
        fill.fp32 a[16; (1,16); (16,1)] [0]
        unary.exp.fp32 o[0; (4,16); (16,1)], a[0; (4,16); (16,1)]"""
    )
    assert len(found) == 3


def test_valid_rows_of_a_copy_are_those_of_its_reader() -> None:
    def left(copied: str, read: str) -> int:
        return len(
            after(
                f"""move.dram.reg.fp32 a[0; (4,16); (16,1){copied}], x[0; (4,16); (16,1){copied}]
                unary.exp.fp32 o[0; (4,16); (16,1){read}], a[0; (4,16); (16,1){read}]"""
            )
        )

    assert left("; rows :3", "; rows :3") == left("", "; rows :3") == 1
    assert left("; rows :3", "; rows :2") == 2
