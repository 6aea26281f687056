# SPDX-License-Identifier: Apache-2.0
"""Samples: the first class whose running sum exceeds the uniform number, at most the last."""

from __future__ import annotations

import numpy as np
import uir_tvm
from tvm import relax

from tests import tiny


def test_classes_at_and_between_running_sums() -> None:
    """A sum that equals the number does not exceed it; a class of no probability is never drawn."""
    probabilities = np.array([[0.25, 0.0, 0.5, 0.25], [0.5, 0.5, 0.0, 0.0]], "float32")
    sample = np.array([[0.0], [0.25], [0.74], [0.75], [1.0], [0.49], [0.5]], "float32")
    rows = np.array([[0], [0], [0], [0], [0], [1], [1]], "int64")
    exe = uir_tvm.compile(
        tiny.elementwise(
            relax.op.multinomial_from_uniform, ((2, 4), "float32"), ((7, 1), "float32"), ((7, 1), "int64")
        )
    )
    got = exe(probabilities, sample, rows)
    assert got.dtype == np.int64 and got.tolist() == [[0], [2], [2], [3], [3], [0], [1]]
