# SPDX-License-Identifier: Apache-2.0
"""Variants of a kernel for parts of its sizes: right at every border, proved under their ranges, kept."""

from __future__ import annotations

import logging
import pathlib
from typing import Any

import attrs
import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx, topi
from tvm.s_tir import Schedule
from uir_tvm import CompileOptions, kernel_cache, pipeline, variants
from uir_tvm.errors import VerifyError
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.nodes import map_iops
from uir_tvm.igraph.rewrite import map_slices
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import narrowed, sizes_of, with_sizes
from uir_tvm.runtime.modelled import recording
from uir_tvm.schedule.begin import begin
from uir_tvm.schedule.driver import run_recipe
from uir_tvm.schedule.size_ranges import SizeRanges, size_ranges
from uir_tvm.schedules import RECIPES
from uir_tvm.stages import KernelRecord, Variant
from uir_tvm.verify import verify
from uir_tvm.verify.handed_sizes import handed_fault

from tests.asked import asked
from tests.device_targets import DEVICE_TARGETS

TARGETS = {"uir-cpu": tvm.target.Target("uir-cpu"), **{row.name: row.target() for row in DEVICE_TARGETS}}
#: Whatever the model says of them, so that there are variants on every target.
RANGES = SizeRanges(rows=(4, 9), lengths=(10,), rows_by_length=(3,), gain=0.0)


@pytest.fixture(autouse=True)
def ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("cpu", "cuda", "ascend", "bang")
    monkeypatch.setenv("UIR_VARIANTS", "faster")
    monkeypatch.setattr(variants, "SIZE_RANGES", dict.fromkeys(kinds, RANGES))


def rows_of_softmax() -> tirx.PrimFunc:
    """Softmax of some rows of 24."""
    x = te.placeholder((tirx.Var("n", "int64"), 24), name="x")
    func = te.create_prim_func([x, topi.nn.softmax(x, -1)]).with_attr("global_symbol", "softmax")
    return with_sizes(func, {"n": Size("n", 0, 200)})


def open_sums() -> tirx.PrimFunc:
    """Sums of rows of open length, of which there are n."""
    x = te.placeholder((tirx.Var("n", "int64"), tirx.Var("s", "int64")), name="x")
    func = te.create_prim_func([x, topi.sum(x, 1)]).with_attr("global_symbol", "sums")
    return with_sizes(func, {"n": Size("n", 1, 50), "s": Size("s", 1, 40)})


def compiled(func: tirx.PrimFunc, target: str, **options: Any) -> KernelRecord:
    with pipeline.recording(CompileOptions(**options)):
        return pipeline.compile_kernel(func.with_attr("target", TARGETS[target]), TARGETS[target])


@pytest.mark.parametrize("target", TARGETS)
def test_both_sides_of_every_border(target: str, tmp_path: pathlib.Path) -> None:
    """Results are those of the interpreter on the whole kernel's graph; so are those of a saved module.

    Where launches are timed they say which kernel ran.
    """
    with pipeline.recording() as records:
        built = tvm.tirx.build(tvm.IRModule({"softmax": rows_of_softmax()}), target=TARGETS[target])
    (record,) = records.values()
    assert [each.condition for each in record.variants] == ["0 <= n <= 4", "0 <= n <= 9"]
    built.export_library(path := str(tmp_path / "softmax.so"))
    loaded = tvm.runtime.load_module(path)
    device = tvm.cpu() if target == "uir-cpu" else tvm.ext_dev(0)
    rng = np.random.default_rng(5)
    for rows, kernel in {
        1: "softmax_n_4",
        4: "softmax_n_4",
        5: "softmax_n_9",
        9: "softmax_n_9",
        10: "softmax",
    }.items():
        x = rng.standard_normal((rows, 24), "float32")
        (wanted,) = interpreter.run(record.igraph, x, sizes={"n": rows})
        for module in (built, loaded) if rows in (4, 10) else (built,):
            y = tvm.runtime.tensor(np.full((rows, 24), np.nan, "float32"), device)
            with recording() as noted:
                module["softmax"](tvm.runtime.tensor(x, device), y)
            np.testing.assert_allclose(y.numpy().reshape(-1), wanted.reshape(-1), rtol=2e-6, atol=1e-7)
            if target in ("uir-ascend", "uir-bang"):
                assert [launch.entry for launch in noted.times.launches] == [kernel]


def test_a_schedule_is_compiled_once_for_tiles_of_the_same_bounds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """For fewer rows it is the same kernel, whatever the model says of it; for shorter ones it is not."""
    some = attrs.evolve(RANGES, gain=1.01)
    monkeypatch.setattr(variants, "SIZE_RANGES", {"bang": some})
    monkeypatch.setattr(variants, "_ratio", lambda *_: 2.0)
    with caplog.at_level(logging.DEBUG, variants.__name__):
        record = compiled(rows_of_softmax(), "uir-bang")
        assert [each.condition for each in record.variants] == ["0 <= n <= 9"]
        assert "no other schedule for 0 <= n <= 4" in caplog.text
        record = compiled(open_sums(), "uir-bang")
    assert "1 <= s <= 10" in [each.condition for each in record.variants]


@pytest.mark.parametrize("target", TARGETS)
def test_ranges_of_rows_and_of_lengths(target: str) -> None:
    """The first that fits is taken, so short and few rows come first; each computes what the whole does."""
    record = compiled(open_sums(), target)
    assert [each.condition for each in record.variants] == [
        "1 <= s <= 10 and 1 <= n <= 3",
        "1 <= s <= 10",
        "1 <= n <= 3",
    ]
    rng = np.random.default_rng(6)
    for variant in record.variants:
        graph = variant.record.igraph
        assert graph is not None and [s.high for s in graph.sizes if s.name == "s"] == [
            next((s.high for s in variant.sizes if s.name == "s"), 40)
        ]
        highs = {"n": 50, "s": 40} | {str(size.name): int(size.high) for size in variant.sizes}
        for sizes in ({"n": 1, "s": 1}, highs):
            x = rng.standard_normal((sizes["n"], sizes["s"]), "float32")
            (got,) = interpreter.run(graph, x, sizes=sizes)
            np.testing.assert_allclose(got.reshape(-1), x.sum(1), rtol=1e-5, atol=1e-5)


def shifted(graph: IGraph) -> IGraph:
    """The graph with every access of dram one element further on."""
    return graph.replace(
        body=map_iops(
            graph.body,
            lambda iop: map_slices(
                iop,
                lambda piece: (
                    piece.replace(offset=piece.offset + 1) if piece.pointer.level == "dram" else piece
                ),
            ),
        )
    )


@pytest.mark.parametrize("target", TARGETS)
def test_each_is_proved_under_its_ranges_and_no_wider_ones(target: str) -> None:
    """A tile holds ten columns: enough for the variant's rows, and a fault for rows of one more."""
    variant = next(v for v in compiled(open_sums(), target).variants if v.condition == "1 <= s <= 10")
    graph = variant.record.igraph
    assert graph is not None
    verify(graph)
    wider = [Size("s", 1, 11) if size.name == "s" else size for size in graph.sizes]
    for fault in (graph.replace(sizes=wider), shifted(graph)):
        with pytest.raises(VerifyError):
            verify(fault)


@pytest.mark.parametrize(
    ("sizes", "told", "said"),
    [
        ([Size("s27", 2, 64)], {"s27": "x_1"}, "2 <= x_1 <= 64"),
        ([Size("s27", 3, 3), Size("b", 1, 9)], {"s27": "length"}, "length == 3 and 1 <= b <= 9"),
        ([Size("s77_times_s27", 0, 64)], {"s27": "x_1", "s77": "x_0"}, "0 <= x_0 * x_1 <= 64"),
        ([Size("b_times_size0", 0, 64)], {"size0": "h + 1"}, "0 <= b * (h + 1) <= 64"),
        ([Size("size0", 0, 64)], {"size0": "h + 1"}, "0 <= h + 1 <= 64"),
        (
            [Size("size0_times_b", 0, 64, 4)],
            {"size0": "h + 1"},
            "0 <= (h + 1) * b <= 64 and ((h + 1) * b) % 4 == 0",
        ),
    ],
)
def test_conditions_speak_of_sizes_as_the_model_does(
    sizes: list[Size], told: dict[str, str], said: str
) -> None:
    assert Variant(tuple(sizes), KernelRecord("f"), told).condition == said


def test_a_fault_in_one_variant_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is spoilt for one range alone is refused; a larger one serves its sizes, and the log says why."""
    import uir_tvm.optimize

    complete = uir_tvm.optimize.complete

    def spoiling(graph: IGraph, **options: Any) -> Any:
        return complete(shifted(graph) if graph.name == "softmax_n_4" else graph, **options)

    monkeypatch.setattr(uir_tvm.optimize, "complete", spoiling)
    with caplog.at_level(logging.INFO, "uir_tvm.variants"):
        record = compiled(rows_of_softmax(), "uir-cpu", faults="fall back")
    assert [each.condition for each in record.variants] == ["0 <= n <= 9"] and not record.fallback
    assert "softmax has no variant for 0 <= n <= 4" in caplog.text


@pytest.mark.parametrize("target", ["uir-cpu", "uir-ascend"])
def test_traces_replay(target: str) -> None:
    """The schedule of each variant is a trace that makes the same of its function again."""
    for variant in compiled(open_sums(), target).variants:
        candidate = variant.record.candidate
        assert candidate is not None
        begun = begin(variant.record.products["prim_func"], candidate.hardware)
        made = run_recipe(candidate.recipe, begun, candidate.hardware)
        assert made is not None
        again = Schedule(begun, debug_mask="none")
        made.trace.apply_to_schedule(again, remove_postproc=False)
        tvm.ir.assert_structural_equal(again.mod["main"], made.mod["main"])


def test_they_are_kept(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and disk have a kernel with its variants, and make none of them again."""
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_KEPT", type(kernel_cache._KEPT)())
    made = compiled(rows_of_softmax(), "uir-ascend", kernel_cache="disk")
    again = compiled(rows_of_softmax(), "uir-ascend", kernel_cache="disk")
    kernel_cache.forget()
    read = compiled(rows_of_softmax(), "uir-ascend", kernel_cache="disk")
    assert [record.kept for record in (made, again, read)] == ["", "memory", "disk"]
    for record in (again, read):
        assert [each.condition for each in record.variants] == [each.condition for each in made.variants]
        assert [str(lowered) for _, lowered in record.handed] == [str(lowered) for _, lowered in made.handed]


def test_none_where_none_are_asked_for() -> None:
    assert compiled(rows_of_softmax(), "uir-ascend", variants="none").variants == ()
    static = te.placeholder((8, 24), name="x")
    func = te.create_prim_func([static, topi.nn.softmax(static, -1)])
    assert compiled(func, "uir-ascend").variants == ()


def test_only_what_is_faster_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "SIZE_RANGES", {"ascend": attrs.evolve(RANGES, gain=1e9)})
    assert compiled(rows_of_softmax(), "uir-ascend").variants == ()


def test_parts_lie_within_the_sizes() -> None:
    """Borders beyond a size's range make no part, and those of a divisor are rounded to it."""
    x = te.placeholder((tirx.Var("n", "int64"), 24), name="x")
    func = te.create_prim_func([x, te.compute(x.shape, lambda i, j: x[i, j] + 1.0, name="y")])
    hw = DEVICE_TARGETS[1].hardware
    for size, highs in ((Size("n", 0, 9), [4]), (Size("n", 0, 64, 4), [4, 8]), (Size("n", 6, 64), [9])):
        parts = size_ranges(with_sizes(func, {"n": size}), hw, RANGES)
        assert [(part[0].low, part[0].high) for part in parts] == [(size.low, high) for high in highs]


def test_of_two_lengths_one_stands_for_rows() -> None:
    """A transpose has rows of open length on both sides: the last is a length, the first a number of rows."""
    x = te.placeholder((tirx.Var("n", "int64"), tirx.Var("s", "int64")), name="x")
    func = with_sizes(
        te.create_prim_func([x, topi.transpose(x, (1, 0))]), {"n": Size("n", 1, 50), "s": Size("s", 1, 40)}
    )
    parts = size_ranges(func, DEVICE_TARGETS[1].hardware, RANGES)
    highs = [{str(size.name): int(size.high) for size in part} for part in parts]
    assert highs == [{"s": 10, "n": 3}, {"s": 10}, {"n": 3}]


@pytest.mark.parametrize("target", TARGETS)
def test_one_value_that_a_recipe_names(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The range of one value: its number is known while that kernel is compiled, whatever the model says."""
    recipes = [attrs.evolve(each, apart=lambda func: {func.params[0].shape[0]: 3}) for each in RECIPES]
    monkeypatch.setattr(RECIPES, "_recipes", recipes)
    with pipeline.recording(CompileOptions(variants="named")) as records:
        built = tvm.tirx.build(tvm.IRModule({"softmax": rows_of_softmax()}), target=TARGETS[target])
    (record,) = records.values()
    (variant,) = record.variants
    assert variant.condition == "n == 3" and not variant.record.igraph.sizes
    device = tvm.cpu() if target == "uir-cpu" else tvm.ext_dev(0)
    for rows in (2, 3, 4):
        x = np.random.default_rng(rows).standard_normal((rows, 24), "float32")
        (wanted,) = interpreter.run(record.igraph, x, sizes={"n": rows})
        y = tvm.runtime.tensor(np.full((rows, 24), np.nan, "float32"), device)
        built["softmax"](tvm.runtime.tensor(x, device), y)
        np.testing.assert_allclose(y.numpy().reshape(-1), wanted.reshape(-1), rtol=2e-6, atol=1e-7)


#: Conditions with a fault, and sizes that show it: of a kernel's variants, by number.
WRONG_CONDITIONS = {
    "a border of a length one too far": (0, [Size("s", 1, 11), Size("n", 1, 3)], {"s": 11}),
    "a border of rows one too far": (0, [Size("s", 1, 10), Size("n", 1, 4)], {"n": 4}),
    "a range from zero": (1, [Size("s", 0, 10)], {"s": 0}),
    "a condition that is left out": (0, [Size("s", 1, 10)], {"n": 50}),
    "two names exchanged": (1, [Size("n", 1, 10)], {"s": 40}),
    "no condition": (2, [], {"n": 50}),
}


@pytest.mark.parametrize("name", WRONG_CONDITIONS)
def test_a_wrong_condition_of_a_variant_is_found_with_sizes_that_show_it(name: str) -> None:
    number, wrong, witness = WRONG_CONDITIONS[name]
    func, record = open_sums(), compiled(open_sums(), "uir-ascend")
    known = {str(size.name): size for size in sizes_of(func).values()}
    variant = record.variants[number]
    assert record.igraph is not None and variant.record.igraph is not None
    assert handed_fault(known, variant.sizes, record.igraph, variant.record.igraph) is None
    fault = handed_fault(known, wrong, record.igraph, variant.record.igraph)
    assert fault is not None and fault.rule == "form"
    assert {key: fault.witness[key] for key in witness} == witness
    # a launch by it hands over what the variant does not take
    assert attrs.evolve(variant, sizes=tuple(wrong)).has({"n": 1, "s": 1} | fault.witness)
    assert not variant.has({"n": 1, "s": 1} | fault.witness)


@pytest.mark.parametrize(("low", "high", "wrong"), [(3, 3, 4), (3, 3, None), (1, 1, 2)])
def test_a_variant_of_one_value_is_for_no_other(low: int, high: int, wrong: int | None) -> None:
    """Its graph has no size that a launch could ask: what tensors it has says so."""
    func = rows_of_softmax()
    whole = compiled(func, "uir-cpu", variants="none").igraph
    one = compiled(narrowed(func, [Size("n", low, high)]), "uir-cpu", variants="none").igraph
    assert whole is not None and one is not None and not one.sizes
    known = {"n": Size("n", 0, 200)}
    assert handed_fault(known, [Size("n", low, high)], whole, one) is None
    ranges = [] if wrong is None else [Size("n", low, wrong)]
    fault = handed_fault(known, ranges, whole, one)
    assert fault is not None and (wrong is None or fault.witness == {"n": wrong})


def test_random_conditions_are_right_where_the_variant_is_proved_and_nowhere_else() -> None:
    record = compiled(open_sums(), "uir-ascend")
    known = {str(size.name): size for size in sizes_of(open_sums()).values()}
    whole = record.igraph
    assert whole is not None
    # least values near the least, greatest ones near the borders of the variants
    ends = [st.integers(int(size.low), int(size.high)) for size in known.values()]
    near = st.one_of(st.sampled_from([1, 3, 4, 10, 11]), *ends)

    @settings(max_examples=asked(60, 600), deadline=None)
    @given(st.sampled_from(range(len(record.variants))), st.lists(near, min_size=4, max_size=4))
    def right(number: int, drawn: list[int]) -> None:
        graph = record.variants[number].record.igraph
        assert graph is not None
        pairs = zip(known.values(), (drawn[:2], drawn[2:]), strict=True)
        ranges = [Size(str(s.name), min(*pair, s.high), min(max(pair), s.high)) for s, pair in pairs]
        fault = handed_fault(known, ranges, whole, graph)
        proved = {str(size.name): size for size in graph.sizes}
        within = all(proved[r.name].low <= r.low and r.high <= proved[r.name].high for r in ranges)
        assert (fault is None) == within, (ranges, fault)

    right()
