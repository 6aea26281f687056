# SPDX-License-Identifier: Apache-2.0
"""What attention costs in one kernel, and as two products of the library around a softmax.

One kernel keeps the scores on chip; its tiles are those that its recipe would cut (`schedules.attention`), of
which units take turns.  What a block of keys takes of a unit is what its steps take by the machine model
(`uir_tvm.target.record`: ``machine``): both products, the functions on scores, maxima, sums, and the
transfers of keys and values; where products are made by a unit that reads dram, scores, weights and sums go
there and back as well.  Memory is the least that all units take together.

Products of the library take what its model says (`hardware.library_costs`); where there is none, so much of
the rate of contractions as `AttentionSpeed` says.  The softmax between them, with the steps that are part of
it, is a kernel as any other (`fusion_cost`).  Nothing is measured while a model compiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from ..hardware.library_costs import LIBRARIES, library_time
from ..hardware.machine_model import CONTRACT, REDUCE, VECTOR, GraphCounts, IOpCounts, MachineModel, rates
from ..schedules.attention import space_of_attention, tile_of
from ..schedules.attention.blocks import blocks_of_tiles, busiest, end_within, pays_to_spread
from ..schedules.attention.parts import Extents, UsualExtents
from ..schedules.attention.speed import AttentionSpeed
from ..schedules.attention.tile import FlashTile
from ..schedules.attention.work import dealt_groups
from ..sizes.open_arithmetic import representative
from ..target.registry import machine_of
from .fusion_cost import WORD, FusionCost, KernelWork
from .nodes import FusionDecision, Price
from .operator_groups import singleton
from .operator_traffic import read_bytes
from .program import Op, Value, dtype_bytes

if TYPE_CHECKING:
    from .attention import Attention

#: The candidate among `FusionDecision`s.
ATTENTION = "attention"
#: Class of arithmetic (`op_kinds`) -> the iOp that stands for it: what it is, its name.
_STANDS_FOR = {
    "add": ("binary", "add"),
    "mul": ("binary", "mul"),
    "divide": ("binary", "div"),
    "transcendental": ("unary", "exp"),
    "logic": ("select", "select"),
    "convert": ("cast", "cast"),
}
#: Part of the time of keys and values that a unit of products reads, which computing on scores does not hide.
HIDDEN = 0.5
#: Elements of functions that a maximum or sum of one takes.
FOLDED = 1.5
#: What a rule that closes keys by their place takes of each score: two comparisons and a choice.
_BAND = ("logic", "logic", "logic")
_NONE = np.zeros(1)
_ONE = np.ones(1)


def price_attention(
    found: Attention, cost: FusionCost, rows: int, kernels: Sequence[str], usual: bool
) -> FusionDecision | None:
    """Which way an attention takes less time; None where its hardware has no figures for that.

    A CPU has none: there the target's table says what was measured.

    Parameters
    ----------
    found : Attention
    cost : FusionCost
        Prices of the hardware.
    rows : int
        Rows that share their keys: queries of a head, or of one query the heads on one head of keys.
    kernels : sequence of str
        What it is about, by its operators.
    usual : bool
        Whether it is one of those that the target's table has in one kernel (`AttentionSpeed.usual_gain`).
    """
    speed = space_of_attention(cost.hardware).speed
    if speed is None:
        return None
    two, one = _apart(found, cost, speed), _Kernel(_extents(found, rows), found, cost, speed).price()
    taken = one.seconds <= two.seconds * (speed.usual_gain if usual else 1.0)
    return FusionDecision(ATTENTION, found.result.name, tuple(kernels), taken, two, one)


# --- products of the library around a softmax ----------------------------------------------------


def _apart(found: Attention, cost: FusionCost, speed: AttentionSpeed) -> Price:
    """The time of three kernels."""
    first, *between, last = found.ops
    softmax = next(op for op in between if op.kind.kind == "normalization")
    middle = cost.work(singleton(softmax), between[-1].results, [op for op in between if op is not softmax])
    works = [_product(first, cost, speed), middle, _product(last, cost, speed)]
    if str(cost.hardware.kind) not in LIBRARIES:
        return cost.price(works)
    seconds = sum(_library_seconds(op, cost) for op in (first, last)) + cost.price([middle]).seconds
    return Price(
        seconds,
        sum(work.bytes for work in works),
        int(sum(work.operations for work in works)),
        min(work.units for work in works),
    )


def _operations(op: Op) -> int:
    """Of a product: a multiplication with an addition is two."""
    return 2 * representative(op.result.size) * representative(op.operands[0].shape[-1])


def _product(op: Op, cost: FusionCost, speed: AttentionSpeed) -> KernelWork:
    """A product as a kernel of all units, of which operations are as fast as the library's."""
    dtype = op.operands[0].base.dtype
    words = _operations(op) * _words_of_operation(cost, dtype, speed.narrow_products) / speed.library
    writes = {value: representative(value.nbytes) for value in op.results}
    return KernelWork(read_bytes(op, representative), writes, words, cost.all_units)


def _words_of_operation(cost: FusionCost, dtype: str, narrow: bool) -> float:
    """Plain operations of words that take as long as one of a contraction."""
    known = rates(cost.hardware)
    if not narrow or dtype_bytes(dtype) >= WORD:
        return 0.5  # a multiply-add
    contract, words = known.contract.per_second, known.operations.per_second
    return words / contract if contract and words else 0.5


def _library_seconds(op: Op, cost: FusionCost) -> float:
    dtype = op.operands[0].base.dtype
    moved = sum(read_bytes(op, representative).values())
    moved += sum(representative(value.nbytes) for value in op.results)
    timed = library_time(cost.hardware, dtype, _operations(op), moved)
    # of what the library does not take a kernel of ours multiplies: as in float32, at best
    timed = timed or library_time(cost.hardware, "float32", _operations(op), moved)
    assert timed is not None, dtype
    return timed.seconds


# --- one kernel ----------------------------------------------------------------------------------


def _extents(found: Attention, rows: int) -> Extents:
    """What its recipe chooses tiles by; the heads on one head of keys are rows where there is one query."""
    *batch, own, head = (representative(size) for size in found.query.shape)
    if own == 1 and rows > 1 and batch:
        batch[-1] = max(batch[-1] // rows, 1)
        own = rows
    keys, width = representative(found.key.shape[-1]), representative(found.value.shape[-1])
    usual = UsualExtents(tuple(batch), own, keys, head, width)
    return Extents(tuple(batch), own, keys, usual, found.value.base.dtype)


@frozen(eq=False)
class _Kernel:
    """One kernel of an attention."""

    extents: Extents
    found: Attention
    cost: FusionCost
    speed: AttentionSpeed

    def price(self) -> Price:
        """Its time, and what it moves and computes."""
        hw, usual = self.cost.hardware, self.extents.usual
        tile = tile_of(self.extents, hw)
        rows, keys = min(tile.rows, usual.rows), min(tile.keys, usual.keys)
        sets = math.prod(usual.batch) * math.ceil(usual.rows / (rows * tile.units))
        shares = max(tile.parts, 1)
        units = sets * shares * tile.units
        moved = self._bytes()
        machine = self._machine(units, tile, rows, keys, moved)
        limit = min(machine.slots, tile.groups * tile.units)
        turns = max(math.ceil(units / limit), 1)
        blocks = math.ceil(math.ceil(usual.keys / keys) / shares) * self._open_share(tile, turns)
        busy = self._unit_seconds(tile, rows, keys, blocks, machine, min(units, machine.slots))
        # both kinds of units wait for their first load, one after the other
        spans = turns * busy + machine.store.head
        spans += machine.load.head * (2 if self._by_dram else 1)
        if shares > 1:
            spans += machine.launch + machine.load.head + machine.store.head
            spans += shares * self._sum_up(rows, machine)
        seconds = machine.launch + max(spans, moved / machine.memory)
        scores = math.prod(usual.batch) * usual.rows * usual.keys
        operations = scores * (2 * (usual.head + usual.width) + sum(1 for _ in self._of_scores()))
        return Price(seconds, moved, int(operations), min(units, machine.slots))

    def _open_share(self, tile: FlashTile, turns: int) -> float:
        """Part of the blocks that are walked where those that a group's last row has closed are left out.

        A unit that walks all of them is waited for, however little others have in their turns.
        """
        lasts = [step.band.last for step in self.found.steps if step.band is not None]
        ends = [representative(last) for last in lasts if last is not None]
        rows, keys = self.extents.usual.rows, self.extents.usual.keys
        if not (tile.leaves_out and ends and rows and keys):
            return 1.0
        if tile.ended:
            return self._ended_share(tile, min(ends))
        together = min(tile.rows * tile.units, rows)
        last_rows = np.arange(together - 1, rows + together - 1, together)
        walked = np.clip(last_rows + min(ends) + 1, 0, keys) / keys
        return max(float(walked.mean()), float(walked.max()) / turns)

    def _ended_share(self, tile: FlashTile, last: int) -> float:
        """That part for the unit that walks most blocks, where loops end."""
        usual = self.extents.usual
        rows, keys = min(tile.rows, usual.rows), min(tile.keys, usual.keys)
        most, sets = math.ceil(usual.keys / keys), math.prod(usual.batch)
        if tile.parts * tile.units > 1:
            return 1.0
        blocks = blocks_of_tiles(usual.rows, rows, keys, last)
        if not end_within(blocks, most):
            return 1.0
        groups = dealt_groups(sets * len(blocks), min(tile.groups, sets * len(blocks)))
        spread = tile.spread and pays_to_spread(blocks, sets, groups)
        return busiest(blocks, sets, groups, spread) / (math.ceil(sets * len(blocks) / groups) * most)

    def _bytes(self) -> int:
        """What is read and written, each element once."""
        found = self.found
        views = [found.query, found.key, found.value]
        views += [view for step in found.steps for view in step.operands if view is not None]
        reads: dict[Value, int] = {}
        for view in views:
            if view.scalar is None:
                width = dtype_bytes(view.base.dtype)
                size = min(representative(view.layout.size) * width, representative(view.base.nbytes))
                reads[view.base] = max(reads.get(view.base, 0), size)
        return sum(reads.values()) + representative(found.result.nbytes)

    def _machine(self, units: int, tile: FlashTile, rows: int, keys: int, moved: int) -> MachineModel:
        usual = self.extents.usual
        wide = rows * (2 * keys + usual.width) * WORD
        staged = tile.stages * keys * (usual.head + usual.width) * self._width() if tile.staged else 0
        live = {"reg": wide, "sram": staged}
        groups = -(-units // tile.units)
        counts = GraphCounts(units, groups, tile.units, _ONE, (), live, live, {"all": moved}, 0, 1.0)
        return machine_of(self.cost.hardware, counts)

    def _width(self) -> int:
        return dtype_bytes(self.extents.weight_dtype)

    def _unit_seconds(
        self, tile: FlashTile, rows: int, keys: int, blocks: float, machine: MachineModel, active: int
    ) -> float:
        """What a unit takes for a tile of rows: all blocks of keys, queries before, the result behind."""
        usual, speed = self.extents.usual, self.speed
        scores, sums = rows * keys, rows * usual.width
        functions = sum(self._function(name, scores, machine) for name in self._of_scores())
        functions += sum(self._fold(name, rows, keys, machine) for name in ("max", "add"))
        # what came before is rescaled, and where products come by dram added: one and one of sums
        functions += sum(self._function("mul", sums, machine) for _ in range(2 if self._by_dram else 1))
        functions += sum(
            self._function(name, rows, machine) for name in ("add", "transcendental", "mul", "add")
        )
        products = self._products(scores * usual.head, machine) + self._products(
            scores * usual.width, machine
        )
        narrow, wide = self._width(), WORD
        products += speed.prepared * self._function(
            "add", rows * (keys + usual.head) + keys * usual.width, machine
        )
        brought = keys * (usual.head + usual.width) * narrow / tile.units
        # a unit that reads dram reads them while scores are computed with, or they are staged for it
        load = self._moved(brought, machine, active, 2) * (3 if self._by_dram else 1)
        if tile.even:
            load = HIDDEN * brought / machine.load.rate
        if self._by_dram:
            load += 2 * self._moved((scores + sums) * wide, machine, active, 2)
            load += 2 * scores * narrow / machine.store.rate + 2 * machine.store.start
        load += self._masks(rows, keys, machine, active)
        block = max(functions + products, load) if speed.overlaps else functions + products + load
        ends = self._moved(rows * (usual.head + usual.width) * narrow, machine, active, 2)
        ends += self._function("mul", sums, machine)
        return (1.0 if self._is_whole(tile, keys) else speed.times) * (blocks * block + ends)

    def _is_whole(self, tile: FlashTile, keys: int) -> bool:
        """Whether nothing of a tile is masked or staged."""
        lanes = max(int(self.cost.hardware.vector_bytes) // WORD, 1)
        ragged = self.extents.usual.keys % keys or keys % lanes
        return tile.even if self._by_dram else not ragged

    @property
    def _by_dram(self) -> bool:
        return str(self.cost.hardware.figures.get("product_level", "")) == "dram"

    def _of_scores(self) -> Iterator[str]:
        """Classes of what is computed of every score."""
        yield from ("add", "transcendental")  # less the maximum, exp
        if self._width() < WORD:
            yield "convert"
        for step in self.found.steps:
            yield from _BAND if step.band is not None else ()
        for op in self.found.ops[1:-1]:
            if op.kind.kind == "elementwise" and op.name != "astype":
                yield from op.kind.work

    def _function(self, kind: str, elements: float, machine: MachineModel) -> float:
        op, name = _STANDS_FOR[kind]
        rate, start = machine.vector(_row(op, name, kind, (int(elements), 1)))
        if not machine.pipes:  # as kernels of fusion are priced
            rate = self.cost.steps[kind] / machine.words
        return elements * rate + start

    def _fold(self, name: str, rows: int, keys: int, machine: MachineModel) -> float:
        """A maximum or sum of the scores of every row: that function of two halves, of halves of those."""
        _, start = machine.vector(_row("reduce", name, "add", (rows, keys), REDUCE, "row"))
        return self._function("add", FOLDED * rows * keys, machine) + start

    def _products(self, operations: float, machine: MachineModel) -> float:
        """Multiplications with additions of a product."""
        speed = self.speed
        rate, start = machine.vector(_row("contract", "", "", (1, 1), CONTRACT))
        if not machine.pipes and not (speed.narrow_products and self._width() < WORD):
            rate = 1 / machine.words  # a word by a word, and added
        return operations * rate / speed.reached + start

    def _moved(self, nbytes: float, machine: MachineModel, active: int, transfers: int) -> float:
        """Bytes of a unit that another brought before, most often: a cache has them where there is one."""
        rate = machine.cached or machine.share(active)
        if machine.pipes:
            return (
                nbytes / (rate if machine.cached else min(machine.load.rate, rate))
                + transfers * machine.load.start
            )
        # loads of one block are on their way together where units hide each other's waits
        return nbytes / min(machine.load.rate, rate) + machine.load.start

    def _masks(self, rows: int, keys: int, machine: MachineModel, active: int) -> float:
        """Tiles of what is added to scores, or chooses between them."""
        views = [view for step in self.found.steps for view in step.operands if view is not None]
        moved = [rows * keys * dtype_bytes(view.base.dtype) for view in views if view.scalar is None]
        return sum(self._moved(nbytes, machine, active, 1) for nbytes in moved)

    def _sum_up(self, rows: int, machine: MachineModel) -> float:
        """Of each part of the keys: its sums, read, rescaled and added."""
        sums = rows * self.extents.usual.width
        moved = self._moved(sums * WORD, machine, machine.slots, 3)
        return (
            moved + 2 * self._function("mul", sums, machine) + self._function("transcendental", rows, machine)
        )


def _row(
    op: str, name: str, kind: str, shape: tuple[int, int], category: str = VECTOR, axis: str = ""
) -> IOpCounts:
    """An iOp of words, as machine models ask for its time."""
    return IOpCounts(
        op=op,
        name=name,
        category=category,
        axis=axis,
        kind=kind,
        runs=1,
        present=_ONE,
        elements=_NONE,
        shape=shape,
        width=float(WORD),
        words=1.0,
        loop="",
        stages=1,
        trips=1,
        depth=0,
        group=1,
        transfers=(),
        local_bytes=(0.0, 0.0),
    )


def kernels_of(found: Attention) -> tuple[str, ...]:
    """Its operators, for who reads of the decision."""
    return tuple(str(op.name).split(".")[-1] for op in found.ops)
