# SPDX-License-Identifier: Apache-2.0
"""Faults for the project's own code: one change of one expression or statement each, found by its syntax."""

from __future__ import annotations

import ast
import hashlib
import itertools
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import attrs


@attrs.frozen
class Mutant:
    """One fault.

    Parameters
    ----------
    path : str
        Of the file, below the root of the repository.
    line : int
        Where it is, from 1.
    kind : str
        A key of `KINDS`.
    before, after : str
        The code that is replaced, and by what.
    start, end : int
        Where ``before`` stands in the file, in characters.
    column : int
        Where it is in its line, from 1.
    statement : int
        The first line of the statement that it is in, from 1.
    number : int
        Which it is of the faults of its file that read the same, from 1.
    """

    path: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int
    column: int
    statement: int
    number: int

    @property
    def name(self) -> str:
        """What it is called in results: the same when other lines of its file move."""
        number = f" (number {self.number})" if self.number > 1 else ""
        return f"{self.path}: {self.kind}: {_plain(self.before)} -> {_plain(self.after)}{number}"

    @property
    def folder(self) -> str:
        """The folder of the package that it is in."""
        return pathlib.PurePath(self.path).parts[2]

    def planted(self, text: str) -> str:
        """The file's text with the fault."""
        assert text[self.start : self.end] == self.before
        return text[: self.start] + self.after + text[self.end :]

    def lines(self, text: str) -> range:
        """The lines of the file's text that it changes, from 1."""
        return range(self.line, self.line + text.count("\n", self.start, self.end) + 1)

    def around(self, text: str) -> range:
        """Those from the start of its statement: a line within an expression may count as its first."""
        return range(self.statement, self.lines(text).stop)

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}"
        return f"{place}: {self.kind}: {_short(self.before)} -> {_short(self.after)}"


def _plain(code: str) -> str:
    return " ".join(code.split())


def _short(code: str) -> str:
    line = _plain(code)
    return line if len(line) <= 60 else line[:57] + "..."


_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}


def _comparison(node: ast.AST) -> Iterator[ast.AST]:
    """A comparison that lets one value more or less through, or the opposite."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        yield ast.Compare(node.left, [_COMPARISONS[type(node.ops[0])]()], node.comparators)


def _condition(node: ast.AST) -> Iterator[ast.AST]:
    """One side of `and` or `or` left out."""
    if isinstance(node, ast.BoolOp):
        for k in range(len(node.values)):
            rest = node.values[:k] + node.values[k + 1 :]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _off_by_one(node: ast.AST) -> Iterator[ast.AST]:
    """A small whole number that is one more."""
    if isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= 64:
        yield ast.Constant(node.value + 1)


def _arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    """Another operator."""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
        yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)


def _negation(node: ast.AST) -> Iterator[ast.AST]:
    """`not` left out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _choice(node: ast.AST) -> Iterator[ast.AST]:
    """The sides of a conditional expression exchanged."""
    if isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)


def _quantifier(node: ast.AST) -> Iterator[ast.AST]:
    """`any` for `all`, `min` for `max`, and the other way."""
    other = {"any": "all", "all": "any", "min": "max", "max": "min"}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in other:
        yield ast.Call(ast.Name(other[node.func.id]), node.args, node.keywords)


KINDS: dict[str, Callable[[ast.AST], Iterator[ast.AST]]] = {
    "comparison": _comparison,
    "condition left out": _condition,
    "off by one": _off_by_one,
    "operator": _arithmetic,
    "negation left out": _negation,
    "sides exchanged": _choice,
    "quantifier": _quantifier,
}


def mutants(path: pathlib.Path, root: pathlib.Path) -> Iterator[Mutant]:
    """Every fault of one Python file, in the order of the text."""
    text = path.read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    alike: Counter[tuple[str, str, str]] = Counter()
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    for node in _code(tree):
        for kind, change in KINDS.items():
            for changed in change(node):
                column = _characters(text, starts, node.lineno, node.col_offset)
                start = starts[node.lineno - 1] + column
                assert node.end_lineno is not None and node.end_col_offset is not None
                end = starts[node.end_lineno - 1] + _characters(
                    text, starts, node.end_lineno, node.end_col_offset
                )
                after = f"({ast.unparse(ast.fix_missing_locations(changed))})"
                reads = (kind, _plain(text[start:end]), _plain(after))
                alike[reads] += 1
                yield Mutant(
                    path=str(path.relative_to(root)),
                    line=node.lineno,
                    kind=kind,
                    before=text[start:end],
                    after=after,
                    start=start,
                    end=end,
                    column=column + 1,
                    statement=_innermost(statements, node.lineno, node.end_lineno),
                    number=alike[reads],
                )


def sample(root: pathlib.Path, folders: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Faults spread over folders and kinds, the same for a seed.

    What is drawn of a folder and a kind are the first in the order of digests of their names: a change of the
    code draws no other faults elsewhere.

    Parameters
    ----------
    root : pathlib.Path
        Of the repository.
    folders : sequence of str
        Below ``python/uir_tvm``.
    count : int
        How many faults; folders and kinds take turns.
    """
    piles: dict[tuple[str, str], list[Mutant]] = {(kind, folder): [] for kind in KINDS for folder in folders}
    for folder in folders:
        for path in sorted((root / "python/uir_tvm" / folder).rglob("*.py")):
            for mutant in mutants(path, root):
                piles[mutant.kind, folder].append(mutant)

    def place(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()

    turns = itertools.zip_longest(*(sorted(pile, key=place) for pile in piles.values()))
    drawn = (mutant for turn in turns for mutant in turn if mutant is not None)
    return list(itertools.islice(drawn, count))


def _code(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that run: no annotations, no messages of errors, no asserts, no defaults of data."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)):
            continue
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.arguments):
            continue
        if isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield from _code(ast.Expression(child.value))
            continue
        if isinstance(child, ast.FunctionDef):
            for statement in child.body:
                if isinstance(statement, ast.expr):
                    yield statement
                yield from _code(ast.Module([statement], []))
            continue
        if isinstance(child, ast.expr):
            yield child
        yield from _code(child)


def _innermost(statements: Sequence[ast.stmt], first: int, last: int) -> int:
    """The first line of the shortest statement that has some lines."""
    around = [s for s in statements if s.lineno <= first and last <= (s.end_lineno or s.lineno)]
    return max(around, key=lambda s: s.lineno).lineno


def _characters(text: str, starts: Sequence[int], line: int, column: int) -> int:
    """A column in bytes of UTF-8 as one in characters."""
    return len(text[starts[line - 1] : starts[line]].encode()[:column].decode())


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, (ast.JoinedStr, ast.Tuple, ast.List))
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
