# SPDX-License-Identifier: Apache-2.0
"""Which contractions each target's library takes, and with which epilogues: one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs


@attrs.frozen
class AttentionLimits:
    """Which attentions a target computes in one kernel of ours (`kernel_graph.attention`).

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
class LibraryTable:
    """What the library of one target computes.

    Attributes
    ----------
    functions : mapping
        Operator (``matmul``, ``conv2d``) -> registered packed function, destination last.
    dtypes : frozenset of str
        Element types; all tensors of an operator have the same.
    activations : mapping
        Relax operator -> the library's name. Whether an activation is better there than in a kernel of its
        own is a matter of measurement: what is not listed is not absorbed.
    epilogues : tuple
        Sequences of ``bias``, ``residual`` and ``activation`` that it applies, each in this order.
    attention : AttentionLimits, optional
        What of attention is one kernel; None: two products and a softmax, each by itself.
    only : mapping
        Operator -> the activations, by the library's names, that it applies; what is not listed applies all.
    packs : bool
        Whether constant weights are brought into a layout of the library's own.
    unit_stride : bool
        Whether it reads and writes only matrices of which one stride is 1 (the column's, of a result).
    symmetric_padding : bool
        Whether a conv2d pads opposite sides alike.
    scales : bool
        Whether a product takes a factor (alpha) without a term to add; else a factor stays in a kernel.
    refuses : mapping
        Operator -> terms of the epilogue (``bias``, ``residual``) that it does not take.
    contracted_innermost : bool
        Whether kernels of ours, which compute the products that it does not take, want constant operands
        stored with the contracted side innermost (`kernel_graph.weights`).
    """

    functions: Mapping[str, str]
    dtypes: frozenset[str]
    activations: Mapping[str, str]
    epilogues: tuple[tuple[str, ...], ...]
    attention: AttentionLimits | None = None
    only: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    packs: bool = True
    unit_stride: bool = False
    symmetric_padding: bool = False
    scales: bool = True
    refuses: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    contracted_innermost: bool = False

    def takes(self, operator: str, *dtypes: str) -> bool:
        """Whether the library has an operator for tensors of these dtypes."""
        return operator in self.functions and set(dtypes) <= self.dtypes and len(set(dtypes)) == 1

    def allows(self, steps: Sequence[str], operator: str = "matmul") -> bool:
        """Whether an operator takes an epilogue of ``bias``, ``residual`` and names of activations."""
        terms = ("bias", "residual")
        if set(steps) & self.refuses.get(operator, frozenset()):
            return False
        if operator in self.only and not {step for step in steps if step not in terms} <= self.only[operator]:
            return False
        kinds = tuple(step if step in terms else "activation" for step in steps)
        return any(_within(kinds, epilogue) for epilogue in self.epilogues)


def _within(steps: tuple[str, ...], epilogue: tuple[str, ...]) -> bool:
    """Whether the steps are the epilogue with some left out, in its order."""
    rest = iter(epilogue)
    return all(step in rest for step in steps)


CPU = LibraryTable(
    functions={"matmul": "uir.library.cpu.matmul", "conv2d": "uir.library.cpu.conv2d"},
    dtypes=frozenset({"float32"}),
    activations={
        "nn.relu": "relu",
        "nn.gelu": "gelu_erf",
        "nn.gelu_tanh": "gelu_tanh",
        "nn.silu": "silu",
        "tanh": "tanh",
        "sigmoid": "sigmoid",
    },
    epilogues=(("bias", "residual", "activation"), ("bias", "activation", "residual")),
)
#: cuBLASLt and cuDNN. The former has GELU by tanh only, and adds a residual (its C) before the activation.
#: Attention is fused where tensor cores take its operands (fp32 would go through ordinary multiplications,
#: which the library does better) and a tile of theirs is full: a few rows against all keys are bound by
#: reading these, which two products spread over the whole device.
CUDA = LibraryTable(
    functions={"matmul": "uir.library.cuda.matmul", "conv2d": "uir.library.cuda.conv2d"},
    dtypes=frozenset({"float32", "float16", "bfloat16"}),
    activations={"nn.relu": "relu", "nn.gelu_tanh": "gelu_tanh"},
    epilogues=(("bias", "residual", "activation"),),
    attention=AttentionLimits(dtypes=frozenset({"float16", "bfloat16"}), max_head=128, min_rows=16),
    only={"conv2d": frozenset({"relu"})},
    packs=False,
    unit_stride=True,
    symmetric_padding=True,
)
#: aclnn. A product is aclnnMatmul, with one tensor to add aclnnAddmm or aclnnBaddbmm; aclnnConvolution takes
#: a bias. Factors and activations are left to the vector cores: a kernel that reads the result applies them
#: for nothing. Opposite sides pad alike: the order of four pads is not documented.
ASCEND = LibraryTable(
    functions={"matmul": "uir.library.ascend.matmul", "conv2d": "uir.library.ascend.conv2d"},
    dtypes=frozenset({"float32", "float16", "bfloat16"}),
    activations={},
    epilogues=(("bias",), ("residual",)),
    packs=False,
    unit_stride=True,
    symmetric_padding=True,
    scales=False,
    refuses={"conv2d": frozenset({"residual"})},
)
#: CNNL. A product takes a factor, and strides of its operands, each with one of 1; terms to add and
#: activations are left to kernels that read the result: what CNNL takes of them is not in public documents.
#: The MLU370 has no bfloat16. Convolutions are transposed to NHWC and back by CNNL. The matrix unit takes
#: right operands by columns, which a kernel that finds them by rows turns tile by tile.
BANG = LibraryTable(
    functions={"matmul": "uir.library.bang.matmul", "conv2d": "uir.library.bang.conv2d"},
    dtypes=frozenset({"float32", "float16"}),
    activations={},
    epilogues=(),
    packs=False,
    unit_stride=True,
    symmetric_padding=True,
    contracted_innermost=True,
)
#: A target without a library: every contraction is a kernel of its own.
NONE = LibraryTable(functions={}, dtypes=frozenset(), activations={}, epilogues=())

#: Key of a target (`tvm.target.Target.keys`) -> its library.
LIBRARIES: dict[str, LibraryTable] = {"cpu": CPU, "cuda": CUDA, "ascend": ASCEND, "bang": BANG, "none": NONE}


def library_of(keys: Sequence[str]) -> LibraryTable:
    """The library of the first key that has one; `NONE` where there is none."""
    return next((LIBRARIES[key] for key in keys if key in LIBRARIES), NONE)
