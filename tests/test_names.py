# SPDX-License-Identifier: Apache-2.0
"""One name, one meaning: no two classes and no two modules share a name, save those listed with a reason."""

import ast
import pathlib
from collections import defaultdict

import uir_tvm

PACKAGE = pathlib.Path(uir_tvm.__file__).parent
TARGETS = PACKAGE / "target"

#: Classes that several modules have, and why that is one meaning.
CLASSES = {
    "Machine": "what measures a batch: the worker finds it in the module of the batch's kind by that name",
}
#: Modules that several folders have, and why that is one meaning.
MODULES = {
    "accuracy": "the stated errors: the table, and the rows of a target",
    "apis": "the vendor's functions: the form of a table, and the tables of targets",
    "elementwise": "operators of that class, converted or rewritten",
    "importer": "takes a model of that framework to Relax",
    "nodes": "the nodes of the graph of that folder",
    "passes": "the table of passes, and the passes that pay on a target",
    "project": "projects of a vendor's toolkit: how they are written, and how batches of them are measured",
    "quantized": "operators of that class, converted",
    "recurrence": "recurrent layers as calls: how they are made of models, their nodes, their attributes",
    "reductions": "operators of that class, converted",
    "views": "operators that move elements without changing them, converted or rewritten",
}


def home_of(path: pathlib.Path) -> str:
    """The folder of a module; all targets' folders are one, for they have the same modules."""
    inside = path.relative_to(TARGETS) if path.is_relative_to(TARGETS) else None
    return "target/*" if inside is not None and len(inside.parts) == 2 else str(path.parent)


def twice(places: dict[str, set[str]]) -> dict[str, set[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def modules() -> dict[str, set[str]]:
    places: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        if not path.stem.startswith("__"):
            places[path.stem].add(home_of(path))
    return twice(places)


def classes() -> dict[str, set[str]]:
    places: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(f"{home_of(path)}/{path.name}")
    return twice(places)


def test_no_two_classes_of_one_name():
    found = classes()
    assert not {name: where for name, where in found.items() if name not in CLASSES}
    assert set(CLASSES) <= set(found), "a name that is no longer shared needs no reason"


def test_no_two_modules_of_one_name():
    found = modules()
    assert not {name: where for name, where in found.items() if name not in MODULES}
    assert set(MODULES) <= set(found), "a name that is no longer shared needs no reason"
