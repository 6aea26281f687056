# SPDX-License-Identifier: Apache-2.0
"""What the kernel graph knows of each operator: one table, from which fusion decides."""

from __future__ import annotations

from attrs import field, frozen

from ..heroes import hero

#: The call of what PyTorch computes at run time (`uir_tvm.opaque_call`).
OPAQUE = "call_pure_packed"
#: The call whose data decide the shapes of its results (`uir_tvm.opaque_call.FOUND`).
FINDING = "find_sizes"
#: Operators whose kernels describe their buffers by themselves: nothing is merged into such a kernel, and no
#: strided reading either.
SELF_DESCRIBED = frozenset({"argsort", "sort", "topk"})
#: The steps of a recurrent layer (`uir_tvm.frontend.recurrence`), which the library computes.
RECURRENCE = "recurrence"
#: A product with a weight of few bits, until `library_match` makes it the library's.
QUANTIZED_PRODUCT = "quantized_matmul"
#: A product of bytes with a constant weight, summed in int32.
INTEGER_PRODUCT = "integer_product"
#: A product of matrices of int8, summed in int32.
INTEGER_MATMUL = "integer_matmul"
#: Attention as the library computes it.
LIBRARY_ATTENTION = "library.attention"
#: The product with a weight of few bits as a kernel of ours.
PACKED_PRODUCT = "uir.packed_product"


@frozen
class OpKind:
    """How an operator behaves when kernels are merged.

    Attributes
    ----------
    kind : str
        The hero that it makes of a kernel (`uir_tvm.heroes`).
    expensive : bool
        Whether computing it twice costs more than reading its result.
    reshapable : bool
        Whether it may run in another shape of as many elements.
    epilogue : bool
        Whether elementwise readers may be merged into it.
    """

    kind: str = field(converter=hero)
    expensive: bool = False
    reshapable: bool = True
    epilogue: bool = True


_CHEAP = OpKind("elementwise")
_DEAR = OpKind("elementwise", expensive=True)
_PLACED = OpKind("elementwise", reshapable=False)
_REDUCTION = OpKind("reduction", expensive=True, reshapable=False)
_NORMALIZATION = OpKind("normalization", expensive=True, reshapable=False)
_OPAQUE = OpKind("opaque", expensive=True, reshapable=False, epilogue=False)
_WINDOW = OpKind("opaque", expensive=True, reshapable=False)
_CONTRACTION = OpKind("contraction", expensive=True, reshapable=False)
_ATTENTION = OpKind("attention", expensive=True, reshapable=False, epilogue=False)
_LIBRARY = OpKind("library", expensive=True, reshapable=False)

KINDS: dict[str, OpKind] = {
    **dict.fromkeys(
        "abs add astype bitwise_and bitwise_not bitwise_or bitwise_xor ceil clip copy equal ewise_fma floor "
        "floor_divide floor_mod greater greater_equal isfinite isinf isnan left_shift less less_equal "
        "logical_and logical_not logical_or logical_xor maximum minimum mod multiply negative nn.leakyrelu "
        "nn.relu nn.relu6 not_equal right_shift round sign square subtract trunc where".split(),
        _CHEAP,
    ),
    **dict.fromkeys(
        "acos acosh asin asinh atan atan2 atanh cos cosh divide erf exp log log10 log2 nn.gelu nn.gelu_tanh "
        "nn.selu nn.silu nn.softplus power rsqrt sigmoid sin sinh sqrt tan tanh".split(),
        _DEAR,
    ),
    **dict.fromkeys("tril triu".split(), _PLACED),
    **dict.fromkeys("sum mean max min prod variance std".split(), _REDUCTION),
    **dict.fromkeys(
        "nn.softmax nn.log_softmax nn.layer_norm nn.group_norm nn.rms_norm uir.safe_softmax".split(),
        _NORMALIZATION,
    ),
    **dict.fromkeys("nn.avg_pool2d nn.max_pool2d nn.adaptive_avg_pool2d".split(), _WINDOW),
    "concat": OpKind("concat", reshapable=False),
    "take": OpKind("gather", reshapable=False),
    "gather_elements": OpKind("gather", reshapable=False),
    "index_tensor": OpKind("gather", reshapable=False),
    "uir.update": OpKind("update", expensive=True, reshapable=False, epilogue=False),
    "matmul": _CONTRACTION,
    "nn.conv2d": _CONTRACTION,
    PACKED_PRODUCT: _CONTRACTION,
    "uir.attention": _ATTENTION,
    "library.matmul": _LIBRARY,
    "library.conv2d": _LIBRARY,
    QUANTIZED_PRODUCT: _LIBRARY,
    LIBRARY_ATTENTION: OpKind("library", expensive=True, reshapable=False, epilogue=False),
    INTEGER_PRODUCT: OpKind("library", expensive=True, reshapable=False, epilogue=False),
    INTEGER_MATMUL: OpKind("library", expensive=True, reshapable=False, epilogue=False),
    RECURRENCE: OpKind("library", expensive=True, reshapable=False, epilogue=False),
    OPAQUE: OpKind("library", expensive=True, reshapable=False, epilogue=False),
    FINDING: OpKind("library", expensive=True, reshapable=False, epilogue=False),
}


def kind_of(name: str) -> OpKind:
    """The entry of an operator; an operator without one is opaque."""
    return KINDS.get(name, _OPAQUE)
