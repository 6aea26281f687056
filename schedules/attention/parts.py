# SPDX-License-Identifier: Apache-2.0
"""The parts of an attention, read from the blocks of its unscheduled function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import tvm
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.s_tir import Schedule
from tvm_ffi.structural import structural_equal, structural_map
from uir_tvm.errors import RecipeError
from uir_tvm.igraph.tir_sizes import MOST
from uir_tvm.schedule.blocks import (
    REDUCTION,
    SPATIAL,
    BlockInfo,
    collect,
    leaf_blocks,
    param_names,
    prim_func,
    uses,
)
from uir_tvm.schedule.prepare import inline_injective
from uir_tvm.schedule.representative import is_open, most_of

Expr = Any


@attrs.frozen
class Formula:
    """An expression in variables of its own: ``form(values)`` is it with values in their places."""

    variables: tuple[Any, ...]
    expr: Expr

    def __call__(self, *values: Expr, load: Callable[[Any], Expr] | None = None) -> Expr:
        """The expression at these values; ``load`` gives what takes the place of reading a buffer."""
        table = list(zip(self.variables, values, strict=True))

        def variable(node: Any) -> Any:
            return next((value for var, value in table if var.same_as(node)), node)

        entries: list[Any] = [(tvm.ir.Var, variable)]
        return structural_map(self.expr, entries if load is None else [*entries, (TensorLoad, load)])


@attrs.frozen
class Output:
    """What is stored: ``indices`` and ``value`` are forms in the batch axes, row and column."""

    buffer: Any
    indices: tuple[Formula, ...]
    value: Formula


@attrs.frozen
class UsualExtents:
    """Batches, queries and keys; of open ones representatives.

    Of a head and of a value, which a tile holds whole, the most elements that there may be.
    """

    batch: tuple[int, ...]
    rows: int
    keys: int
    head: int
    width: int


class HasExtents(Protocol):
    """What tiles are chosen by: `Parts`, or `Extents` where there is no function yet."""

    @property
    def batch(self) -> tuple[Any, ...]:
        """Extents of the batch axes."""

    @property
    def rows(self) -> Any:
        """How many queries there are."""

    @property
    def keys(self) -> Any:
        """How many keys there are."""

    @property
    def usual(self) -> UsualExtents:
        """All extents as numbers."""

    @property
    def weight_dtype(self) -> str:
        """Element type of the values in memory."""


@attrs.frozen
class Extents:
    """See `HasExtents`."""

    batch: tuple[Any, ...]
    rows: Any
    keys: Any
    usual: UsualExtents
    weight_dtype: str


@attrs.frozen
class Parts:
    """softmax(score(query @ key)) @ value.

    Attributes
    ----------
    batch : tuple
        Extents of the batch axes: numbers, or expressions of sizes.
    rows, keys : int or Expr
        m, n: queries and keys.
    head, width : int or Expr
        d, e: contracted elements of a head, elements of a value.
    usual : UsualExtents
        What tiles are chosen for.
    query, key, score, value : Formula
        In (batch..., i, k), (batch..., j, k), (batch..., i, j) and (batch..., j, c).
    scores, sums : str
        Buffers that ``score`` and ``output.value`` read: the first product, and the second.
    safe : bool
        Whether a row without weight gives zeros.
    weight_dtype : str
        To which weights are rounded before they meet the values: that of the values in memory, as matrix
        units take operands of one dtype.
    output : Output
    """

    batch: tuple[Any, ...]
    rows: Any
    keys: Any
    usual: UsualExtents
    head: Any
    width: Any
    query: Formula
    key: Formula
    score: Formula
    value: Formula
    scores: str
    sums: str
    safe: bool
    weight_dtype: str
    output: Output


def read_parts(sch: Schedule) -> Parts:
    """The parts of the attention that a function computes.

    Everything elementwise is inlined into the four reductions (products, maximum, sum) and the output.

    Raises
    ------
    RecipeError
        It is no attention, or one of a form that the recipe does not know; says which.
    """
    inline_injective(sch)
    blocks = leaf_blocks(sch)
    reductions = [b for b in blocks if b.is_reduction]
    kinds = [_kind(b) for b in reductions]
    if kinds != ["product", "max", "sum", "product"]:
        _refuse("The reductions are not those of an attention.", f"{kinds}", "product, max, sum, product")
    scores, peak, total, product = reductions
    if len({len(b.spatial) + (b in (peak, total)) for b in reductions}) != 1:
        _refuse(
            "The reductions have different ranks.", ", ".join(str(b.extents) for b in reductions), "one rank"
        )
    frame = _Frame(scores, peak, total, product)
    rest = [b for b in blocks if b not in reductions]
    return frame.parts(prim_func(sch), _output(product, rest, param_names(sch)), param_names(sch))


def looks_like_attention(sch: Schedule) -> bool:
    """Whether there are two products, a maximum and a sum of exponentials."""
    kinds = [_kind(b) for b in leaf_blocks(sch) if b.is_reduction]
    return kinds == ["product", "max", "sum", "product"]


def _kind(block: BlockInfo) -> str:
    store = block.stmt.body
    value = store.value if isinstance(store, tirx.BufferStore) else None
    if len(block.reduction) != 1 or value is None:
        return "other"
    if isinstance(value, tirx.Max):
        return "max"
    if isinstance(value, tirx.Add):
        return "product" if isinstance(value.b, tirx.Mul) else "sum"
    return "other"


def _refuse(what: str, found: str, need: str) -> Any:
    raise RecipeError(what, need=need, limit=found)


@attrs.define
class _Frame:
    """The four reductions; forms are made in the variables of each."""

    scores: BlockInfo
    peak: BlockInfo
    total: BlockInfo
    product: BlockInfo

    def parts(self, func: tirx.PrimFunc, output: Output, params: set[str]) -> Parts:
        weight, value = self._weight_and_value()
        argument = self._argument()
        safe = self._normalised(_uncast(weight))
        first = self._factors()
        *batch, rows, keys = _true_extents(self.scores)
        *usual, usual_rows, usual_keys = self.scores.spatial
        head, width = _reduced_extent(self.scores), _true_extents(self.product)[-1]
        parts = Parts(
            tuple(batch),
            rows,
            keys,
            UsualExtents(
                tuple(usual),
                usual_rows,
                usual_keys,
                greatest(func, head, "Elements of a head"),
                greatest(func, width, "Elements of a value"),
            ),
            head,
            width,
            Formula(_order(self.scores, drop=-1), first[0]),
            Formula(_order(self.scores, drop=-2), first[1]),
            Formula(_order(self.peak), argument),
            Formula(_order(self.product, drop=-2, last_reduced=False), value),
            self.scores.writes[0],
            self.product.writes[0],
            safe,
            str(_uncast(value).ty),
            output,
        )
        self._check(parts, params)
        return parts

    def _weight_and_value(self) -> tuple[Expr, Expr]:
        """The two factors of the second product: the first reads the row sums."""
        factors = (self.product.stmt.body.value.b.a, self.product.stmt.body.value.b.b)
        reads = [any(n.source.name == self.total.writes[0] for n in collect(f, TensorLoad)) for f in factors]
        if sum(reads) != 1:
            _refuse("The second product does not weigh values.", str(factors), "weights times values")
        return factors if reads[0] else factors[::-1]

    def _factors(self) -> tuple[Expr, Expr]:
        """Queries (read along the rows) and keys."""
        row, column = _spatial(self.scores)[-2:]
        factors = (self.scores.stmt.body.value.b.a, self.scores.stmt.body.value.b.b)
        for query, key in (factors, factors[::-1]):
            if uses(query, [row]) or self.scores.spatial[-2] == 1:
                if not uses(query, [column]) and not uses(key, [row]):
                    return query, key
        return _refuse(
            "The first product does not meet queries with keys.", str(factors), "q[i, k] * k[j, k]"
        )

    def _argument(self) -> Expr:
        """What the maximum is taken of: the softmax's argument, in the scores."""
        argument = self.peak.stmt.body.value.b
        place = [*_spatial(self.peak), *_reduced(self.peak)]
        for node in collect(argument, TensorLoad):
            if node.source.name == self.scores.writes[0] and not _is_at(
                node.indices, place, self.scores.spatial
            ):
                _refuse("The softmax reads the scores in another order.", str(node), "scores[i, j]")
        return argument

    def _normalised(self, weight: Expr) -> bool:
        """Whether weights are exp(x - peak) over their sum; returns whether a sum of 0 counts as 1."""
        exponential = Formula(_order(self.total), self.total.stmt.body.value.b)
        wanted = exponential(*_order(self.product, drop=-1))
        self._is_softmax(exponential)
        if isinstance(weight, tirx.Div | tirx.Mul):
            found, scale = weight.a, weight.b
            inverse = isinstance(weight, tirx.Mul)
            if structural_equal(found, wanted):
                if inverse and isinstance(scale, tirx.Div) and _is_number(scale.a, 1):
                    return self._sum(scale.b)
                if not inverse:
                    return self._sum(scale)
        return _refuse("The weights are not exponentials over their sum.", str(weight), "exp(x - max) / sum")

    def _is_softmax(self, exponential: Formula) -> None:
        call = exponential.expr
        argument = Formula(_order(self.peak), self.peak.stmt.body.value.b)(*exponential.variables)
        if isinstance(call, Call) and str(getattr(call.op, "name", "")).endswith(".exp"):
            (shifted,) = call.args
            if isinstance(shifted, tirx.Sub) and structural_equal(shifted.a, argument):
                peak = shifted.b.a if isinstance(shifted.b, tirx.Max) else shifted.b
                if isinstance(peak, TensorLoad) and peak.source.name == self.peak.writes[0]:
                    return
        _refuse("The sum is not that of exp(x - max(x)).", str(call), "a softmax")

    def _sum(self, scale: Expr) -> bool:
        """Whether the divisor is the sum made safe; refused where it is no sum."""
        name = self.total.writes[0]
        if isinstance(scale, TensorLoad) and scale.source.name == name:
            return False
        if isinstance(scale, tirx.Select) and isinstance(scale.condition, tirx.EQ):
            kept = scale.false_value
            if isinstance(kept, TensorLoad) and kept.source.name == name and _is_number(scale.true_value, 1):
                return True
        return _refuse("The weights are not divided by their sum.", str(scale), "exp(x - max) / sum")

    def _check(self, parts: Parts, params: set[str]) -> None:
        """Queries, keys, values and masks come from memory."""
        for form, own in (
            (parts.query, ()),
            (parts.key, ()),
            (parts.value, ()),
            (parts.score, (parts.scores,)),
        ):
            for node in collect(form.expr, TensorLoad):
                if node.source.name not in params and node.source.name not in own:
                    _refuse(f"{node.source.name!r} is made inside.", str(form.expr), "operands from memory")


def _output(product: BlockInfo, rest: Sequence[BlockInfo], params: set[str]) -> Output:
    """The block that stores the result: the second product itself, or an elementwise one that reads it."""
    store = product.stmt.body
    spatial = _spatial(product)
    if not rest and product.writes[0] in params:
        load = tirx.BufferLoad(store.buffer, list(spatial))
        indices = tuple(Formula(tuple(spatial), index) for index in store.indices)
        return Output(store.buffer, indices, Formula(tuple(spatial), load))
    if len(rest) != 1 or not rest[0].is_injective:
        _refuse(
            "The result is used more than once.", ", ".join(b.name for b in rest), "one elementwise output"
        )
    stored = rest[0].stmt.body
    loads = [n for n in collect(stored.value, TensorLoad) if n.source.name == product.writes[0]]
    variables: dict[int, Any] = {}
    for node in loads:
        for axis, index in enumerate(node.indices):
            if not isinstance(index, tvm.ir.Var):
                if not (_is_number(index, 0) and product.spatial[axis] == 1):
                    _refuse("The output regroups the result.", str(node), "a permutation of its axes")
                continue
            if axis in variables and not variables[axis].same_as(index):
                _refuse("The output reads the result in two orders.", str(node), "one permutation")
            variables[axis] = index
    own = _spatial(rest[0])
    free = [tvm.ir.Var(f"o{axis}", spatial[axis].ty) for axis in range(len(spatial))]
    back = [(var, free[axis]) for axis, var in variables.items()]
    left = [var for var in own if not any(var.same_as(known) for known, _ in back)]
    extents = dict(zip([v.name for v in own], rest[0].spatial, strict=True))
    if any(extents[var.name] != 1 for var in left) or not loads:
        _refuse("The output repeats the result.", str(stored), "a permutation of its axes")
    known = [*back, *((var, tirx.IntImm(str(var.ty), 0)) for var in left)]
    move = Formula(tuple(var for var, _ in known), stored.value)
    at = [Formula(move.variables, index)(*(value for _, value in known)) for index in stored.indices]
    value = move(*(value for _, value in known))
    return Output(
        stored.buffer, tuple(Formula(tuple(free), index) for index in at), Formula(tuple(free), value)
    )


def _true_extents(block: BlockInfo) -> list[Any]:
    """Extents of the spatial variables, those that sizes decide as expressions."""
    extents = [
        iv.dom.extent for iv, kind in zip(block.stmt.iter_vars, block.kinds, strict=True) if kind == SPATIAL
    ]
    return [extent if is_open(extent) else int(extent) for extent in extents]


def _reduced_extent(block: BlockInfo) -> Any:
    """The extent of the reduced variable, as an expression where sizes decide it."""
    (extent,) = (
        iv.dom.extent for iv, kind in zip(block.stmt.iter_vars, block.kinds, strict=True) if kind == REDUCTION
    )
    return extent if is_open(extent) else int(extent)


def greatest(func: tirx.PrimFunc, extent: Any, what: str) -> int:
    """The greatest value of an extent.

    Raises
    ------
    RecipeError
        It is open and has no upper bound.
    """
    most = most_of(extent, func)
    if is_open(extent) and not 0 <= most < MOST:
        raise RecipeError(
            f"{what}, {extent}, have no upper bound.",
            need="a greatest value: a tile and the loops of a unit are as large for all sizes",
            remedy="give its sizes upper bounds (Dim(max=), tir_var_upper_bound)",
        )
    return most


def _spatial(block: BlockInfo) -> list[Any]:
    return [iv.var for iv, kind in zip(block.stmt.iter_vars, block.kinds, strict=True) if kind == SPATIAL]


def _reduced(block: BlockInfo) -> list[Any]:
    return [iv.var for iv, kind in zip(block.stmt.iter_vars, block.kinds, strict=True) if kind == REDUCTION]


def _order(block: BlockInfo, drop: int | None = None, last_reduced: bool = True) -> tuple[Any, ...]:
    """A block's variables: spatial ones (without one), with the reduced one last, or before the last."""
    spatial = _spatial(block)
    if drop is not None:
        del spatial[drop]
    reduced = _reduced(block)
    return tuple([*spatial, *reduced] if last_reduced else [*spatial[:-1], *reduced, spatial[-1]])


def _is_at(indices: Sequence[Any], place: Sequence[Any], extents: Sequence[int]) -> bool:
    return len(indices) == len(place) and all(
        index.same_as(var) or (extent == 1 and _is_number(index, 0))
        for index, var, extent in zip(indices, place, extents, strict=True)
    )


def _is_number(expr: Any, number: float) -> bool:
    return isinstance(expr, tirx.IntImm | tirx.FloatImm) and float(expr.value) == number


def _uncast(expr: Expr) -> Expr:
    """A value before casts of it."""
    while isinstance(expr, tirx.Cast):
        expr = expr.value
    return expr
