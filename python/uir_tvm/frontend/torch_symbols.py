# SPDX-License-Identifier: Apache-2.0
"""Exported programs with symbolic sizes: what is open, and the program for numbers in the symbols' place.

The program is not exported again (`torch_bound`).
"""

from __future__ import annotations

import contextlib
import logging
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import sympy
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    SymIntArgument,
    TensorArgument,
)
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..errors import FrontendError, OpenSizeError
from ..sizes.saved_sizes import names_in, readable
from ..sizes.size_space import SizeSpace
from ..sizes.symbolic_shapes import NUMBER, TENSOR, OpenInput, OpenSignature, Range, Size, Sizes
from .torch_bound import SYMBOLIC, Binder, broken_assertion, number_of, refused_sizes, with_numbers
from .torch_found import environment_of, found_nodes, refused
from .torch_graph import describe, target_name
from .torch_guards import Said, SaidTensor, guard_texts
from .torch_known_sizes import known

log = logging.getLogger(__name__)

#: From here on PyTorch's symbols are as large as one likes.
UNLIMITED = 2**62
#: Where PyTorch's ranges begin that nobody asked for: it traces with larger sizes, and takes 0 and 1 too.
TRACED = 2
#: The remainder of PyTorch's that is Python's, as `sizes.symbolic_shapes` has it.
_REMAINDER = {"PythonMod": "Mod"}
#: Comparisons of sympy.
_COMPARED: dict[Any, Callable[[Any, Any], bool]] = {
    sympy.Eq: operator.eq,
    sympy.Ne: operator.ne,
    sympy.Lt: operator.lt,
    sympy.Le: operator.le,
    sympy.Gt: operator.gt,
    sympy.Ge: operator.ge,
}


def is_open(program: ExportedProgram) -> bool:
    """Whether an input has a size that is a symbol, or is a number that is one."""
    return any(
        isinstance(size, torch.SymInt) for value in _user_inputs(program).values() for size in _sizes(value)
    )


def _user_inputs(program: ExportedProgram) -> dict[str, Any]:
    """The values of the inputs that a caller passes, and that are no constants, in order."""
    values = {node.name: node.meta.get("val") for node in program.graph.find_nodes(op="placeholder")}
    return {
        spec.arg.name: values[spec.arg.name]
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument | SymIntArgument)
    }


def _condition(expr: sympy.Basic, value: sympy.Basic) -> sympy.Basic:
    """What PyTorch found of sizes as a comparison that holds; OpenSizeError of what is none."""
    if value not in (sympy.true, sympy.false):
        raise OpenSizeError(
            f"PyTorch decides by the sizes of the example inputs: {expr} == {value}.",
            need="decisions that are right for other sizes too",
            remedy="leave fewer sizes open, or export the model with other example inputs",
        )
    return expr if value == sympy.true else sympy.Not(expr)


def hold(conditions: Iterable[sympy.Basic], space: SizeSpace) -> None:
    """Keep conditions of PyTorch's symbols in a space of their sizes.

    Raises
    ------
    OpenSizeError
        What stands for all sizes does not meet one, or it is no comparison of sizes.
    """
    for condition in dict.fromkeys(conditions):
        compare = _COMPARED.get(type(condition))
        try:
            sides = [space.said(str(side)) for side in condition.args]
            if compare is not None and compare(*sides):
                continue
        except (ArithmeticError, FrontendError) as error:
            log.info("%s is not read: %s", condition, error)
        raise OpenSizeError(
            f"PyTorch decides by the sizes of the example inputs: {condition}.",
            need="a comparison that holds of what stands for all sizes",
            remedy="leave fewer sizes open, or export the model with other example inputs",
        )


def _conditions(expr: sympy.Basic) -> Iterator[str]:
    """What has to hold for a condition of PyTorch's symbols, in Python's words."""
    if isinstance(expr, sympy.And):
        for part in expr.args:
            yield from _conditions(part)
    else:
        yield _in_words(expr)


def _in_words(expr: sympy.Basic) -> str:
    if isinstance(expr, sympy.And | sympy.Or):
        word = " and " if isinstance(expr, sympy.And) else " or "
        return word.join(f"({_in_words(part)})" for part in expr.args)
    if isinstance(expr, sympy.core.relational.Relational):
        return f"{expr.lhs} {expr.rel_op} {expr.rhs}"
    raise _unstored(str(expr))


def _unstored(text: str) -> OpenSizeError:
    return OpenSizeError(
        f"The program's condition {text!r} cannot be stored.",
        need="comparisons of whole numbers",
        remedy="compile the model for chosen sizes: specialize=[...] (--specialize)",
    )


def _sizes(value: Any) -> tuple[Any, ...]:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else (value,)


class OpenProgram:
    """An exported program with symbols.

    Parameters
    ----------
    program : ExportedProgram
        It is not changed.

    Attributes
    ----------
    signature : OpenSignature
        Symbols have the names of the ``Dim`` that they were exported with, where the program still knows
        them (a file does not), else the name of an input and its axis: ``x_0``.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        inputs = _user_inputs(program)
        self._names, given = _names(inputs)
        rows = []
        for name, value in inputs.items():
            sizes = tuple(self._size(size) for size in _sizes(value))
            tensor = isinstance(value, torch.Tensor)
            dtype = str(value.dtype).removeprefix("torch.") if tensor else "int64"
            rows.append(OpenInput(name, sizes, dtype, TENSOR if tensor else NUMBER))
        ranges = {
            name: range_of(program.range_constraints[symbol], name in given)
            for symbol, name in self._names.items()
            if symbol in program.range_constraints
        }
        self.signature = OpenSignature(rows, ranges)
        self._guards = getattr(program.module(), "_guards_fn", None)

    def _size(self, size: Any) -> Size:
        size = known(size)
        if not isinstance(size, torch.SymInt):
            return int(size)
        return _renamed(str(size.node.expr), {str(symbol): name for symbol, name in self._names.items()})

    @property
    def variables(self) -> dict[str, str]:
        """PyTorch's name for each symbol."""
        return {name: str(symbol) for symbol, name in self._names.items()}

    @contextlib.contextmanager
    def decided(self) -> Iterator[list[sympy.Basic]]:
        """What PyTorch decides inside by the sizes of the example inputs, as a list that fills.

        These are conditions: they need not hold of other sizes.

        Raises
        ------
        OpenSizeError
            The program's symbols belong to no environment, or an input is a number.
        """
        sizes = [size for value in _user_inputs(self.program).values() for size in _sizes(value)]
        environments = {
            id(size.node.shape_env): size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)
        }
        if (found := environment_of(self.program)) is not None:
            environments[id(found)] = found
        if len(environments) != 1 or any(each.kind != TENSOR for each in self.signature.inputs):
            raise OpenSizeError(
                "The program is only read for numbers.",
                need="symbols of one environment, in the shapes of tensors",
                remedy="pass tensors, not numbers",
            )
        logger = logging.getLogger(ShapeEnv.__module__)
        level, said, environment = logger.level, list[sympy.Basic](), next(iter(environments.values()))

        def note(expr: sympy.Basic, value: sympy.Basic) -> None:
            said.append(_condition(expr, value))

        logger.setLevel(logging.CRITICAL)  # what is refused is told by the error
        try:
            environment._check_frozen = note
            with environment.suppress_guards():  # nothing that PyTorch knows of its symbols changes
                yield said
        finally:
            del environment._check_frozen
            logger.setLevel(level)

    def check(self, sizes: Sizes) -> None:
        """Hold sizes to the conditions under which the program was exported, and to what it asserts.

        Raises
        ------
        SizeError
            The program does not take them.
        """
        numbers = {symbol: sizes[name] for symbol, name in self._names.items()}
        mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
        with refused_sizes(sizes):
            if self._guards is not None:
                placeholders = self.program.graph.find_nodes(op="placeholder")
                values = {
                    node.name: with_numbers(node.meta.get("val"), numbers, mode) for node in placeholders
                }
                self._guards(*self._guarded(values))
        for node, asserted in self._assertions():
            if not self._is_known(asserted):
                continue  # of what the model finds: `asserted_of_found`
            if not number_of(asserted, numbers):
                raise broken_assertion(node, node.args, sizes)

    def _assertions(self) -> Iterator[tuple[fx.Node, Any]]:
        """What the program asserts: numbers or conditions, each with its node."""
        for node in self.program.graph.nodes:
            if node.op == "call_function" and target_name(node).startswith("_assert_scalar"):
                yield (
                    node,
                    node.args[0].meta.get("val") if isinstance(node.args[0], fx.Node) else node.args[0],
                )

    def asserted_of_found(self) -> dict[str, str]:
        """What the program asserts of sizes that it finds, each with what asserts it.

        Raises
        ------
        OpenSizeError
            A condition has no text that `sizes.saved_sizes.holds` reads.
        """
        found: dict[str, str] = {}
        for node, value in self._assertions():
            if not self._is_known(value):
                for text in _conditions(value.node.expr if isinstance(value, SYMBOLIC) else value):
                    self._add_readable(found, text, node)
        return found

    def _add_readable(self, found: dict[str, str], text: str, node: fx.Node) -> None:
        names = {str(symbol): name for symbol, name in self._names.items()} | _REMAINDER
        renamed = _renamed(text, names)
        others = tuple(name for name in names_in(renamed) if name not in self._names.values())
        if not readable(renamed, (*self._names.values(), *others)):
            raise _unstored(text)
        found.setdefault(renamed, describe(node))

    def asserted(self) -> tuple[str, ...]:
        """What `check` asks, as conditions that `sizes.saved_sizes.holds` reads.

        Raises
        ------
        OpenSizeError
            A condition has no such text.
        """
        texts: list[str] = []
        if self._guards is not None:
            sizes = {each.name: each for each in self.signature.inputs}
            values = {
                name: SaidTensor(each.sizes) if each.kind == TENSOR else Said(str(each.sizes[0]))
                for name, each in sizes.items()
            }
            texts += guard_texts(self._guards, self._guarded(values))
        names = {str(symbol): name for symbol, name in self._names.items()}
        for _, value in self._assertions():
            if not self._is_known(value):
                continue
            text = str(value.node.expr) if isinstance(value, SYMBOLIC) else str(bool(value))
            texts.append(_renamed(text, names))
        for text in texts:
            if not readable(text, tuple(self._names.values())):
                raise _unstored(text)
        return tuple(dict.fromkeys(texts))

    def _is_known(self, value: Any) -> bool:
        """Whether a number or a condition is in terms of the inputs' symbols alone."""
        expr = value.node.expr if isinstance(value, SYMBOLIC) else value
        return not isinstance(expr, sympy.Basic) or expr.free_symbols <= self._names.keys()

    def bound(self, sizes: Sizes) -> ExportedProgram:
        """The program for a size of every symbol; it shares the weights.

        Raises
        ------
        SizeError
            The program was exported under conditions that these sizes break.
        ShapeError
            Data decide the shape of a tensor.
        """
        for node in found_nodes(self.program):
            raise refused(node)
        numbers = {symbol: sizes[name] for symbol, name in self._names.items()}
        mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
        values = {
            node.name: with_numbers(node.meta.get("val"), numbers, mode)
            for node in self.program.graph.find_nodes(op="placeholder")
        }
        with refused_sizes(sizes):
            if self._guards is not None:
                self._guards(*self._guarded(values))
        return Binder(self.program, values, sizes, mode).program()

    def _guarded(self, values: Mapping[str, Any]) -> Iterator[Any]:
        """What the guards are asked about: the user's inputs, constants included."""
        for spec in self.program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                constant = isinstance(spec.arg, ConstantArgument)
                yield spec.arg.value if constant else values[spec.arg.name]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """An expression of PyTorch's with other names."""
    return re.sub(r"[A-Za-z_]\w*", lambda found: names.get(found.group(), found.group()), text)


def _names(inputs: Mapping[str, Any]) -> tuple[dict[Any, str], set[str]]:
    """A name for every symbol, and those of the names that the user gave."""
    symbols: dict[Any, str] = {}
    given: set[str] = set()
    rows = [(name, axis, size) for name, value in inputs.items() for axis, size in enumerate(_sizes(value))]
    rows = [row for row in rows if isinstance(row[2], torch.SymInt)]
    for alone in (True, False):
        for name, axis, size in rows:
            for symbol in sorted(size.node.expr.free_symbols, key=str):
                if symbol in symbols or size.node.expr.is_Symbol is not alone:
                    continue
                tensor = isinstance(inputs[name], torch.Tensor)
                plain = (f"{name}_{axis}" if tensor else name) if alone else str(symbol)
                named = _given_name(size.node.shape_env, symbol)
                found = named or plain
                taken = set(symbols.values())
                while found in taken:
                    found += "_"
                symbols[symbol] = found
                given |= {found} if named else set()
    return symbols, given


def _given_name(environment: Any, symbol: Any) -> str:
    """The name of the ``Dim`` that a symbol was exported with; empty where it is not known."""
    names = getattr(environment, "source_name_to_debug_name", {})
    for source in getattr(environment, "var_to_sources", {}).get(symbol, ()):
        name = source.name() if callable(source.name) else source.name
        if str(names.get(name, "")).isidentifier():
            return str(names[name])
    return ""


def range_of(ends: Any, given: bool) -> Range:
    """The ends of PyTorch's range of a symbol, which the user gave or PyTorch chose."""
    low, high = (int(end) if isinstance(end, sympy.Integer) else None for end in (ends.lower, ends.upper))
    least = 0 if low is None or (low <= TRACED and not given) else low
    return least, None if high is None or high >= UNLIMITED else high
