# SPDX-License-Identifier: Apache-2.0
"""uir-cpu for processors other than this machine's gives what the interpreter gives.

Code for AVX2 runs here where this machine has it; code for AArch64 is cross-compiled and runs under an
emulator, with vectors of 128 bits (NEON) and of 256 (SVE).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.igraph import IGraph
from uir_tvm.runtime.kernel import run_igraph
from uir_tvm.schedules import RECIPES
from uir_tvm.target.registry import TARGETS

from tests.asked import asked
from tests.target.cpu.emulator import MISSING, REASON, compiled_for_its_processor, run_emulated

from .cases import CASES
from .groups import GROUP_FORMS
from .test_targets import check_case, check_group_form, check_recipe

TARGET = "uir-cpu"
#: Processors by LLVM's names; of the second of AArch64 vectors are those of SVE.
AVX2, NEON, SVE = "haswell", "neoverse-n1", "neoverse-v1"
PROCESSORS = (AVX2, NEON, SVE)
#: What the suite takes, a case of each way in which code depends on the width of vectors: tails and
#: transposition, sums along rows, blocks of registers of a product; and narrow floats, which they convert.
FEW = ("place-fp32-ragged", "reduce-fp32-ragged", "contract-fp32-ragged", "cast-fp16-ragged")
FEW_RECIPES = [recipe for recipe in RECIPES if recipe.hero == "normalization"]
FEW_FORMS = tuple(GROUP_FORMS)[:1]


def run_for(processor: str) -> Any:
    """What runs a graph for a processor; the test is skipped where this machine cannot."""
    if processor != AVX2:
        if MISSING:
            pytest.skip(REASON)
        return lambda graph, _target, *inputs: run_emulated(graph, *inputs)
    lacking = TARGETS[TARGET].place().unable(hardware.get(processor))
    if lacking:
        pytest.skip(f"this machine lacks {lacking}")
    return _run_here


def _run_here(graph: IGraph, target: str, *inputs: np.ndarray) -> list[np.ndarray]:
    return run_igraph(graph, target, *inputs, built=compiled_for_its_processor(graph))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", asked(FEW, tuple(CASES)))
def test_case(name: str, processor: str) -> None:
    check_case(name, TARGET, processor, run_for(processor))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", asked(FEW_FORMS, tuple(GROUP_FORMS)))
def test_group_form(name: str, processor: str) -> None:
    check_group_form(name, TARGET, processor, run_for(processor))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("recipe", asked(FEW_RECIPES, [*RECIPES]), ids=lambda r: r.hero)
def test_recipe(recipe: Any, processor: str) -> None:
    check_recipe(recipe, TARGET, processor, run_for(processor))
