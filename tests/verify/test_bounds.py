# SPDX-License-Identifier: Apache-2.0
"""Bounds: exact over all pids, iterations and elements, by every one of the three methods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import IPointer, ISlice, affine, var
from uir_tvm.verify import bounds, check, decide
from uir_tvm.verify.region import region_of

from .graphs import clean, graph, only

PID, K = var("pid"), var("k")


def load(piece: str, size: int, loops: int = 1, parallel: tuple[int, int] = (4, 1), shape: str = "(4,8)"):
    """A graph that loads a slice of ``a``, a pointer of that size, and no more."""
    return graph(
        f"""
        a = iPointer(dram, fp32, {size}, in)
        r = iPointer(reg, fp32, 32)
        for k in {loops} {{
          move.dram.reg.fp32 r[0; {shape}; (8,1)], a[{piece}] [pad=0.0]
        }}""",
        parallel,
    )


PASS = {
    "exact fit": load("32*pid; (4,8); (8,1)", 128),
    "tail rows": load("32*pid; (4,8); (8,1); rows :14 - 4*pid", 112),
    "tail columns": load("8*pid; (4,8); (30,1); cols :30 - 8*pid", 120),
    "padding before the start": load("32*pid - 8; (4,8); (8,1); rows 1 - 4*pid:", 128),
    "floor and mod: a head of (rows, heads*16)": load(
        "16*(pid % 4) + 256*(pid / 4) + 8*k; (4,8); (64,1)", 512, 2, (8, 1)
    ),
    "a product that intervals overestimate": load("8*pid - 8*(pid % 2) - 8*(pid / 2)*2; (4,8); (8,1)", 32),
    "negative stride": load("24; (4,8); (-8,1)", 32),
    "a box that is empty where it would leave": load("32*pid; (4,8); (8,1); rows :8 - 4*pid", 64),
}

FAIL = {
    "one too far": (load("32*pid + 1; (4,8); (8,1)", 128), "beyond the end", "address 128", {"pid": 3}),
    "tail one too long": (
        load("32*pid; (4,8); (8,1); rows :15 - 4*pid", 112),
        "beyond the end",
        "address 119",
        {"pid": 3, "row": 2, "col": 7},
    ),
    "before the start": (
        load("32*pid - 8; (4,8); (8,1)", 128),
        "before the start",
        "address -8",
        {"pid": 0, "row": 0},
    ),
    "floor and mod": (
        load("16*(pid % 4) + 256*(pid / 4) + 8*k; (4,8); (64,1)", 511, 2, (8, 1)),
        "beyond the end",
        "address 511",
        {"pid": 7, "k": 1, "row": 3, "col": 7},
    ),
    "negative stride": (
        load("16; (4,8); (-8,1)", 32),
        "before the start",
        "address -8",
        {"row": 3, "col": 0},
    ),
    "only in one unit": (
        load("32*(pid % 3) + 40*(pid / 3); (4,8); (8,1)", 96, 1, (6, 1)),
        "beyond the end",
        "address 135",
        {"pid": 5},
    ),
}


@pytest.mark.parametrize("name", PASS)
def test_inside(name):
    clean(PASS[name])


@pytest.mark.parametrize("name", FAIL)
def test_outside(name):
    """The farthest address is told, and the witness reaches it."""
    g, where, need, witness = FAIL[name]
    fault = only(g, "bounds")
    assert f"reads {where} of 'a'" in fault.what
    assert fault.need == need
    assert witness.items() <= fault.witness.items()
    assert fault.remedy
    reached = _address(g, fault.witness)
    assert need == f"address {reached}"


def _address(g, witness) -> int:
    piece = next(g.walk())[0].sources[0]
    return (
        piece.offset.evaluate(witness) + witness["row"] * piece.row_stride + witness["col"] * piece.col_stride
    )


def test_every_kind_of_access_is_told_by_its_verb():
    g = graph(
        """
        o = iPointer(dram, fp32, 8, out)
        r = iPointer(reg, fp32, 8)
        fill.fp32 r[0; (1,8); (8,1)] [1.0]
        move.reg.dram.fp32 o[pid; (1,8); (8,1)], r[0; (1,8); (8,1)]"""
    )
    assert only(g, "bounds").what == "move.reg.dram.fp32 writes beyond the end of 'o'."


def test_a_remedy_holds():
    """The graph with the range that the message proposes passes."""
    fault = only(load("32*pid; (4,8); (8,1)", 100), "bounds")
    rows = fault.remedy.rsplit("rows :", 1)[1]
    clean(load(f"32*pid; (4,8); (8,1); rows :{rows}", 100))


# --- the three methods against enumeration ---------------------------------------------------------

small = st.integers(-9, 9)


@st.composite
def expressions(draw):
    """A quasi-affine expression over pid and k."""
    linear = PID * draw(small) + K * draw(small) + draw(st.integers(-20, 40))
    shape = draw(st.sampled_from(["linear", "mod", "floordiv", "both"]))
    inner = PID * draw(st.integers(0, 5)) + K * draw(st.integers(0, 3)) + draw(st.integers(0, 7))
    k = draw(st.integers(2, 6))
    extra = {
        "linear": affine(0),
        "mod": inner % k,
        "floordiv": inner // k,
        "both": inner % k + (inner // k) * 3,
    }
    return linear + extra[shape] * draw(st.integers(-4, 8))


@st.composite
def regions(draw):
    """(slice, extents) with offsets and ranges of any kind, small enough to enumerate."""
    bound = st.none() | expressions()
    piece = ISlice(
        IPointer("a", "dram", "fp32", 64, "in"),
        draw(expressions()),
        (draw(st.integers(1, 4)), draw(st.integers(1, 5))),
        (draw(st.integers(-3, 12)), draw(st.integers(-2, 4))),
        rows=(draw(bound), draw(bound)),
        cols=(draw(bound), draw(bound)),
    )
    return piece, {"pid": draw(st.integers(1, 6)), "k": draw(st.integers(1, 4))}


def addresses(piece: ISlice, extents: dict[str, int]) -> list[tuple[int, dict[str, int]]]:
    """(address, point) of every element, straight from the definition of a slice."""
    out = []
    for pid in range(extents["pid"]):
        for k in range(extents["k"]):
            env = {"pid": pid, "k": k}
            r0, r1, c0, c1 = piece.valid_box(env)
            base = piece.offset.evaluate(env)
            for i in range(r0, r1):
                for j in range(c0, c1):
                    out.append(
                        (base + i * piece.row_stride + j * piece.col_stride, env | {"row": i, "col": j})
                    )
    return out


@settings(max_examples=150, deadline=None)
@given(regions(), st.integers(1, 90))
def test_every_method_agrees_with_enumeration(region, size):
    """isl and corner enumeration are exact; intervals never claim what is not so."""
    piece, extents = region
    outside = {(a, tuple(p.items())) for a, p in addresses(piece, extents) if not 0 <= a < size}
    r = region_of(piece, extents)
    question = bounds._OutsideQuestion(r, size)
    assert not (question.excluded() and outside)
    for found in (question.by_isl(), question.by_points(True)):
        assert (found is None) == (not outside)
        if found is not None:
            assert (found.address, tuple(found.witness.items())) in _any_of_unused(outside, r, found.witness)
            # the farthest beyond the end, or else before the start
            reached = [address for address, _ in outside]
            assert found.address == (max(reached) if max(reached) >= size else min(reached))
    answer = bounds.find_outside(r, size)
    assert answer.decided and answer.excluded == (not outside)


def _any_of_unused(outside, region, witness):
    """A variable that the slice does not depend on is 0 in a witness; that point is among ``outside`` too."""
    assert all(witness[v] == 0 for v in region.extents if v not in region.used)
    return outside


def test_exhausted_isl_falls_back_and_what_is_too_large_is_not_passed(monkeypatch):
    """Without isl the corners are enumerated; where that is too long as well, it is a fault."""
    g = FAIL["only in one unit"][0]
    monkeypatch.setattr(bounds.isl, "bounded", _exhausted)
    monkeypatch.setattr(decide, "FEW_POINTS", 0)
    assert only(g, "bounds").need.startswith("address ")
    monkeypatch.setattr(decide, "MAX_POINTS", 3)
    fault = only(g, "bounds")
    assert "It is not proved that move.dram.reg.fp32 stays inside 'a'" in fault.what


def _exhausted(question):
    raise bounds.isl.Exhausted


def test_the_grid_of_variables_is_their_product():
    piece, extents = ISlice(IPointer("a", "dram", "fp32", 64, "in"), PID * 2 + K), {"pid": 3, "k": 4}
    r = region_of(piece, extents)
    seen = np.concatenate([r.offset.values(env) for env in r.grids(r.used, 5)])
    assert seen.tolist() == [2 * p + k for p in range(3) for k in range(4)]


def looked_up(rows: str):
    """Elements of a table of m rows, of the rows that are said to be there."""
    return graph(
        f"""
        size m = [1, 300]
        a = iPointer(dram, fp32, (m), in)
        i = iPointer(reg, int32, 4)
        r = iPointer(reg, fp32, 4)
        fill.int32 i[0; (1,4); (4,1)] [7]
        gather.fp32 r[0; (1,4); (4,1)], a[0; (300,1); (1,1){rows}], i[0; (1,4); (4,1)]""",
        (1, 1),
    )


@pytest.mark.parametrize(
    ("rows", "witness"), [("; rows :m", None), ("", 1), ("; rows :m + 1", 1), ("; rows :2*m - 1", 2)]
)
def test_a_table_has_the_rows_that_a_size_says(rows, witness):
    """Whatever the index: a bound that is wrong for some sizes only is found at one of them."""
    found = check(looked_up(rows), ("bounds",))
    assert [fault.rule for fault in found] == ([] if witness is None else ["bounds"])
    if witness is not None:
        assert found[0].witness["m"] >= witness and found[0].pointer == "a"


@pytest.mark.parametrize(("first", "fault"), [("n - 1", None), ("n", "beyond"), ("n - 2", "")])
def test_a_row_of_open_length_is_read_backwards(first: str, fault: str | None) -> None:
    """Its index is none below zero of the next row; one element too far on either side is a fault."""
    found = check(
        graph(
            f"""
            size n = [1, 40]
            x = iPointer(dram, fp32, (4, n), in)
            r = iPointer(reg, fp32, 40)
            move.dram.reg.fp32 r[0; (1,40); (40,1); cols :n], x[n*pid + {first}; (1,40); (40,-1); cols :n]
            """,
            (4, 1),
        ),
        ("bounds",),
    )
    assert bool(found) == (fault is not None), found
    assert not found or (fault or "before the start") in found[0].what
