# SPDX-License-Identifier: Apache-2.0
"""Sizes that a model leaves open: its symbols, what its inputs say of them, and what they may be.

A size is a number, or an expression in symbols as text: ``n``, ``2*n``, ``n // 4 + 1``. That is plain data,
so that a saved model keeps it, and needs neither sympy (PyTorch's) nor TVM's arithmetic where it is loaded.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from ..errors import FrontendError, ShapeError, SizeError

#: A number, or an expression in symbols.
Size = int | str
#: Sizes by symbol.
Sizes = Mapping[str, int]
#: Least and greatest size of a symbol; None: as large as it likes.
Range = tuple[int, int | None]

#: What an input is: a tensor, a whole number, or a tuple of whole numbers (Relax: ``R.Shape``).
TENSOR, NUMBER, NUMBERS = "tensor", "number", "numbers"

_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
#: What expressions of sizes may call.
FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max, "Min": min, "Max": max}
FUNCTIONS |= {"Mod": operator.mod, "FloorDiv": operator.floordiv}
_NAME = re.compile(r"[A-Za-z_]\w*")


@functools.lru_cache(1024)
def parsed(text: str) -> ast.expr:
    """A size as a tree of Python's; FrontendError where it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise _unreadable(text) from error


def _unreadable(text: str) -> FrontendError:
    return FrontendError(
        f"The size {text!r} of an input is no expression that is known.",
        need="whole numbers, symbols, + - * // %, min and max",
        remedy="give the input's shape: shapes={name: (...)}",
    )


def sizes_text(sizes: Sizes) -> str:
    """Sizes in a line."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def symbols_of(size: Size) -> tuple[str, ...]:
    """The symbols in a size, in its order."""
    if isinstance(size, int):
        return ()
    return tuple(name for name in dict.fromkeys(_NAME.findall(size)) if name not in FUNCTIONS)


def value_of(size: Size, sizes: Sizes, functions: Mapping[str, Callable[..., int]] = FUNCTIONS) -> int:
    """A size, for these of its symbols.

    Parameters
    ----------
    size : int or str
    sizes : mapping of str to int
    functions : mapping of str to callable
        What the expression may call.

    Raises
    ------
    FrontendError
        It is no expression that this module knows.
    """
    return size if isinstance(size, int) else value_at(parsed(size), sizes, size, functions)


def value_at(
    node: ast.expr, sizes: Sizes, text: str, functions: Mapping[str, Callable[..., int]] = FUNCTIONS
) -> int:
    """A part of a size, for these of its symbols; FrontendError where it is none that is known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value_at(node.operand, sizes, text, functions)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = (value_at(side, sizes, text, functions) for side in (node.left, node.right))
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
        return functions[node.func.id](*[value_at(arg, sizes, text, functions) for arg in node.args])
    raise _unreadable(text)


def substituted(size: Size, sizes: Sizes) -> Size:
    """A size with numbers for some of its symbols."""
    names = symbols_of(size)
    if isinstance(size, int) or not any(name in sizes for name in names):
        return size
    if all(name in sizes for name in names):
        return value_of(size, sizes)
    return _NAME.sub(lambda found: str(sizes.get(found.group(), found.group())), size)


def in_terms_of(size: Size, values: Mapping[str, Size]) -> Size:
    """A size with sizes, as text, in the place of its symbols, and no needless parentheses."""
    if isinstance(size, int):
        return size
    node = _Substituted({name: parsed(str(value)) for name, value in values.items()}).visit(
        ast.parse(size, mode="eval").body
    )
    text = ast.unparse(node)
    return int(text) if text.isdecimal() else text


class _Substituted(ast.NodeTransformer):
    """Names by expressions, and quotients of affine expressions by whole ones."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(arg) for arg in node.args]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            node.op = ast.FloorDiv()
        return node


def _solved(size: str, number: int) -> int | None:
    """The one symbol of ``a*n + b`` where that is a number; None where no whole number solves it."""
    (name,) = symbols_of(size)
    offset = value_of(size, {name: 0})
    factor = value_of(size, {name: 1}) - offset
    rest = number - offset
    return rest // factor if factor and rest % factor == 0 else None


def _is_affine(size: str) -> bool:
    """Whether it is ``a*n + b`` in one symbol."""
    if len(symbols_of(size)) != 1:
        return False
    nodes = list(ast.walk(parsed(size)))
    products = [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)]
    squares = any(
        all(any(isinstance(n, ast.Name) for n in ast.walk(side)) for side in (node.left, node.right))
        for node in products
    )
    other = any(isinstance(node, ast.FloorDiv | ast.Mod | ast.Call) for node in nodes)
    return not squares and not other


@attrs.frozen
class OpenInput:
    """An input of a model: name, sizes of its axes, dtype; or a number, or a tuple of numbers."""

    name: str
    sizes: tuple[Size, ...]
    dtype: str
    kind: str = TENSOR

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        return f"{self.name}: {self.dtype}[{sizes}]" if self.kind == TENSOR else f"{self.name}: {sizes}"

    def place(self, axis: int) -> str:
        """An axis in words."""
        return self.name if self.kind == NUMBER else f"axis {axis} of {self.name}"


def _inputs(given: Sequence[OpenInput]) -> tuple[OpenInput, ...]:
    return tuple(given)


@attrs.frozen
class OpenSignature:
    """The inputs of a model that leaves sizes open.

    Parameters
    ----------
    inputs : sequence of OpenInput
    ranges : mapping of str to (int, int or None), optional
        What symbols may be, both ends included; default: any size.
    related : bool
        Whether a symbol is the same size wherever it stands. Names in ONNX models are not: exporters use one
        name for what is never compared.
    """

    inputs: tuple[OpenInput, ...] = attrs.field(converter=_inputs)
    ranges: Mapping[str, Range] = attrs.field(factory=dict)
    related: bool = True

    @property
    def symbols(self) -> tuple[str, ...]:
        """All symbols, in the order of the inputs."""
        found = (name for each in self.inputs for size in each.sizes for name in symbols_of(size))
        return tuple(dict.fromkeys(found))

    def described(self) -> dict[str, str]:
        """What each symbol may be, in words."""
        return {name: _range_text(self.ranges.get(name, (0, None))) for name in self.symbols}

    def bind(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """The sizes that shapes of all inputs give the symbols.

        Parameters
        ----------
        shapes : mapping of str to sequence of int
            By input; of a number the number itself, as a sequence of one.

        Raises
        ------
        SizeError
            A wrong rank or size, two places that disagree on a symbol, or a size outside of its range.
        """
        found: dict[str, tuple[int, str]] = {}
        rows = [
            (each, axis, size, int(number))
            for each in self.inputs
            for axis, (size, number) in enumerate(zip(each.sizes, self._shape(each, shapes), strict=True))
        ]
        # a symbol by itself says what it is; then what is computed from one; the rest is only checked
        for usable in (str.isidentifier, _is_affine):
            for each, axis, size, number in rows:
                if isinstance(size, int) or not usable(size) or symbols_of(size)[0] in found:
                    continue
                solved = _solved(size, number)
                if solved is None or solved < 0:
                    raise self._no_size(each, axis, size, number)
                found[symbols_of(size)[0]] = solved, f"{each.place(axis)} is {number}"
        sizes = {name: number for name, (number, _) in found.items()}
        for each, axis, size, number in rows if self.related else ():
            self._check_place(each, axis, size, number, found)
        self.check(sizes, {name: why for name, (_, why) in found.items()})
        return sizes

    def disagreement(self, shapes: Mapping[str, Sequence[int]]) -> SizeError | None:
        """How inputs disagree on a symbol, also where names are not compared; None where they do not."""
        try:
            attrs.evolve(self, related=True).bind(shapes)
        except SizeError as error:
            return error
        return None

    def _shape(self, each: OpenInput, shapes: Mapping[str, Sequence[int]]) -> Sequence[int]:
        shape = shapes[each.name]
        if len(shape) != len(each.sizes):
            raise SizeError(
                f"Input {each.name} is of rank {len(shape)}.",
                need=f"rank {len(each.sizes)}: {each}",
                remedy="reshape it",
            )
        return shape

    def _no_size(self, each: OpenInput, axis: int, size: Size, number: int) -> SizeError:
        return SizeError(
            f"{each.place(axis).capitalize()} cannot be {number}.",
            need=f"{size}, for a whole number {symbols_of(size)[0]} that is not negative",
            remedy="pad it, or pass a part of it",
        )

    def _check_place(
        self, each: OpenInput, axis: int, size: Size, number: int, found: Mapping[str, tuple[int, str]]
    ) -> None:
        """One axis is what the symbols say."""
        lacking = [name for name in symbols_of(size) if name not in found]
        if lacking:
            raise SizeError(
                f"Nothing says what {lacking[0]} is.",
                where=f"{each.place(axis)}: {size}",
                need="an input with an axis of this size alone, or of a multiple of it",
                remedy="give the input's shape: shapes={name: (...)}",
            )
        want = value_of(size, {name: number for name, (number, _) in found.items()})
        if want == number:
            return
        if isinstance(size, int):
            raise SizeError(
                f"{each.place(axis).capitalize()} is {number}.",
                need=f"{size}: {each}",
                remedy="reshape or pad it, or compile the model for this shape",
            )
        said = ", ".join(f"{name} = {found[name][0]} ({found[name][1]})" for name in symbols_of(size))
        raise SizeError(
            f"Inputs disagree on {', '.join(symbols_of(size))}: {each.place(axis)} is {number}, not {want}.",
            where=said,
            need=f"{size} = {want} for {each.place(axis)}",
            remedy="pass inputs whose sizes go together",
        )

    def check(self, sizes: Sizes, why: Mapping[str, str] | None = None) -> None:
        """Refuse sizes outside of their symbols' ranges.

        Raises
        ------
        SizeError
            It names the symbol and its range.
        """
        for name, number in sizes.items():
            least, most = self.ranges.get(name, (0, None))
            if number < least or (most is not None and number > most):
                raise SizeError(
                    f"{name} cannot be {number}.",
                    where=(why or {}).get(name, ""),
                    need=f"{name} {_range_text((least, most))}",
                    remedy="pass a part of it, pad it, or export the model with a wider range",
                )

    def known(self, sizes: Sizes) -> None:
        """Refuse names that are no symbols.

        Raises
        ------
        ShapeError
            It lists the symbols.
        """
        unknown = [name for name in sizes if name not in self.symbols]
        if unknown:
            raise ShapeError(
                f"There is no size {unknown[0]!r} that the model leaves open.",
                need="one of " + (", ".join(self.symbols) or "no name: all its sizes are fixed"),
                remedy="`uir check MODEL` lists a model's inputs",
            )

    def fixed(self, sizes: Sizes) -> OpenSignature:
        """The signature with numbers for some symbols.

        Raises
        ------
        ShapeError, SizeError
            A name that is no symbol, or a size outside of its range.
        """
        self.known(sizes)
        self.check(sizes)
        inputs = [
            attrs.evolve(each, sizes=tuple(substituted(size, sizes) for size in each.sizes))
            for each in self.inputs
        ]
        ranges = {name: ends for name, ends in self.ranges.items() if name not in sizes}
        return attrs.evolve(self, inputs=inputs, ranges=ranges)

    def sizes_in(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """What shapes of some inputs say of symbols.

        Raises
        ------
        ShapeError
            A name that is no input, or a shape that does not fit.
        """
        unknown = sorted(set(shapes) - {each.name for each in self.inputs})
        if unknown:
            raise ShapeError(
                f"shapes names {unknown[0]!r}, which is no input of the model",
                need="one of " + ", ".join(each.name for each in self.inputs),
                remedy="`uir check MODEL` lists a model's inputs",
            )
        some = [each for each in self.inputs if each.name in shapes]
        return attrs.evolve(self, inputs=some).bind(shapes)

    def sizes_said(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """The symbols that shapes give one size, where symbols need not be related."""
        found: dict[str, set[int]] = {}
        for each in self.inputs:
            for size, number in zip(each.sizes, shapes.get(each.name, ()), strict=False):
                if isinstance(size, str):
                    found.setdefault(size, set()).add(int(number))
        return {name: numbers.pop() for name, numbers in found.items() if len(numbers) == 1}

    def shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """The shapes of all inputs, for a size of every symbol.

        Raises
        ------
        ShapeError, SizeError
            A symbol without a size, a name that is no symbol, or a size outside of its range.
        """
        self.known(sizes)
        self.check(sizes)
        lacking = [name for name in self.symbols if name not in sizes]
        if lacking:
            raise ShapeError(
                f"No size is given for {', '.join(lacking)}.",
                where="; ".join(map(str, self.inputs)),
                need="a size for each of " + ", ".join(self.symbols),
                remedy=f"add it: {{{', '.join(f'{name!r}: ...' for name in self.symbols)}}} "
                f"({' '.join(f'--size {name}=...' for name in lacking)})",
            )
        found = {each.name: tuple(value_of(size, sizes) for size in each.sizes) for each in self.inputs}
        for name, shape in found.items():
            if min(shape, default=0) < 0:
                raise SizeError(
                    f"Input {name} would be of shape {list(shape)}.",
                    where=sizes_text(sizes),
                    need="sizes of at least 0",
                    remedy="give other sizes",
                )
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain data for a manifest."""
        return {
            "inputs": [attrs.asdict(each) for each in self.inputs],
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "related": self.related,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> OpenSignature:
        """The inverse of `to_json`."""
        inputs = [
            OpenInput(each["name"], tuple(each["sizes"]), each["dtype"], each["kind"])
            for each in data["inputs"]
        ]
        ranges = {name: (ends[0], ends[1]) for name, ends in data["ranges"].items()}
        return OpenSignature(inputs, ranges, data["related"])


def _range_text(ends: Range) -> str:
    least, most = ends
    return f"at least {least}" if most is None else f"from {least} to {most}"
