# SPDX-License-Identifier: Apache-2.0
"""An exported program's arguments and results as the trees of `uir_tvm.runtime.structure`."""

from __future__ import annotations

import hashlib
import itertools
import json
import uuid
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree as pytree

from ..structure import LIVE


def structure_of(program: ExportedProgram) -> str:
    """The structure of a program's call as JSON: parameters by name, and the result.

    Parameters
    ----------
    program : ExportedProgram
        With its constant inputs and outputs still in the signature.
    """
    signature = program.graph_signature
    leaves = _leaves([spec for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT])
    args, kwargs = _branches(program.call_spec.in_spec)
    names = program.module_call_graph[0].signature
    known = list(getattr(names, "forward_arg_names", None) or ())
    places = [*_branches(args)]
    by_name = [str(key) for key in kwargs.context or ()]
    by_place = [name for name in known if name not in by_name][: len(places)]
    by_place += [f"arg{index}" for index in range(len(by_place), len(places))]
    parameters = [
        {"name": name, "tree": _tree(spec, leaves)}
        for name, spec in zip([*by_place, *by_name], [*places, *_branches(kwargs)], strict=True)
    ]
    results = _leaves([spec for spec in signature.output_specs if spec.kind is OutputKind.USER_OUTPUT])
    result = _tree(program.call_spec.out_spec, results)
    return json.dumps({"parameters": parameters, "result": result})


def _leaves(specs: list[Any]) -> Iterator[dict[str, Any]]:
    """A leaf for every argument or result, tensors numbered without the constants between them."""
    numbers = itertools.count()
    for spec in specs:
        if isinstance(spec.arg, ConstantArgument):
            yield {"value": spec.arg.value}
        else:
            yield {"tensor": next(numbers)}


def _branches(spec: pytree.TreeSpec) -> list[pytree.TreeSpec]:
    return list(spec.children())


def _tree(spec: pytree.TreeSpec, leaves: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """A tree with the next leaves."""
    if spec.is_leaf():
        return next(leaves)
    items = [_tree(branch, leaves) for branch in _branches(spec)]
    if spec.type in (list, tuple):
        return {spec.type.__name__: items}
    if spec.type is dict and all(isinstance(key, str | int) for key in spec.context):
        return {"dict": {"keys": list(spec.context), "items": items}}
    if spec.type is namedtuple:
        name = f"{spec.context.__module__}:{spec.context.__qualname__}#{uuid.uuid4().hex}"
        LIVE[name] = spec.context
        return {"namedtuple": {"name": name, "items": items}}
    return {"pytree": {**_class_of(spec), "items": items}}


def _class_of(spec: pytree.TreeSpec) -> dict[str, str]:
    """The name of a class that PyTorch's registry knows, and its context as text; empty where it has none."""
    flat = pytree.TreeSpec(spec.type, spec.context, [pytree.treespec_leaf() for _ in _branches(spec)])
    try:
        text = pytree.treespec_dumps(flat)
        mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    except Exception:  # whatever writing a context raises
        text, mark = "", uuid.uuid4().hex
    name = f"{spec.type.__module__}:{spec.type.__qualname__}#{mark}"
    LIVE[name] = flat
    return {"name": name, "spec": text}
