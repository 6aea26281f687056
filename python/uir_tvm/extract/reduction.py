# SPDX-License-Identifier: Apache-2.0
"""Updates ``b[v] = b[v] op f`` over a tile: reduce along the tile's reduction axes, then accumulate."""

from __future__ import annotations

from ..igraph import ISlice, make
from .affine_from_tir import NotAffineError
from .box import Box
from .emit import Operand, TileValue, reboxed
from .expression import TileContext
from .leaf_access import address_of
from .load import put, slice_at
from .plan import LeafPlan
from .refusals import NeedsSerialError, refuse

#: and, or are min, max of bools where they reduce.
_REDUCE_NAMES = {"and": "min", "or": "max"}


class Accumulation:
    """The update of one leaf.

    ``begin`` before the serial reduction loops, ``step`` inside of them, ``end`` after them.
    """

    def __init__(self, context: TileContext, plan: LeafPlan, element_box: Box) -> None:
        self.c, self.plan = context, plan
        assert plan.update is not None
        self.update = plan.update
        self.element_box = element_box
        self.home = self._home()
        self.place = self.home

    def _home(self) -> ISlice:
        """The stored slice; extent 1 along the tile's reduction axes."""
        storage = self.c.memory.storages[self.update.store.buffer]
        try:
            address = address_of(storage, self.update.store.indices, self.c.converter)
        except NotAffineError as error:
            # the planner made every loop serial that data depend on: what is left are quotients by sizes
            refuse(
                f"The place of what is reduced goes by {error}, which no affine expression is.",
                self.c.block,
                need="places whose quotients are by numbers",
                remedy="fix some of the sizes: the kernel is then compiled for each of them",
            )
        for name in self.c.names:
            if name is None or name in self.plan.reduced:
                continue
            if address.coefficient(name) == 0:
                raise NeedsSerialError(name)
        piece = slice_at(self.c, storage, address)
        return reboxed(piece, self.element_box.shrink(self.c.tile, piece.shape))

    def begin(self) -> None:
        """Bring an accumulator that is not in reg there."""
        if self.home.pointer.level != "reg":
            pointer = self.c.emitter.temporary(str(self.home.pointer.dtype), self.home.shape, self.home.shape)
            self.place = reboxed(pointer, self.element_box.shrink(self.c.tile, self.home.shape))
            self.c.emitter.move(self.place, self.home)

    def end(self) -> None:
        """Store the accumulator where it belongs."""
        if self.place is not self.home:
            self.c.emitter.move(self.home, self.place)

    def step(self) -> None:
        """Reduce the operand over the tile and accumulate."""
        partial = self.partial()
        accumulator = reboxed(self.place, self.c.box.shrink(self.c.tile, self.place.shape))
        result = self.c.binary(self.update.op, TileValue(accumulator), partial, accumulator)
        put(self.c, accumulator, result)

    def partial(self) -> Operand:
        """The operand, reduced along the tile's reduction axes."""
        c = self.c
        value = c.evaluate(self.update.operand)
        axes = [k for k in (1, 0) if c.names[k] is not None and c.names[k] in self.plan.reduced]
        if not axes:
            return value
        whole = tuple(
            c.tile[k] if k in axes else (value.shape[k] if isinstance(value, TileValue) else 1)
            for k in (0, 1)
        )
        value = c.place(value, (whole[0], whole[1]))
        for axis in axes:
            shape = (value.shape[0], 1) if axis == 1 else (1, value.shape[1])
            target = c.result(value.dtype, shape)
            name = _REDUCE_NAMES.get(self.update.op, self.update.op)
            c.emitter.add(make.reduce(name, target, value.slice, "row" if axis == 1 else "col"))
            value = TileValue(target)
        return value
