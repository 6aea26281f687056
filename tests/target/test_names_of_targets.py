# SPDX-License-Identifier: Apache-2.0
"""No shared file names a target: what only one target has lies in its folder, and its record says where.

Text for people (docstrings, comments) may name targets as examples; code may not.
"""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import uir_tvm
from uir_tvm.target.registry import TARGETS

PACKAGE = pathlib.Path(uir_tvm.__file__).parent
#: File and literal -> why it stands there.
ALLOWED = {
    ("options.py", "uir-cpu"): "the target of those who name none",
    ("runtime/tensors.py", "cuda"): "the device whose memory and streams torch and TVM share",
}


def shared_files() -> Iterator[pathlib.Path]:
    """Every Python file of the package but those of targets' folders."""
    own = [PACKAGE / "target" / record.package.rpartition(".")[2] for record in TARGETS.values()]
    for folder in (PACKAGE, PACKAGE / "schedules"):
        for path in sorted(folder.resolve().rglob("*.py")):
            if not any(path.is_relative_to(place) for place in own):
                yield path


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings of the code, without docstrings; of formatted ones the parts that stand there."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What is imported from where, as dotted names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module or ''}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)


def test_no_code_names_a_target() -> None:
    kinds = {record.kind for record in TARGETS.values()} - {"cpu"}  # which TVM and torch call the host too
    named = re.compile("|".join(map(re.escape, TARGETS)) + "".join(rf"|^{kind}$" for kind in sorted(kinds)))
    found, used = [], set()
    for path in shared_files():
        for line, text in literals(ast.parse(path.read_text())):
            for name in named.findall(text):
                key = (path.as_posix().rpartition("/uir_tvm/")[2], name)
                if key in ALLOWED:
                    used.add(key)
                else:
                    found.append(f"{path}:{line}: {text!r}")
    assert not found, "\n".join(found)
    assert used == set(ALLOWED)


def test_no_code_imports_a_target() -> None:
    folders = "|".join(record.package.rpartition(".")[2] for record in TARGETS.values())
    within = re.compile(rf"\btarget\.({folders})(\.|$)")
    found = [
        f"{path}:{line}: {name}"
        for path in shared_files()
        for line, name in imports(ast.parse(path.read_text()))
        if within.search(name)
    ]
    assert not found, "\n".join(found)


def test_every_part_of_a_record_is_there() -> None:
    """Names of modules in records lead somewhere."""
    for record in TARGETS.values():
        for field in type(record).__attrs_attrs__:  # type: ignore[attr-defined]
            record.fact(field.name)
        assert record.passes and record.places and record.fact("hardware").PRESETS
