# SPDX-License-Identifier: Apache-2.0
"""Attention: softmax(f(q @ k^T)) @ v, recognised and made one operator where the target fuses it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import attrs
from tvm import relax

from ..library.library_tables import AttentionLimits, LibraryTable
from ..options import ATTENTIONS
from ..sizes.open_arithmetic import is_one, is_open
from .attention_cost import kernels_of, price_attention
from .band import BAND, Band, band_of
from .fusion_cost import FusionCost
from .nodes import FusionDecision
from .patterns import commuted, reading_counts
from .program import Op, Program, Value, View, compose, dtype_bytes, is_float
from .scales import is_normal
from .strided_views import Layout, outermost_first

ATTENTION = "uir.attention"
SOFTMAXES = frozenset({"nn.softmax", "uir.safe_softmax"})


@attrs.frozen(eq=False)
class ScoreStep:
    """An elementwise operator between the scores and the softmax.

    Attributes
    ----------
    name : str
    call : tvm.ir.Call
        Its attributes and arguments that are no tensors.
    operands : tuple
        Views of the scores' shape; None where the scores flow in.
    band : Band, optional
        Of a step that closes keys by their distance from the query.
    """

    name: str
    call: Any
    operands: tuple[View | None, ...]
    band: Band | None = None

    def text(self) -> str:
        """The same for steps that compute the same, operands apart."""
        if self.band is not None:
            return str(self.band)
        plain = [str(arg) for arg in self.call.args if not isinstance(arg.ty, relax.TensorType)]
        return f"{self.name}{[operand is None for operand in self.operands]}{self.call.attrs}{plain}"


@attrs.frozen(eq=False)
class Attention:
    """What `find` found; every view has the batch axes of the scores.

    Attributes
    ----------
    query, key, value : View
        (batch..., m, d), (batch..., d, n), (batch..., n, e).
    steps : tuple of ScoreStep
        From the product to the softmax's argument.
    safe : bool
        Whether a row of -inf gives zeros.
    ops : tuple of Op
        The operators that it stands for, the last of which writes the result.
    """

    query: View
    key: View
    value: View
    steps: tuple[ScoreStep, ...]
    safe: bool
    ops: tuple[Op, ...]

    @property
    def result(self) -> Value:
        """What it computes."""
        return self.ops[-1].result

    @property
    def inner(self) -> tuple[Value, ...]:
        """Scores and weights: what one kernel keeps on chip."""
        return tuple(op.result for op in self.ops[:-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch..., m, e)."""
        return (*self.query.shape[:-1], self.value.shape[-1])

    def __repr__(self) -> str:
        return f"Attention({[step.text() for step in self.steps]}, safe={self.safe})"


@attrs.frozen(eq=False)
class AttentionDecision:
    """An attention of the program, and whether it became one kernel.

    Attributes
    ----------
    output : str
        Name of its result.
    fused : bool
    reason : str
    values : frozenset of Value
        What passes between its parts.
    saved_bytes : int
        DRAM traffic of these, written and read, that one kernel does not have.
    price : FusionDecision, optional
        The modelled time of both ways, where that decided.
    """

    output: str
    fused: bool
    reason: str
    values: frozenset[Value]
    saved_bytes: int
    price: FusionDecision | None = None


def fuse_attention(program: Program, table: LibraryTable, cost: FusionCost) -> list[AttentionDecision]:
    """Make one operator of every attention that one kernel is to compute.

    Before: s = matmul(q, k); x = add(multiply(s, c), mask); p = softmax(x); o = matmul(p, v).
    After: o = uir.attention(q, k, v, mask), whose attribute ``attention`` says what it computes.

    Parameters
    ----------
    program : Program
        Changed in place; after `closed_rows.safe_softmax`.
    table : LibraryTable
        Its ``attention`` says what one kernel computes, ``attends`` who decides.
    cost : FusionCost
        The prices of both ways.

    Returns
    -------
    list of AttentionDecision
        One for every attention of the program.
    """
    decisions = []
    counts, outputs = reading_counts(program), program.output_bases()
    for op in list(program.ops):
        found = find(op, counts, outputs)
        if found is None:
            continue
        obstacle, price = _decide(found, table, cost)
        values = frozenset(found.inner)
        saved = 2 * sum(value.nbytes for value in values)
        reason = obstacle or f"one kernel keeps {len(values)} tensors of scores on chip"
        decisions.append(AttentionDecision(found.result.name, not obstacle, reason, values, saved, price))
        if not obstacle:
            _replace(program, found, counts)
    program.remove_dead()
    program.sort()
    return decisions


def find(product: Op, counts: dict[Value, int], outputs: set[Value]) -> Attention | None:
    """The attention whose result a product is; None where it is none, or others read what is inside."""

    def private(value: Value) -> bool:
        return counts[value] == 1 and value not in outputs

    if product.name != "matmul":
        return None
    weights, value = product.operands
    first = weights.base.producer
    if first is None or first.name not in (*SOFTMAXES, "astype"):
        return None  # before anything is asked of sizes
    after: list[Op] = []  # casts of the weights
    op = _private_producer(weights, private)
    while op is not None and op.name == "astype":
        if not _holds_weights(op.result.dtype, value.base.dtype):
            return None
        after.append(op)
        op = _private_producer(op.operands[0], private)
    if op is None or op.name not in SOFTMAXES or not _along_last(op):
        return None
    if not _holds_weights(op.result.dtype, value.base.dtype):
        return None
    if len(op.shape) < 2 or weights.shape[-2:] != op.shape[-2:]:
        return None
    shape = op.shape
    chain = _scores(op.operands[0], shape, private)
    if chain is None:
        return None
    scores, steps, between = chain
    query, key = scores.operands
    if len(value.shape) < 2 or len(query.shape) < 2 or len(key.shape) < 2:
        return None
    lead = shape[:-2]
    batches = (scores.shape[:-2], scores.shape[:-2], product.shape[:-2])
    views = [_with_batch(*each, lead) for each in zip((query, key, value), batches, strict=True)]
    if any(view is None for view in views):
        return None
    q, k, v = (view for view in views if view is not None)
    if product.result.size != q.layout.size // q.shape[-1] * v.shape[-1]:
        return None
    ops = (scores, *reversed(between), op, *reversed(after), product)
    return Attention(q, k, v, tuple(steps), op.name == "uir.safe_softmax", ops)


def _holds_weights(dtype: str, values: str) -> bool:
    """Whether weights of a dtype are no coarser than the values that they are multiplied with."""
    return is_float(dtype) and dtype_bytes(dtype) >= dtype_bytes(values)


def _with_batch(view: View, batch: Sequence[int], lead: Sequence[int]) -> View | None:
    """An operand of a product over ``batch`` with the batch axes ``lead``, of as many elements."""
    return view.broadcast((*batch, *view.shape[-2:])).reshape((*lead, *view.shape[-2:]))


def _private_producer(view: View, private: Any) -> Op | None:
    """The operator of which this is the only reading, and a reading of the whole in its order."""
    op = view.base.producer
    if op is None or len(op.results) != 1 or not private(view.base):
        return None
    again = view.reshape(view.base.shape)
    return op if again is not None and again.is_whole else None


def _along_last(op: Op) -> bool:
    return op.call is not None and int(op.call.attrs.axis) in (-1, len(op.shape) - 1)


def _scores(
    argument: View, shape: tuple[int, ...], private: Any
) -> tuple[Op, list[ScoreStep], list[Op]] | None:
    """The product of queries and keys, the steps from it to the softmax, and their operators, last first."""
    steps: list[ScoreStep] = []
    between: list[Op] = []
    view = argument
    while True:
        op = _private_producer(view, private)
        if op is None or view.shape[-2:] != shape[-2:] and op.name != "matmul":
            return None
        if op.name == "matmul":
            same = op.shape[-2:] == shape[-2:] and op.result.size == prod(shape)
            return (op, steps[::-1], between) if same else None
        if op.kind.kind != "elementwise" or op.call is None:
            return None
        step = _step(op, shape, private)
        if step is None:
            return None
        steps.append(step[0])
        between.append(op)
        view = step[1]


def _step(op: Op, shape: tuple[int, ...], private: Any) -> tuple[ScoreStep, View] | None:
    """An elementwise operator on the scores, and the view of them that it reads."""
    flows = [i for i, view in enumerate(op.operands) if _from_product(view, private)]
    if len(flows) != 1 or not is_float(op.result.dtype) or dtype_bytes(op.result.dtype) < 2:
        return None
    others = [None if i in flows else view.reshape(shape) for i, view in enumerate(op.operands)]
    if any(view is None for i, view in enumerate(others) if i not in flows):
        return None
    assert op.call is not None
    band = band_of(op.name, others)
    if band is not None:
        return ScoreStep(BAND, None, (None,), band), op.operands[flows[0]]
    return ScoreStep(op.name, op.call, tuple(others)), op.operands[flows[0]]


def _from_product(view: View, private: Any) -> bool:
    """Whether elementwise operators lead from a product to this view."""
    op = _private_producer(view, private)
    if op is None:
        return False
    if op.name == "matmul":
        return True
    return op.kind.kind == "elementwise" and any(_from_product(operand, private) for operand in op.operands)


def _decide(found: Attention, table: LibraryTable, cost: FusionCost) -> tuple[str, FusionDecision | None]:
    """Why it is not one kernel (empty where it is), and the prices, where they decided."""
    auto, kernel, library = ATTENTIONS
    if table.attends == library:
        return f"attention is left to the library: CompileOptions.attention is {library!r}", None
    obstacle = _obstacle(found, table.attention)
    if obstacle or table.attends == kernel:
        return obstacle, None
    unusual = _obstacle(found, table.usual_attention)
    sizes = [size for view in (found.query, found.key, found.value) for size in view.shape]
    if is_open(sizes) or not all(sizes):
        return unusual, None
    price = price_attention(found, cost, int(_rows(found)), kernels_of(found), usual=not unusual)
    if price is None:
        return unusual, None
    if price.merged:
        return "", price
    two, one = (1e6 * way.seconds for way in (price.apart, price.together))
    return (
        f"modelled {two:.3g} us as products of the library and a softmax, {one:.3g} us as one kernel",
        price,
    )


def _obstacle(found: Attention, limits: AttentionLimits | None) -> str:
    """Why this attention is not within limits; empty where it is."""
    if limits is None:
        return "the target's table leaves attention to its matrix products and a softmax kernel"
    dtypes = {view.base.dtype for view in (found.query, found.key, found.value)} | {found.result.dtype}
    if len(dtypes) != 1 or not dtypes <= limits.dtypes:
        names = (", ".join(sorted(each)) for each in (dtypes, limits.dtypes))
        return "attention of {} is not fused, only of one of {}".format(*names)
    if any(view.base.constant is not None for view in (found.key, found.value)):
        return "keys or values are a constant, a weight of the library's product"
    head = max(found.query.shape[-1], found.value.shape[-1])
    if head > limits.max_head:
        return f"heads of {head} elements exceed the registers of a unit: at most {limits.max_head}"
    rows, keys = _rows(found), found.key.shape[-1]
    # of open ones there may be many
    if not is_open((rows,)) and rows < limits.min_rows:
        return f"{rows} rows on the same keys are too few: fused from {limits.min_rows}"
    if not is_open((keys,)) and keys < limits.min_keys:
        return f"{keys} keys are too few: fused from {limits.min_keys}"
    return ""


def _rows(found: Attention) -> int:
    """Rows that share their keys: the queries of a head; of one query, the heads on one head of keys."""
    rows = found.query.shape[-2]
    inner = found.key.layout.dims[-3] if len(found.key.shape) > 2 else ()
    shared = inner[-1][0] if inner and inner[-1][1] == 0 else 1
    return shared if is_one(rows) else rows


def _replace(program: Program, found: Attention, counts: dict[Value, int]) -> None:
    """One operator in the place of the last."""
    found = _scaled_operands(program, found, counts)
    masks = [view for step in found.steps for view in step.operands if view is not None]
    result = found.result
    result.shape = found.shape
    op = Op(ATTENTION, None, [found.query, found.key, found.value, *masks], [result], {"attention": found})
    op.attrs["order"] = tuple(range(len(found.shape)))
    result.producer = op
    program.ops[program.ops.index(found.ops[-1])] = op


def _scaled_operands(program: Program, found: Attention, counts: dict[Value, int]) -> Attention:
    """softmax((q * c) @ k) -> softmax((q @ k) * c) for one number c, which saves a kernel for q * c."""
    outputs = program.output_bases()
    for name in ("query", "key"):
        view = found.query if name == "query" else found.key
        op = view.base.producer
        if op is None or op.name != "multiply" or counts[view.base] != 1 or view.base in outputs:
            continue
        for tensor, factor in commuted(op):
            number = factor.scalar
            if number is None or isinstance(number, bool) or not is_normal(float(number)):
                continue
            moved = compose(view, tensor)
            if moved is not view:
                query, key = (moved, found.key) if name == "query" else (found.query, moved)
                steps = (_multiply(program, found, number), *found.steps)
                found = attrs.evolve(found, query=query, key=key, steps=steps)
                break
    return found


def _multiply(program: Program, found: Attention, number: float) -> ScoreStep:
    """The step scores * number."""
    shape = (*found.query.shape[:-1], found.key.shape[-1])
    dtype = found.query.base.dtype
    operands = [relax.Var(name, relax.TensorType(shape, dtype)) for name in "ab"]
    constant = program.fresh("scale", (), dtype, relax.const(number, dtype))
    return ScoreStep("multiply", relax.op.multiply(*operands), (None, constant.view().broadcast(shape)))


def store_in_order(op: Op) -> None:
    """Make a result that lies in another order (`Value.storage`) a row-major tensor of permuted axes.

    Before: o (b, h, m, e) with storage strides of (b, m, h, e).  After: o (b, m, h, e), and the operator's
    attribute ``order`` = (0, 2, 1, 3).
    """
    value = op.result
    if value.storage == Layout.contiguous([value.size]):
        return
    dims = value.view().layout.dims
    assert all(len(dim) <= 1 for dim in dims), value
    ones = [axis for axis, dim in enumerate(dims) if not dim]
    order = [*ones, *outermost_first({axis: dim[0] for axis, dim in enumerate(dims) if dim})]
    assert len(order) == len(dims), value
    value.shape = tuple(value.shape[axis] for axis in order)
    value.storage = Layout.contiguous([value.size])
    op.attrs["order"] = tuple(order)
