# SPDX-License-Identifier: Apache-2.0
"""What products, attention, and rows and columns that units share may decide: all of it computes right."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from tvm.relax import op
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError
from tvm_ffi.structural import structural_equal
from uir_tvm import hardware
from uir_tvm.errors import ExtractionError, ScheduleError, VerifyError
from uir_tvm.igraph import HardwareModel, IGraph, interpreter
from uir_tvm.schedule.decisions import OWN, Decisions, near
from uir_tvm.schedule.driver import apply_default
from uir_tvm.schedules import attention
from uir_tvm.schedules.attention.flash import flash_function
from uir_tvm.schedules.attention.folded import fold_heads
from uir_tvm.schedules.attention.parts import read_parts
from uir_tvm.schedules.contraction.shared_product import PRODUCT_SPACES, choose, decide_tile, with_joint
from uir_tvm.schedules.demo import TOLERANCE, Example, from_relax
from uir_tvm.schedules.normalization.shared_rows import Sharing, decide_part
from uir_tvm.tune.mutator import options
from uir_tvm.tune.spaces import DesignSpace, design_spaces

from tests.asked import asked
from tests.extracted import extracted

#: What a combination of decisions may be refused with.
REFUSALS = (ScheduleError, ExtractionError, VerifyError, TVMScheduleError)

HARDWARE: dict[str, HardwareModel] = {
    "cpu": hardware.get("avx512-2core"),
    "cuda": hardware.get("h100", "cuda"),
    "ascend": hardware.get("910b2", "ascend"),
    "bang": hardware.get("mlu370-x8", "bang"),
}


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _product() -> Example:
    return from_relax(
        lambda a, b, c: op.nn.relu(op.add(op.matmul(a, b), c)),
        [(40, 100), (100, 72), (72,)],
        lambda a, b, c: np.maximum(a @ b + c, 0),
    )


def _products() -> Example:
    return from_relax(lambda a, b: op.matmul(a, b), [(2, 20, 70), (2, 70, 40)], lambda a, b: a @ b)


def _attention() -> Example:
    shape = (1, 2, 37, 16)

    def reference(q: Any, k: Any, v: Any) -> Any:
        return _softmax(q @ k.swapaxes(-1, -2)) @ v

    return from_relax(
        lambda q, k, v: op.matmul(op.nn.softmax(op.matmul(q, op.permute_dims(k, (0, 1, 3, 2))), axis=-1), v),
        [shape, shape, shape],
        reference,
    )


#: Ragged where that is possible: rows that no part divides, a maximum whose identity is no finite number.
KERNELS: dict[str, Callable[[], Example]] = {
    "product": _product,
    "products": _products,
    "attention": _attention,
    "long softmax": lambda: from_relax(lambda x: op.nn.softmax(x, axis=-1), [(3, 4100)], _softmax),
    "long sum": lambda: from_relax(lambda x: op.sum(x, axis=-1), [(3, 6000)], lambda x: x.sum(-1)),
    "column maximum": lambda: from_relax(lambda x: op.max(x, axis=0), [(610, 40)], lambda x: x.max(0)),
}
PAIRS = [(name, kind) for name in KERNELS for kind in HARDWARE]


@functools.cache
def example(name: str) -> Example:
    return KERNELS[name]()


@functools.cache
def spaces_of(name: str, kind: str) -> list[DesignSpace]:
    """The first ones: changes of one fork each, nearest first."""
    return design_spaces(example(name).func, HARDWARE[kind], most=9, most_forks=8)


def graph_of(func: Any, kind: str) -> IGraph:
    graph = extracted(func, HARDWARE[kind], name="kernel")
    return graph


def named_alike(graph: IGraph) -> str:
    """A graph's text with loops named in order: sampled splits have other names."""
    text = str(graph)
    for number, name in enumerate(dict.fromkeys(re.findall(r"for (\w+) in", text))):
        text = re.sub(rf"\b{name}\b", f"loop{number}", text)
    return text


def assert_right(graph: IGraph, name: str) -> None:
    """What the interpreter computes is what NumPy does in float64, to the rounding of fp32 sums."""
    for got, want in zip(interpreter.run(graph, *example(name).inputs), example(name).expected, strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        difference = np.abs(np.asarray(got).reshape(want.shape).astype("float64") - want)
        assert difference.max(initial=0) <= TOLERANCE * scale, f"{name} is off by {difference.max()}"


def redecided(space: DesignSpace, draw: Callable[[Any], Any]) -> Schedule:
    """The trace with other decisions, on the function that it begins from."""
    trace = space.schedule.trace
    for inst in list(trace.insts):
        found = options(inst, trace)
        if found:
            decision = found[draw(st.integers(0, len(found) - 1))]
            trace = trace.with_decision(inst, decision, remove_postproc=True)
    sch = Schedule(tvm.IRModule({"main": space.begun}), debug_mask="none", error_render_level="fast")
    trace.apply_to_schedule(sch, remove_postproc=True)
    return sch


@pytest.mark.parametrize(("name", "kind"), asked(PAIRS[::3], PAIRS))
def test_spaces_are_the_own_schedule_and_real_others(name: str, kind: str) -> None:
    """The first is what the compiler makes; every one computes right, and its trace makes it again."""
    own = graph_of(apply_default(example(name).func, HARDWARE[kind]), kind)
    found = spaces_of(name, kind)
    assert named_alike(graph_of(found[0].schedule.mod["main"], kind)) == named_alike(own)
    texts = set()
    for space in found:
        graph = graph_of(space.schedule.mod["main"], kind)
        assert_right(graph, name)
        texts.add(named_alike(graph))
        begun = Schedule(tvm.IRModule({"main": space.begun}), debug_mask="none")
        space.schedule.trace.apply_to_schedule(begun, remove_postproc=True)
        assert structural_equal(begun.mod["main"], space.schedule.mod["main"])
        assert len(set(space.names) | set(space.forks)) == len(space.names) + len(space.forks)
    assert len(texts) > len(found) // 2 or space.names


@seeded(5)
@settings(
    max_examples=20,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from(PAIRS), st.data())
def test_other_decisions_are_refused_or_right(pair: tuple[str, str], data: st.DataObject) -> None:
    name, kind = pair
    space = data.draw(st.sampled_from(spaces_of(name, kind)))
    try:
        graph = graph_of(redecided(space, data.draw).mod["main"], kind)
    except REFUSALS:
        return
    assert_right(graph, name)


class _Answers(Decisions):
    """Answers of forks by name; notes what could have been answered."""

    def __init__(self, **wanted: int) -> None:
        self.wanted, self.asked = wanted, {}

    def fork(self, name: str, candidates: Sequence[int], default: int) -> int:
        self.asked[name] = tuple(dict.fromkeys((default, *candidates)))
        return self.wanted.get(name, default)


def test_powers_of_two_around_a_number() -> None:
    assert near(64, 1024) == [64, 32, 128, 16, 256]
    assert near(70, 70) == [70, 64, 32]  # no more than there are
    assert near(48, 100, 16) == [48, 32, 64, 16, 100]
    assert near(1, 1) == [1] and near(1, 8) == [1, 2, 4]
    assert near(5, 3)[0] == 5  # its own whatever the limits


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_tiles_of_products_are_places_in_the_table(dtype: str) -> None:
    """Also where neighbouring units make a product together: their tile stays shared out as that needs it."""
    space = with_joint(PRODUCT_SPACES["cuda"], HARDWARE["cuda"], dtype, False)
    own = choose(space, HARDWARE["cuda"], 1, 4096, 4096)
    asked = _Answers()
    assert decide_tile(space, HARDWARE["cuda"], own, (4096, 4096), 4, asked) is own
    places = asked.asked["tile"]
    assert 3 <= len(places) <= 8 and (*space.tiles, *space.others)[places[0]] == own
    for place in places:
        tile = decide_tile(space, HARDWARE["cuda"], own, (4096, 4096), 4, _Answers(tile=place))
        assert tile.rows // tile.row_units % 16 == 0 and tile.cols // tile.col_units % 8 == 0
        assert tile.units <= HARDWARE["cuda"].num_units
        if dtype == "float16" and (tile.rows, tile.cols) == (64, 64):
            assert (tile.row_units, tile.col_units) == (4, 1)


def test_tiles_of_small_products_are_no_larger_than_they_need() -> None:
    asked = _Answers()
    own = choose(PRODUCT_SPACES["cuda"], HARDWARE["cuda"], 1, 20, 40)
    decide_tile(PRODUCT_SPACES["cuda"], HARDWARE["cuda"], own, (20, 40), 4, asked)
    space = PRODUCT_SPACES["cuda"]
    tiles = [(*space.tiles, *space.others)[place] for place in asked.asked["tile"]]
    assert all(tile.rows < 40 and tile.cols < 80 for tile in tiles)


def test_parts_of_shared_rows_are_those_that_a_rule_makes() -> None:
    """Aligned or dividing the row, and the own one stays as it is."""
    own = Sharing.of(40000, 16, 1024, 40000)
    asked = _Answers()
    assert decide_part(own, (40000,), 1024, asked) is own
    parts = asked.asked["part"]
    assert parts[0] == own.part and 3 <= len(parts) <= 5
    for part in parts:
        sharing = decide_part(own, (40000,), 1024, _Answers(part=part))
        assert sharing.part == part and sharing.size == own.size
        assert sharing.chunks * sharing.columns >= 40000


@pytest.mark.parametrize("kind", HARDWARE)
def test_attention_decides_nothing_by_itself(kind: str) -> None:
    parts = fold_heads(read_parts(Schedule(attention.example().func)))
    own = attention.tile_of(parts, HARDWARE[kind])
    assert attention.decide_tile(parts, HARDWARE[kind], own, OWN) == own


@pytest.mark.parametrize("kind", HARDWARE)
def test_attention_has_alternatives_that_fit(kind: str) -> None:
    """Some of each number; a taller tile has as few keys at once as it needs to fit."""
    func = attention.example().func
    parts = fold_heads(read_parts(Schedule(func)))
    own = attention.tile_of(parts, HARDWARE[kind])
    asked = _Answers()
    attention.decide_tile(parts, HARDWARE[kind], own, asked)
    assert {"tile_rows", "tile_keys"} <= set(asked.asked)
    assert all(len(answers) <= 5 for answers in asked.asked.values())
    assert sum(len(answers) for answers in asked.asked.values()) >= 6
    for name, answers in asked.asked.items():
        for answer in answers:
            tile = attention.decide_tile(parts, HARDWARE[kind], own, _Answers(**{name: answer}))
            graph_of(flash_function(func, parts, tile), kind)


def test_forks_are_tried_by_the_number_of_changes() -> None:
    """All changes of one fork come before any of two."""
    found = design_spaces(attention.example().func, HARDWARE["cpu"])
    own = found[0].forks
    changes = [sum(space.forks.get(name) != answer for name, answer in own.items()) for space in found]
    assert changes[0] == 0 and changes == sorted(changes) and changes[-1] >= 2


def test_the_limits_of_spaces_hold() -> None:
    func = attention.example().func
    assert len(design_spaces(func, HARDWARE["cpu"], most_forks=3)) == 3
    assert len(design_spaces(func, HARDWARE["cpu"], most=2)) == 2


def test_a_rewritten_functions_trace_begins_at_it() -> None:
    """A ragged maximum over shared rows has bounds and identities that no instruction makes."""
    spaces = spaces_of("long softmax", "cuda")
    assert any(not structural_equal(space.begun, spaces[0].begun) for space in spaces[1:])
