# SPDX-License-Identifier: Apache-2.0
"""Kernels for all sizes on cores that take tiles in turn: they load once what these share, and ahead."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from uir_tvm import CompileOptions
from uir_tvm.igraph import Loop, walk_body
from uir_tvm.igraph.dealt import DEALT, is_dealt
from uir_tvm.pipeline import recording
from uir_tvm.runtime.modelled import recording as modelled
from uir_tvm.stages import KernelRecord
from uir_tvm.target import registry

COLUMNS = 64
#: Those whose cores take groups in turn.
TARGETS = [name for name, spec in registry.TARGETS.items() if "deal_groups" in spec.passes]


def built(target: str) -> tuple[tvm.runtime.Module, KernelRecord]:
    """Rows times a row that is the same for all of them, for any number of rows."""
    x, g = te.placeholder((tirx.Var("n", "int64"), COLUMNS), name="x"), te.placeholder((COLUMNS,), name="g")
    y = te.compute(x.shape, lambda i, j: x[i, j] * g[j], "y")
    func = te.create_prim_func([x, g, y])
    with recording(CompileOptions(variants="none")) as records:
        made = tvm.tirx.build(tvm.IRModule({"main": func}), target=target)
    return made, records["main"]


@pytest.mark.parametrize("target", TARGETS)
def test_what_tiles_share_is_loaded_once_and_the_next_one_ahead(target: str) -> None:
    """Right for any number of rounds of any unit, none included."""
    module, record = built(target)
    assert record.optimized is not None and is_dealt(record.optimized)
    text = str(record.products["source"].source)
    begin = re.search(r"for \(.*; .*pid \+ .*< groups; \+\+tile\) \{", text)
    assert begin is not None, text
    inside = text[begin.end() :]
    assert re.search(r"if \(.*pid \+ .* < groups\) \{", inside), "the next tile is loaded where there is one"
    (loop,) = (node for node in record.optimized.body if isinstance(node, Loop) and DEALT in node.attrs)
    names = {str(piece.pointer.name) for iop, _ in walk_body(loop.body) for piece in iop.slices()}
    assert {"x", "y"} <= names and "g" not in names and loop.attrs["stages"] == 2
    rows = int(record.optimized.num_groups) * int(_rows_of_tile(record))
    rng = np.random.default_rng(0)
    gain = rng.standard_normal(COLUMNS).astype("float32")
    for n in (0, 1, rows - 1, rows, rows + 1, 2 * rows + 5, 5 * rows):
        given = rng.standard_normal((n, COLUMNS)).astype("float32")
        tensors = [tvm.runtime.tensor(a, tvm.ext_dev(0)) for a in (given, gain, np.full_like(given, np.nan))]
        with modelled():
            module["main"](*tensors)
        np.testing.assert_array_equal(tensors[2].numpy(), given * gain)


def _rows_of_tile(record: KernelRecord) -> int:
    """Rows of a tile: where a group more begins."""
    groups = record.optimized.groups  # type: ignore[union-attr]
    return next(n for n in range(1, 1 << 16) if groups.evaluate({"n": n + 1}) > 1)
