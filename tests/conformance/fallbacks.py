# SPDX-License-Identifier: Apache-2.0
"""Which kernels of the models and of the corpus have no iGraph, or only the scalar recipe's, by target."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Mapping

import attrs
import tvm
from tvm import tirx
from uir_tvm import kernel_graph
from uir_tvm.options import CompileOptions
from uir_tvm.pipeline import compile_kernel, recording
from uir_tvm.schedules import fallback
from uir_tvm.target.registry import TARGETS

from tests.corpus import recipes
from tests.models import Scale
from tests.models.imported import imported as read_model

#: What is known: the only fall-backs that there may be.
TABLE = pathlib.Path(__file__).with_name("fallbacks.json")
#: Beside the models: every operator of the corpus, a kernel each.
CORPUS = "corpus"


@attrs.frozen
class Count:
    """The kernels of one model on one target."""

    kernels: int
    #: Left to TVM's own lowering: reason by name.
    host: Mapping[str, str] = attrs.field(factory=dict)
    #: Their own recipe gave way to the one that always builds, on one unit.
    one_unit: tuple[str, ...] = ()


def imported(name: str, scale: Scale) -> tvm.IRModule | None:
    """A model, ready for any target; None for the corpus."""
    if name == CORPUS:
        return None
    return read_model(name, scale)


def kernels(mod: tvm.IRModule | None, target: tvm.target.Target) -> Iterator[tuple[str, tirx.PrimFunc]]:
    """The distinct kernels of a model on a target, those that its library takes left out; by name."""
    if mod is None:
        yield from ((case, recipes.example(case).func) for case in recipes.CASES)
    else:
        yield from kernel_graph.build(mod, target).kernels.items()


def count(mod: tvm.IRModule | None, name: str) -> Count:
    """Compile every kernel of a model for a target, as a default build does."""
    row = TARGETS[name]
    # fixed hardware models, so that the table is the same on every machine
    target = row.target("avx512-2core") if name == "uir-cpu" else row.target(None, "model")
    options = CompileOptions(equivalence="none", database=None, faults="fall back")
    host, one_unit, total = {}, [], 0
    with recording(options):
        for label, func in kernels(mod, target):
            record = compile_kernel(func.with_attr("target", target), target, label)
            total += 1
            if record.fallback:
                host[label] = record.fallback.splitlines()[0]
            elif record.recipe == fallback.RECIPE.hero:
                one_unit.append(label)
    return Count(total, host, tuple(one_unit))


def known() -> dict[str, dict[str, dict[str, Count]]]:
    """The table: scale, model, target."""
    read = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    return {
        scale: {
            model: {
                target: Count(row["kernels"], row.get("host", {}), tuple(row.get("one unit", ())))
                for target, row in targets.items()
            }
            for model, targets in models.items()
        }
        for scale, models in read.items()
    }


def write(table: Mapping[str, Mapping[str, Mapping[str, Count]]]) -> None:
    """Put the table down."""

    def row(found: Count) -> dict[str, object]:
        parts = {"kernels": found.kernels, "host": dict(found.host), "one unit": list(found.one_unit)}
        return {key: value for key, value in parts.items() if value}

    rows = {
        scale: {m: {t: row(c) for t, c in targets.items()} for m, targets in models.items()}
        for scale, models in table.items()
    }
    TABLE.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")


def new(found: Count, expected: Count) -> list[str]:
    """What falls back and did not."""
    lost = [(name, why) for name, why in found.host.items() if name not in expected.host]
    known_names = {*expected.one_unit, *expected.host}
    return [
        *(f"{name} is left to the host: {why}" for name, why in lost),
        *(f"{name} runs on one unit" for name in found.one_unit if name not in known_names),
    ]
