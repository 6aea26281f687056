# SPDX-License-Identifier: Apache-2.0
"""Every converter against the operator itself, as an old TVM computed it; and the documentation's table."""

from __future__ import annotations

import functools

import numpy as np
import pytest

pytest.importorskip("lark")

import uir_tvm
from uir_tvm import kernel_graph
from uir_tvm.frontend import from_relay
from uir_tvm.frontend.relay import import_program
from uir_tvm.frontend.relay.operators import CONVERTERS, REFUSED, TABLES
from uir_tvm.frontend.relay.relay_program import (
    Bound,
    Branch,
    Call,
    Function,
    Operator,
    RelayNode,
    Tuple,
    TupleItem,
)

from tests.asked import asked

from .document import PAGE, table
from .fixtures import answers, facts_of

#: So many functions are compiled as one model.
GROUP = 25
#: So many models that makes.
GROUPS = 17
#: Converters that no text of the fixtures shows: marks for a compiler that is gone, and a second name.
UNSEEN = {"annotation.stop_fusion", "device_copy", "on_device", "vm.shape_of"}


def parts(node: RelayNode) -> list[RelayNode]:
    if isinstance(node, Call):
        return [node.callee, *node.args]
    if isinstance(node, Tuple):
        return list(node.fields)
    if isinstance(node, TupleItem):
        return [node.value]
    if isinstance(node, Bound):
        return [node.value, node.body]
    if isinstance(node, Branch):
        return [node.condition, node.then, node.otherwise]
    return [node.body] if isinstance(node, Function) else []


def operators_of(node: RelayNode) -> set[str]:
    own = {node.name} if isinstance(node, Operator) else set()
    return own.union(*(operators_of(part) for part in parts(node)))


@functools.cache
def groups() -> tuple[tuple[str, ...], ...]:
    """Cases that are compiled together; those that TOPI computes by themselves, so that the others fuse."""
    program = facts_of("operators")
    kinds: dict[bool, list[str]] = {False: [], True: []}
    for name in program:
        kinds[kernel_graph.calls_kernels(import_program(program, {}, shapes={}, function=name))].append(name)
    return tuple(
        tuple(names[start : start + GROUP])
        for names in kinds.values()
        for start in range(0, len(names), GROUP)
    )


def test_every_converter_has_a_case() -> None:
    seen = set().union(*(operators_of(function) for function in facts_of("operators").values()))
    unseen = set(CONVERTERS) - seen
    # the old TVM itself writes a constant shape as an attribute, so that its text keeps the static operator
    dynamic = {name for name in unseen if name.startswith("dyn.")}
    assert unseen - dynamic == UNSEEN
    for name in dynamic:
        assert CONVERTERS[name] is CONVERTERS[name.removeprefix("dyn.")], name


#: Operators whose shape is a tensor that is computed from shapes, and the shape of the result.
DYNAMIC = {
    "dyn.reshape(%x, shape_of(%y), newshape=[])": (6, 4),
    "dyn.broadcast_to(%s, shape_of(%y))": (6, 4),
    'dyn.full(%s, shape_of(%y), dtype="float32")': (6, 4),
    'dyn.zeros(shape_of(%y), dtype="float32")': (6, 4),
    'dyn.ones(shape_of(%y), dtype="float32")': (6, 4),
    "dyn.tile(%y, shape_of(%s), reps=[])": (6, 4),
}


@pytest.mark.parametrize("call", DYNAMIC)
def test_shapes_as_tensors(call: str) -> None:
    inputs = "%x: Tensor[(2, 3, 4), float32], %y: Tensor[(6, 4), float32], %s: float32"
    mod = from_relay(f"def @main({inputs}) {{\n  {call}\n}}")
    assert tuple(int(n) for n in mod["main"].ret_ty.shape) == DYNAMIC[call]


@pytest.mark.parametrize("index", asked(range(0, GROUPS, 2), range(GROUPS)))
def test_operators(index: int) -> None:
    assert len(groups()) == GROUPS
    program, expected = facts_of("operators"), answers("operators")
    names = groups()[index]
    params = [parameter for name in names for parameter in program[name].params]
    together = Function("", params, Tuple("", [program[name].body for name in names]))
    executable = uir_tvm.compile(import_program({"main": together}, {}, shapes={}))
    inputs = [expected[f"{name}/x{i}"] for name in names for i in range(len(program[name].params))]
    results = executable(*inputs)
    wanted = [
        (f"{name}/{i}", expected[f"{name}/{i}"])
        for name in names
        for i in range(9)
        if f"{name}/{i}" in expected
    ]
    assert len(results) == len(wanted)
    for (name, want), result in zip(wanted, results, strict=True):
        got = np.asarray(result)
        assert (got.shape, got.dtype) == (want.shape, want.dtype), name
        if want.dtype.kind == "f":
            # sums in another order, and functions of libraries within a few ULP
            np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(got, want, err_msg=name)


def test_no_operator_is_taken_and_refused() -> None:
    assert not set(CONVERTERS) & set(REFUSED)
    assert sum(len(rows) for rows in TABLES.values()) == len(CONVERTERS) >= 120


def test_the_documentation_lists_what_is_taken() -> None:
    """docs/relay.md holds the table that `document.table` makes; run it to write the page again."""
    assert table() in PAGE.read_text()
