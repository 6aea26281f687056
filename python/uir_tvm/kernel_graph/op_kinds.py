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
#: Sorted elements along an axis as the library computes them (`uir_tvm.frontend.sorting`).
LIBRARY_SORT = "sorted"
#: A product with a weight of few bits, until `library_match` makes it the library's.
QUANTIZED_PRODUCT = "quantized_matmul"
#: A product of bytes with a constant weight, summed in int32.
INTEGER_PRODUCT = "integer_product"
#: A product of matrices of int8, summed in int32.
INTEGER_MATMUL = "integer_matmul"
#: Attention as the library computes it.
LIBRARY_ATTENTION = "library.attention"
#: Convolutions that follow each other, in one call of the library.
LIBRARY_CHAIN = "library.conv2d_chain"
#: The product with a weight of few bits as a kernel of ours.
PACKED_PRODUCT = "uir.packed_product"


@frozen
class OpKind:
    """How an operator behaves when kernels are merged.

    Attributes
    ----------
    kind : str
        The hero that it makes of a kernel (`uir_tvm.heroes`).
    work : tuple of str
        The classes of arithmetic (`uir_tvm.igraph.iops.WORK`) that an element takes: of its result, of a
        reduction's operand; by these fusion is priced.
    reshapable : bool
        Whether it may run in another shape of as many elements.
    epilogue : bool
        Whether elementwise readers may be merged into it.
    """

    kind: str = field(converter=hero)
    work: tuple[str, ...] = ("add",)
    reshapable: bool = True
    epilogue: bool = True

    @property
    def dear(self) -> bool:
        """Whether an element takes more than plain instructions."""
        return "divide" in self.work or "transcendental" in self.work


_PLAIN = OpKind("elementwise")
_PLACED = OpKind("elementwise", reshapable=False)
_REDUCTION = OpKind("reduction", reshapable=False)
_VARIANCE = OpKind("reduction", ("add", "add", "mul", "add"), reshapable=False)
_SOFTMAX = OpKind("normalization", ("add", "add", "transcendental", "add", "mul"), reshapable=False)
_CENTRED = OpKind("normalization", ("add", "add", "mul", "add", "mul", "mul", "add"), reshapable=False)
_SQUARED = OpKind("normalization", ("mul", "add", "mul", "mul"), reshapable=False)
_OPAQUE = OpKind("opaque", reshapable=False, epilogue=False)
_WINDOW = OpKind("opaque", reshapable=False)
_CONTRACTION = OpKind("contraction", reshapable=False)
_ATTENTION = OpKind("attention", reshapable=False, epilogue=False)
_LIBRARY = OpKind("library", reshapable=False)
_WHOLE_LIBRARY = OpKind("library", reshapable=False, epilogue=False)


def _elementwise(*work: str) -> OpKind:
    return OpKind("elementwise", work)


KINDS: dict[str, OpKind] = {
    **dict.fromkeys(
        "abs add clip copy ewise_fma maximum minimum multiply negative nn.leakyrelu nn.relu nn.relu6 sign "
        "square subtract".split(),
        _PLAIN,
    ),
    **dict.fromkeys(
        "bitwise_and bitwise_not bitwise_or bitwise_xor equal greater greater_equal isfinite isinf isnan "
        "left_shift less less_equal logical_and logical_not logical_or logical_xor not_equal right_shift "
        "where".split(),
        _elementwise("logic"),
    ),
    **dict.fromkeys("astype ceil floor round trunc".split(), _elementwise("convert")),
    **dict.fromkeys("divide floor_divide floor_mod mod rsqrt sqrt".split(), _elementwise("divide")),
    **dict.fromkeys(
        "acos acosh asin asinh atan atan2 atanh cosh erf exp log log10 log2 power sigmoid sinh tanh".split(),
        _elementwise("transcendental"),
    ),
    # arguments far from 0 are brought near first
    **dict.fromkeys("cos sin".split(), _elementwise("transcendental", "transcendental")),
    "tan": _elementwise(*["transcendental"] * 4, "divide"),
    **dict.fromkeys("nn.gelu nn.gelu_tanh".split(), _elementwise("transcendental", "mul", "mul", "add")),
    "nn.silu": _elementwise("transcendental", "mul"),
    "nn.selu": _elementwise("transcendental", "mul", "logic"),
    "nn.softplus": _elementwise("transcendental", "transcendental", "add"),
    **dict.fromkeys("tril triu".split(), _PLACED),
    "uir.band": OpKind("elementwise", ("logic", "logic"), reshapable=False),
    **dict.fromkeys("sum mean max min prod".split(), _REDUCTION),
    **dict.fromkeys("variance std".split(), _VARIANCE),
    **dict.fromkeys("nn.softmax nn.log_softmax uir.safe_softmax".split(), _SOFTMAX),
    **dict.fromkeys("nn.layer_norm nn.group_norm".split(), _CENTRED),
    "nn.rms_norm": _SQUARED,
    **dict.fromkeys("nn.avg_pool2d nn.max_pool2d nn.adaptive_avg_pool2d".split(), _WINDOW),
    "concat": OpKind("concat", reshapable=False),
    "take": OpKind("gather", reshapable=False),
    "gather_elements": OpKind("gather", reshapable=False),
    "index_tensor": OpKind("gather", reshapable=False),
    "uir.update": OpKind("update", reshapable=False, epilogue=False),
    "matmul": _CONTRACTION,
    "nn.conv2d": _CONTRACTION,
    PACKED_PRODUCT: _CONTRACTION,
    "uir.attention": _ATTENTION,
    "library.matmul": _LIBRARY,
    "library.conv2d": _LIBRARY,
    QUANTIZED_PRODUCT: _LIBRARY,
    LIBRARY_ATTENTION: _WHOLE_LIBRARY,
    LIBRARY_CHAIN: _WHOLE_LIBRARY,
    INTEGER_PRODUCT: _WHOLE_LIBRARY,
    INTEGER_MATMUL: _WHOLE_LIBRARY,
    RECURRENCE: _WHOLE_LIBRARY,
    LIBRARY_SORT: _WHOLE_LIBRARY,
    OPAQUE: _WHOLE_LIBRARY,
    FINDING: _WHOLE_LIBRARY,
}


def kind_of(name: str) -> OpKind:
    """The entry of an operator; an operator without one is opaque."""
    return KINDS.get(name, _OPAQUE)
