# SPDX-License-Identifier: Apache-2.0
"""The kernel graph: library and custom operators, with DRAM tensors on the edges."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen
from tvm import tirx
from tvm.ir import GenericConst

from ..heroes import hero
from ..state_spec import StateSpec


@frozen(eq=False)
class Tensor:
    """A buffer in DRAM.

    Attributes
    ----------
    name : str
        Unique in its graph.
    shape, dtype, bytes
        Of the buffer; readers may see the same bytes in another shape.
    constant : tvm.ir.GenericConst, optional
        Its contents, known when the model is compiled.
    memory : Tensor, optional
        The input in whose memory it lies: the new value of a state.
    written : int, optional
        Bytes of it that its node writes; None: all.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    constant: GenericConst | None = field(default=None, repr=False)
    memory: Tensor | None = None
    written: int | None = None


@frozen(eq=False)
class LibraryOp:
    """A call of the target's library.

    Attributes
    ----------
    kind : str
        ``matmul``, ``quantized_matmul``, ``integer_product``, ``integer_matmul``, ``conv2d``, ``recurrence``,
        ``attention`` or ``sorted``.
    function : str
        The registered packed function; called with the inputs, `attrs` as JSON, and the output.
    attrs : object
        ``MatmulAttrs``, ``Conv2dAttrs`` or ``RecurrenceAttrs`` of the library.
    inputs, outputs : tuple of Tensor
    ops : tuple of str
        The model's operators in it: the contraction and its epilogue.
    bytes_read : int
        From DRAM, each element once.
    """

    kind: str
    function: str
    attrs: Any
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    ops: tuple[str, ...]
    bytes_read: int


@frozen(eq=False)
class OpaqueOp(LibraryOp):
    """A call of PyTorch, for an operator that nobody has a converter for.

    Attributes
    ----------
    input_shapes : tuple
        The shape in which the operator sees the bytes of each input.
    reason : str
        Why it is no kernel.
    """

    input_shapes: tuple[tuple[int, ...], ...]
    reason: str


@frozen(eq=False)
class FoundOp(OpaqueOp):
    """An operator outside kernels whose data decide the shapes of its results, which it returns.

    Attributes
    ----------
    found : tuple of str
        The sizes that are known from then on.
    """

    found: tuple[str, ...]


@frozen(eq=False)
class SpecializedOp(LibraryOp):
    """A kernel of our own that is compiled for the sizes of a call, when it is first called with them.

    Attributes
    ----------
    attrs : object
        Whose `to_json` is the name under which the kernel is compiled.
    input_shapes : tuple
        The shape in which the kernel sees the bytes of each input.
    hero : str
        What decides its schedule.
    reason : str
        Why no kernel serves all sizes.
    """

    input_shapes: tuple[tuple[int, ...], ...]
    hero: str = field(converter=hero)
    reason: str


@frozen(eq=False)
class CustomOp:
    """A kernel of our own.

    Attributes
    ----------
    name : str
        Its function; operators with equal code share one.
    prim_func : tvm.tirx.PrimFunc
        Not scheduled; parameters are the inputs, then the sizes where some are open, then the outputs.
        Attributes ``uir.hero``, ``uir.ops``.
    hero : str
        What decides its schedule (`uir_tvm.heroes`).
    inputs, outputs : tuple of Tensor
    input_shapes : tuple
        The shape in which the kernel sees the bytes of each input.
    ops : tuple of str
        The model's operators in it.
    bytes_read : int
        From DRAM, each element once.
    """

    name: str
    prim_func: tirx.PrimFunc = field(repr=False)
    hero: str = field(converter=hero)
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    ops: tuple[str, ...]
    bytes_read: int


Node = LibraryOp | CustomOp


@frozen
class NotFused:
    """Two neighbours that stayed two kernels, and the reason.

    Attributes
    ----------
    producer, consumer : str
        The values on both sides of the border: what is written, and the first that is computed of it.
    reason : str
    producer_node, consumer_node : int
        Positions in `KernelGraph.nodes`.
    tensors : tuple of str
        What the consumer reads of the producer.
    saved_bytes : int
        DRAM traffic that one kernel would not have: the consumer's reading of these tensors, and the writing
        of those that nothing else needs.
    """

    producer: str
    consumer: str
    reason: str
    producer_node: int
    consumer_node: int
    tensors: tuple[str, ...]
    saved_bytes: int


def written_bytes(tensor: Tensor) -> int:
    """Bytes of a node's output that the node writes."""
    return tensor.bytes if tensor.written is None else tensor.written


@frozen
class FoundAttention:
    """An attention of the model, and whether it became one kernel.

    Attributes
    ----------
    output : str
        The value that it computes.
    fused : bool
    reason : str
        Why, or why not.
    saved_bytes : int
        DRAM traffic of scores and weights that one kernel does not have.
    """

    output: str
    fused: bool
    reason: str
    saved_bytes: int


@frozen
class Price:
    """The modelled time of some kernels, one after the other, and what it comes of.

    Attributes
    ----------
    seconds : float
    bytes : int
        That they read and write, each tensor once for each kernel.
    operations : int
        Plain operations of words of 4 bytes; a dear function is as many as it takes.
    units : int
        Units that have work in the kernel that keeps fewest busy.
    """

    seconds: float
    bytes: int
    operations: int
    units: int


@frozen
class FusionDecision:
    """A candidate of fusion that the prices of both ways decided; sizes that are open as usual ones.

    Attributes
    ----------
    candidate : str
        Of which sort (`fusion_cost`): ``repeated``, ``few rows``, ``recomputed`` or ``siblings``; or
        ``attention`` (`attention_cost`).
    value : str
        The value that is computed again, the tensor that siblings read, or the result of attention.
    kernels : tuple of str
        What is merged, or changed, by its operators.
    merged : bool
        Which way it went.
    apart, together : Price
        Modelled, of all kernels that the candidate changes.
    """

    candidate: str
    value: str
    kernels: tuple[str, ...]
    merged: bool
    apart: Price
    together: Price


@frozen
class IntegerDecision:
    """A product of bytes with a constant weight of whole numbers, and whether it is summed in integers.

    Attributes
    ----------
    output : str
        The value that it computes.
    taken : bool
    reason : str
        Why it is computed in floats.
    """

    output: str
    taken: bool
    reason: str = ""


@frozen(eq=False)
class KernelGraph:
    """A program as kernels.

    Attributes
    ----------
    nodes : tuple of LibraryOp and CustomOp
        In an order in which they can run.
    inputs : tuple of Tensor
    outputs : tuple of (Tensor, shape)
        The results, and the shapes in which the model returns them.
    returns_tuple : bool
    op_count : int
        Operators of the model before anything was done.
    unfused_bytes : int
        DRAM traffic if each of the program's operators (views apart) were a kernel.
    why_not : tuple of NotFused
        One for every pair of nodes of which one reads what the other writes.
    fallbacks : tuple of str
        Kernels that could not be merged and were split again, with the reason.
    attentions : tuple of FoundAttention
        One for every attention that was recognised.
    state : tuple of (Tensor, StateSpec)
        The last of the inputs, in their order: tensors whose memory holds what calls leave behind.
    positions : tuple
        What is checked before a call (`known_positions.note_position`).
    integers : tuple of IntegerDecision
        One for every product of bytes with a weight of whole numbers.
    fusion : tuple of FusionDecision
        One for every candidate of fusion that was decided by its price.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[Tensor, tuple[int, ...]], ...]
    returns_tuple: bool
    op_count: int
    unfused_bytes: int
    why_not: tuple[NotFused, ...] = ()
    fallbacks: tuple[str, ...] = ()
    attentions: tuple[FoundAttention, ...] = ()
    state: tuple[tuple[Tensor, StateSpec], ...] = ()
    positions: tuple[dict[str, Any], ...] = ()
    integers: tuple[IntegerDecision, ...] = ()
    fusion: tuple[FusionDecision, ...] = ()

    @property
    def library_ops(self) -> tuple[LibraryOp, ...]:
        """Nodes that call the library."""
        library = (node for node in self.nodes if isinstance(node, LibraryOp))
        return tuple(node for node in library if not isinstance(node, OpaqueOp | SpecializedOp))

    @property
    def specialized_ops(self) -> tuple[SpecializedOp, ...]:
        """Nodes that are compiled for the sizes of a call."""
        return tuple(node for node in self.nodes if isinstance(node, SpecializedOp))

    @property
    def opaque_ops(self) -> tuple[OpaqueOp, ...]:
        """Nodes that PyTorch computes."""
        return tuple(node for node in self.nodes if isinstance(node, OpaqueOp))

    @property
    def custom_ops(self) -> tuple[CustomOp, ...]:
        """Nodes that are kernels of our own."""
        return tuple(node for node in self.nodes if isinstance(node, CustomOp))

    @property
    def kernels(self) -> dict[str, tirx.PrimFunc]:
        """The distinct functions of the custom operators, by name."""
        return {node.name: node.prim_func for node in self.custom_ops}

    @property
    def fused_bytes(self) -> int:
        """DRAM traffic: every node reads its inputs once and writes its outputs once."""
        return sum(node.bytes_read + sum(map(written_bytes, node.outputs)) for node in self.nodes)

    def summary(self) -> dict[str, Any]:
        """Counts and bytes as a plain dict (see `summary.summarise`)."""
        from .graph_summary import summarise

        return summarise(self)

    def to_json(self) -> str:
        """The graph without the contents of its constants (see `summary.graph_json`)."""
        from .graph_summary import graph_json

        return graph_json(self)
