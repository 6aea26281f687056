# SPDX-License-Identifier: Apache-2.0
"""How a model's arguments and results are nested: between the caller's containers and flat tensors.

A tree is plain JSON, so that a saved model keeps it: ``{"tensor": 2}`` is the third tensor,
``{"value": None}`` a constant, ``{"list": [...]}``, ``{"tuple": [...]}`` and
``{"dict": {"keys": [...], "items": [...]}}`` are Python's containers, ``{"namedtuple": {...}}`` is one of
their classes, ``{"pytree": {...}}`` a class that PyTorch's registry of pytrees knows. torch is needed for the
last only.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from .errors import ArtifactError, ShapeError

#: Attribute of a Relax module: its `Structure` as JSON.
STRUCTURE = "uir.structure"
#: A tree, as the module's docstring says.
Tree = Mapping[str, Any]
#: Classes of named tuples, and PyTorch's specs of registered classes, that this process has seen, by name.
LIVE: dict[str, Any] = {}
#: Numbers and words that are part of a structure.
PLAIN = (bool, int, float, str, type(None))


@attrs.frozen
class Parameter:
    """One argument of a model.

    Attributes
    ----------
    name : str
        As the model's signature has it; empty where that is not known.
    tree : Tree
        How its tensors are nested.
    """

    name: str
    tree: Tree


@attrs.frozen
class Structure:
    """What a call of a model takes and returns.

    Attributes
    ----------
    parameters : tuple of Parameter
        In the order in which a caller passes them by place.
    result : Tree
    """

    parameters: tuple[Parameter, ...]
    result: Tree

    def to_json(self) -> dict[str, Any]:
        """Plain data for a manifest."""
        return {
            "parameters": [{"name": each.name, "tree": each.tree} for each in self.parameters],
            "result": self.result,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Structure:
        """The inverse of `to_json`."""
        return Structure(tuple(Parameter(**each) for each in data["parameters"]), data["result"])

    @staticmethod
    def parsed(text: str) -> Structure:
        """One that is JSON text."""
        return Structure.from_json(json.loads(text))

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any], count: int) -> list[Any]:
        """The tensors of a call, in the order of the executable's inputs.

        Parameters
        ----------
        args, kwargs
            As the model itself takes them; what was a constant at compilation may be left out.
        count : int
            How many tensors there are.

        Raises
        ------
        ShapeError
            An argument that is missing, unknown, nested in another way, or another constant.
        """
        given = self._bound(args, kwargs)
        found: list[Any] = [None] * count
        for parameter in self.parameters:
            if parameter.name in given:
                _take(parameter.tree, given[parameter.name], parameter.name, found)
            elif tensors_of(parameter.tree):
                raise ShapeError(
                    f"The argument {parameter.name!r} is missing.",
                    need=self._signature(),
                    remedy="pass it by place or by name",
                )
        return found

    def unflatten(self, tensors: Sequence[Any]) -> Any:
        """The model's result, of its flat tensors."""
        return build(self.result, tensors)

    @property
    def is_flat(self) -> bool:
        """Whether the result is one tensor, or a tuple of all in their order."""
        branches = self.result.get("tuple")
        if branches is None:
            return self.result == {"tensor": 0}
        return len(branches) > 0 and list(branches) == [{"tensor": at} for at in range(len(branches))]

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name."""
        names = [parameter.name for parameter in self.parameters]
        if len(args) > len(names):
            raise ShapeError(
                f"The executable takes {len(names)} arguments, {len(args)} were given.",
                need=self._signature(),
                remedy="pass one for each parameter, in this order",
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise ShapeError(f"The argument {name!r} was given twice.", remedy="pass it once")
            if name not in names:
                if value is None:
                    continue  # what the model does not get by default
                raise ShapeError(
                    f"The executable has no argument {name!r}.",
                    need=self._signature(),
                    remedy="compile the model with an example of it: compile(model, args=..., kwargs={...})",
                )
            given[name] = value
        return given

    def _signature(self) -> str:
        return ", ".join(f"{each.name}: {described(each.tree)}" for each in self.parameters)


def tensors_of(tree: Tree) -> list[int]:
    """The tensors in a tree, by number, in its order."""
    if "tensor" in tree:
        return [tree["tensor"]]
    return [number for item in items_of(tree) for number in tensors_of(item)]


def items_of(tree: Tree) -> Sequence[Tree]:
    """The branches of a tree; a leaf has none."""
    ((kind, content),) = tree.items()
    if kind in ("list", "tuple"):
        return content
    return content["items"] if kind in ("dict", "namedtuple", "pytree") else ()


def described(tree: Tree) -> str:
    """A tree in one line."""
    ((kind, content),) = tree.items()
    if kind in ("tensor", "value"):
        return "tensor" if kind == "tensor" else repr(content)
    parts = [described(item) for item in items_of(tree)]
    if kind == "dict":
        return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(content["keys"], parts, strict=True)) + "}"
    if kind in ("namedtuple", "pytree"):
        return f"{content['name'].partition('#')[0].rpartition(':')[2]}({', '.join(parts)})"
    return f"[{', '.join(parts)}]" if kind == "list" else f"({', '.join(parts)})"


def build(tree: Tree, tensors: Sequence[Any]) -> Any:
    """What a tree describes, with these tensors at its leaves."""
    ((kind, content),) = tree.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value":
        return content
    items = [build(item, tensors) for item in items_of(tree)]
    if kind == "dict":
        return dict(zip(content["keys"], items, strict=True))
    if kind == "namedtuple":
        return _class_of(content)(*items)
    if kind == "pytree":
        return _class_of(content).unflatten(items)
    return items if kind == "list" else tuple(items)


def _take(tree: Tree, value: Any, path: str, found: list[Any]) -> None:
    """Put the tensors of a value at their numbers."""
    ((kind, content),) = tree.items()
    if kind == "tensor":
        found[content] = value
        return
    if kind == "value":
        if hasattr(value, "shape") or value != content:
            raise ShapeError(
                f"The argument {path!r} is another constant than the model was compiled with.",
                need=repr(content),
                limit=f"given {f'a {type(value).__name__}' if hasattr(value, 'shape') else repr(value)}",
                remedy="compile the model once for each value",
            )
        return
    items, keys = _CONTAINERS[kind](content, value)
    if items is None or len(items) != len(items_of(tree)):
        raise ShapeError(
            f"The argument {path!r} is nested in another way than the model was compiled with.",
            need=described(tree),
            limit=f"given a {type(value).__name__}",
            remedy="pass it as at compilation, or compile the model for this form",
        )
    for item, key, inner in zip(items_of(tree), keys, items, strict=True):
        _take(item, inner, f"{path}{key}", found)


def _sequence(kind: type, content: Any, value: Any) -> tuple[Sequence[Any] | None, list[str]]:
    if not isinstance(value, kind):
        return None, []
    assert isinstance(value, Sequence)
    return list(value), [f"[{index}]" for index in range(len(value))]


def _mapping(content: Any, value: Any) -> tuple[Sequence[Any] | None, list[str]]:
    if not isinstance(value, Mapping) or set(value) != set(content["keys"]):
        return None, []
    return [value[key] for key in content["keys"]], [f"[{key!r}]" for key in content["keys"]]


def _named(content: Any, value: Any) -> tuple[Sequence[Any] | None, list[str]]:
    if type(value) is not _class_of(content):
        return None, []
    return list(value), [f".{name}" for name in value._fields]


def _registered(content: Any, value: Any) -> tuple[Sequence[Any] | None, list[str]]:
    from torch.utils import _pytree as pytree

    spec: Any = _class_of(content)
    if type(value) is not spec.type:
        return None, []
    found, context = pytree.SUPPORTED_NODES[spec.type].flatten_fn(value)
    items = [*found]
    return (items if context == spec.context else None), [f"<{index}>" for index in range(len(items))]


_CONTAINERS: dict[str, Callable[[Any, Any], tuple[Sequence[Any] | None, list[str]]]] = {
    "list": lambda content, value: _sequence(list, content, value),
    "tuple": lambda content, value: _sequence(tuple, content, value),
    "dict": _mapping,
    "namedtuple": _named,
    "pytree": _registered,
}


def _class_of(content: Mapping[str, Any]) -> Any:
    """A class of named tuples, or PyTorch's description of a class that it knows, whose fields are leaves.

    Raises
    ------
    ArtifactError
        The class is not to be found, or not registered, in this process.
    """
    name = content["name"]
    if name in LIVE:
        return LIVE[name]
    try:
        module, _, qualified = name.partition("#")[0].rpartition(":")
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
        if "spec" in content:
            from torch.utils import _pytree as pytree

            register(found)
            found = pytree.treespec_loads(content["spec"])
        LIVE[name] = found
    except Exception as error:  # whatever importing a module raises
        raise ArtifactError(
            f"The model's class {name.partition('#')[0]} cannot be made here.",
            need="its module, and for PyTorch's pytrees its registration under the name that it was saved by",
            limit=str(error) or type(error).__name__,
            remedy="import what registers it before the call, or use Executable.flat",
        ) from error
    return LIVE[name]


def register(cls: type) -> None:
    """Make PyTorch's pytrees know a dataclass, field by field; others stay as they are."""
    from torch.utils import _pytree as pytree

    if dataclasses.is_dataclass(cls) and cls not in pytree.SUPPORTED_NODES:
        pytree.register_dataclass(cls, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}")
