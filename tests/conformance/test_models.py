# SPDX-License-Identifier: Apache-2.0
"""Whole models at small scale, through every front end: torch's numbers, and no kernel without an iGraph.

``scripts/check_models.py`` does the same at full scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from uir_tvm import pipeline
from uir_tvm.pipeline import KernelRecord
from uir_tvm.target.registry import TARGETS

from tests.asked import asked
from tests.models import MODELS
from tests.models.imported import imported

from .model_check import LIMIT, Outcome, check_model
from .three_ways import compare_record

ALL_PAIRS = [(name, target) for name in MODELS for target in TARGETS]
#: Every model on the CPU, and every other one on each device: what a front end gives is the same for all.
PAIRS = asked([pair for at, pair in enumerate(ALL_PAIRS) if pair[1] == "uir-cpu" or at % 3 == 1], ALL_PAIRS)


def expect_right(outcome: Outcome) -> None:
    """A model's numbers are torch's, and every kernel went through an iGraph."""
    assert outcome.fallbacks == {}
    assert outcome.kernels > 0
    assert outcome.error <= LIMIT


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> dict[str, KernelRecord]:
    """The records of all kernels that are compiled in the test, by name."""
    kept: dict[str, KernelRecord] = {}
    recording = pipeline.recording

    @contextmanager
    def keeping(*args: Any) -> Iterator[dict[str, KernelRecord]]:
        with recording(*args) as found:
            yield found
        kept.update(found)

    monkeypatch.setattr(pipeline, "recording", keeping)
    return kept


@pytest.mark.compares_itself(but=("uir-cpu",))
@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_model_and_its_kernels(name: str, target: str, records: dict[str, KernelRecord]) -> None:
    """The whole model is torch's; of every kernel, interpreter = emitted code = TVM's own lowering.

    What a front end gives is the same for all targets: devices take the model as it was read once.
    """
    program = None if target == "uir-cpu" else imported(name)
    expect_right(check_model(name, "torch", "small", target, program=program))
    assert records
    for record in records.values():
        compare_record(record, TARGETS[target].target())


@pytest.mark.parametrize("name", asked(["minilm"], [name for name in MODELS if MODELS[name].onnx]))
def test_model_through_onnx(name: str) -> None:
    """A front end is tested once; other targets start from what the first route gives.

    tests/frontend reads every model through ONNX; all are compiled too with ``UIR_TEST_ALL=1``.
    """
    expect_right(check_model(name, "onnx", "small", "uir-cpu"))
