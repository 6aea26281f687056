# SPDX-License-Identifier: Apache-2.0
"""The table of iOps: arity, attributes, dtype rule, shape rule, what is read, and the NumPy meaning.

An iOp writes exactly the valid box of its (only, but for identity) target.  Everything that treats
iOps reads this table: constructors, text format, verifier, interpreter, targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ..errors import VerifyError
from . import iops_meaning as m
from . import iops_reads as reads
from . import iops_shape as shapes
from .affine import Affine
from .dtypes import DTYPES
from .iops_meaning import ValidBoxes
from .iops_reads import Box, Reads
from .iops_scalar import ANY, BINARY, COMPARE, INTEGER, NUMBER, REDUCE, UNARY, WORK
from .nodes import IOp, ISlice

LEVELS = ("reg", "sram", "dram")


@attrs.frozen
class Attr:
    """One attribute that an iOp may carry.

    Parameters
    ----------
    kind : str
        ``number``, ``numbers``, ``int``, ``flag``, ``affine``, ``slice`` or ``word``.
    required : bool
        Whether it must be there; otherwise ``default`` holds where it is absent.
    words : tuple[str, ...]
        The words that a ``word`` may be.
    bare : bool
        Whether the text writes the value without its name: ``[2.0]``.
    """

    kind: str
    required: bool = False
    default: Any = None
    words: tuple[str, ...] = ()
    bare: bool = False


@attrs.frozen
class IOpSpec:
    """One row of the table.

    Parameters
    ----------
    op : str
        The class of iOps.
    summary : str
        The meaning in one line, for documentation and messages.
    target_types, source_types : tuple[str, ...]
        What dtype each slice's pointer has: ``dtype`` (that of the iOp), ``name`` (the iOp's name),
        ``bool``, ``result`` (bool or dtype, as the named function gives), ``index`` (any integer)
        or ``factor`` (that of a contraction's operands).  Their lengths are the arity.
    variadic : bool
        Whether the lengths do not matter (one slice or more on each side).
    mnemonic : tuple[str, ...]
        The parts after ``op``, each ``name``, ``dtype``, ``axis``, ``scope``, ``from`` or ``to``.
    names : Mapping, optional
        The table of names; without it ``name`` is empty (cast: the source's dtype).
    kinds : frozenset[str]
        Kinds of dtype taken where no named function restricts them.
    attrs : Mapping[str, Attr]
        The attributes allowed.
    shape_rule : Callable[[IOp], str | None]
        What is wrong with the shapes; None when nothing is.
    reads : Callable[[IOp], tuple[Read, ...]]
        Of each source the rule of which box of it is read; see `iops_reads`.
    reads_target : Callable[[IOp], bool]
        Whether the target's old value is read as well.
    keeps : bool
        Whether elements of the target's box keep what they held; see `keeps_target`.
    by_data : str
        The operand of which the data decides the elements that are touched: ``target``, ``source0`` or none.
    elementwise : bool
        Whether an element of the target comes from the elements of the sources at its place alone.
    by_place : bool
        Whether a value depends on where in the target's box it is.
    rearranges : bool
        Whether every element of the target is one of the source's, by a rule that no data decides.
    copies : bool
        Whether every element of the target is that of the source at its place, as it is, or a padding.
    constant : bool
        Whether every element of the target is the attribute ``value``.
    barrier : bool
        Whether units wait for each other in it, and nothing else is done.
    touches : bool
        Whether elements are read or written; otherwise memory is only named.
    leads : str
        Of a group form the side that the leading unit alone has: ``target`` or ``source0``.
    pipe : str
        What of a core works on it: ``vector``, ``reduce``, ``contract``, ``irregular``, ``move``, ``sync`` or
        ``nothing``.
    work : str or None
        The class of arithmetic that it does (see `WORK`); of named functions their rows say it, None: none.
    counts : str
        Of what it does one operation for each element: its ``target``, the box read of ``source0``, or twice
        the ``product`` of a contraction's three axes.
    meaning : Callable, optional
        ``meaning(iop, region, *arrays)`` gives the array of the target's box from those of the
        boxes in ``region.sources``; scatter gives (rows, columns, values).  None: no value is made.
    """

    op: str
    summary: str
    target_types: tuple[str, ...]
    source_types: tuple[str, ...]
    mnemonic: tuple[str, ...]
    shape_rule: Callable[[IOp], str | None]
    reads: Reads
    meaning: Callable[..., Any] | None = None
    names: Mapping[str, Any] | None = None
    kinds: frozenset[str] = ANY
    attrs: Mapping[str, Attr] = {}
    variadic: bool = False
    reads_target: Callable[[IOp], bool] = lambda iop: False
    keeps: bool = False
    by_data: str = ""
    elementwise: bool = False
    by_place: bool = False
    rearranges: bool = False
    copies: bool = False
    constant: bool = False
    barrier: bool = False
    touches: bool = True
    leads: str = ""
    pipe: str = "vector"
    work: str | None = None
    counts: str = "target"

    @property
    def n_targets(self) -> int | None:
        """Number of targets; None = one or more."""
        return None if self.variadic else len(self.target_types)

    @property
    def n_sources(self) -> int | None:
        """Number of sources; None = one or more."""
        return None if self.variadic else len(self.source_types)

    @property
    def is_product(self) -> bool:
        """Whether it multiplies matrices."""
        return self.counts == "product"

    @property
    def converts(self) -> bool:
        """Whether it takes numbers of one dtype (its name) to another."""
        return self.work == "convert"

    @property
    def renames(self) -> bool:
        """Whether it gives memory other names and does nothing else."""
        return not self.touches and not self.barrier

    def keeps_target(self, iop: IOp) -> bool:
        """Whether what the target held before may matter to what it holds afterwards."""
        return self.keeps or self.reads_target(iop)

    def attr(self, iop: IOp, name: str) -> Any:
        """The attribute of ``iop``, or its default."""
        return iop.attrs[name] if name in iop.attrs else self.attrs[name].default

    def work_of(self, iop: IOp) -> str | None:
        """The class of arithmetic of an iOp; None where it computes nothing."""
        return self.names[iop.name].work if self.names is not None else self.work

    def dtype_rule(self, iop: IOp) -> str | None:
        """What is wrong with the dtypes; None when nothing is."""
        return _dtype_rule(self, iop)


_GROUP = {
    "axis": Attr("word", required=True, words=("row", "col")),
    "scope": Attr("word", required=True, words=("unit", "group")),
    "buffer": Attr("slice"),
    "group_size": Attr("int"),
}
_SCOPE = {"scope": Attr("word", required=True, words=LEVELS)}
_MOVE = {"pad": Attr("number"), "hint": Attr("word", words=("stream",)), "align": Attr("int")}
_ROUND = {"round": Attr("word", words=("rint", "floor", "ceil", "trunc", "round"))}
_IOTA = {
    "base": Attr("affine", default=0),
    "row_step": Attr("int", default=0),
    "col_step": Attr("int", default=1),
}
_T, _D = ("dtype",), "dtype"
_NAMED = ("name", "dtype")

# fmt: off
#: Every iOp by its class.
IOPS: dict[str, IOpSpec] = {
    spec.op: spec
    for spec in (
        IOpSpec("move", "t = s; with pad, elements outside the box of s become pad", _T, _T,
                ("from", "to", "dtype"), shapes.same, reads.move, m.move, attrs=_MOVE,
                elementwise=True, rearranges=True, copies=True, pipe="move"),
        IOpSpec("sync", "barrier of the units that share the scope", _T, _T, ("scope",), shapes.same_pointer,
                reads.nothing, attrs=_SCOPE, touches=False, barrier=True, pipe="sync"),
        IOpSpec("unary", "t = f(s, params)", ("result",), _T, _NAMED, shapes.same, reads.same, m.unary,
                names=UNARY, attrs={"params": Attr("numbers", default=(), bare=True)}, elementwise=True),
        IOpSpec("binary", "t = f(a, b)", _T, (_D, _D), _NAMED, shapes.same, reads.same, m.binary,
                names=BINARY, elementwise=True),
        IOpSpec("compare", "t = a ? b, dtype being that of a and b", ("bool",), (_D, _D), _NAMED, shapes.same,
                reads.same, m.compare, names=COMPARE, elementwise=True),
        IOpSpec("select", "t = m ? a : b", _T, ("bool", _D, _D), _T, shapes.same, reads.same, m.select,
                elementwise=True, work="logic"),
        IOpSpec("broadcast", "row: t[i,j] = s[i,0]; col: t[i,j] = s[0,j]; group: s of the leading unit", _T,
                _T, ("axis", "scope", "dtype"), shapes.broadcast, reads.broadcast, m.broadcast,
                attrs=_GROUP, rearranges=True, leads="source0"),
        IOpSpec("reduce", "over the valid box of s; of nothing, the identity", _T, _T,
                ("name", "axis", "scope", "dtype"), shapes.reduce, reads.reduce, m.reduce,
                names=REDUCE, attrs=_GROUP, leads="target", pipe="reduce", counts="source0"),
        IOpSpec("identity", "targets and sources are the same bytes", _T, _T, (), shapes.identity,
                reads.nothing, variadic=True, touches=False, pipe="nothing"),
        IOpSpec("fill", "t = value", _T, (), _T, shapes.same, reads.same, m.fill,
                attrs={"value": Attr("number", required=True, bare=True)}, elementwise=True, constant=True),
        IOpSpec("cast", "t = s as another dtype", _T, ("name",), _NAMED, shapes.same, reads.same, m.cast,
                attrs=_ROUND, elementwise=True, work="convert"),
        IOpSpec("iota", "t[i,j] = base + i*row_step + j*col_step", _T, (), _T, shapes.same, reads.same,
                m.iota, kinds=NUMBER, attrs=_IOTA, elementwise=True, by_place=True),
        IOpSpec("transpose", "t[i,j] = s[j,i]", _T, _T, _T, shapes.transpose, reads.transpose, m.transpose,
                rearranges=True, pipe="irregular"),
        IOpSpec("gather", "t[i,j] = s[i[i,0],j], or s[i[i,j],0]; outside the rows of s: pad", _T,
                (_D, "index"), _T, shapes.gather, reads.gather, m.gather,
                attrs={"pad": Attr("number", default=0)}, by_data="source0", pipe="irregular"),
        IOpSpec("scatter", "t[i[i,0],j] = s[i,j], or t[i[i,j],0]; outside the rows of t: nothing", _T,
                (_D, "index"), _T, shapes.scatter, reads.scatter, m.scatter,
                keeps=True, by_data="target", pipe="irregular"),
        IOpSpec("contract", "t (+)= a.b over the valid columns of a", _T, ("factor", "factor"), _T,
                shapes.contract, reads.contract, m.contract, kinds=NUMBER,
                attrs={"accumulate": Attr("flag", default=False)},
                reads_target=lambda iop: bool(iop.attrs.get("accumulate", False)),
                pipe="contract", work="contract", counts="product"),
    )
}
# fmt: on


def spec_of(iop: IOp) -> IOpSpec:
    """The row of the table of an iOp.

    Raises
    ------
    VerifyError
        There is none (rule ``form``): nothing is known of what it reads.
    """
    spec = IOPS.get(str(iop.op))
    if spec is None:
        raise VerifyError(
            f"Nothing is known of the iOp {iop.op}.",
            rule="form",
            need=f"one of {', '.join(IOPS)}, or a row in uir_tvm.igraph.iops.IOPS",
        )
    return spec


def head(iop: IOp) -> str:
    """The iOp with the name of its function, without dtypes: ``unary.exp``, ``select``."""
    spec = IOPS[iop.op]
    return f"{iop.op}.{iop.name}" if spec.names is not None else str(iop.op)


def mnemonic(iop: IOp) -> str:
    """``move.dram.reg.fp32`` for an iOp of the table."""
    return ".".join([iop.op, *(_part(iop, part) for part in IOPS[iop.op].mnemonic)])


def _part(iop: IOp, part: str) -> str:
    if part == "from":
        return iop.sources[0].pointer.level
    if part == "to":
        return iop.target.pointer.level
    return str(getattr(iop, part) if part in _NAMED else iop.attrs[part])


def problems(iop: IOp) -> list[tuple[str, str]]:
    """What is wrong with one iOp by itself: (rule, sentence) each, rule ``form``, ``dtype`` or ``shape``.

    Form faults hide the others, since those rules read operands and attributes.
    """
    found = [("form", text) for text in _form_faults(iop)]
    if found:
        return found
    spec = IOPS[iop.op]
    faults = (("dtype", spec.dtype_rule(iop)), ("shape", spec.shape_rule(iop)))
    return [(rule, text) for rule, text in faults if text is not None]


def _form_faults(iop: IOp) -> list[str]:
    spec = IOPS.get(iop.op)
    if spec is None:
        return [f"{iop.op!r} is no iOp; there are {', '.join(IOPS)}"]
    out: list[str] = []
    sides = (("target", iop.targets, spec.n_targets), ("source", iop.sources, spec.n_sources))
    for what, slices, wanted in sides:
        if len(slices) != wanted if wanted is not None else len(slices) < 1:
            count = wanted if wanted is not None else "at least one"
            out.append(f"{iop.op} takes {count} {what}(s), not {len(slices)}")
    if spec.names is not None and iop.name not in spec.names:
        out.append(f"{iop.op} has no {iop.name!r}; there are {', '.join(spec.names)}")
    if spec.names is None and "name" not in spec.mnemonic and iop.name:
        out.append(f"{iop.op} takes no name, but has {iop.name!r}")
    if iop.dtype not in DTYPES:
        out.append(f"{iop.dtype!r} is no dtype; there are {', '.join(DTYPES)}")
    if spec.converts and iop.name not in DTYPES:
        out.append(f"{iop.name!r} is no dtype to cast from; there are {', '.join(DTYPES)}")
    return out + _attr_faults(spec, iop)


_ATTR_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "int": (int,),
    "flag": (bool,),
    "affine": (Affine,),
    "slice": (ISlice,),
    "word": (str,),
}


def _attr_faults(spec: IOpSpec, iop: IOp) -> list[str]:
    out = [
        f"{spec.op} needs the attribute {name!r}"
        for name, a in spec.attrs.items()
        if a.required and name not in iop.attrs
    ]
    for name, value in iop.attrs.items():
        rule = spec.attrs.get(name)
        if rule is None:
            allowed = ", ".join(spec.attrs) or "none"
            out.append(f"{spec.op} takes no attribute {name!r} (allowed: {allowed})")
        elif rule.kind == "numbers":
            if not all(isinstance(v, (int, float)) for v in value):
                out.append(f"the attribute {name} must be a list of numbers")
        elif not isinstance(value, _ATTR_TYPES[rule.kind]):
            out.append(f"the attribute {name} must be of the kind {rule.kind}, not {type(value).__name__}")
        elif rule.words and value not in rule.words:
            out.append(f"the attribute {name} is {value!r}, but must be one of {', '.join(rule.words)}")
    if spec.names is UNARY and iop.name in UNARY:
        wanted, given = UNARY[iop.name].n_params, len(spec.attr(iop, "params"))
        if given != wanted:
            out.append(f"unary.{iop.name} takes {wanted} params, not {given}")
    if "group_size" in spec.attrs:
        scope = iop.attrs.get("scope")
        needs = "needs" if scope == "group" else "takes no"
        for name in ("buffer", "group_size"):
            if (name in iop.attrs) != (scope == "group"):
                out.append(f"{spec.op} of scope {scope} {needs} {name!r}")
    return out


def _dtype_rule(spec: IOpSpec, iop: IOp) -> str | None:
    named = spec.names[iop.name] if spec.names is not None else None
    kinds = named.kinds if named is not None else spec.kinds
    if DTYPES[iop.dtype].kind not in kinds:
        what = f"{iop.op}.{iop.name}" if named is not None else iop.op
        return f"{what} takes {', '.join(sorted(kinds))} dtypes, not {iop.dtype}"
    if spec.variadic:
        wanted = [(s, "dtype") for s in (*iop.targets, *iop.sources)]
    else:
        wanted = list(zip(iop.targets, spec.target_types, strict=True))
        wanted += zip(iop.sources, spec.source_types, strict=True)
    if "buffer" in iop.attrs:
        wanted.append((iop.attrs["buffer"], "dtype"))
    result = "bool" if named is not None and getattr(named, "result", "same") == "bool" else iop.dtype
    expected = {"dtype": iop.dtype, "name": iop.name, "bool": "bool", "result": result}
    for piece, rule in wanted:
        found = piece.pointer.dtype
        if rule == "index":
            if found not in DTYPES or DTYPES[found].kind not in INTEGER:
                return f"the index {piece.pointer.name} is {found}, but must be an integer"
        elif rule == "factor":
            takes = _FACTORS.get(iop.dtype, (iop.dtype,))
            if found not in takes or found != iop.sources[0].pointer.dtype:
                return (
                    f"{piece.pointer.name} is {found}, but contract.{iop.dtype} takes two operands "
                    f"of one of {', '.join(takes)}"
                )
        elif found != expected[rule]:
            return f"{piece.pointer.name} is {found}, but {mnemonic(iop)} needs {expected[rule]} there"
    return None


#: Operand dtypes of a contraction by the dtype of its result: as the result, or narrower.
_FACTORS = {
    "fp32": ("fp32", "fp16", "bf16", "fp8e4m3", "fp8e5m2"),
    "fp16": ("fp16", "fp8e4m3", "fp8e5m2"),
    "bf16": ("bf16", "fp8e4m3", "fp8e5m2"),
    "int32": ("int32", "int8", "int16", "uint8"),
}

__all__ = [
    "BINARY",
    "COMPARE",
    "IOPS",
    "LEVELS",
    "REDUCE",
    "UNARY",
    "WORK",
    "Attr",
    "Box",
    "IOpSpec",
    "ValidBoxes",
    "head",
    "mnemonic",
    "problems",
    "spec_of",
]
