# SPDX-License-Identifier: Apache-2.0
"""What tidying keeps in the interpreter it keeps on uir-cpu: the emitted code gives the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.dtypes import DTYPES
from uir_tvm.optimize import simplify
from uir_tvm.verify import verify

from ..target.cpu.support import execute, parsed
from .equal import bits
from .test_simplify import EXAMPLES, values

COUNT = 2048


def program(dtype: str) -> tuple[IGraph, list[str]]:
    """One graph of all examples that take this dtype, each with registers and an output of its own."""
    box = f"[0; (1,{COUNT}); ({COUNT},1)]"
    head = [f"x_{k} = iPointer(dram, {dtype}, {COUNT}, in)" for k in "ab"]
    registers, body, names = [], [], []
    for rule, rows in EXAMPLES.items():
        for dtypes, lines, result in rows:
            text = "\n".join(lines)
            # TVM's constant folding takes NaN for a number and forgets the sign of zeros: tidying mends the
            # one, and what the other gives depends on the form of the expression
            beyond_tvm = "[nan]" in text or "fill.D {c} [-0.0]" in text
            if dtype not in dtypes or "{m}" in text or beyond_tvm:
                continue
            n = len(names)
            names.append(rule)
            own = {k: dtype for k in "abcde"} | {"z": result or dtype, "n": "bool"}
            own |= {f"w_{d}": d for d in DTYPES}
            used = {k: d for k, d in own.items() if "{" + k + "}" in text}
            head.append(f"y{n} = iPointer(dram, {used['z']}, {COUNT}, out)")
            registers += [f"{k}{n} = iPointer(reg, {d}, {COUNT})" for k, d in used.items()]
            body += [f"move.dram.reg.{dtype} {k}{n}{box}, x_{k}{box}" for k in "ab" if k in used]
            for line in lines:
                line = line.replace("D ", f"{dtype} ").replace("D.", f"{dtype}.")
                body.append(line.format(**{k: f"{k}{n}{box}" for k in used}))
            body.append(f"move.reg.dram.{used['z']} y{n}{box}, z{n}{box}")
    return parsed("\n".join(head + registers), "\n".join(body)), names


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "fp64", "int32", "int8"])
def test_emitted_code_gives_the_same_bits(dtype: str) -> None:
    before, names = program(dtype)
    verify(before)
    after = simplify.run(before)
    assert after is not before and len(names) > 10
    inputs = [np.resize(values(dtype, seed), COUNT) for seed in range(2)]
    for name, old, new in zip(names, execute(before, inputs), execute(after, inputs), strict=True):
        differ = bits(old) != bits(new)
        assert not differ.any(), (name, old[differ][:4], new[differ][:4])
