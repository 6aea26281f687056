# SPDX-License-Identifier: Apache-2.0
"""Relay's text -> a program."""

from __future__ import annotations

import functools
import json
import re
from importlib import resources
from typing import Any

import lark
import ml_dtypes
import numpy as np

from ...errors import FrontendError, ModelFormatError
from . import relay_program as p
from .json_graph import Graph

_METADATA = re.compile(r"^#\[metadata\][ \t]*$", re.MULTILINE)
_SUFFIX = re.compile(r"(bf16|f(?:16|32|64)?|[iu]\d+)$")
#: What a grammar's name stands for in a message.
_SAID = {
    "LOCAL": "a variable (%x)",
    "GLOBAL": "a function's name (@main)",
    "IDENT": "a name",
    "NUMBER": "a number",
    "STRING": "a text",
    "BOOL": "True or False",
    "PROJECTION": "a field (.0)",
    "COMPARE": "a comparison",
    "SUM": "+ or -",
    "PRODUCT": "* or /",
    "VERSION": '#[version = "0.0.5"]',
    "$END": "the end of the text",
}
#: A bare word, not a name of a variable or a function.
_WORD = re.compile(r"(?<![%@.\w])[A-Za-z_]\w*")
_INFIX = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
#: Words that begin what this reader does not take, and what to do.
_REFUSED = {
    "type": "an algebraic data type",
    "match": "a match on an algebraic data type",
    "extern": "an external type",
    "ref": "a reference",
}


def parse(text: str, name: str = "the text") -> p.Program:
    """Read a module.

    Parameters
    ----------
    text : str
        What `IRModule.astext` printed, with or without the types in comments and the metadata section.
    name : str
        Of its source, for errors.

    Raises
    ------
    ModelFormatError
        Where the text is none of Relay, with line and column and what was expected there.
    """
    split = _METADATA.search(text)
    code = text[: split.start()] if split else text
    metadata = _Metadata(text[split.end() :] if split else "", name)
    try:
        tree = _parser().parse(code)
        return _TextProgram(metadata).transform(tree)
    except lark.exceptions.VisitError as error:
        if isinstance(error.orig_exc, FrontendError):
            raise error.orig_exc from None
        raise
    except lark.exceptions.UnexpectedInput as error:
        raise _syntax_error(error, code, name) from error


@functools.cache
def _parser() -> lark.Lark:
    grammar = resources.files(__package__).joinpath("grammar.lark").read_text()
    return lark.Lark(
        grammar, parser="lalr", start="module", propagate_positions=True, maybe_placeholders=True
    )


def _syntax_error(error: lark.exceptions.UnexpectedInput, code: str, name: str) -> ModelFormatError:
    expected = getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    said = sorted(_SAID.get(str(item), _literal(str(item))) for item in expected)
    token = getattr(error, "token", None)
    ended = isinstance(error, lark.exceptions.UnexpectedEOF) or (token is not None and token.type == "$END")
    if ended:
        line, column = code.count("\n") + 1, len(code) - (code.rfind("\n") + 1) + 1
        what = f"{name} ends within a function."
    else:
        line, column = error.line, error.column
        found = str(token) if token is not None else code[error.pos_in_stream or 0 :][:1]
        what = f"{name} is no text of Relay: {found!r} is not expected."
        line_text = (code.splitlines() or [""])[min(line, code.count("\n") + 1) - 1 : line]
        words = _WORD.findall("".join(line_text)[: column + len(found)])
        refused = next((word for word in words if word in _REFUSED), None)
        if refused is not None:
            what = f"{name} has {_REFUSED[refused]}, which is not taken."
    source = (code.splitlines() or [""])[min(line, code.count("\n") + 1) - 1 : line]
    shown = "".join(source)
    begin = max(0, column - 60)
    where = f"line {line}, column {column}"
    if shown:
        where += f"\n    {shown[begin : begin + 100]}\n    {' ' * (column - 1 - begin)}^"
    return ModelFormatError(
        what,
        where=where,
        need=", ".join(said[:12]),
        remedy="print the module again, whole, with mod.astext()",
    )


def _literal(terminal: str) -> str:
    """A keyword or a sign, of the name that the parser gives it."""
    for known in _parser().terminals:
        if known.name == terminal and isinstance(known.pattern, lark.lexer.PatternStr):
            return repr(known.pattern.value)
    return terminal


class _Metadata:
    """The section after ``#[metadata]``: lists of objects by class."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, f"the metadata of {name}"
        self._graph: Graph | None = None
        self._lists: dict[str, list[int]] = {}

    def find(self, kind: str, index: int, where: str) -> tuple[Graph, int]:
        """The object that ``meta[kind][index]`` names."""
        if self._graph is None:
            if not self._text.strip():
                raise ModelFormatError(
                    f"meta[{kind}][{index}] has no metadata section to be found in.",
                    where=where,
                    need='the section that begins with "#[metadata]"',
                    remedy="print the module with mod.astext(show_meta_data=True)",
                )
            self._graph = Graph(self._text, self._name)
            root = self._graph.node(self._graph.root)
            keys, values = root.get("keys", []), root.get("data", [])
            self._lists = {str(k): self._graph.items(v) for k, v in zip(keys, values, strict=False)}
        found = self._lists.get(kind, [])
        if not 0 <= index < len(found):
            raise ModelFormatError(
                f"meta[{kind}][{index}] is not in the metadata section.",
                where=where,
                limit=f"it has {len(found)} of {kind}",
                remedy="print the module and its metadata together",
            )
        return self._graph, found[index]


class _Attribute(tuple[str, Any]):
    """A written attribute among a call's arguments or a function's parameters."""


def _place(meta: Any) -> str:
    return f"line {meta.line}, column {meta.column}" if not meta.empty else ""


@lark.v_args(meta=True)
class _TextProgram(lark.Transformer[Any, Any]):
    """Nodes of the program, from the leaves up."""

    def __init__(self, metadata: _Metadata) -> None:
        super().__init__()
        self._metadata = metadata

    def module(self, meta: Any, children: list[Any]) -> p.Program:
        found: dict[str, p.Function] = {}
        for child in children:
            if isinstance(child, tuple):
                name, function = child
                if name in found:
                    raise ModelFormatError(
                        f"function @{name} is defined twice.", where=function.where, remedy="remove one"
                    )
                found[name] = function
        return found

    def definition(self, meta: Any, children: list[Any]) -> tuple[str, p.Function]:
        name, body = children[0][1:], children[-1]
        params = next((c for c in children[1:-1] if isinstance(c, list)), [])
        return name, p.Function(_place(meta), params, body)

    def function(self, meta: Any, children: list[Any]) -> p.Function:
        params = next((c for c in children[:-1] if isinstance(c, list)), [])
        return p.Function(_place(meta), params, children[-1])

    def params(self, meta: Any, children: list[Any]) -> list[p.FunctionParameter]:
        return [child for child in children if isinstance(child, p.FunctionParameter)]

    def parameter(self, meta: Any, children: list[Any]) -> p.FunctionParameter:
        name, kind = children
        return p.FunctionParameter(str(name), name[1:], kind, _place(meta))

    def attribute(self, meta: Any, children: list[Any]) -> _Attribute:
        return _Attribute((str(children[0]).strip('"'), children[1]))

    def block(self, meta: Any, children: list[Any]) -> Any:
        return children[-1]

    body = block

    def bound(self, meta: Any, children: list[Any]) -> p.Bound:
        (key, value), body = children
        return p.Bound(_place(meta), key, value, body)

    def binding(self, meta: Any, children: list[Any]) -> tuple[str, p.RelayNode]:
        return str(children[0]), children[-1]

    let = binding

    def branch(self, meta: Any, children: list[Any]) -> p.Branch:
        return p.Branch(_place(meta), *children)

    def infix(self, meta: Any, children: list[Any]) -> p.Call:
        left, sign, right = children
        operator = p.Operator(_place(meta), _INFIX[str(sign)])
        return p.Call(_place(meta), operator, (left, right), {})

    def item(self, meta: Any, children: list[Any]) -> p.TupleItem:
        return p.TupleItem(_place(meta), children[0], int(children[1][1:]))

    def call(self, meta: Any, children: list[Any]) -> p.Call:
        callee, *rest = children
        args = [child for child in rest if isinstance(child, p.RelayNode)]
        written = dict(child for child in rest if isinstance(child, _Attribute))
        kind = str(written.pop("attrs_type_key", ""))
        last = args[-1] if args else None
        if isinstance(last, p.MetaAttributes):
            args.pop()
            kind, written = last.kind, {**last.attributes, **written}
        return p.Call(_place(meta), callee, args, written, kind)

    def local(self, meta: Any, children: list[Any]) -> p.Local:
        return p.Local(_place(meta), str(children[0]), children[0][1:])

    def global_(self, meta: Any, children: list[Any]) -> p.Global:
        return p.Global(_place(meta), children[0][1:])

    def operator(self, meta: Any, children: list[Any]) -> p.Operator:
        return p.Operator(_place(meta), str(children[0]))

    def number(self, meta: Any, children: list[Any]) -> p.Constant:
        return p.Constant(_place(meta), _number(str(children[0]), _place(meta)))

    def boolean(self, meta: Any, children: list[Any]) -> p.Constant:
        return p.Constant(_place(meta), np.array(str(children[0]) == "True"))

    def tuple(self, meta: Any, children: list[Any]) -> p.Tuple:
        return p.Tuple(_place(meta), children)

    def inside(self, meta: Any, children: list[Any]) -> Any:
        return children[0]

    def meta(self, meta: Any, children: list[Any]) -> p.RelayNode:
        kind, where = str(children[0]), _place(meta)
        graph, index = self._metadata.find(kind, int(_number(str(children[1]), where)), where)
        try:
            if graph.kind(index).startswith("relay.attrs."):
                return p.MetaAttributes(where, *graph.attributes(index))
            value = graph.value(index)
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise ModelFormatError(
                f"meta[{kind}] is damaged: {error!r}", where=where, remedy="print the module again"
            ) from error
        if not isinstance(value, np.ndarray):
            raise ModelFormatError(
                f"meta[{kind}] is no constant.",
                where=where,
                need="relay.Constant or attributes",
                limit=str(value),
            )
        return p.Constant(where, value)

    def plain_number(self, meta: Any, children: list[Any]) -> Any:
        value = _number(str(children[0]), _place(meta))
        if value.dtype.kind in "iu":
            return value.item()
        # attributes are doubles, whose text says float32
        return float(_SUFFIX.sub("", str(children[0])))

    def string(self, meta: Any, children: list[Any]) -> str:
        try:
            return str(json.loads(str(children[0]), strict=False))
        except ValueError:
            return str(children[0])[1:-1]

    def truth(self, meta: Any, children: list[Any]) -> bool:
        return str(children[0]) == "True"

    def none(self, meta: Any, children: list[Any]) -> None:
        return None

    def word(self, meta: Any, children: list[Any]) -> str:
        return str(children[0])

    def items(self, meta: Any, children: list[Any]) -> list[Any]:
        return [] if children == [None] else children

    def size(self, meta: Any, children: list[Any]) -> int | None:
        return int(_number(str(children[0]), _place(meta))) if children and children[0] is not None else None

    def tensor_type(self, meta: Any, children: list[Any]) -> p.TensorType:
        sizes = [c for c in children[:-1] if not (c is None and len(children) == 2 and meta.empty)]
        return p.TensorType(tuple(sizes), str(children[-1]))

    def scalar_type(self, meta: Any, children: list[Any]) -> p.TensorType:
        return p.TensorType((), str(children[0]))

    def tuple_type(self, meta: Any, children: list[Any]) -> Any:
        return tuple(children)

    def function_type(self, meta: Any, children: list[Any]) -> None:
        return None

    any_type = function_type


def _number(text: str, where: str) -> np.ndarray:
    """A number with the dtype that its suffix says: 1.5f, 3i64, -inff."""
    found = _SUFFIX.search(text)
    suffix = found.group(1) if found and not text.endswith("inf") else ""
    digits = text[: len(text) - len(suffix)] if suffix else text
    if suffix.startswith(("i", "u")):
        dtype = ("int" if suffix[0] == "i" else "uint") + suffix[1:]
    elif suffix:
        dtype = {"f": "float32", "bf16": "bfloat16"}.get(suffix, f"float{suffix[1:]}")
    else:
        dtype = "int32" if re.fullmatch(r"-?\d+", digits) else "float32"
    try:
        value = float(digits) if "float" in dtype else int(digits)
        if not suffix and isinstance(value, int) and not -(1 << 31) <= value < 1 << 31:
            dtype = "int64"
        return np.array(value, getattr(ml_dtypes, dtype, dtype))
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFormatError(f"{text} is no number of Relay: {error}", where=where) from error
