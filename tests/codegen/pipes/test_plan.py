# SPDX-License-Identifier: Apache-2.0
"""Planned syncs of kernels by hand: what must be there, nothing else, and no race by the simulator."""

from __future__ import annotations

import pytest
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import var

from .kernel import Data, at, lines, loop, op, plan
from .simulator import findings

K, H = var("k"), var("h")


def load(place: Data, source: Data) -> Data:
    return op("MTE2", [place], [source], "load")


def store(target: Data, place: Data) -> Data:
    return op("MTE3", [target], [place], "store")


def compute(place: Data, *sources: Data) -> Data:
    return op("V", [place], sources, "compute")


def exact(*body: Data, vocabulary: str = "ascend") -> list[str]:
    """The plan as text, in which nothing races and without any sync of which something does."""
    planned = plan(*body, vocabulary=vocabulary)
    assert findings(list(body), planned) == []
    for sync in planned["report"]:
        assert findings(list(body), planned, without=int(sync["number"]), first=True), (sync, lines(planned))
    return lines(planned)


def syncs(text: list[str]) -> list[str]:
    return [line.split(" #")[0].strip() for line in text if "#" in line]


def stream(extent: int, buffers: int) -> Data:
    a, b = at(32 * (K % buffers), 32), at(256 + 32 * (K % buffers), 32)
    return loop("k", extent, load(a, at(32 * K, 32, "x")), compute(b, a), store(at(32 * K, 32, "y"), b))


def test_load_compute_store_needs_two_flags():
    assert exact(
        load(at(0, 32), at(0, 32, "x")), compute(at(32, 32), at(0, 32)), store(at(0, 32, "y"), at(32, 32))
    ) == [
        "op 0",
        "set MTE2_V(0) #1",
        "wait MTE2_V(0) #1",
        "op 1",
        "set V_MTE3(0) #2",
        "wait V_MTE3(0) #2",
        "op 2",
    ]


def test_a_loop_gives_its_places_back():
    """Each iteration waits for the last one; before the first and behind the last the flags are balanced."""
    text = exact(stream(10, 1))
    assert text[:2] == ["set V_MTE2(0) #3", "set MTE3_V(0) #4"]
    assert text[-2:] == ["wait V_MTE2(0) #3", "wait MTE3_V(0) #4"]


def test_double_buffers_wait_for_the_iteration_before_the_last():
    text = exact(stream(10, 2))
    assert [line for line in text if "V_MTE2" in line] == [
        "set V_MTE2(0) #3",
        "set V_MTE2(1) #3",
        "  wait V_MTE2((k % 2)) #3",
        "  set V_MTE2((k % 2)) #3",
        "wait V_MTE2(0) #3",
        "wait V_MTE2(1) #3",
    ]


def test_behind_a_loop_of_fewer_iterations_flags_are_counted_by_its_variable():
    """Which of two flags is up then depends on how often it ran."""
    body = stream(10, 2)
    text, usual = lines(plan({**body, "fewer": True})), lines(plan(body))
    assert syncs(text[-4:]) == [
        "wait V_MTE2((k % 2))",
        "wait V_MTE2(((k + 1) % 2))",
        "wait MTE3_V((k % 2))",
        "wait MTE3_V(((k + 1) % 2))",
    ]
    assert text[:-4] == usual[:-4]


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 4, 5, 100])
@pytest.mark.parametrize("buffers", [1, 2, 3, 8])
def test_any_number_of_iterations(extent, buffers):
    """Also fewer than buffers; eight buffers have fewer flags than they could use."""
    exact(stream(extent, buffers))


def test_what_is_loaded_ahead_is_not_waited_for_at_once():
    """The load of k + 1 comes before the computation of k, which waits for the load one iteration earlier."""
    b = at(64, 32)
    text = exact(
        load(at(0, 32), at(0, 32, "x")),
        loop(
            "k",
            10,
            load(at(32 * ((K + 1) % 2), 32), at(32 * K + 32, 32, "x")),
            compute(b, at(32 * (K % 2), 32)),
            store(at(32 * K, 32, "y"), b),
        ),
    )
    assert "  set MTE2_V(((k + 1) % 2)) #4" in text
    assert "  wait MTE2_V((k % 2)) #4" in text
    assert not any("MTE2_V(0)" in line for line in text if line.startswith("  "))


def test_nested_loops_keep_their_buffers_busy():
    """The flags of the inner loop are set before the outer one: its iterations do not wait for each other."""
    text = exact(loop("h", 7, stream(10, 2)))
    assert text[:5] == [
        "set V_MTE2(0) #3",
        "set V_MTE2(1) #3",
        "set MTE3_V(0) #4",
        "set MTE3_V(1) #4",
        "h in 7:",
    ]


def test_ids_go_on_where_the_inner_loop_is_odd():
    """Buffers alternate by k: of two outer iterations the last and the first have the same one."""
    exact(loop("h", 7, stream(9, 2)))
    a = at(32 * ((9 * H + K) % 2), 32)
    text = exact(loop("h", 7, loop("k", 9, load(a, at(32 * K, 32, "x")), compute(at(64, 32), at(64, 32), a))))
    assert any("((9*h + k) % 2)" in line for line in text)


def test_in_place_computation_needs_barriers_between_dependent_instructions_only():
    a, b = at(0, 32), at(32, 32)
    text = exact(compute(a), compute(b), compute(a, a), compute(b, b), compute(at(64, 32), a, b))
    assert syncs(text) == ["barrier V", "barrier V"]
    assert text.index("barrier V #1") == 2


def test_a_flag_to_another_pipe_and_back_makes_a_barrier_needless():
    text = exact(compute(at(0, 8)), store(at(0, 8, "y"), at(0, 8)), compute(at(0, 8), at(0, 8)))
    assert syncs(text) == ["set V_MTE3(0)", "wait V_MTE3(0)", "set MTE3_V(0)", "wait MTE3_V(0)"]


def test_an_accumulator_is_carried_by_the_loop():
    text = exact(
        compute(at(0, 8)),
        loop(
            "k",
            10,
            load(at(32 + 32 * (K % 2), 32), at(32 * K, 32, "x")),
            compute(at(0, 8), at(0, 8), at(32 + 32 * (K % 2), 32)),
        ),
        store(at(0, 8, "y"), at(0, 8)),
    )
    assert sum("barrier V" in line for line in text) == 1


def test_a_row_at_a_time_of_a_tile_is_exact():
    """Rows are apart: no barrier between them, one flag for each; the store waits for all of them."""
    text = exact(
        loop(
            "h",
            5,
            loop(
                "k", 40, compute(at(8 * K, 8), at(8 * K + 1024, 8)), compute(at(8 * K + 512, 8), at(8 * K, 8))
            ),
            store(at(320 * H, 320, "y"), at(512, 320)),
        )
    )
    assert syncs(text) == [
        "set MTE3_V(0)",
        "wait MTE3_V(0)",
        "barrier V",
        "set V_MTE3(0)",
        "wait V_MTE3(0)",
        "set MTE3_V(0)",
        "wait MTE3_V(0)",
    ]


def test_places_that_are_never_reused_do_not_let_flags_get_lost():
    """Nothing in memory holds the loads back, but a flag must not be set before it was waited for."""
    body = [loop("k", 40, load(at(8 * K, 8), at(8 * K, 8, "x")), compute(at(512 + 8 * K, 8), at(8 * K, 8)))]
    text = exact(*body)
    assert syncs(text)[:2] == ["set V_MTE2(0)", "set V_MTE2(1)"]
    report = {str(r["what"]): list(r["serves"]) for r in plan(*body)["report"]}
    assert report["V_MTE2"] == ["flags MTE2_V are over before they are set again"]


def test_dram_is_memory_too():
    """What one store leaves, the next load of the same pointer reads; another pointer is another memory."""
    text = exact(
        store(at(0, 32, "w"), at(0, 32)), load(at(64, 32), at(16, 8, "w")), load(at(128, 8), at(0, 8, "x"))
    )
    assert syncs(text) == ["set MTE3_MTE2(0)", "wait MTE3_MTE2(0)"]


def test_rows_with_gaps_do_not_meet():
    """Two columns of one tile: strided, interleaved, without a common byte."""
    left, right = at(0, 8, dims=[(16, 32)]), at(16, 8, dims=[(16, 32)])
    assert syncs(exact(compute(left), compute(right))) == []
    assert syncs(exact(compute(left), compute(at(20, 8, dims=[(16, 36)])))) == ["barrier V"]


def test_what_depends_on_the_core_cancels():
    pid = var("pid")
    body = [store(at(4096 * pid, 64, "y"), at(0, 64)), load(at(64, 64), at(4096 * pid + 64, 64, "y"))]
    planned = plan(*body)
    assert not planned["report"]
    other = plan(body[0], load(at(64, 64), at(2048 * pid + 64, 64, "y")))
    assert [str(r["what"]) for r in other["report"]] == ["MTE3_MTE2"]


def test_the_scalar_unit_is_serial_and_issues_all_others():
    """What it waits for needs no flag to any pipe; what it reads itself does."""
    text = exact(
        loop(
            "k",
            5,
            compute(at(0, 32)),
            op("S", [], [at(0, 4)], "read"),
            load(at(32, 32), at(0, 32, "x")),
            compute(at(0, 32), at(32, 32)),
        )
    )
    assert "  wait V_S(0) #1" in text
    assert not any("V_MTE2" in line for line in text)
    assert any("S_V" in line for line in text)


def test_an_instruction_that_holds_the_core_comes_before_all_that_follows():
    held = [op("S", [at(0, 8, "w")], [], "wait", blocks=True), load(at(0, 8), at(0, 8, "w"))]
    assert syncs(exact(*held)) == []
    free = [op("S", [at(0, 8, "w")], [], "write"), load(at(0, 8), at(0, 8, "w"))]
    assert syncs(exact(*free)) == ["set S_MTE2(0)", "wait S_MTE2(0)"]


def test_holding_the_core_does_not_carry_what_it_wrote_itself():
    """Between a write of the scalar unit and its reader stands a wait for another core: the flag stays."""
    m, other = at(0, 4), at(64, 4)
    body = [compute(other, m), op("S", [], [], "wait", blocks=True), op("S", [m], [other], "write")]
    text = exact(loop("k", 3, *body), compute(at(128, 4), m))
    assert any(line.strip().startswith("wait S_V") for line in text)


def test_the_cube_has_pipes_of_its_own():
    l1, a, c = at(512 * (K % 2), 512, "l1"), at(0, 512, "l0a"), at(0, 512, "l0c")
    text = exact(
        loop("k", 6, load(l1, at(512 * K, 512, "x")), op("MTE1", [a], [l1]), op("M", [c], [a, c])),
        op("FIX", [at(0, 512, "y")], [c]),
    )
    assert "  set MTE2_MTE1((k % 2)) #1" in text
    assert "set M_FIX(0) #3" in text or any(line.startswith("set M_FIX") for line in text)


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
def test_more_flags_than_ids(looped, interleaved):
    """Ten loads and ten computations: flags are joined, or shared by what cannot be up at once."""
    loads = [load(at(8 * i, 8), at(8 * i, 8, "x")) for i in range(10)]
    uses = [compute(at(256 + 8 * i, 8), at(8 * i, 8)) for i in range(10)]
    body = [node for pair in zip(loads, uses, strict=True) for node in pair] if interleaved else loads + uses
    text = exact(*([loop("k", 9, *body)] if looped else body))
    assert not any("barrier" in line for line in text)


def test_deep_buffers_of_many_streams_share_the_ids():
    """Three streams with three buffers each would need nine flags of a pair; distances are cut."""
    body = []
    for s in range(3):
        a = at(512 * s + 32 * (K % 3), 32)
        body += [load(a, at(32 * K, 32, f"x{s}")), compute(at(512 * s + 256, 8), a)]
    exact(loop("k", 20, *body))


def test_a_core_without_flags_waits_for_its_pipes():
    """The load ahead runs while the core computes; both are over before the buffers are swapped."""
    text = exact(
        op("IO", [at(0, 32)], [at(0, 32, "x")]),
        loop(
            "k",
            10,
            op("IO", [at(32 * ((K + 1) % 2), 32)], [at(32 * K + 32, 32, "x")]),
            op("COMPUTE", [at(64, 32)], [at(64, 32), at(32 * (K % 2), 32)]),
        ),
        op("IO", [at(0, 32, "y")], [at(64, 32)]),
        vocabulary="bang",
    )
    assert text == [
        "op 0",
        "k in 10:",
        "  barrier COMPUTE #1",
        "  barrier IO #2",
        "  op 1",
        "  op 2",
        "barrier COMPUTE #3",
        "op 3",
    ]


def test_long_kernels_share_few_ids():
    """Two hundred and eighty instructions without a loop in eight places: forty flags of a pair, six ids."""
    body = []
    for i in range(40):
        a, b = at(32 * (i % 8), 32), at(32 * ((i + 5) % 8), 32)
        chain = [compute(at(32 * ((i + j + 1) % 8), 32), at(32 * ((i + j) % 8), 32)) for j in range(5)]
        body += [load(a, at(32 * i, 32, "x")), *chain, store(at(32 * i, 32, "y"), b)]
    assert findings(body, plan(*body)) == []


def test_reports_tell_what_each_sync_orders():
    report = plan(stream(10, 2))["report"]
    assert {str(r["what"]): list(r["serves"])[0] for r in report} == {
        "MTE2_V": "load -> compute (raw)",
        "V_MTE3": "compute -> store (raw)",
        "V_MTE2": "compute -> load (war, 2 later in k)",
        "MTE3_V": "store -> compute (war, 2 later in k)",
    }


def test_paragraphs_keep_their_syncs():
    """A set belongs to what comes before it, a wait to what it holds."""
    body = [
        {"kind": "group", "text": "one", "body": [load(at(0, 8), at(0, 8, "x"))]},
        {"kind": "group", "text": "two", "body": [compute(at(8, 8), at(0, 8))]},
    ]
    planned = plan(*body)
    assert [[str(n["kind"]) for n in group["body"]] for group in planned["body"]] == [
        ["instruction", "set"],
        ["wait", "instruction"],
    ]


def test_what_no_device_has_is_refused():
    with pytest.raises(CodegenError, match="pipe DMA, which the device lacks"):
        plan(op("DMA", [at(0, 8)]))
    with pytest.raises(CodegenError, match="no device has the syncs named toaster"):
        plan(op("V"), vocabulary="toaster")


def test_syncs_of_what_may_be_left_out_order_nothing_else():
    """The flag inside of the part tells of the load before too, but at the last iteration it is not there.

    A load into the other place, which its own pipe then changes, stands under a condition; what is computed
    with is loaded outside of it.
    """
    body = [
        load(at(0, 32), at(32 * K, 32, "x")),
        {
            **loop("o", 1, load(at(64, 32), at(32 * K, 32, "z")), compute(at(96, 32), at(64, 32))),
            "optional": True,
        },
        compute(at(32, 32), at(0, 32)),
    ]
    always = syncs(lines(plan(loop("k", 9, body[0], {**body[1], "optional": False}, body[2]))))
    perhaps = syncs(lines(plan(loop("k", 9, *body))))
    waits = [sum(line.startswith("wait MTE2_V") for line in text) for text in (always, perhaps)]
    assert waits[0] < waits[1], (always, perhaps)
