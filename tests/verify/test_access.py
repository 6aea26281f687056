# SPDX-License-Identifier: Apache-2.0
"""The accesses of a graph are those of the iOp table, as relations of pid and loops to addresses."""

from __future__ import annotations

import islpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.errors import VerifyError
from uir_tvm.igraph import iops_reads
from uir_tvm.igraph.iops import IOPS, IOpSpec
from uir_tvm.verify import accesses

from .graphs import graph

HEAD = """
t = iPointer(reg, fp32, 999)
a = iPointer(reg, fp32, 999)
b = iPointer(reg, fp32, 999)
m = iPointer(reg, bool, 999)
i = iPointer(reg, int32, 999)
d = iPointer(dram, fp32, 999, inout)
"""

# an iOp of every class that reads, with the shapes of target and sources
FORMS = {
    "move": ("move.reg.reg.fp32 t{t}, a{0}", ["(3,4)", "(3,4)"]),
    "move with pad": ("move.reg.reg.fp32 t{t}, a{0} [pad=0.0]", ["(3,4)", "(3,4)"]),
    "unary": ("unary.exp.fp32 t{t}, a{0}", ["(3,4)", "(3,4)"]),
    "select": ("select.fp32 t{t}, m{0}, a{1}, b{2}", ["(3,4)"] * 4),
    "broadcast row": ("broadcast.row.unit.fp32 t{t}, a{0}", ["(3,4)", "(3,1)"]),
    "broadcast col": ("broadcast.col.unit.fp32 t{t}, a{0}", ["(3,4)", "(1,4)"]),
    "reduce row": ("reduce.add.row.unit.fp32 t{t}, a{0}", ["(3,1)", "(3,4)"]),
    "reduce col": ("reduce.add.col.unit.fp32 t{t}, a{0}", ["(1,4)", "(3,4)"]),
    "transpose": ("transpose.fp32 t{t}, a{0}", ["(3,4)", "(4,3)"]),
    "gather rows": ("gather.fp32 t{t}, a{0}, i{1}", ["(3,4)", "(5,4)", "(3,1)"]),
    "gather elements": ("gather.fp32 t{t}, a{0}, i{1}", ["(3,4)", "(5,1)", "(3,4)"]),
    "scatter rows": ("scatter.fp32 d{t}, a{0}, i{1}", ["(5,4)", "(3,4)", "(3,1)"]),
    "scatter elements": ("scatter.fp32 d{t}, a{0}, i{1}", ["(5,1)", "(3,4)", "(3,4)"]),
    "contract": ("contract.fp32 t{t}, a{0}, b{1}", ["(3,4)", "(3,5)", "(5,4)"]),
}


def test_every_iop_that_reads_is_among_the_forms():
    reading = {op for op, spec in IOPS.items() if spec.source_types and op not in ("sync", "identity")}
    covered = {text.split(".")[0] for text, _ in FORMS.values()}
    assert reading - covered == {"binary", "compare", "cast"}  # these read as unary does


def test_an_iop_without_a_rule_is_refused(monkeypatch: pytest.MonkeyPatch):
    """Nothing is known of what it reads: it is not taken for elementwise."""
    found = graph(HEAD + "unary.exp.fp32 t[0; (3,4); (4,1)], a[0; (3,4); (4,1)]")
    assert accesses(found)
    with monkeypatch.context() as without:
        without.delitem(IOPS, "unary")
        with pytest.raises(VerifyError, match="Nothing is known of the iOp unary"):
            accesses(found)
    with pytest.raises(TypeError, match="reads"):
        IOpSpec("double", "t = 2 s", ("dtype",), ("dtype",), ("dtype",), lambda iop: None)  # type: ignore[call-arg]


def _range(word: str, begin: str, end: str) -> str:
    return f"; {word} {begin}:{end}" if begin or end else ""


begins, ends = st.sampled_from(["", "1", "pid"]), st.sampled_from(["", "3", "4 - pid"])
ranges = st.tuples(begins, ends, begins, ends).map(lambda r: _range("rows", *r[:2]) + _range("cols", *r[2:]))


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_reads_are_those_of_the_table(name, data):
    """At each pid, the region of every read is the box of the table, cut to what the source has.

    Where an operand is empty the region may hold more than is read: a proof for more is a proof.
    """
    text, shapes = FORMS[name]
    boxes = [f"[0; {shape}; (7,1){data.draw(ranges)}]" for shape in shapes]
    g = graph(HEAD + text.format(*boxes[1:], t=boxes[0]), (3, 1))
    iop, _ = next(g.walk())
    reads = [a for a in accesses(g) if a.kind == "read"]
    assert [a.operand for a in reads] == [f"source{k}" for k in range(len(iop.sources))]
    for pid in range(3):
        held = [s.valid_box({"pid": pid}) for s in iop.sources]
        wanted = iops_reads.boxes(IOPS[iop.op].reads(iop), iop.target.valid_box({"pid": pid}), held)
        for access, box, own in zip(reads, wanted, held, strict=True):
            meant, found = _elements(box) & _elements(own), _at(access, pid)
            assert meant <= found
            empty = not all(map(_elements, (iop.target.valid_box({"pid": pid}), *held)))
            assert found == meant or empty


def _elements(box) -> set[int]:
    return {7 * i + j for i in range(box[0], box[1]) for j in range(box[2], box[3])}


def _at(access, pid: int) -> set[int]:
    """The addresses that one unit touches, out of the isl relation."""
    unit = islpy.Set.read_from_str(access.relation.get_ctx(), f"{{ [{pid}] }}")
    found: set[int] = set()

    def add(point: islpy.Point) -> None:
        found.add(point.get_coordinate_val(islpy.dim_type.set, 0).to_python())

    access.relation.intersect_domain(unit).range().foreach_point(add)
    return found


def test_order_kinds_and_loops():
    """An iOp reads before it writes; accumulation reads its target; sync and identity touch nothing."""
    g = graph(
        """
        r = iPointer(reg, fp32, 4)
        x = iPointer(reg, fp32, 4)
        fill.fp32 r[0; (2,2); (2,1)] [0.0]
        fill.fp32 x[0; (2,2); (2,1)] [1.0]
        for k in 3 {
          contract.fp32 r[0; (2,2); (2,1)], x[0; (2,2); (2,1)], x[0; (2,2); (1,2)] [accumulate=true]
        }
        sync.reg r[0; (2,2); (2,1)], r[0; (2,2); (2,1)]
        identity [r[0; (2,2); (2,1)]], [r[0; (1,4); (4,1)]]"""
    )
    found = [(a.position, a.kind, a.operand, str(a.slice.pointer.name), a.variables) for a in accesses(g)]
    inside = ["pid", "k"]
    assert found == [
        (0, "write", "target", "r", ["pid"]),
        (1, "write", "target", "x", ["pid"]),
        (2, "read", "source0", "x", inside),
        (2, "read", "source1", "x", inside),
        (2, "read", "target", "r", inside),
        (2, "write", "target", "r", inside),
    ]


def test_group_forms_touch_their_buffer_and_only_leaders_hold_the_value():
    r, group = "r[0; (1,1); (1,1)]", "buffer=s[0; (1,4); (4,1)], group_size=4"
    g = graph(
        f"""
        r = iPointer(reg, fp32, 1)
        s = iPointer(sram, fp32, 4)
        fill.fp32 r[0; (1,1); (1,1)] [0.0]
        reduce.add.row.group.fp32 {r}, {r} [{group}]
        broadcast.row.group.fp32 {r}, {r} [{group}]
        """,
        (1, 8),
    )
    by = {(a.position, a.kind, a.operand): a.region.every for a in accesses(g)}
    assert by[(1, "write", "target")] == 4 and by[(1, "read", "source0")] == 1
    assert by[(2, "write", "target")] == 1 and by[(2, "read", "source0")] == 4
    for position in (1, 2):
        assert {(position, "read", "buffer"), (position, "write", "buffer")} <= set(by)
