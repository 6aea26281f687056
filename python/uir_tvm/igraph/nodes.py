# SPDX-License-Identifier: Apache-2.0
"""The nodes of the iGraph as Python sees them.

The fields are defined in ``src/igraph/nodes.cc``; the annotated blocks below are written by
``tvm-ffi-stubgen`` from that definition (``make stubs``).  Nodes are immutable; build new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm_ffi import serialization, structural
from tvm_ffi.dataclasses import c_class

from ..errors import IGraphError
from .affine import Affine, AffineLike, affine
from .held_fields import Immutable, held, held_attrs, hold
from .space import Size

#: What `ISlice.row_stride` and `col_stride` say of a stride that sizes decide: no element lies so far away.
OPEN_STRIDE = (1 << 40) + 1
#: The bounds of a slice, in order.
BOUNDS = ("row_begin", "row_end", "col_begin", "col_end")


class _Node(Immutable):
    """Structural equality, hash and JSON for every node."""

    if TYPE_CHECKING:

        def __ffi_init__(self, *fields: Any) -> None:
            """Initialise the C++ object from its reflected fields, in order."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tvm_ffi.Object) and structural.structural_equal(self, other)

    def __hash__(self) -> int:
        return structural.structural_hash(self)

    def to_json(self) -> str:
        """The node as JSON text; `from_json` reads it back to an equal node."""
        return serialization.to_json_graph_str(self)


@held
@c_class("uir.IPointer", repr=False)
class IPointer(_Node):
    """A contiguous piece of memory.

    ``level`` is ``reg`` (one per unit), ``sram`` (one per group) or ``dram`` (one per device);
    ``size`` counts elements; ``role`` of a dram parameter is ``in``, ``out`` or ``inout``, of all
    other memory ``tmp``.  Where the graph's sizes decide the number of elements of a dram pointer,
    ``dims`` has its dimensions, row-major, each an expression of sizes, and ``size`` is the greatest number.
    """

    # tvm-ffi-stubgen(begin): object/uir.IPointer
    # fmt: off
    name: str
    level: str
    dtype: str
    size: int
    role: str
    dims: tuple[Affine, ...]
    # fmt: on
    # tvm-ffi-stubgen(end)

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            level: str,
            dtype: str,
            size: int,
            role: str = "tmp",
            dims: Sequence[Affine] = (),
        ) -> None: ...

    @property
    def elements(self) -> Affine:
        """The number of elements, an expression of sizes; not affine where several dimensions are open."""
        count = affine(1 if self.dims else int(self.size))
        for dim in self.dims:
            count = count * dim
        return count

    @property
    def is_param(self) -> bool:
        """Whether the kernel's caller owns it."""
        return self.role != "tmp"


@held
@c_class("uir.ISlice", init=False, repr=False)
class ISlice(_Node):
    """A 2-D strided piece of a pointer.

    Element (i, j) lies at ``offset + i*row_stride + j*col_stride``.  Only elements with
    ``row_begin <= i < row_end`` and ``col_begin <= j < col_end`` exist; an absent bound is that
    side of the shape, a present one is clamped into ``[0, rows]`` or ``[0, cols]``.

    In dram a stride may be an expression of the graph's sizes: `stride` has either kind.
    """

    # tvm-ffi-stubgen(begin): object/uir.ISlice
    # fmt: off
    pointer: IPointer
    offset: Affine
    rows: int
    cols: int
    row_stride: int
    col_stride: int
    row_begin: Affine | None
    row_end: Affine | None
    col_begin: Affine | None
    col_end: Affine | None
    row_pitch: Affine | None
    col_pitch: Affine | None
    # fmt: on
    # tvm-ffi-stubgen(end)

    def __init__(
        self,
        pointer: IPointer,
        offset: AffineLike = 0,
        shape: tuple[int, int] = (1, 1),
        stride: tuple[AffineLike, AffineLike] | None = None,
        *,
        rows: tuple[AffineLike | None, AffineLike | None] = (None, None),
        cols: tuple[AffineLike | None, AffineLike | None] = (None, None),
    ) -> None:
        """Build a slice; ``stride`` defaults to row-major, ``rows`` and ``cols`` are the valid ranges."""
        (row, row_pitch), (col, col_pitch) = map(_stride, stride if stride is not None else (shape[1], 1))
        bounds = [None if bound is None else affine(bound) for bound in (*rows, *cols)]
        begin = affine(offset)
        self.__ffi_init__(pointer, begin, shape[0], shape[1], row, col, *bounds, row_pitch, col_pitch)
        hold(self, pointer=pointer, offset=begin, row_pitch=row_pitch, col_pitch=col_pitch)
        hold(self, **dict(zip(BOUNDS, bounds, strict=True)))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        return (self.rows, self.cols)

    @property
    def stride(self) -> tuple[AffineLike, AffineLike]:
        """(row stride, column stride) in elements: numbers, or expressions of sizes."""
        row, col = self.row_pitch, self.col_pitch
        return (self.row_stride if row is None else row, self.col_stride if col is None else col)

    @property
    def open_strides(self) -> bool:
        """Whether sizes decide a stride."""
        return self.row_pitch is not None or self.col_pitch is not None

    @property
    def valid(self) -> tuple[Affine | None, Affine | None, Affine | None, Affine | None]:
        """(row_begin, row_end, col_begin, col_end); None = that side of the shape."""
        return (self.row_begin, self.row_end, self.col_begin, self.col_end)

    def replace(self, **changes: Any) -> ISlice:
        """A copy with ``pointer``, ``offset``, ``shape``, ``stride``, ``rows`` or ``cols`` changed."""
        fields: dict[str, Any] = {
            "pointer": self.pointer,
            "offset": self.offset,
            "shape": self.shape,
            "stride": self.stride,
            "rows": (self.row_begin, self.row_end),
            "cols": (self.col_begin, self.col_end),
        }
        fields.update(changes)
        return ISlice(**fields)

    def valid_box(self, env: Mapping[str, int]) -> tuple[int, int, int, int]:
        """The valid range for concrete variables, clamped: (row_begin, row_end, col_begin, col_end)."""

        def clamp(bound: Affine | None, default: int, limit: int) -> int:
            return default if bound is None else min(max(bound.evaluate(env), 0), limit)

        r0, r1 = clamp(self.row_begin, 0, self.rows), clamp(self.row_end, self.rows, self.rows)
        c0, c1 = clamp(self.col_begin, 0, self.cols), clamp(self.col_end, self.cols, self.cols)
        return (r0, max(r0, r1), c0, max(c0, c1))


def _stride(value: AffineLike) -> tuple[int, Affine | None]:
    """A stride as the fields of a slice have it: a number, and an expression where it is none."""
    if type(value) is int or not isinstance(value, Affine):
        return value, None
    return (value.constant, None) if value.is_constant else (OPEN_STRIDE, value)


@held
@c_class("uir.IOp", init=False, repr=False)
class IOp(_Node):
    """One instruction on one unit; see `uir_tvm.igraph.iops` for the table of what there is."""

    # tvm-ffi-stubgen(begin): object/uir.IOp
    # fmt: off
    op: str
    name: str
    dtype: str
    targets: tuple[ISlice, ...]
    sources: tuple[ISlice, ...]
    attrs: Mapping[str, Any]
    # fmt: on
    # tvm-ffi-stubgen(end)

    def __init__(
        self,
        op: str,
        name: str,
        dtype: str,
        targets: Sequence[ISlice],
        sources: Sequence[ISlice],
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        made, read = tuple(targets), tuple(sources)
        self.__ffi_init__(op, name, dtype, made, read, dict(attrs or {}))
        hold(self, targets=made, sources=read, **held_attrs(attrs))

    @property
    def target(self) -> ISlice:
        """The first target."""
        return self.targets[0]

    def slices(self) -> Iterator[ISlice]:
        """Every slice it touches: targets, sources, then the sram buffer of a group form."""
        yield from self.targets
        yield from self.sources
        if "buffer" in self.attrs:
            yield self.attrs["buffer"]


@held
@c_class("uir.Loop", init=False, repr=False)
class Loop(_Node):
    """``for var in [0, extent): body``, run by every unit on its own."""

    # tvm-ffi-stubgen(begin): object/uir.Loop
    # fmt: off
    var: str
    extent: int
    body: tuple[tvm_ffi.Object, ...]
    attrs: Mapping[str, Any]
    # fmt: on
    # tvm-ffi-stubgen(end)

    def __init__(
        self, var: str, extent: int, body: Sequence[Any], attrs: Mapping[str, Any] | None = None
    ) -> None:
        inside = tuple(body)
        self.__ffi_init__(var, extent, inside, dict(attrs or {}))
        hold(self, body=inside, **held_attrs(attrs))


#: Attribute of a loop: how many of its rounds do something (`Affine`). It ends there.
ROUNDS = "rounds"
#: Attribute of such a loop: all units of a group end it alike, and what is in dram has bounds that leave
#: nothing to load ahead of its end.
JOINT = "joint"


@held
@c_class("uir.HardwareModel", repr=False)
class HardwareModel(_Node):
    """A device as the iGraph sees it; bytes of reg are per unit, of sram per group."""

    # tvm-ffi-stubgen(begin): object/uir.HardwareModel
    # fmt: off
    name: str
    kind: str
    num_groups: int
    num_units: int
    reg_bytes: int
    sram_bytes: int
    vector_bytes: int
    figures: Mapping[str, Any]
    # fmt: on
    # tvm-ffi-stubgen(end)


@held
@c_class("uir.IGraph", init=False, repr=False)
class IGraph(_Node):
    """One custom operator.

    ``pointers`` lists the parameters first, in the order of the PrimFunc's signature, then all
    other memory.  Unit ``pid`` of ``0 <= pid < num_groups * num_units`` runs ``body``; group g has
    the pids ``g*num_units .. (g+1)*num_units - 1``.

    ``sizes`` are integers that the kernel gets when it is launched: dimensions of dram pointers, offsets
    and valid ranges may depend on them, and ``groups`` is the number of groups as an expression of them;
    ``num_groups`` is then the greatest (see `uir_tvm.igraph.sizes`).
    """

    # tvm-ffi-stubgen(begin): object/uir.IGraph
    # fmt: off
    name: str
    hardware: HardwareModel
    num_groups: int
    num_units: int
    pointers: tuple[IPointer, ...]
    body: tuple[tvm_ffi.Object, ...]
    attrs: Mapping[str, Any]
    sizes: tuple[Size, ...]
    groups: Affine | None
    # fmt: on
    # tvm-ffi-stubgen(end)

    def __init__(
        self,
        name: str,
        hardware: HardwareModel,
        num_groups: int,
        num_units: int,
        pointers: Sequence[IPointer],
        body: Sequence[Any],
        attrs: Mapping[str, Any] | None = None,
        sizes: Sequence[Size] = (),
        groups: Affine | None = None,
    ) -> None:
        memory, inside, open_sizes = tuple(pointers), tuple(body), tuple(sizes)
        self.__ffi_init__(
            name, hardware, num_groups, num_units, memory, inside, dict(attrs or {}), open_sizes, groups
        )
        hold(self, hardware=hardware, pointers=memory, body=inside, sizes=open_sizes, groups=groups)
        hold(self, **held_attrs(attrs))

    @property
    def num_parallel(self) -> int:
        """Number of units that run the body; where sizes decide it, the greatest."""
        return self.num_groups * self.num_units

    @property
    def parallel(self) -> Affine:
        """Number of units that run the body, an expression of sizes."""
        groups = affine(int(self.num_groups)) if self.groups is None else self.groups
        return groups * int(self.num_units)

    @property
    def params(self) -> list[IPointer]:
        """The dram pointers that the caller passes, in the order of the signature."""
        return [p for p in self.pointers if p.is_param]

    def pointer(self, name: str) -> IPointer:
        """The pointer of that name (KeyError when there is none)."""
        for p in self.pointers:
            if p.name == name:
                return p
        raise KeyError(name)

    def replace(self, **changes: Any) -> IGraph:
        """A copy with some fields changed."""
        fields = (
            "name",
            "hardware",
            "num_groups",
            "num_units",
            "pointers",
            "body",
            "attrs",
            "sizes",
            "groups",
        )
        return IGraph(**{f: changes.get(f, getattr(self, f)) for f in fields})

    def walk(self) -> Iterator[tuple[IOp, tuple[Loop, ...]]]:
        """Every iOp in program order with its enclosing loops, outermost first."""
        yield from walk_body(self.body)

    def __str__(self) -> str:
        from .text import print_igraph

        return print_igraph(self)

    __repr__ = __str__


def walk_body(body: Sequence[Any], loops: tuple[Loop, ...] = ()) -> Iterator[tuple[IOp, tuple[Loop, ...]]]:
    """Every iOp of a loop tree in program order, with its enclosing loops."""
    for node in body:
        # Python asks long whether an object is of a class that is not its own
        if type(node) is not IOp and isinstance(node, Loop):
            yield from walk_body(node.body, (*loops, node))
        else:
            yield node, loops


def map_iops(body: Sequence[Any], fn: Callable[[IOp], Any]) -> list[Any]:
    """The loop tree with every iOp replaced by ``fn(iop)`` (an iOp, a list of nodes, or None to drop it)."""
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            out.append(Loop(node.var, node.extent, map_iops(node.body, fn), node.attrs))
            continue
        made = fn(node)
        out.extend([] if made is None else made if isinstance(made, list) else [made])
    return out


def from_json(text: str) -> Any:
    """The node that `to_json` wrote.

    Raises
    ------
    uir_tvm.errors.IGraphError
        The text is no node of ours.
    """
    from ..errors import first_line

    try:
        node = serialization.from_json_graph_str(text)
    except Exception as error:
        raise IGraphError(
            "The text is not the JSON of an iGraph node.",
            need=first_line(error),
            remedy="write it with IGraph.to_json()",
        ) from error
    if not isinstance(node, _Node):
        raise IGraphError(f"The JSON holds a {type(node).__name__}, not an iGraph node.")
    return node
