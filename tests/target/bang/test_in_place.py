# SPDX-License-Identifier: Apache-2.0
"""What lies where the target does: functions that the header lets work there, and no others.

The host model refuses any other call, so that every run without a finding shows the text to be right.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from uir_tvm.igraph import IGraph

from .kernels import check, parse

COUNT = 4096
WHOLE = f"(1,{COUNT}); ({COUNT},1)"


def _select(target: str) -> IGraph:
    """target = a < b ? c : d, all in NRAM; the target is one of them, or lies there by its address."""
    lines = [f"{name} = iPointer(dram, fp32, {COUNT}, in)" for name in ("a", "b", "c", "d")]
    lines += [f"y = iPointer(dram, fp32, {COUNT}, out)", f"m = iPointer(reg, bool, {COUNT})"]
    lines += [f"{name}_tile = iPointer(reg, fp32, {COUNT})" for name in ("a", "b", "c", "d")]
    lines += [f"t = iPointer(reg, fp32, {COUNT})"] if target == "t" else []
    lines += [
        f"move.dram.reg.fp32 {name}_tile[0; {WHOLE}], {name}[0; {WHOLE}]" for name in ("a", "b", "c", "d")
    ]
    lines += [
        f"compare.lt.fp32 m[0; {WHOLE}], a_tile[0; {WHOLE}], b_tile[0; {WHOLE}]",
        f"select.fp32 {target}[0; {WHOLE}], m[0; {WHOLE}], c_tile[0; {WHOLE}], d_tile[0; {WHOLE}]",
        f"move.reg.dram.fp32 y[0; {WHOLE}], {target}[0; {WHOLE}]",
    ]
    return parse("\n".join(lines))


def _inputs(number: int) -> list[np.ndarray]:
    rng = np.random.default_rng(11)
    return [rng.standard_normal(COUNT).astype(np.float32) for _ in range(number)]


def _addresses(source: str) -> dict[str, int]:
    """Where the pointers of a text lie."""
    found = re.findall(r" \*const (\w+) = \([^)]*\)\(?nram(?: \+ (\d+))?\)?;", source)
    return {name: int(place or 0) for name, place in found}


@pytest.mark.parametrize("target", ["c_tile", "d_tile", "t"])
def test_a_selection_in_the_place_of_an_operand(target: str) -> None:
    check(_select(target), _inputs(4))


@pytest.mark.parametrize("operand", ["a_tile", "b_tile", "c_tile", "d_tile"])
def test_another_name_of_the_same_place(operand: str) -> None:
    """The target is a pointer of its own, at the address of an operand."""
    graph = _select("t")
    names = ("a_tile", "b_tile", "c_tile", "d_tile")
    places = {name: 4 * COUNT * k for k, name in enumerate(names)}
    places |= {"m": 4 * COUNT * 4, "t": places[operand]}
    kernel = check(graph.replace(attrs={"addresses": places}), _inputs(4), ("insert_sync",))
    found = _addresses(kernel.source)
    assert found["t"] == found[operand], kernel.source


def test_no_text_has_the_second_operand_of_a_function_on_bits_in_the_target_s_place() -> None:
    """Calls by address and offset, for every way in which targets and operands may lie."""
    names = ("a_tile", "b_tile", "c_tile", "d_tile")
    for order, operand in itertools.product(((0, 1, 2, 3), (3, 2, 1, 0)), names):
        places = {name: 4 * COUNT * k for name, k in zip(names, order, strict=True)}
        places |= {"m": 4 * COUNT * 4, "t": places[operand]}
        graph = _select("t").replace(attrs={"addresses": places})
        kernel = check(graph, _inputs(4), ("insert_sync",))
        known = _addresses(kernel.source)
        calls = re.findall(r"__bang_(?:band|bor|bxor)\((.*)\);", kernel.source)
        assert calls
        for call in calls:
            target, _, second, _ = (_place(part, known) for part in call.split(", "))
            assert target != second, call


def _place(text: str, known: dict[str, int]) -> int | str:
    """The byte of NRAM at which an operand of four bytes an element begins."""
    plain = re.sub(r"\((?:const )?\w+ \*\)", "", text).strip("()")
    name, _, offset = plain.partition(" + ")
    return known[name] + 4 * int(offset) if name in known and offset.isdigit() else known.get(name, plain)


@pytest.mark.parametrize("cncc", ["3", "4"])
@pytest.mark.parametrize("place", ["own", "the source's"])
def test_integers_become_floats_in_place_where_that_is_shown(cncc: str, place: str) -> None:
    """The header of cncc 3 forbids it, and rounds towards zero: every float is the nearest all the same."""
    text = f"""
      x = iPointer(dram, int32, {COUNT}, in)
      y = iPointer(dram, fp32, {COUNT}, out)
      s = iPointer(reg, int32, {COUNT})
      t = iPointer(reg, fp32, {COUNT})
      move.dram.reg.int32 s[0; {WHOLE}], x[0; {WHOLE}]
      cast.int32.fp32 t[0; {WHOLE}], s[0; {WHOLE}]
      move.reg.dram.fp32 y[0; {WHOLE}], t[0; {WHOLE}]
    """
    places = {"s": 0, "t": 0 if place != "own" else 4 * COUNT}
    graph = parse(text).replace(attrs={"addresses": places, "cncc": cncc})
    rng = np.random.default_rng(5)
    x = rng.integers(-(2**31), 2**31, COUNT).astype(np.int32)
    x[:6] = [2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31), 0]
    kernel = check(graph, [x], ("insert_sync",))
    name = "__bang_int2float(" if cncc == "3" else "__bang_int322float_rn("
    assert name in kernel.source
