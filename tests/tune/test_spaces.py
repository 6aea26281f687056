# SPDX-License-Identifier: Apache-2.0
"""Design spaces: their schedules compute right, whatever is decided, and are traces of stock MetaSchedule."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from tvm.s_tir import Schedule, meta_schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError
from tvm.s_tir.schedule import Trace
from tvm_ffi.structural import structural_equal
from uir_tvm import hardware
from uir_tvm.errors import ExtractionError, ScheduleError, VerifyError
from uir_tvm.igraph import HardwareModel, IGraph, interpreter
from uir_tvm.schedule.driver import apply_default
from uir_tvm.schedules.demo import TOLERANCE
from uir_tvm.tune.mutator import options
from uir_tvm.tune.spaces import DesignSpace, design_spaces, sampled_values

from tests.asked import asked, in_turn
from tests.extracted import extracted

from .recipe_kernels import HARDWARE, KERNELS, example

#: What a combination of decisions may be refused with.
REFUSALS = (ScheduleError, ExtractionError, VerifyError, TVMScheduleError)
#: Each kernel on the processor and on one device, in turn; all on all with ``UIR_TEST_ALL=1``.
PAIRS = in_turn(KERNELS, HARDWARE)


def model(target: str) -> HardwareModel:
    kind, name = HARDWARE[target]
    return hardware.get(name, kind)


@functools.cache
def spaces_of(name: str, target: str) -> list[DesignSpace]:
    return design_spaces(example(name).func, model(target))


def graph_of(sch: Schedule, target: str) -> IGraph:
    graph = extracted(sch.mod["main"], model(target), name="kernel")
    return graph


def assert_right(graph: IGraph, name: str) -> None:
    """What the interpreter computes is what NumPy does in float64, to the rounding of fp32 sums."""
    for got, want in zip(interpreter.run(graph, *example(name).inputs), example(name).expected, strict=True):
        want = np.asarray(want)
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        difference = np.abs(np.asarray(got).reshape(want.shape).astype("float64") - want)
        assert difference.max(initial=0) <= TOLERANCE * scale, f"{name} is off by {difference.max()}"


def replay(space: DesignSpace, trace: Trace) -> Schedule:
    """By stock MetaSchedule: a trace, and the function that it begins from."""
    sch = Schedule(tvm.IRModule({"main": space.begun}), debug_mask="none", error_render_level="fast")
    trace.apply_to_schedule(sch, remove_postproc=True)
    return sch


def choices(space: DesignSpace) -> list[tuple[Any, list[Any]]]:
    """The sampling instructions of a space and what each may decide."""
    trace = space.schedule.trace
    return [(inst, list(found)) for inst in trace.insts if (found := options(inst, trace))]


def named_alike(graph: IGraph) -> str:
    """A graph's text with loops named in order: sampled splits have other names."""
    text = str(graph)
    for number, name in enumerate(dict.fromkeys(re.findall(r"for (\w+) in", text))):
        text = re.sub(rf"\b{name}\b", f"loop{number}", text)
    return text


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_the_first_space_is_the_compilers_own_schedule(name: str, target: str) -> None:
    own = extracted(apply_default(example(name).func, model(target)), model(target), name="kernel")
    assert named_alike(graph_of(spaces_of(name, target)[0].schedule, target)) == named_alike(own)


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_every_space_computes_right_as_it_is(name: str, target: str) -> None:
    for space in spaces_of(name, target):
        assert_right(graph_of(space.schedule, target), name)


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_a_kernel_has_several_schedules(name: str, target: str) -> None:
    spaces = spaces_of(name, target)
    assert len(spaces) > 1 or choices(spaces[0])
    for space in spaces:
        # real alternatives: few enough of each to try them
        for inst, found in choices(space):
            assert inst.kind.name != "SampleCategorical" or 2 <= len(found) <= 12
        assert len(space.names) == len(sampled_values(space.schedule.trace)) == len(choices(space))
        assert len(set(space.names)) == len(space.names), "what is decided twice has two names"


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_traces_are_stock(name: str, target: str) -> None:
    """As JSON and back, and on the function that they begin from, they make the same function again."""
    for space in spaces_of(name, target):
        sch = Schedule(tvm.IRModule({"main": space.begun}), debug_mask="none")
        Trace.apply_json_to_schedule(space.schedule.trace.as_json(), sch)
        assert structural_equal(sch.mod["main"], space.schedule.mod["main"])
        assert structural_equal(replay(space, space.schedule.trace).mod["main"], sch.mod["main"])


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_every_decision_changes_the_function(name: str, target: str) -> None:
    for space in spaces_of(name, target):
        trace, own = space.schedule.trace, space.schedule.mod["main"]
        for (inst, found), label in zip(choices(space), space.names, strict=True):
            made = []
            for decision in found:
                try:
                    made.append(replay(space, trace.with_decision(inst, decision, remove_postproc=True)))
                except REFUSALS:
                    continue
            assert any(not structural_equal(sch.mod["main"], own) for sch in made), f"{space}: {label}"


def decided(space: DesignSpace, index: Callable[[int], Any]) -> Trace:
    """The space's trace with every decision drawn: ``index(n)`` is one of n."""
    trace = space.schedule.trace
    drawn = dict(trace.decisions)
    for inst, found in choices(space):
        drawn[inst] = found[index(len(found))]
    return Trace(trace.insts, drawn)


@seeded(7)
@settings(
    max_examples=asked(30, 200),
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from(PAIRS), st.data())
def test_whatever_is_decided_is_right_or_refused(pair: tuple[str, str], data: st.DataObject) -> None:
    name, target = pair
    spaces = spaces_of(name, target)

    def index(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    space = spaces[index(len(spaces))]
    trace = decided(space, index)
    try:
        graph = graph_of(replay(space, trace), target)
    except REFUSALS:
        return
    assert_right(graph, name)


def test_most_decisions_are_accepted() -> None:
    """Candidates are chosen so that few are refused: trials are for schedules."""
    rng = np.random.default_rng(5)
    accepted, tried = 0, 0
    for name, target in PAIRS[::7]:
        for space in spaces_of(name, target):
            for _ in range(2):
                trace = decided(space, rng.integers)
                tried += 1
                try:
                    graph_of(replay(space, trace), target)
                except REFUSALS:
                    continue
                accepted += 1
    assert accepted >= 0.9 * tried, f"{accepted} of {tried}"


def test_the_stock_mutator_of_tiles_applies() -> None:
    """MetaSchedule's own MutateTileSize finds the perfect tile of rows and gives a trace that replays."""
    (space, *_) = spaces_of("layer_norm", "uir-cpu")
    assert "tile_rows" in space.names
    mutator = meta_schedule.mutator.MutateTileSize()
    rows = set()
    for _ in range(16):
        mutated = mutator.apply(space.schedule.trace)
        assert mutated is not None
        sch = replay(space, mutated)
        rows.add(space.decisions(sch)["tile_rows"])
        assert_right(graph_of(sch, "uir-cpu"), "layer_norm")
    assert len(rows) > 1


def test_decisions_of_a_schedule_are_named() -> None:
    (space, *_) = spaces_of("column_mean", "uir-cpu")
    found = space.decisions(space.schedule)
    assert found["shared_columns"] == 0 and found["rows_at_once"] == 1 and found["tile_columns"] > 1
    named = dict(zip(space.names, [inst for inst, _ in choices(space)], strict=True))
    trace = space.schedule.trace.with_decision(named["num_groups"], 0, remove_postproc=True)
    other = replay(space, trace)
    assert space.decisions(other) == {**found, "num_groups": 1}
