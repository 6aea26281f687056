# SPDX-License-Identifier: Apache-2.0
"""Coverage: gaps and double writes are found exactly, by every one of the three methods."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import IPointer, ISlice, var
from uir_tvm.verify import coverage, decide
from uir_tvm.verify.access import Access
from uir_tvm.verify.region import region_of
from uir_tvm.verify.tiling import proves, tiling_of

from .graphs import clean, graph, only
from .test_bounds import expressions

PID, K = var("pid"), var("k")
RULES = ("form", "shape", "dtype", "bounds", "coverage")


def store(*pieces: str, size: int, loops: int = 1, parallel: tuple[int, int] = (4, 1), role: str = "out"):
    """A graph that fills a tile and stores it to slices of ``o``; (4,8) unless written otherwise."""
    moves = []
    for piece in pieces:
        offset, _, rest = piece.partition("; ")
        shape, _, tail = (rest or "(4,8); (8,1)").partition("; ")
        moves.append(f"move.reg.dram.fp32 o[{offset}; {shape}; {tail}], r[0; {shape}; (8,1){_ranges(tail)}]")
    lines = "\n".join(moves)
    return graph(
        f"""
        o = iPointer(dram, fp32, {size}, {role})
        r = iPointer(reg, fp32, 64)
        fill.fp32 r[0; (8,8); (8,1)] [0.0]
        for k in {loops} {{
          {lines}
        }}""",
        parallel,
    )


def _ranges(tail: str) -> str:
    return "".join("; " + part for part in tail.split("; ")[1:])


# every element once; the comment is the shape of the output
PASS = {
    "tiles": store("32*pid", size=128),
    "tiles in a loop": store("64*pid + 32*k", size=256, loops=2),
    "rewritten by the same unit": store("32*pid", size=128, loops=3),
    "columns of (4, 32)": store("8*pid; (4,8); (32,1)", size=128),
    "transposed (32, 4)": store("32*pid; (4,8); (1,4)", size=128),
    "tail rows (14, 8)": store("32*pid; (4,8); (8,1); rows :14 - 4*pid", size=112),
    "tail columns (4, 30)": store("8*pid; (4,8); (30,1); cols :30 - 8*pid", size=120),
    "tails both ways (7, 13)": store(
        "52*(pid / 2) + 8*(pid % 2); (4,8); (13,1); rows :7 - 4*(pid / 2); cols :13 - 8*(pid % 2)", size=91
    ),
    "tail over pid and loop (27, 8)": store(
        "64*pid + 32*k; (4,8); (8,1); rows :27 - 8*pid - 4*k", size=216, loops=2
    ),
    "units without work": store("32*pid; (4,8); (8,1); rows :6 - 4*pid", size=48),
    "concatenated rows": store("32*pid", "128 + 32*pid", size=256),
    "concatenated columns (16, 8+4)": store("48*pid; (4,8); (12,1)", "48*pid + 8; (4,4); (12,1)", size=192),
    "heads of (2, 3, 2*8)": store(
        "16*(pid % 3) + 48*(pid / 3) + 8*k; (1,8); (8,1)", size=96, loops=2, parallel=(6, 1)
    ),
    "(2, 3, 8) to (3, 2, 8)": store("16*(pid % 3) + 8*(pid / 3); (1,8); (8,1)", size=48, parallel=(6, 1)),
    "a remainder of a remainder": store("32*((pid % 8) % 4)", size=128),
    "reversed": store("96 - 32*pid", size=128),
    "mixed order of pid and loop": store(
        "32*(pid / 2) + 64*k + 16*(pid % 2); (2,8); (8,1)", size=128, loops=2
    ),
    "a flat index over pid and loop": store(
        "8*((3*pid + k) / 2) + 4*((3*pid + k) % 2); (1,4); (4,1)", size=48, loops=3
    ),
    "in place, a part": store("32*pid; (2,8); (8,1)", size=128, role="inout"),
}

FAIL = {
    "nothing": (store(size=8, parallel=(1, 1)).replace(body=[]), "Nothing writes the output 'o'.", {}),
    "a gap between units": (
        store("40*pid; (4,8); (8,1)", size=160),
        "No unit writes element 32",
        {"element": 32},
    ),
    "a gap at the end": (store("32*pid", size=129), "No unit writes element 128", {"element": 128}),
    "a tail cut short": (
        store("32*pid; (4,8); (8,1); rows :13 - 4*pid", size=112),
        "No unit writes element 104",
        {"element": 104},
    ),
    "a missing iteration": (store("64*pid + 32*k", size=256), "No unit writes element 32", {"element": 32}),
    "one row too many": (
        store("24*pid; (4,8); (8,1)", size=104),
        "both write element",
        {"pid": 0, "other_pid": 1, "element": 24},
    ),
    "all units the same": (
        store("0", size=32),
        "both write element 0",
        {"pid": 0, "other_pid": 3, "element": 0},
    ),
    "the last two": (
        store("32*pid - 8*(pid / 3)", size=120),
        "Units 2 and 3 both write element 88",
        {"pid": 2, "other_pid": 3},
    ),
    "one column too many": (
        store("pid; (1,2); (2,1)", size=5),
        "both write element 1",
        {"pid": 0, "other_pid": 1, "element": 1},
    ),
    "remainders that come again": (
        store("32*((pid % 4) % 8)", size=128, parallel=(8, 1)),
        "both write element 0",
        {"pid": 0, "other_pid": 4, "element": 0},
    ),
    "in place, twice": (
        store("24*pid", size=104, role="inout"),
        "both write element 24",
        {"pid": 0, "other_pid": 1},
    ),
    "two iOps of two units": (
        store("32*pid", "32*pid + 32 - 128*(pid / 3)", size=128),
        "both write element",
        {},
    ),
}


@pytest.mark.parametrize("name", PASS)
def test_covered(name):
    clean(PASS[name], RULES)


@pytest.mark.parametrize("name", FAIL)
def test_not_covered(name):
    g, what, witness = FAIL[name]
    fault = only(g, "coverage")
    assert what in fault.what
    assert witness.items() <= fault.witness.items()
    assert "'o'" in fault.what and fault.where and fault.remedy


def test_the_iops_that_meet_are_named():
    """Of three stores, the two that write the element, and not the one that does not."""
    first, other, second = "32*pid", "32*pid + 128", "32*pid - 128*(pid / 3) + 32"
    fault = only(store(first, other, second, size=256), "coverage")
    assert f"o[{first};" in fault.where
    assert "(pid / 3) + 32*pid + 32;" in fault.where
    assert f"o[{other};" not in fault.where


def test_what_a_scatter_writes_is_exempt():
    """The index decides: neither gaps nor double writes are claimed."""
    clean(
        graph(
            """
            o = iPointer(dram, fp32, 64, inout)
            r = iPointer(reg, fp32, 8)
            i = iPointer(reg, int32, 1)
            fill.fp32 r[0; (1,8); (8,1)] [0.0]
            fill.int32 i[0; (1,1); (1,1)] [3]
            scatter.fp32 o[0; (8,8); (8,1)], r[0; (1,8); (8,1)], i[0; (1,1); (1,1)]"""
        )
    )


@pytest.mark.parametrize("name", [n for n in PASS if n != "a flat index over pid and loop"])
def test_usual_writes_are_proved_without_isl(name, monkeypatch):
    """The quick method knows them all; otherwise large kernels would pay for isl or enumeration."""

    def refuse(*args, **kwargs):
        raise AssertionError("isl was asked")

    monkeypatch.setattr(coverage.isl, "bounded", refuse)
    clean(PASS[name], ("coverage",))


@pytest.mark.parametrize("name", FAIL)
def test_isl_finds_the_same_faults(name, monkeypatch):
    """As for an output too large to mark first."""
    monkeypatch.setattr(coverage, "FEW_POINTS", 0)
    g, what, _ = FAIL[name]
    assert what.split(" element")[0].split("Units")[0] in only(g, "coverage").what


def test_exhausted_isl_falls_back_and_what_is_too_large_is_not_passed(monkeypatch):
    def exhausted(question):
        raise coverage.isl.Exhausted

    monkeypatch.setattr(coverage.isl, "bounded", exhausted)
    monkeypatch.setattr(coverage, "FEW_POINTS", 0)
    for name, (g, what, _) in FAIL.items():
        assert what.split(" element")[0] in only(g, "coverage").what, name
    clean(PASS["a flat index over pid and loop"], RULES)
    monkeypatch.setattr(decide, "MAX_POINTS", 3)
    assert "It is not proved that every element of 'o'" in only(FAIL["one row too many"][0], "coverage").what


# --- the three methods against enumeration ---------------------------------------------------------


def digit_offsets():
    """Offsets as tilings have them: coefficients near products of the extents, some quotients of pid."""
    c = st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 16, 24])
    plain = st.tuples(c, c).map(lambda t: PID * t[0] + K * t[1])
    split = st.tuples(c, c, c, st.sampled_from([2, 3])).map(
        lambda t: (PID // t[3]) * t[0] + (PID % t[3]) * t[1] + K * t[2]
    )
    return plain | split


@st.composite
def stores(draw):
    """One or two writes of (slice, extents), their size, near enough to tilings that many are."""
    extents = {"pid": draw(st.sampled_from([1, 2, 4, 6])), "k": draw(st.integers(1, 3))}
    pieces = []
    for _ in range(draw(st.integers(1, 2))):
        rows, cols = draw(st.integers(1, 4)), draw(st.integers(1, 4))
        stride = (
            draw(st.sampled_from([cols, cols + 1, 2 * cols, 8, 1])),
            draw(st.sampled_from([1, 1, 2, rows])),
        )
        tail = draw(
            st.sampled_from([None, None, 5 - PID, 7 - PID * rows, 9 - (PID // 2) * rows, 6 - K * rows])
        )
        offset = draw(digit_offsets()) if draw(st.booleans()) else draw(expressions())
        pieces.append(
            ISlice(
                IPointer("o", "dram", "fp32", 999, "out"),
                offset + draw(st.sampled_from([0, 0, 4, 8])),
                (rows, cols),
                stride,
                rows=(None, tail),
            )
        )
    return pieces, extents


@st.composite
def tilings(draw):
    """A mixed-radix tiling of rows, columns, k, quotient and remainder of pid, in any order.

    At times with a tail, at times with one coefficient that is off.
    """
    split, k = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    extents = {"pid": split * draw(st.integers(1, 3)), "k": k}
    rows, cols = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    parts = {"i": rows, "j": cols, "k": k, "q": extents["pid"] // split, "r": split}
    order = draw(st.permutations(list(parts)))
    coefficient, step = {}, 1
    for name in order:
        coefficient[name] = step
        step *= parts[name]
    tail, following = None, order[order.index("i") + 1 : order.index("i") + 2]
    digit = {"k": K, "q": PID // split, "r": PID % split}
    if following and following[0] in digit and draw(st.booleans()):
        tail = draw(st.integers(1, rows * parts[following[0]])) - digit[following[0]] * rows
    if draw(st.integers(0, 3)) == 0:
        coefficient[draw(st.sampled_from(order))] += draw(st.sampled_from([-1, 1, 2]))
    offset = K * coefficient["k"] + (PID // split) * coefficient["q"] + (PID % split) * coefficient["r"]
    pointer, stride = IPointer("o", "dram", "fp32", 999, "out"), (coefficient["i"], coefficient["j"])
    return [ISlice(pointer, offset, (rows, cols), stride, rows=(None, tail))], extents


@settings(max_examples=150, deadline=None)
@given(stores() | tilings(), st.booleans(), st.data())
def test_every_method_agrees_with_enumeration(writes, complete, data):
    pieces, extents = writes
    owners: dict[int, set[int]] = {}
    for piece in pieces:
        for pid in range(extents["pid"]):
            for k in range(extents["k"]):
                env = {"pid": pid, "k": k}
                r0, r1, c0, c1 = piece.valid_box(env)
                base = piece.offset.evaluate(env)
                for i in range(r0, r1):
                    for j in range(c0, c1):
                        address = base + i * piece.row_stride + j * piece.col_stride
                        owners.setdefault(address, set()).add(pid)
    if not owners or min(owners) < 0:
        return  # out of bounds: another rule's
    size = max(owners) + 1 + data.draw(st.sampled_from([0, 0, 0, 1]))
    gaps = {e for e in range(size) if e not in owners} if complete else set()
    clashes = {e for e, units in owners.items() if len(units) > 1}
    accesses = [Access(None, (), k, p, "write", region_of(p, extents)) for k, p in enumerate(pieces)]

    tilings = [tiling_of(a.region) for a in accesses]
    if all(t is not None for t in tilings) and proves(tilings, size, complete):
        assert not gaps and not clashes
    regions = [a.region for a in accesses]
    try:  # projections of some of these take isl minutes
        by_isl = [coverage.isl.bounded(lambda: coverage._by_isl(regions, size, complete))]
    except coverage.isl.Exhausted:
        by_isl = []
    for found in (
        *by_isl,
        coverage._by_marking(regions, size, complete),
        coverage.find(accesses, size, complete).found,
    ):
        if isinstance(found, coverage.Gap):
            assert found.element in gaps
        elif isinstance(found, coverage.Clash):
            assert {found.first, found.second} <= owners[found.element] and found.first < found.second
        else:
            assert found is None and not gaps and not clashes
