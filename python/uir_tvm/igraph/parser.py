# SPDX-License-Identifier: Apache-2.0
"""Reads the text of an iGraph; the inverse of `uir_tvm.igraph.text`.

    text     := hardware? "igraph" NAME "on" NAME "parallel" "(" affine ("up_to" INT)? "," INT ")" block
    hardware := "hardware" NAME "{" (NAME "=" value | "figure" NAME "=" value)* "}"
    block    := "{" (size | "attr" NAME "=" value | NAME "=" pointer | loop | iop)* "}"
    size     := "size" NAME "=" "[" INT "," INT ("," INT)? "]"
    pointer  := "iPointer" "(" LEVEL "," DTYPE "," (INT | "(" affine ("," affine)* ")") ("," ROLE)? ")"
    loop     := "for" NAME "in" INT ("[" named ("," named)* "]")? block
    iop      := MNEMONIC operands ("[" attrs "]")?
    slice    := NAME "[" affine ";" pair ";" pair (";" ("rows" | "cols") affine? ":" affine?)* "]"
    value    := number | "true" | "false" | "none" | STRING | "[" value,* "]" | "{" NAME ":" value,* "}"

A name is an identifier, which may contain dots, or a quoted string; ``#`` starts a comment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import IGraphError
from .affine import Affine, AffineLike, affine, var
from .dtypes import DTYPES
from .iops import IOPS, LEVELS, Attr, IOpSpec, problems
from .lexer import Token, Tokens
from .nodes import ROUNDS, HardwareModel, IGraph, IOp, IPointer, ISlice, Loop
from .space import Size, Space
from .text import HARDWARE_FIELDS

ROLES = ("in", "out", "inout", "tmp")
_CONSTANTS = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}


def parse_igraph(text: str, hardware: HardwareModel | None = None) -> IGraph:
    """The graph that a text describes.

    Parameters
    ----------
    text : str
        As `print_igraph` writes it.
    hardware : HardwareModel, optional
        The model to use where the text has no hardware block.

    Raises
    ------
    uir_tvm.errors.ParseError
        The text is malformed, names what does not exist, or gives an iOp the wrong number of
        operands or attributes it does not take; with line, column and the source line.  Shapes,
        dtypes and bounds are the verifier's.
    """
    return _Parser(text, hardware).graph()


class _Parser:
    def __init__(self, text: str, hardware: HardwareModel | None) -> None:
        self.tokens = Tokens(text)
        self.hardware = hardware
        self.pointers: dict[str, IPointer] = {}
        self.attrs: dict[str, Any] = {}
        self.sizes: dict[str, Size] = {}

    def graph(self) -> IGraph:
        t = self.tokens
        if t.at("hardware"):
            self.hardware = self._hardware()
        t.expect("igraph", "at the start")
        name = t.name("The name of the graph")
        t.expect("on", "after the name of the graph")
        where = t.here
        model = t.name("The name of the hardware model")
        if self.hardware is None or self.hardware.name != model:
            t.fail(
                f"There is no hardware model {model!r}.",
                where,
                remedy="put a block `hardware NAME { ... }` before the graph or pass the model to the parser",
            )
        t.expect("parallel", "after the hardware model")
        t.expect("(", "before the parallel groups and units")
        at_groups = t.here
        groups = self._affine()
        most = t.integer("The greatest number of groups") if t.accept("up_to") else None
        t.expect(",", "in the parallel groups and units")
        units = t.integer("The second of the parallel groups and units")
        t.expect(")", "after the parallel groups and units")
        body = self._block("the graph", top=True)
        if t.here.kind != "end":
            t.fail(f"There is trailing text after the graph: {t.shown()}.", t.here)
        return IGraph(
            name,
            self.hardware,
            self._greatest(groups, at_groups, "number of groups") if most is None else most,
            units,
            list(self.pointers.values()),
            body,
            self.attrs,
            list(self.sizes.values()),
            None if groups.is_constant else groups,
        )

    def _greatest(self, value: Affine, at: Token, what: str) -> int:
        """The greatest value of an expression of sizes."""
        unknown = [name for name in value.variables() if name not in self.sizes]
        if unknown:
            self.tokens.fail(
                f"The {what} depends on {unknown[0]!r}, which is no size of the graph.",
                at,
                remedy=f"declare it first in the graph: size {unknown[0]} = [LOW, HIGH]",
            )
        try:
            return Space(self.sizes).range(value)[1]
        except IGraphError as error:
            self.tokens.fail(f"The {what} leaves 64 bits: {error.what}", at)

    def _hardware(self) -> HardwareModel:
        t = self.tokens
        t.take()
        name = t.name("The name of the hardware model")
        fields: dict[str, Any] = {}
        figures: dict[str, Any] = {}
        t.expect("{", "after the name of the hardware model")
        while not t.at("}"):
            where = t.here
            if t.accept("figure"):
                key = t.name("The name of a figure")
                t.expect("=", "after the name of a figure")
                figures[key] = self._value()
                continue
            key = t.name("A field of the hardware model, or '}',")
            if key not in HARDWARE_FIELDS:
                t.fail(
                    f"A hardware model has no field {key!r}.",
                    where,
                    remedy=f"the fields are {', '.join(HARDWARE_FIELDS)}; other figures: `figure NAME = ...`",
                )
            t.expect("=", "after the field")
            fields[key] = t.name("The kind of hardware") if key == "kind" else t.integer(f"The field {key}")
        missing = [f for f in HARDWARE_FIELDS if f not in fields]
        if missing:
            t.fail(f"The hardware model lacks {', '.join(missing)}.", t.here)
        t.take()
        return HardwareModel(name, *(fields[f] for f in HARDWARE_FIELDS), figures)  # type: ignore[call-arg]

    # --- statements ------------------------------------------------------------------------------

    def _block(self, what: str, top: bool = False) -> list[Any]:
        t = self.tokens
        t.expect("{", f"before the body of {what}")
        body: list[Any] = []
        while not t.at("}"):
            if t.here.kind == "end":
                t.fail(f"'}}' is missing at the end of {what}.", t.here)
            if t.after.text == "=" and t.after.kind == "punct":
                self._pointer(top)
            elif top and t.at("size") and t.after.kind in ("name", "string"):
                self._size()
            elif t.at("for"):
                body.append(self._loop())
            elif top and t.at("attr") and t.after.kind in ("name", "string"):
                t.take()
                key = t.name("The name of an attribute")
                t.expect("=", "after the name of an attribute")
                self.attrs[key] = self._value()
            else:
                body.append(self._iop())
        t.take()
        return body

    def _size(self) -> None:
        t = self.tokens
        t.take()
        where = t.here
        name = t.name("The name of a size")
        if name in self.sizes:
            t.fail(f"There are two sizes named {name}.", where)
        t.expect("=", "after the name of a size")
        t.expect("[", "before the range of a size")
        low = t.integer("The least value of a size")
        t.expect(",", "in the range of a size")
        high = t.integer("The greatest value of a size")
        by = t.integer("The divisor of a size") if t.accept(",") else 1
        t.expect("]", "after the range of a size")
        self.sizes[name] = Size(name, low, high, by)

    def _dims(self) -> tuple[int, list[Affine]]:
        """The greatest number of elements of a pointer and, where sizes decide it, its dimensions."""
        t = self.tokens
        if not t.accept("("):
            return t.integer("The size of a pointer"), []
        size, dims = 1, []
        while True:
            where = t.here
            dims.append(self._affine())
            size *= self._greatest(dims[-1], where, "dimension")
            if not t.accept(","):
                break
        t.expect(")", "after the dimensions of a pointer")
        if size >= 1 << 63:
            t.fail(f"The pointer has up to {size} elements, which leaves 64 bits.", where)
        return size, dims

    def _pointer(self, top: bool) -> None:
        t = self.tokens
        where = t.here
        name = t.name("The name of a pointer")
        if not top:
            t.fail(
                f"The pointer {name} is declared inside a loop.", where, remedy="declare it before the loops"
            )
        if name in self.pointers:
            t.fail(f"There are two pointers named {name}.", where)
        t.take()
        t.expect("iPointer", "after '='")
        t.expect("(", "after iPointer")
        level = self._word("a level", LEVELS)
        t.expect(",", "after the level")
        dtype = self._word("a dtype", tuple(DTYPES))
        t.expect(",", "after the dtype")
        size, dims = self._dims()
        role = self._word("a role", ROLES) if t.accept(",") else "tmp"
        t.expect(")", "at the end of the pointer")
        self.pointers[name] = IPointer(name, level, dtype, size, role, dims)

    def _loop(self) -> Loop:
        t = self.tokens
        t.take()
        where = t.here
        if where.kind != "name":
            t.fail(f"The variable of a loop is missing: found {t.shown()}.", where)
        name = t.take().text
        t.expect("in", "after the variable of the loop")
        extent = t.integer("The extent of a loop")
        attrs: dict[str, Any] = {}
        if t.accept("["):
            while not t.at("]"):
                key = t.name("The name of an attribute")
                t.expect("=", "after the name of an attribute")
                attrs[key] = self._affine() if key == ROUNDS else self._value()
                if not t.accept(","):
                    break
            t.expect("]", "at the end of the attributes")
        return Loop(name, extent, self._block(f"the loop over {name}"), attrs)

    # --- iOps ------------------------------------------------------------------------------------

    def _iop(self) -> IOp:
        t = self.tokens
        start = t.here
        if start.kind != "name":
            t.fail(f"An iOp, a loop or '}}' is missing: found {t.shown()}.", start)
        t.take()
        op, *parts = start.text.split(".")
        spec = IOPS.get(op)
        if spec is None:
            t.fail(f"There is no iOp {op!r}.", start, remedy=f"the iOps are {', '.join(IOPS)}")
        words = self._mnemonic(spec, parts, start)
        targets, sources = self._operands(spec, start)
        attrs: dict[str, Any] = {k: v for k, v in words.items() if k in spec.attrs}
        if t.accept("["):
            attrs.update(self._attrs(spec))
        iop = IOp(
            op, words.get("name", ""), words.get("dtype", targets[0].pointer.dtype), targets, sources, attrs
        )
        for rule, fault in problems(iop):
            if rule == "form":
                t.fail(f"The iOp is malformed: {fault}.", start)
        for part, piece in (("from", sources[:1]), ("to", targets[:1])):
            if part in words and piece[0].pointer.level != words[part]:
                found = piece[0].pointer
                t.fail(f"The mnemonic says {words[part]}, but {found.name} lies in {found.level}.", start)
        return iop

    def _mnemonic(self, spec: IOpSpec, parts: Sequence[str], start: Token) -> dict[str, str]:
        t = self.tokens
        form = ".".join([spec.op, *(part.upper() for part in spec.mnemonic)])
        if len(parts) != len(spec.mnemonic):
            t.fail(f"The mnemonic {start.text!r} does not have the form {form}.", start)
        words = dict(zip(spec.mnemonic, parts, strict=True))
        for part, word in words.items():
            if part == "name":
                allowed: Sequence[str] = list(spec.names if spec.names is not None else DTYPES)
            elif part in spec.attrs:
                allowed = spec.attrs[part].words
            else:
                allowed = list(DTYPES) if part == "dtype" else LEVELS
            if word not in allowed:
                t.fail(f"{word!r} is no {part} of {form}.", start, remedy=f"one of {', '.join(allowed)}")
        return words

    def _operands(self, spec: IOpSpec, start: Token) -> tuple[list[ISlice], list[ISlice]]:
        t = self.tokens
        if spec.n_targets is None or spec.n_sources is None:
            targets = self._bracketed()
            t.expect(",", "between targets and sources")
            return targets, self._bracketed()
        pieces = [self._slice()]
        while t.accept(","):
            pieces.append(self._slice())
        wanted = spec.n_targets + spec.n_sources
        if len(pieces) != wanted:
            t.fail(f"{spec.op} takes {wanted} slices, not {len(pieces)}.", start)
        return pieces[: spec.n_targets], pieces[spec.n_targets :]

    def _bracketed(self) -> list[ISlice]:
        t = self.tokens
        t.expect("[", "before a list of slices")
        pieces = [self._slice()]
        while t.accept(","):
            pieces.append(self._slice())
        t.expect("]", "at the end of a list of slices")
        return pieces

    def _attrs(self, spec: IOpSpec) -> dict[str, Any]:
        t = self.tokens
        out: dict[str, Any] = {}
        bare = next((name for name, rule in spec.attrs.items() if rule.bare), None)
        if bare is not None and not (t.here.kind == "name" and t.after.text == "="):
            numbers = [] if t.at("]") else [self._number()]
            while t.accept(","):
                numbers.append(self._number())
            if spec.attrs[bare].kind == "number" and len(numbers) != 1:
                t.fail(f"{spec.op} takes one number in brackets, not {len(numbers)}.", t.here)
            out[bare] = numbers if spec.attrs[bare].kind == "numbers" else numbers[0]
        else:
            while True:
                where = t.here
                name = t.name("The name of an attribute")
                if name not in spec.attrs or name in spec.mnemonic or name in out:
                    t.fail(f"{spec.op} takes no attribute {name!r} here.", where)
                t.expect("=", "after the name of an attribute")
                out[name] = self._attr(spec.attrs[name])
                if not t.accept(","):
                    break
        t.expect("]", "at the end of the attributes")
        return out

    def _attr(self, rule: Attr) -> Any:
        if rule.kind == "slice":
            return self._slice()
        if rule.kind == "affine":
            return self._affine()
        return self._word("a value", rule.words) if rule.kind == "word" else self._value()

    # --- slices and expressions ------------------------------------------------------------------

    def _slice(self) -> ISlice:
        t = self.tokens
        where = t.here
        name = t.name("A slice")
        if name not in self.pointers:
            t.fail(
                f"There is no pointer {name!r}.",
                where,
                remedy=f"declare it before use: {name} = iPointer(LEVEL, DTYPE, SIZE)",
            )
        t.expect("[", "after the pointer of a slice")
        offset = self._affine()
        t.expect(";", "after the offset")
        shape = self._pair("the shape")
        t.expect(";", "after the shape")
        stride = self._strides()
        ranges: dict[str, tuple[Affine | None, Affine | None]] = {}
        while t.accept(";"):
            axis = self._word("an axis of the valid range", ("rows", "cols"))
            begin = None if t.at(":") else self._affine()
            t.expect(":", "in the valid range")
            ranges[axis] = (begin, None if t.at(";", "]") else self._affine())
        t.expect("]", "at the end of the slice")
        return ISlice(self.pointers[name], offset, shape, stride, **ranges)  # type: ignore[arg-type]

    def _affine(self) -> Affine:
        t = self.tokens
        total = self._term()
        while t.at("+", "-"):
            total = total + self._term() if t.take().text == "+" else total - self._term()
        return total

    def _term(self) -> Affine:
        t = self.tokens
        value = self._factor()
        while t.at("*", "/", "%"):
            sign = t.take()
            where = t.here
            other = self._factor()
            if sign.text == "*":
                if not (self._of_sizes(value) or self._of_sizes(other)):
                    t.fail("The product of two variables is not affine.", sign)
                value = value * other
            elif not other.is_constant or other.constant < 1:
                t.fail(f"{sign.text!r} needs a positive constant on its right.", where)
            else:
                value = value // other.constant if sign.text == "/" else value % other.constant
        return value

    def _of_sizes(self, value: Affine) -> bool:
        """Whether an expression is a number, or a product of such with sizes."""
        return value.is_constant or all(name in self.sizes for name in value.variables())

    def _factor(self) -> Affine:
        t = self.tokens
        if t.accept("-"):
            return -self._factor()
        if t.accept("("):
            inner = self._affine()
            t.expect(")", "in an affine expression")
            return inner
        if t.here.kind == "name":
            return var(t.take().text)
        if t.here.kind != "number" or not t.here.text.isdigit():
            t.fail(f"An affine expression needs an integer, a variable or '(': found {t.shown()}.", t.here)
        return affine(t.integer("A constant"))

    # --- values ----------------------------------------------------------------------------------

    def _pair(self, what: str) -> tuple[int, int]:
        t = self.tokens
        t.expect("(", f"before {what}")
        first = t.integer(f"The first of {what}")
        t.expect(",", f"in {what}")
        second = t.integer(f"The second of {what}")
        t.expect(")", f"after {what}")
        return first, second

    def _strides(self) -> tuple[AffineLike, AffineLike]:
        t = self.tokens
        t.expect("(", "before the stride")
        first = self._affine()
        t.expect(",", "in the stride")
        second = self._affine()
        t.expect(")", "after the stride")
        return first, second

    def _word(self, what: str, allowed: Sequence[str]) -> str:
        t = self.tokens
        where = t.here
        if where.kind != "name" or where.text not in allowed:
            t.fail(f"{t.shown()} is not {what}.", where, remedy=f"one of {', '.join(allowed)}")
        return t.take().text

    def _number(self) -> Any:
        t = self.tokens
        negative = t.accept("-")
        token = t.here
        if token.kind == "number":
            t.take()
            number: Any = int(token.text) if token.text.isdigit() else float(token.text)
        elif token.kind == "name" and token.text in _CONSTANTS and token.text != "none":
            t.take()
            number = _CONSTANTS[token.text]
        else:
            t.fail(f"A number is missing: found {t.shown()}.", token)
        return -number if negative else number

    def _value(self) -> Any:
        t = self.tokens
        if t.here.kind == "string":
            return t.unquote(t.take())
        if t.accept("none"):
            return None
        if t.accept("["):
            items = []
            while not t.at("]"):
                items.append(self._value())
                if not t.accept(","):
                    break
            t.expect("]", "at the end of a list")
            return items
        if t.accept("{"):
            mapping = {}
            while not t.at("}"):
                key = t.name("A key")
                t.expect(":", "after the key")
                mapping[key] = self._value()
                if not t.accept(","):
                    break
            t.expect("}", "at the end of a mapping")
            return mapping
        return self._number()
