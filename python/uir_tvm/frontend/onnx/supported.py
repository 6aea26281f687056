# SPDX-License-Identifier: Apache-2.0
"""Which operators have converters, ours or TVM's; which are refused, and why."""

from __future__ import annotations

import onnx
from tvm.relax.frontend.onnx import onnx_frontend as stock

from .converters import CONVERTERS
from .known import STANDARD_DOMAINS, VersionedNode

#: Operators that TVM's importer takes in ONNX Runtime's meaning, whatever domain the node is of.
MICROSOFT = frozenset(
    "Attention BiasGelu EmbedLayerNormalization FastGelu MatMulInteger16 SkipLayerNormalization".split()
)
SHARED = frozenset({"Gelu"})

_CONTROL = "has control flow that depends on data; replace it by Where, or import each branch by itself"
_RAGGED = "has an output whose shape depends on data; use Where or TopK"
SEQUENCE = "makes a sequence or optional value; use plain tensors"
_RANDOM = "makes random numbers; pass them as an input"
TEXT = "computes with strings; do that before the model"

#: Why operators are refused that no kernel graph expresses, whether TVM's importer has converters or not.
REFUSED: dict[str, str] = {
    **dict.fromkeys(("If", "Loop", "Scan"), _CONTROL),
    **dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), _RAGGED),
    **dict.fromkeys(
        """ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct
        SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence""".split(),
        SEQUENCE,
    ),
    **dict.fromkeys(
        "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split(), _RANDOM
    ),
    **dict.fromkeys("RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer".split(), TEXT),
    "ImageDecoder": "decodes files; do that before the model",
}


def converts(step: VersionedNode) -> bool:
    """Whether a node becomes operators of Relax."""
    fits = _fits_domain(step.node)
    known = step.operator in CONVERTERS or (fits and step.node.op_type in stock._get_convert_map())
    return known and not (fits and step.node.op_type in REFUSED)


def _fits_domain(node: onnx.NodeProto) -> bool:
    """Whether TVM's importer, which looks at names alone, would take the node for what its domain means."""
    if node.domain == "com.microsoft":
        return node.op_type in MICROSOFT | SHARED
    return node.domain in STANDARD_DOMAINS and node.op_type not in MICROSOFT
