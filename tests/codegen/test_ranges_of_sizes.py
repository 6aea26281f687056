# SPDX-License-Identifier: Apache-2.0
"""What printers know of expressions over sizes and units."""

from __future__ import annotations

import random

import tvm_ffi
from uir_tvm.igraph import parse_igraph, var

from tests.device_targets import DEVICE_TARGETS
from tests.target.sized_kernels import BY_NAME

RANGES = """
igraph ranges on HARDWARE parallel (GROUPS, UNITS) {
  size n = [LOW, HIGH, STEP]
  x = iPointer(dram, fp32, (n), inout)
}
"""


def test_ranges_of_sizes_and_units_hold() -> None:
    """What is left out because it cannot be (a clamp) cannot be at any size, on any unit that there is."""
    rng = random.Random(7)
    range_of = tvm_ffi.get_global_func("uir.codegen.range")
    hardware = DEVICE_TARGETS[0].hardware
    for _ in range(200):
        tile, units, step = rng.choice([1, 3, 4, 16]), rng.choice([1, 2, 4]), rng.choice([1, 1, 4, 6])
        low, high = rng.randrange(0, 9), rng.randrange(9, 60)
        whole = tile * units
        groups = (var("n") + rng.choice([whole - 1, whole - 1, 0, 2 * whole])) // whole
        words = {"GROUPS": groups, "UNITS": units, "LOW": low, "HIGH": high, "STEP": step}
        text = RANGES.replace("HARDWARE", f'"{hardware.name}"')
        for word, value in words.items():
            text = text.replace(word, str(value))
        graph = parse_igraph(text, hardware)
        expr = rng.choice([-2, 0, 1, 3]) * var("n") + rng.choice([-tile, -1, 1, tile]) * var("pid")
        if rng.random() < 0.5:
            expr = expr + rng.choice([-tile, 1]) * ((var("pid") + rng.randrange(3)) // rng.choice([2, units]))
        if rng.random() < 0.3:
            expr = expr + (var("n") + 1) // 3
        least, most = range_of(expr, graph)
        for n in range(low, high + 1):
            for pid in range(max(groups.evaluate({"n": n}), 0) * units if n % step == 0 else 0):
                value = expr.evaluate({"n": n, "pid": pid})
                assert least <= value <= most, (text, expr, n, pid)


def test_a_unit_that_there_is_has_something() -> None:
    graph = BY_NAME["exp_of_rows"].graph(DEVICE_TARGETS[0].hardware)
    least, most = tvm_ffi.get_global_func("uir.codegen.range")(var("n") - 4 * var("pid"), graph)
    assert (least, most) == (1, 301)
