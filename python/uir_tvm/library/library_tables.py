# SPDX-License-Identifier: Apache-2.0
"""Which contractions each target's library takes, and with which epilogues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import tvm
from tvm.target import codegen

from ..errors import TargetError
from ..hardware.instructions import reached_by
from ..options import ACTIVATIONS, ATTENTIONS, CONVOLUTIONS
from ..target_facts import Facts, kind_of
from .integer_matmul_attrs import IntegerMatmulLimits
from .reference import activation_name


@attrs.frozen
class AttentionLimits:
    """Some attentions: those that a target has one kernel for, or usually computes in one.

    Attributes
    ----------
    dtypes : frozenset of str
        Element types of queries, keys, values and result.
    max_head : int
        Largest head: the sums of a tile's rows stay in registers.
    min_keys : int
        Fewest keys of a row.
    min_rows : int
        Fewest rows that share their keys: queries of a head, or with one query the heads on one head of keys.
    """

    dtypes: frozenset[str]
    max_head: int
    min_keys: int = 1
    min_rows: int = 1


@attrs.frozen
class TiledAttention:
    """Which attentions a library computes sooner than a kernel of ours (`kernel_graph.library_attention`).

    Attributes
    ----------
    feature : str
        Of the CPU, as LLVM calls it, with whose instructions.
    without : str, optional
        A feature with which kernels of ours are as fast, so that the library has no code there.
    min_rows, min_keys : int
        Fewest queries of a head, and fewest keys.
    processors : frozenset of str
        Those that compute it sooner so, as LLVM calls them; none: all.
    dtypes : frozenset of str
        Element types of all tensors.
    """

    feature: str
    min_rows: int
    min_keys: int
    without: str | None = None
    processors: frozenset[str] = frozenset()
    dtypes: frozenset[str] = frozenset({"float32"})

    def is_on(self, target: tvm.target.Target) -> bool:
        """Whether the library of a target's CPU has the code."""
        if self.processors and str(target.attrs.get("mcpu", "")) not in self.processors:
            return False
        lacks = self.without is None or not codegen.target_has_features(self.without, target)
        return lacks and reached_by(self.feature, target)


@attrs.frozen
class ChainLimits:
    """Which convolutions that follow each other are one call (`kernel_graph.library_chain`).

    Attributes
    ----------
    feature : str
        Of the CPU, as LLVM calls it, with whose instructions the library keeps what lies between on chip.
    min_bytes : int
        Fewest bytes of an image between them.
    channels : int
        What channels of windows are a multiple of: they are computed in whole vectors.
    activations : frozenset of str
        Those that it applies on chip, by the library's names.
    """

    feature: str
    min_bytes: int
    channels: int
    activations: frozenset[str]


@attrs.frozen
class LibraryTable:
    """What the library of one target computes.

    Attributes
    ----------
    functions : mapping
        Operator (``matmul``, ``conv2d``) -> registered packed function, destination last.
    dtypes : frozenset of str
        Element types; all tensors of an operator have the same.
    narrow : mapping
        Operator -> further element types that it reads and writes on every CPU.
    features : mapping
        Operator and further element type -> the feature of the CPU, as LLVM calls it, with whose instructions
        the library computes it; without them a kernel of ours is faster.
    activations : mapping
        Relax operator, or a name of `kernel_graph.activation_patterns` -> the library's name. Whether an
        activation is better there than in a kernel of its own is a matter of measurement: what is not listed
        is not absorbed.
    epilogues : tuple
        Sequences of ``bias``, ``residual`` and ``activation`` that it applies, each in this order.
    attention : AttentionLimits, optional
        What of attention one kernel of ours computes; None: two products and a softmax, each by itself.
    usual_attention : AttentionLimits, optional
        What of it is one kernel where no price decides (`kernel_graph.attention_cost`): where sizes are open,
        and on hardware of which there is none; None: nothing.
    attends : str
        What computes attention (`attending`).
    constants : mapping
        As `features`, of products whose second operand is a constant matrix.
    tiled_attention : tuple of TiledAttention
        What of attention the library computes sooner than one kernel.
    widened : mapping
        Operator -> narrow element types that it computes in float32 sooner than a kernel of ours would
        compute them as they are; not where it takes them itself.
    only : mapping
        Operator -> the activations, by the library's names, that it applies; what is not listed applies all.
    packs : bool
        Whether constant weights are brought into a layout of the library's own.
    adjustable : bool
        Whether an operator can be told how many threads it may take, and to do without the library.
    unit_stride : bool
        Whether it reads and writes only matrices of which one stride is 1 (the column's, of a result).
    channels_last : bool
        Whether a conv2d reads and writes images with the channels last, the layout of its fast code.
    symmetric_padding : bool
        Whether a conv2d pads opposite sides alike.
    scales : bool
        Whether a product takes a factor (alpha) without a term to add; else a factor stays in a kernel.
    refuses : mapping
        Operator -> terms of the epilogue (``bias``, ``residual``) that it does not take.
    unpacks : frozenset of str
        Element types of products with weights of few bits that a kernel of ours computes, where the library
        has none.
    integer_matmul : IntegerMatmulLimits, optional
        What it takes of products of int8 into int32 (``integer_matmul``); None: it has none.
    integers_not : str
        Why there is neither ``integer_product`` nor ``integer_matmul``, where there is none.
    rounds : bool
        Whether its products with weights of few bits can read 8 bits a value of their other operand.
    rounds_not : str
        Why they cannot.
    digits : int
        Of 8 bits, in which these products may read it (`reading`).
    convolution : str
        How a conv2d is added up (`adding`); libraries that are not `adjustable` choose by themselves.
    chains : ChainLimits, optional
        Which convolutions that follow each other are one call (``conv2d_chain``); None: it has none.
    contracted_innermost : bool
        Whether kernels of ours, which compute the products that it does not take, want constant operands
        stored with the contracted side innermost (`kernel_graph.weights`).
    place_major : bool
        Whether kernels that unpack constant weights want the codes of one place of all groups side by side
        (`kernel_graph.place_major`).
    """

    functions: Mapping[str, str]
    dtypes: frozenset[str]
    activations: Mapping[str, str]
    epilogues: tuple[tuple[str, ...], ...]
    attention: AttentionLimits | None = None
    usual_attention: AttentionLimits | None = None
    attends: str = ATTENTIONS[0]
    narrow: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    tiled_attention: tuple[TiledAttention, ...] = ()
    features: Mapping[tuple[str, str], str] = attrs.field(factory=dict)
    constants: Mapping[tuple[str, str], str] = attrs.field(factory=dict)
    widened: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    only: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    packs: bool = True
    adjustable: bool = False
    unit_stride: bool = False
    channels_last: bool = False
    symmetric_padding: bool = False
    scales: bool = True
    refuses: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    chains: ChainLimits | None = None
    contracted_innermost: bool = False
    place_major: bool = False
    unpacks: frozenset[str] = frozenset()
    integer_matmul: IntegerMatmulLimits | None = None
    integers_not: str = "the target has no product of integers"
    rounds: bool = False
    rounds_not: str = "the target has no library"
    digits: int = 3
    convolution: str = CONVOLUTIONS[0]

    def takes(self, operator: str, *dtypes: str, constant: bool = False) -> bool:
        """Whether the library has an operator for these dtypes, or one whose second operand is constant."""
        if operator not in self.functions or len(set(dtypes)) != 1:
            return False
        kinds = self.dtypes | self.narrow.get(operator, frozenset())
        key = (operator, dtypes[0])
        return dtypes[0] in kinds or key in self.features or (constant and key in self.constants)

    def on(self, target: tvm.target.Target) -> LibraryTable:
        """What the library computes on this target's CPU."""
        has = codegen.target_has_features
        found = [
            {key: name for key, name in of.items() if has(name, target)}
            for of in (self.features, self.constants)
        ]
        tiled = tuple(each for each in self.tiled_attention if each.is_on(target))
        chains = self.chains if self.chains is not None and has(self.chains.feature, target) else None
        return attrs.evolve(self, features=found[0], constants=found[1], tiled_attention=tiled, chains=chains)

    def reading(self, activation: str) -> LibraryTable:
        """The table for models whose activations are read so (`CompileOptions.activation`).

        Raises
        ------
        TargetError
            The library cannot do it.
        """
        if activation == ACTIVATIONS[0]:
            return self
        if not self.rounds:
            raise TargetError(
                f"Activations are not read as {activation} on this target.",
                limit=self.rounds_not,
                remedy=f'leave activation at "{ACTIVATIONS[0]}", or compile for another target',
            )
        return attrs.evolve(self, digits=1)

    def adding(self, convolution: str) -> LibraryTable:
        """The table for models whose convolutions are added up so (`CompileOptions.convolution`)."""
        return attrs.evolve(self, convolution=convolution)

    def attending(self, attention: str) -> LibraryTable:
        """The table for models whose attention is computed so (`CompileOptions.attention`)."""
        return attrs.evolve(self, attends=attention)

    def allows(self, steps: Sequence[str], operator: str = "matmul") -> bool:
        """Whether an operator takes an epilogue of ``bias``, ``residual`` and names of activations."""
        terms = ("bias", "residual")
        if set(steps) & self.refuses.get(operator, frozenset()):
            return False
        names = {activation_name(step) for step in steps if step not in terms}
        if operator in self.only and not names <= self.only[operator]:
            return False
        kinds = tuple(step if step in terms else "activation" for step in steps)
        return any(_within(kinds, epilogue) for epilogue in self.epilogues)


def _within(steps: tuple[str, ...], epilogue: tuple[str, ...]) -> bool:
    """Whether the steps are the epilogue with some left out, in its order."""
    rest = iter(epilogue)
    return all(step in rest for step in steps)


#: A target without a library: every contraction is a kernel of its own.
NONE = LibraryTable(functions={}, dtypes=frozenset(), activations={}, epilogues=())

#: Kind of hardware -> its library (`uir_tvm.target.record`); it is a key of the target too.
LIBRARIES: Mapping[str, LibraryTable] = Facts("library")


def library_of(keys: Sequence[str]) -> LibraryTable:
    """The library of a target with these keys; `NONE` where it has none."""
    return LIBRARIES.get(kind_of(keys) or "", NONE)
