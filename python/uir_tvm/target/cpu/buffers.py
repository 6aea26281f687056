# SPDX-License-Identifier: Apache-2.0
"""The buffers behind the pointers of a graph, and the addresses of accesses in them.

Parameters are seen through flat buffers over the same data.  A reg pointer exists only if something
reads it from memory; if all that touches it stays within one row of one nest, one row of it exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...igraph.affine import Affine, affine
from ...igraph.dtypes import bytes_of
from ...igraph.nodes import IPointer
from .actions import Action
from .address import LoopScope, index
from .code import Code
from .element_access import StridedAccess
from .elements import convert, element, lanes_of, splat
from .groups import RowNest, reads, write_domain

#: The stride of elements that two vectors hold, with as many between them.
EVERY_SECOND = 2
#: Alignment of the memory that we allocate: a cache line, and the widest vector.
ALIGNMENT = 64


@attrs.frozen
class Held:
    """A pointer's buffer; ``row_base`` is the offset that row 0 had, where only one row exists.

    ``allocated`` says that the kernel allocates it, not its caller.
    """

    buffer: tirx.Buffer
    row_base: Affine | None = None
    allocated: bool = True


class Buffers:
    """The buffers of a kernel by pointer name."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._sizes = LoopScope({}, {})

    def extended(self) -> Buffers:
        """The same buffers, to which others may be added apart from these."""
        made = Buffers()
        made._held, made._sizes = dict(self._held), self._sizes
        return made

    def bind_parameter(self, code: Code, pointer: IPointer, parameter: tirx.Var, scope: LoopScope) -> None:
        """See a parameter's data as a flat buffer; ``scope`` has the graph's sizes."""
        self._sizes = scope
        data = tirx.buffer.buffer_data(parameter)
        buffer = tirx.decl_buffer(
            (scope.expr(pointer.elements) if pointer.dims else pointer.size,),
            element(pointer.dtype).storage,
            name=f"{parameter.name}_flat",
            data=data,
            data_alignment=min(bytes_of(pointer.dtype), parameter.ty.data_alignment or 1),
            layout=None,
        )
        code.add(tirx.DeclBuffer(buffer, data=data))
        self._held[pointer.name] = Held(buffer, allocated=False)

    def allocate(self, code: Code, pointer: IPointer, row: tuple[Affine, int] | None = None) -> None:
        """Memory for a pointer: all of it, or one row (its first offset and its elements)."""
        size = pointer.size if row is None else row[1]
        buffer = scratch(code, pointer.name, element(pointer.dtype).storage, size)
        self._held[pointer.name] = Held(buffer, None if row is None else row[0])

    def buffer(self, pointer: IPointer) -> tirx.Buffer:
        """The flat buffer of a pointer."""
        return self._held[pointer.name].buffer

    def allocates(self, pointer: IPointer) -> bool:
        """Whether the kernel allocates the memory, also where a phase of it takes that for a parameter."""
        return self._held[pointer.name].allocated

    def has_one_row(self, pointer: IPointer) -> bool:
        """Whether one row of a pointer is the memory of all its rows."""
        held = self._held.get(pointer.name)
        return held is not None and held.row_base is not None

    def address(self, scope: LoopScope, access: StridedAccess, row: Expr, col: Expr) -> Expr:
        """The index of element (row, col) of an access in its flat buffer."""
        base = self._held[access.pointer.name].row_base
        if base is not None:
            return scope.expr(access.offset - base) + col * access.col
        down, along = self.strides(access)
        start = scope.expr(access.offset) + row * down
        if access.times > 1:
            col = tirx.floordiv(col, index(access.times))
        return start + col * along

    def strides(self, access: StridedAccess) -> tuple[Expr | int, Expr | int]:
        """Elements from one row of an access to the next in its buffer, and from one column to the next."""
        down, along = (None if pitch is None else self._sizes.expr(pitch) for pitch in access.pitches)
        row = access.row if self._held[access.pointer.name].row_base is None else 0
        return row if down is None else down, access.col if along is None else along

    def load(self, access: StridedAccess, address: Expr, lanes: int, phase: int = 0) -> Expr:
        """``lanes`` elements along the columns from an address, in the compute type.

        ``phase``: how often the first element of an access that repeats each came before.
        """
        buffer = self.buffer(access.pointer)
        row = element(access.pointer.dtype)
        if lanes == 1 or access.col == 0:
            return splat(row.load(tirx.BufferLoad(buffer, [address])), lanes)
        if access.times > 1:
            return row.load(_repeated(buffer, address, lanes, access.times, phase))
        if self.strides(access)[1] == EVERY_SECOND and keeps_still(access.pointer):
            return row.load(_every_second(buffer, address, lanes))
        return row.load(tirx.BufferLoad(buffer, [self._lanes(access, address, lanes)]))

    def _lanes(self, access: StridedAccess, address: Expr, lanes: int) -> Expr:
        along = self.strides(access)[1]
        return tirx.Ramp(address, index(along) if isinstance(along, int) else along, lanes)

    def store(self, access: StridedAccess, address: Expr, value: Expr) -> tirx.Stmt:
        """Store a value (already rounded) at an address."""
        lanes = lanes_of(value)
        at = address if lanes == 1 else self._lanes(access, address, lanes)
        row = element(access.pointer.dtype)
        stored = convert(row.store(value), row.storage)
        return tirx.BufferStore(self.buffer(access.pointer), stored, [at])


def keeps_still(pointer: IPointer) -> bool:
    """Whether nobody else writes a pointer's elements while a unit reads those between its own."""
    return pointer.level == "reg" or pointer.role == "in"


def _every_second(buffer: tirx.Buffer, address: Expr, lanes: int) -> Expr:
    """Every second element from an address on, of two vectors side by side that end with the last one.

    TVM loads elements that are apart one by one.
    """
    ramps = (tirx.Ramp(at, index(1), lanes) for at in (address, address + (lanes - 1)))
    return second_of_two([tirx.BufferLoad(buffer, [ramp]) for ramp in ramps], lanes)


def _repeated(buffer: tirx.Buffer, address: Expr, lanes: int, times: int, phase: int) -> Expr:
    """Each element from an address on so many times, the first one ``phase`` times less."""
    places = [(phase + lane) // times for lane in range(lanes)]
    if places[-1] == 0:
        return tirx.Broadcast(tirx.BufferLoad(buffer, [address]), lanes)
    loaded = places[-1] + 1
    vector = tirx.BufferLoad(buffer, [tirx.Ramp(address, index(1), loaded)])
    # TVM wants no more lanes of a shuffle than its vectors have
    return tirx.Shuffle([vector] * -(-lanes // loaded), places)


def second_of_two(vectors: Sequence[Expr], lanes: int) -> Expr:
    """Every second element of two vectors, of which the second begins with the last element of the first."""
    wanted = [k if k < lanes else k + 1 for k in range(0, EVERY_SECOND * lanes, EVERY_SECOND)]
    return tirx.Shuffle(list(vectors), wanted)


def scratch(code: Code, name: str, dtype: str, size: int) -> tirx.Buffer:
    """A buffer of this scope's own (on the stack where small); ``dtype`` is TIR's."""
    buffer = tirx.decl_buffer((size,), dtype, name=name, data_alignment=ALIGNMENT, layout=None)
    code.add(tirx.AllocBuffer(buffer))
    return buffer


def single_rows(
    nests: Sequence[RowNest], pointers: Mapping[str, IPointer], apart: Callable[[RowNest], bool]
) -> dict[str, tuple[Affine, int]]:
    """The reg pointers of which one row suffices: name -> (first offset, elements of a row).

    None of nests that go ``apart``: over all rows, several times.
    """
    users: dict[str, list[RowNest]] = {}
    for nest in nests:
        for name in {p for action in nest.actions for p in _touches(action)}:
            users.setdefault(name, []).append(nest)
    found = {}
    for name, where in users.items():
        if pointers[name].level == "reg" and len(where) == 1 and where[0].rows > 1 and not apart(where[0]):
            row = _row_of(name, where[0])
            if row is not None:
                found[name] = row
    return found


def _touches(action: Action) -> set[str]:
    names = {access.pointer.name for access, _ in reads(action)}
    return names | {action.write.pointer.name} | {piece.pointer.name for piece in action.tables}


def _row_of(name: str, nest: RowNest) -> tuple[Affine, int] | None:
    spans: list[tuple[int, int, int]] = []
    base: Affine | None = None
    for action in nest.actions:
        if any(piece.pointer.name == name for piece in action.tables):
            return None
        # what is read before anything wrote it in this row belongs to an earlier iteration
        touched = [(access, domain.cols, False) for access, domain in reads(action)]
        for access, cols, is_write in (*touched, (action.write, write_domain(action).cols, True)):
            if access.pointer.name != name:
                continue
            if base is None:
                if not is_write or action.box[2:] != (None, None):
                    return None
                base = access.offset
            shift = access.offset - base
            if not shift.is_constant:
                return None
            reach = access.col * (cols - 1)
            spans.append((shift.constant + min(reach, 0), shift.constant + max(reach, 0), access.row))
    strides = {row for _, _, row in spans}
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    first = spans[0]
    covered = first[0] == low and first[1] == high
    if len(strides) != 1 or base is None or not covered or high - low >= abs(next(iter(strides))):
        return None
    return (base + affine(low), high - low + 1)
