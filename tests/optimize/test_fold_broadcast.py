# SPDX-License-Identifier: Apache-2.0
"""Broadcast operands are read where they lie if a device can; where a value would change, they stay."""

from __future__ import annotations

import pytest
from uir_tvm.optimize import fold_broadcast

from .pairs import HARDWARE
from .toy import applied, left_alone, mnemonics, toy

#: The toy with a vector unit that takes an operand of one value for each row, or one row for all.
DEVICE = f'{HARDWARE.rstrip().removesuffix("}")}  figure spread_fp32 = "sub mul"\n}}\n'
REGS = "".join(
    f"  {name} = iPointer(reg, fp32, {size})\n" for name, size in {"t": 256, "b": 256, "m": 64}.items()
)
LOAD = "  move.dram.reg.fp32 t[0; (1,256); (256,1)], x[0; (1,256); (256,1)]\n"
STORE = "  move.reg.dram.fp32 y[0; (1,256); (256,1)], t[0; (1,256); (256,1)]\n"
MAX = "  reduce.max.row.unit.fp32 m[0; (8,1); (1,1)], t[0; (8,32); (32,1)]\n"
SPREAD = "  broadcast.row.unit.fp32 b[0; (8,32); (32,1)], m[0; (8,1); (1,1)]\n"
USE = "  binary.{name}.fp32 t[0; (8,32); (32,1)], {left}[0; (8,32); (32,1)], {right}[0; (8,32); (32,1)]\n"


def use(name: str = "sub", left: str = "t", right: str = "b") -> str:
    return USE.format(name=name, left=left, right=right)


def graph(*lines: str, hardware: str = DEVICE) -> object:
    return toy(REGS + "".join([LOAD, *lines, STORE]), (1, 1), hardware)


@pytest.mark.parametrize("operands", [("t", "b"), ("b", "t")])
def test_a_column_is_read_by_a_column_stride_of_zero(operands: tuple[str, str]) -> None:
    made = applied(fold_broadcast, graph(MAX, SPREAD, use("sub", *operands)))
    assert "broadcast.row.unit.fp32" not in mnemonics(made)
    reader = next(iop for iop, _ in made.walk() if iop.op == "binary")
    read = reader.sources[operands.index("b")]
    assert read.pointer.name == "m" and tuple(read.stride) == (1, 0) and tuple(read.shape) == (8, 32)


def test_a_row_is_read_by_a_row_stride_of_zero() -> None:
    fold = "  reduce.max.col.unit.fp32 m[0; (1,32); (32,1)], t[0; (8,32); (32,1)]\n"
    wide = "  broadcast.col.unit.fp32 b[0; (8,32); (32,1)], m[0; (1,32); (32,1)]\n"
    made = applied(fold_broadcast, graph(fold, wide, use("mul")))
    reader = next(iop for iop, _ in made.walk() if iop.op == "binary")
    assert tuple(reader.sources[1].stride) == (0, 1)


def test_a_device_may_take_rows_alone() -> None:
    rows_alone = DEVICE.replace("spread_fp32", "spread_col_fp32")
    fold = "  reduce.max.col.unit.fp32 m[0; (1,32); (32,1)], t[0; (8,32); (32,1)]\n"
    wide = "  broadcast.col.unit.fp32 b[0; (8,32); (32,1)], m[0; (1,32); (32,1)]\n"
    made = applied(fold_broadcast, graph(fold, wide, use("mul"), hardware=rows_alone))
    assert "broadcast.col.unit.fp32" not in mnemonics(made)
    left_alone(fold_broadcast, graph(MAX, SPREAD, use("mul"), hardware=rows_alone))


def test_every_reader_must_be_able_to() -> None:
    left_alone(fold_broadcast, graph(MAX, SPREAD, use(), use("add")))
    left_alone(fold_broadcast, graph(MAX, SPREAD, use("sub", "b", "b")))


def test_not_where_the_column_has_changed() -> None:
    again = "  unary.neg.fp32 m[0; (8,1); (1,1)], m[0; (8,1); (1,1)]\n"
    left_alone(fold_broadcast, graph(MAX, SPREAD, again, use()))


def test_not_another_part_of_the_tile() -> None:
    part = use().replace("(8,32); (32,1)", "(4,32); (32,1)")
    left_alone(fold_broadcast, graph(MAX, SPREAD, part))


def test_not_on_devices_that_say_nothing_of_it() -> None:
    left_alone(fold_broadcast, graph(MAX, SPREAD, use(), hardware=HARDWARE))
