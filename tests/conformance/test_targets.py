# SPDX-License-Identifier: Apache-2.0
"""Every case on every target gives what the interpreter gives, or is refused with the reason that is listed.

A target is covered by its row in the registry; what it refuses is listed in `refusals.py`, and must be
refused in a CodegenError.  ``UIR_TEST_ALL=1`` runs the whole matrix of classes, dtypes and shapes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.iops import IOPS
from uir_tvm.schedule import apply_default
from uir_tvm.schedules import RECIPES
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify import ALL, verify

from tests.as_programs import run_igraph
from tests.asked import in_turn
from tests.extracted import extracted

from .cases import CASES, CLASSES, DTYPE_NAMES, QUICK, covered
from .groups import GROUP_FORMS, QUICK_FORMS
from .open_cases import OPEN_CASES
from .refusals import REFUSALS, Refusal, Subject, refusal_of

#: The cases leave elements of their outputs out, around strides and boxes; they stay zero everywhere.
RULES = tuple(rule for rule in ALL if rule != "coverage")
#: Chains of fp32 functions a few ULP apart, and sums of some thousand terms in another order.
RECIPE_TOLERANCE = 2e-5
#: What runs a graph on a target, as `run_igraph` does.
Run = Callable[..., list[np.ndarray]]
ALL_CASES = bool(os.environ.get("UIR_TEST_ALL"))
#: Hardware models for which a target prints otherwise than for its default one, or lays out other memories.
FURTHER = (("uir-bang", "mlu370-x4"), ("uir-bang", "mlu590"))
if not ALL_CASES:
    FURTHER = FURTHER[1:]  # an architecture of its own
#: What runs for them by default: bf16, in which the architecture of an MLU590 calculates.
FEW = tuple(f"{kind}-bf16-ragged" for kind in CLASSES)
FEW_FORMS = tuple(name for name in QUICK_FORMS if "bf16" in name or "rows of" in name)


def check(
    found: list[np.ndarray],
    wanted: list[np.ndarray],
    tolerances: list[float],
    names: list[str],
    units: Sequence[float] | None = None,
) -> None:
    """Equal for what is no float; else within the tolerance, relative to the value or to one.

    ``units`` stand in the place of one: of sums of which many are near zero, what their terms are.
    """
    for got, want, tolerance, name, unit in zip(
        found, wanted, tolerances, names, units or [1.0] * len(found), strict=True
    ):
        want = want.reshape(-1)
        assert got.dtype == want.dtype, name
        if tolerance == 0:
            np.testing.assert_array_equal(got, want, err_msg=name)
        else:
            a, b = got.astype(np.float64), want.astype(np.float64)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * unit, err_msg=name)


def must_refuse(call: Callable[[], Any], reason: Refusal) -> None:
    """A listed refusal occurs, with the reason that is listed."""
    with pytest.raises(CodegenError, match=reason.says):
        call()


def check_case(name: str, target: str, model: str | None = None, run: Run = run_igraph) -> None:
    """A case agrees with the interpreter or is refused, for a hardware model (default: the target's).

    ``run(graph, target, *inputs)`` is what runs it.
    """
    hw = hardware.get(model, TARGETS[target].kind)
    for operation, reason in CASES[name].refused(target):
        graph, inputs = CASES[name].only(operation).build(hw)
        verify(graph, RULES)
        must_refuse(partial(run_igraph, graph, target, *inputs), reason)
    case = CASES[name].kept(target)
    if not case.operations:
        return
    graph, inputs = case.build(hw)
    verify(graph, RULES)
    found = run(graph, target, *inputs)
    wanted = interpreter.run(graph, *inputs, allow_unwritten=True)
    tolerances = [case.tolerance(n) for n in range(len(case.operations))]
    check(found, wanted, tolerances, [o.name for o in case.operations])
    live = sum(bool(np.count_nonzero(w)) for w in wanted)
    assert 2 * live >= len(wanted), "a case that writes nothing shows nothing"


def check_group_form(name: str, target: str, model: str | None = None, run: Run = run_igraph) -> None:
    """The same of a group form."""
    form = GROUP_FORMS[name]
    graph, inputs = form.build(hardware.get(model, TARGETS[target].kind))
    if reason := form.refusal(target):
        must_refuse(partial(run_igraph, graph, target, *inputs), reason)
        return
    verify(graph)
    found = run(graph, target, *inputs)
    wanted = interpreter.run(graph, *inputs)
    check(found, wanted, [form.tolerance] * len(wanted), [name] * len(wanted))


def check_recipe(recipe: Any, target: str, model: str | None = None, run: Run = run_igraph) -> None:
    """Interpreter, target and NumPy agree on the example of a recipe, for a hardware model."""
    example = recipe.example()
    hw = hardware.get(model, TARGETS[target].kind)
    graph: IGraph = extracted(apply_default(example.func, hw), hw)
    if reason := refusal_of(target, Subject("recipe", recipe.hero)):
        must_refuse(partial(run_igraph, graph, target, *example.inputs), reason)
        return
    outputs = run(graph, target, *example.inputs)
    reference = interpreter.run(graph, *example.inputs)
    for got, same, want in zip(outputs, reference, example.expected, strict=True):
        limit = RECIPE_TOLERANCE * max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want.reshape(-1), rtol=0, atol=limit)
        np.testing.assert_allclose(same.reshape(-1), want.reshape(-1), rtol=0, atol=limit)


def _elsewhere(name: str, target: str) -> bool:
    """Functions of other dtypes on a CPU: tests/target/cpu/test_emit_value.py has them over ragged tiles."""
    kind, dtype, *_ = name.split("-")
    return target == "uir-cpu" and kind in ("unary", "binary", "compare") and dtype in DTYPE_NAMES[2:]


def _is_of_further_shape(name: str) -> bool:
    """fp32 in another shape class than the ragged one, which has tails and boxes."""
    kind, dtype, shape = (*name.split("-"), "", "")[:3]
    return kind in CLASSES and dtype == "fp32" and shape != "ragged"


def _run() -> list[tuple[str, str]]:
    """Cases with their targets; in further shapes each is run on uir-cpu and on one device."""
    if ALL_CASES:
        return [(name, target) for name in CASES for target in TARGETS]
    further = [name for name in QUICK if _is_of_further_shape(name)]
    ragged = [(n, t) for n in QUICK if n not in further for t in TARGETS if not _elsewhere(n, t)]
    return [*ragged, *in_turn(further, TARGETS)]


RUN = _run()


@pytest.mark.parametrize(("name", "target"), RUN)
def test_case(name: str, target: str) -> None:
    check_case(name, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", GROUP_FORMS if ALL_CASES else QUICK_FORMS)
def test_group_form(name: str, target: str) -> None:
    check_group_form(name, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.hero)
def test_recipe(recipe: Any, target: str) -> None:
    check_recipe(recipe, target)


@pytest.mark.parametrize(("target", "model"), FURTHER)
@pytest.mark.parametrize("name", QUICK if ALL_CASES else FEW)
def test_case_on_further_hardware(name: str, target: str, model: str) -> None:
    check_case(name, target, model)


@pytest.mark.parametrize(("target", "model"), FURTHER)
@pytest.mark.parametrize("name", QUICK_FORMS if ALL_CASES else FEW_FORMS)
def test_group_form_on_further_hardware(name: str, target: str, model: str) -> None:
    check_group_form(name, target, model)


@pytest.mark.parametrize(("target", "model"), FURTHER)
@pytest.mark.parametrize("recipe", RECIPES if ALL_CASES else [*RECIPES][:1], ids=lambda r: r.hero)
def test_recipe_on_further_hardware(recipe: Any, target: str, model: str) -> None:
    check_recipe(recipe, target, model)


def test_every_target_has_a_table() -> None:
    """Of every target it is known what it refuses, and every reason covers something."""
    assert set(REFUSALS) == set(TARGETS)
    subjects = [o.subject(case.kind) for case in CASES.values() for o in case.operations]
    subjects += [form.subject for form in GROUP_FORMS.values()]
    subjects += [one.subject(o) for one in OPEN_CASES.values() for o in one.case.operations]
    subjects += [Subject("recipe", recipe.hero) for recipe in RECIPES]
    for target, rows in REFUSALS.items():
        given = {id(refusal_of(target, subject)) for subject in subjects}
        assert [row for row in rows if id(row) not in given] == []


def test_every_iop_is_covered() -> None:
    """No iOp of the table is without a case."""
    assert covered() == set(IOPS)
