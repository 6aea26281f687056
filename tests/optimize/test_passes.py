# SPDX-License-Identifier: Apache-2.0
"""The table of passes, and what happens to a pass whose graph is refused."""

from __future__ import annotations

import pytest
from uir_tvm.errors import PassError, VerifyError
from uir_tvm.igraph import IGraph, parse_igraph
from uir_tvm.optimize import FIRST, PASSES, dead, hoist, optimize, select
from uir_tvm.optimize.passes import BY_NAME, RENAMED
from uir_tvm.options import CompileOptions
from uir_tvm.target import registry

from . import pairs

ORDER = (
    "identity end_loops end_joint_loops simplify load_cse store_load_forwarding promote fold_operands dead"
    " zero_pad_tiles turn deal_groups numbers_first hoist peel_tails align_rows coalesce_moves matrix_unit"
    " fold_broadcast split_live_ranges multibuffer insert_sync allocate"
).split()


def example() -> IGraph:
    return pairs.example("load_cse", "before")


def broken(graph: IGraph) -> IGraph:
    """A pass that loses everything."""
    return graph.replace(body=[])


def failing(graph: IGraph) -> IGraph:
    """A pass with a bug."""
    raise KeyError("t")


def test_the_table_is_in_order_and_says_why() -> None:
    assert [row.name for row in FIRST] == ["dead", "trim_bounds", "fold_inits", "load_cse", "insert_sync"]
    assert [row.name for row in PASSES] == ORDER
    assert all(row.reason and row.summary for row in (*FIRST, *PASSES))


def test_what_targets_run_exists_and_pays() -> None:
    for spec in registry.TARGETS.values():
        assert list(spec.passes) == [name for name in ORDER if name in spec.passes]
        assert all(spec.fact("pass_rows").values())
    rows = registry.describe_passes()
    assert [row["pass"] for row in rows] == [row.name for row in FIRST] + ORDER
    rows = rows[len(FIRST) :]
    pays = set(registry.get("uir-cpu").passes)
    assert all(("uir-cpu: " in row["pays on"]) == (row["pass"] in pays) for row in rows)
    assert all(row["pays on"] for row in rows), "a pass that pays nowhere"


def test_what_an_executable_keeps_of_a_step() -> None:
    """What changed in figures where something did, nothing where the pass left the graph."""
    first, again = optimize(example(), ["load_cse", "load_cse"]).steps
    assert first.changed and first.before.difference(first.after) in first.line()
    assert first.to_json() == {
        "pass": "load_cse",
        "changed": True,
        "note": first.before.difference(first.after),
        "fault": "",
    }
    assert again.line() == "load_cse: nothing to do"
    assert again.to_json() == {"pass": "load_cse", "changed": False, "note": "", "fault": ""}


def test_passes_run_in_the_order_given() -> None:
    assert [row.name for row in select(["dead", "load_cse"])] == ["dead", "load_cse"]
    assert [step.name for step in optimize(example(), ["dead", "load_cse"]).steps] == ["dead", "load_cse"]
    assert select(None) == PASSES and select([]) == ()


@pytest.mark.parametrize("ask", [lambda: select(["speed"]), lambda: CompileOptions(passes=("dead", "speed"))])
def test_an_unknown_pass_is_refused_at_once(ask: object) -> None:
    with pytest.raises(PassError, match="no pass 'speed'") as caught:
        ask()  # type: ignore[operator]
    assert caught.value.name == "speed" and "load_cse" in caught.value.need


def test_a_step_says_what_changed() -> None:
    result = optimize(example(), ["identity", "load_cse"])
    first, second = result.steps
    assert not first.changed and first.graph_after is first.graph_before and "nothing" in first.line()
    assert second.changed and second.before.iops - second.after.iops == 1
    assert second.before.bytes - second.after.bytes == 256 * 4, "one of two loads of 256 fp32 is gone"
    assert "bytes 3072 -> 2048" in second.line() and second.seconds > 0
    assert str(result).startswith("# load_cse: ")
    assert parse_igraph(str(result)) == result.graph, "a dump is an iGraph"


def test_a_graph_that_nothing_changes_is_the_same_object() -> None:
    graph = pairs.example("identity", "after")
    assert optimize(graph, ["identity", "load_cse", "dead"]).graph is graph


def test_only_what_changed_is_checked() -> None:
    seen: list[IGraph] = []
    result = optimize(example(), ["identity", "load_cse", "dead"], check=seen.append)
    assert len(seen) == 1 and seen[0] is result.steps[1].graph_after


def test_a_refused_graph_is_an_error_that_names_pass_and_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "run", broken)
    with pytest.raises(PassError, match="'dead'.*refused: Nothing writes the output 'y'") as caught:
        optimize(example(), ["load_cse", "dead"])
    assert caught.value.name == "dead" and isinstance(caught.value.__cause__, VerifyError)


@pytest.mark.parametrize("run", [broken, failing])
def test_the_graph_before_is_kept_with_a_warning(
    run: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dead, "run", run)
    with caplog.at_level("WARNING", logger="uir_tvm"):
        result = optimize(example(), ["load_cse", "dead", "hoist"], keep_going=True)
    (fault,) = result.faults
    assert fault.name == "dead" and fault.fault and not fault.changed
    assert result.graph is result.steps[0].graph_after and result.steps[0].changed
    assert "dead" in caplog.text and "# dead: refused" in str(result)


def test_without_a_check_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "run", broken)
    assert len(optimize(example(), ["dead"], check=None).graph.body) == 0


def test_a_failing_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hoist, "run", failing)
    with pytest.raises(PassError, match="'hoist' failed on `example`: KeyError"):
        optimize(example(), ["hoist"])


@pytest.mark.parametrize("old, new", RENAMED.items())
def test_an_old_name_is_refused_with_the_new_one(old: str, new: str) -> None:
    with pytest.raises(PassError, match=f"'{old}' is called '{new}'"):
        select(["dead", old])
    assert new in BY_NAME and old not in BY_NAME
