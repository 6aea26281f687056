# SPDX-License-Identifier: Apache-2.0
"""Equivalence: extracted graphs equal their functions, mutated ones do not, and the result says how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import tirx
from tvm.script import tirx as T
from uir_tvm.errors import EquivalenceError
from uir_tvm.igraph import IGraph, IOp, affine, map_iops, parse_igraph, var
from uir_tvm.igraph.interpreter import run
from uir_tvm.schedule import apply_default
from uir_tvm.verify import EquivalenceReference, equivalent

from tests.extracted import extracted

from ..extract.compare import HARDWARE as HOST
from .graphs import DEVICE


def test_every_recipe_computes_its_function() -> None:
    """Against the unscheduled function, by both methods: schedule and extraction at once."""
    from ..corpus import recipes

    wrong = []
    for entry in recipes.entries():
        try:
            result = equivalent(entry.prim_func, entry.graph)
        except EquivalenceError as error:
            wrong.append(f"{entry.name}: {error}")
        else:
            if result.methods != ("field", "values") or not result.elements:
                wrong.append(f"{entry.name}: {result}")
    assert not wrong, "\n".join(wrong)


def graph(body: str, parallel: tuple[int, int] = (4, 1)) -> IGraph:
    text = f"igraph g on {DEVICE.name} parallel ({parallel[0]}, {parallel[1]}) {{\n{body}\n}}"
    return parse_igraph(text, DEVICE)


#: Row sums of twice the first 7 rows of 16, by four units in two steps; the eighth sum is of padding.
SUMS = """
  x = iPointer(dram, fp32, 256, in)
  o = iPointer(dram, fp32, 8, out)
  a = iPointer(reg, fp32, 16)
  s = iPointer(reg, fp32, 2)
  t = iPointer(reg, fp32, 2)
  fill.fp32 s[0; (2,1); (1,1)] [0.0]
  for k in 2 {
    move.dram.reg.fp32 a[0; (2,8); (8,1)], x[32*pid + 8*k; (2,8); (16,1); rows :7 - 2*pid] [pad=0.0]
    unary.muls.fp32 a[0; (2,8); (8,1)], a[0; (2,8); (8,1)] [2.0]
    reduce.add.row.unit.fp32 t[0; (2,1); (1,1)], a[0; (2,8); (8,1)]
    binary.add.fp32 s[0; (2,1); (1,1)], s[0; (2,1); (1,1)], t[0; (2,1); (1,1)]
  }
  move.reg.dram.fp32 o[2*pid; (2,1); (1,1)], s[0; (2,1); (1,1)]
"""


def changed(g: IGraph, op: str, change: Callable[[IOp], Any]) -> IGraph:
    """The graph with the first iOp of a class changed."""
    done = []

    def visit(iop: IOp) -> Any:
        if iop.op != op or done:
            return iop
        done.append(iop)
        return change(iop)

    made = g.replace(body=map_iops(g.body, visit))
    assert done
    return made


def with_source(iop: IOp, **changes: Any) -> IOp:
    return IOp(iop.op, iop.name, iop.dtype, iop.targets, [iop.sources[0].replace(**changes)], iop.attrs)


def with_attrs(iop: IOp, **changes: Any) -> IOp:
    return IOp(iop.op, iop.name, iop.dtype, iop.targets, iop.sources, {**iop.attrs, **changes})


MUTATIONS: dict[str, tuple[str, Callable[[IOp], Any]]] = {
    "offset shifted by one": ("move", lambda i: with_source(i, offset=i.sources[0].offset + 1)),
    "init dropped": ("fill", lambda i: None),
    "other init": ("fill", lambda i: with_attrs(i, value=1.0)),
    "wrong pad": ("move", lambda i: with_attrs(i, pad=1.0)),
    "strides swapped": ("move", lambda i: with_source(i, stride=i.sources[0].stride[::-1])),
    "mask one row short": (
        "move",
        lambda i: with_source(i, rows=(None, affine(6) - var("pid") * 2)),
    ),
    "factor off by an ULP": (
        "unary",
        lambda i: with_attrs(i, params=[float(np.nextafter(np.float32(2), 3))]),
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_are_caught_by_the_field(name: str) -> None:
    g = graph(SUMS)
    assert equivalent(g, g).method == "field+values"
    op, change = MUTATIONS[name]
    with pytest.raises(EquivalenceError) as caught:
        equivalent(g, changed(g, op, change))
    assert caught.value.rule == "equivalence" and caught.value.method == "field"
    assert "seed 0" in caught.value.where


@pytest.mark.parametrize("name", [name for name in MUTATIONS if "ULP" not in name])
def test_mutations_are_caught_by_values(name: str) -> None:
    g = graph(SUMS)
    op, change = MUTATIONS[name]
    with pytest.raises(EquivalenceError) as caught:
        equivalent(g, changed(g, op, change), methods=["values"], cases=3)
    assert caught.value.method == "values"


def test_an_error_names_output_element_and_values() -> None:
    g = graph(SUMS)
    wrong = changed(g, "move", MUTATIONS["mask one row short"][1])
    with pytest.raises(EquivalenceError) as caught:
        equivalent(g, wrong, methods=["values"], seed=5)
    error = caught.value
    assert (error.output, error.element, error.seed) == ("o", 6, 5)
    assert "o[6] = " in error.need and "element=6" in error.where


def test_the_order_of_a_sum_does_not_show() -> None:
    """Another association: the field is exact about it, values within the tolerance."""
    g = graph(SUMS)
    other = graph(
        SUMS.replace("for k in 2", "for k in 4")
        .replace("8*k; (2,8)", "4*k; (2,4)")
        .replace("a[0; (2,8); (8,1)]", "a[0; (2,4); (4,1)]")
    )
    result = equivalent(g, other)
    assert result.method == "field+values" and not result.exact
    assert "equivalent by field+values" in str(result) and "all units" in str(result)


ELEMENTWISE = """
  x = iPointer(dram, fp32, 64, in)
  o = iPointer(dram, fp32, 64, out)
  a = iPointer(reg, fp32, 16)
  move.dram.reg.fp32 a[0; (1,16); (16,1)], x[16*pid; (1,16); (16,1)]
  BODY
  move.reg.dram.fp32 o[16*pid; (1,16); (16,1)], a[0; (1,16); (16,1)]
"""
A = "a[0; (1,16); (16,1)]"


def elementwise(*ops: str) -> IGraph:
    return graph(ELEMENTWISE.replace("BODY", "\n".join(op.replace("A", A) for op in ops)))


def test_values_see_what_is_lost_of_nan_and_infinity() -> None:
    """x * 0 is 0 in the field; NaN and infinities make NaN of it."""
    g, wrong = elementwise("unary.muls.fp32 A, A [0.0]"), elementwise("fill.fp32 A [0.0]")
    assert equivalent(g, wrong, methods=["field"])
    with pytest.raises(EquivalenceError) as caught:
        equivalent(g, wrong)
    assert caught.value.method == "values" and "nan" in caught.value.need


def test_values_see_rounding_where_the_order_is_kept() -> None:
    """(x + 1) - 1 is x in the field, but not in fp32: without sums, numbers are compared bit by bit."""
    g, wrong = elementwise("unary.adds.fp32 A, A [1.0]", "unary.subs.fp32 A, A [1.0]"), elementwise()
    assert equivalent(g, g).exact
    with pytest.raises(EquivalenceError) as caught:
        equivalent(g, wrong)
    assert caught.value.method == "values"


def test_the_field_sees_what_drowns_in_the_tolerance() -> None:
    g = elementwise("unary.adds.fp32 A, A [1e-12]", "unary.exp.fp32 A, A")
    wrong = elementwise("unary.exp.fp32 A, A")
    assert equivalent(g, wrong, methods=["values"])
    with pytest.raises(EquivalenceError) as caught:
        equivalent(g, wrong)
    assert caught.value.method == "field"


def test_an_element_that_is_never_written_is_a_difference() -> None:
    g = elementwise()
    less = graph(ELEMENTWISE.replace("BODY", "").replace("o[16*pid; (1,16)", "o[16*pid; (1,15)"))
    less = changed_target(less)
    with pytest.raises(EquivalenceError, match="never writes element 15 of o"):
        equivalent(g, less)


def changed_target(g: IGraph) -> IGraph:
    """The last move made to fit: of its source, only the columns that the target has."""
    return parse_igraph(
        str(g).replace("(1,15); (16,1)], a[0; (1,16)", "(1,15); (16,1)], a[0; (1,15)"), DEVICE
    )


def test_other_parameters_are_refused() -> None:
    with pytest.raises(EquivalenceError, match="has not the parameters"):
        equivalent(graph(SUMS), elementwise())


LONG = """
  x = iPointer(dram, fp32, 64000, in)
  o = iPointer(dram, fp32, 64000, out)
  a = iPointer(reg, fp32, 4)
  for i in 4000 {
    move.dram.reg.fp32 a[0; (1,4); (4,1)], x[16000*pid + 4*i; (1,4); (4,1)]
    unary.exp.fp32 a[0; (1,4); (4,1)], a[0; (1,4); (4,1)]
    move.reg.dram.fp32 o[16000*pid + 4*i; (1,4); (4,1)], a[0; (1,4); (4,1)]
  }
"""


def test_a_long_graph_is_sampled_and_says_so() -> None:
    result = equivalent(graph(LONG), graph(LONG))
    assert result.units == "units 0, 2, 3, i in {0, 1, 2000, 3998, 3999}"
    assert (result.elements, result.total) == (60, 64000)
    assert result.seconds < 2


def test_a_fault_in_a_sampled_iteration_is_caught() -> None:
    wrong = graph(LONG.replace("x[16000*pid + 4*i;", "x[16000*pid + 3*i;"))
    with pytest.raises(EquivalenceError):
        equivalent(graph(LONG), wrong)


def test_iterations_that_rely_on_each_other_are_not_sampled() -> None:
    """A register carries the running sum from one iteration to the next: the loop runs as a whole."""
    carried = LONG.replace("for i in 4000", "fill.fp32 s[0; (1,4); (4,1)] [0.0]\n  for i in 2000").replace(
        "unary.exp.fp32 a[0; (1,4); (4,1)], a[0; (1,4); (4,1)]",
        "binary.add.fp32 s[0; (1,4); (4,1)], s[0; (1,4); (4,1)], a[0; (1,4); (4,1)]\n"
        "    unary.copy.fp32 a[0; (1,4); (4,1)], s[0; (1,4); (4,1)]",
    )
    carried = carried.replace("  a = iPointer", "  s = iPointer(reg, fp32, 4)\n  a = iPointer")
    g = graph(carried)
    result = equivalent(g, g, methods=["field"])
    assert result.units == "units 0, 2, 3" and result.elements == 3 * 8000


def test_units_may_be_named() -> None:
    g = elementwise("unary.exp.fp32 A, A")
    result = equivalent(g, g, units=[1, 2])
    assert result.units == "units 1, 2" and result.elements == 32


def test_a_reference_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    g = elementwise("unary.exp.fp32 A, A")
    reference = EquivalenceReference(g)
    runs = []
    original = reference.side.run
    monkeypatch.setattr(reference.side, "run", lambda *a: runs.append(a[0]) or original(*a))
    assert equivalent(reference, g) and equivalent(reference, g)
    assert runs == ["field", "values"]


def test_a_function_that_looks_at_bits_is_compared_on_values() -> None:
    """What has no meaning in the field is said, and left to the other method."""
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def bits(x: T.Buffer((8,), "float32"), o: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("o"):
                v = T.axis.spatial(8, i)
                o[v] = T.reinterpret("float32", T.reinterpret("int32", x[v]))

    g = graph(
        """
        x = iPointer(dram, fp32, 8, in)
        o = iPointer(dram, fp32, 8, out)
        a = iPointer(reg, fp32, 8)
        move.dram.reg.fp32 a[0; (1,8); (8,1)], x[0; (1,8); (8,1)]
        move.reg.dram.fp32 o[0; (1,8); (8,1)], a[0; (1,8); (8,1)]
        """,
        (1, 1),
    )
    result = equivalent(bits, g)
    assert result.methods == ("values",) and "reinterpret" in result.reason


def test_the_interpreter_is_unchanged_by_its_domain() -> None:
    """The numbers that the interpreter gives are those of NumPy."""
    x = np.arange(64, dtype=np.float32)
    (out,) = run(elementwise("unary.muls.fp32 A, A [2.0]"), x)
    np.testing.assert_array_equal(out, 2 * x)


def test_what_takes_too_long_is_not_decided() -> None:
    """Units that hand values on through dram are not sampled: the result is false and says why."""
    body = LONG.replace("x[16000*pid", "o[16000*pid").replace("for i in 4000 {", "INIT\n  for i in 4000 {")
    init = LONG[LONG.index("  for i") :].replace(" i ", " j ").replace("*i", "*j")
    g = graph(body.replace("INIT", init.rstrip()))
    result = equivalent(g, g)
    assert not result and result.method == "none" and result.cases == 0
    assert "would take about" in str(result)


@pytest.mark.parametrize("name", ["truncdiv", "truncmod", "floordiv", "floormod"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_divisors_may_be_zero(name: str, dtype: str) -> None:
    """A processor ends the process there; the iOps give 0."""
    divide = getattr(tirx, name)

    @T.prim_func(s_tir=True)
    def quotients(x: T.Buffer((64,), dtype), y: T.Buffer((64,), dtype), z: T.Buffer((64,), dtype)):
        for i in range(64):
            with T.sblock("z"):
                a = T.axis.spatial(64, i)
                z[a] = divide(x[a], y[a])

    graph = extracted(apply_default(quotients, HOST), HOST)
    assert "values" in equivalent(quotients, graph).methods
