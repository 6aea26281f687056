# SPDX-License-Identifier: Apache-2.0
"""The JSON of `tvm.ir.save_json` -> a program."""

from __future__ import annotations

from typing import Any

from ...errors import FrontendError, ModelFormatError
from . import relay_program as p
from .json_graph import Graph

#: Classes of nodes that this reader does not take, and what they are.
_REFUSED = {
    "relay.Match": "a match on an algebraic data type",
    "relay.Constructor": "an algebraic data type",
    "relay.RefCreate": "a reference",
    "relay.RefRead": "a reference",
    "relay.RefWrite": "a reference",
}


def parse_json(text: str, name: str = "the JSON") -> p.Program:
    """Read a module, or one function (as ``main``).

    Raises
    ------
    ModelFormatError
        Where the text is no JSON of a Relay module, or damaged.
    """
    graph = Graph(text, name)
    try:
        return _JsonProgram(graph).program()
    except FrontendError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ModelFormatError(
            f"{name} is damaged.", where=repr(error), remedy="save it again with tvm.ir.save_json(mod)"
        ) from error


class _JsonProgram:
    """Nodes of the program by the numbers of the JSON's; one that many name is one object."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._made: dict[int, p.RelayNode] = {}

    def program(self) -> p.Program:
        graph = self.graph
        kind = graph.kind(graph.root)
        if kind == "relay.Function":
            return {"main": self._function(graph.root)}
        if kind != "IRModule":
            raise ModelFormatError(
                f"{graph.name} holds a {kind or 'nothing'}.",
                need="an IRModule of Relay functions",
                remedy="save it with tvm.ir.save_json(mod)",
            )
        pairs = graph.items(graph.field(graph.root, "functions"))
        found = {}
        for name, function in zip(pairs[::2], pairs[1::2], strict=True):
            if graph.kind(function) == "relax.expr.Function":
                raise ModelFormatError(
                    f"{graph.name} holds a module of Relax, not of Relay.",
                    remedy="name the file .relax.json",
                )
            if graph.kind(function) == "relay.Function":
                found[graph.text(graph.field(name, "name_hint"))] = self._function(function)
        return found

    def _function(self, index: int) -> p.Function:
        function = self.node(index)
        assert isinstance(function, p.Function)
        return function

    def node(self, root: Any) -> p.RelayNode:
        """An expression; what it is made of is made first, without recursion: networks are deep."""
        waiting = [int(root)]
        open_: set[int] = set()
        while waiting:
            index = waiting[-1]
            if index in self._made:
                waiting.pop()
                continue
            missing = [part for part in self._parts(index) if part not in self._made]
            if not missing:
                self._made[index] = self._make(index)
                waiting.pop()
            elif index in open_:
                raise ModelFormatError(
                    f"node {index} of {self.graph.name} is part of itself.",
                    remedy="save the model again, or fetch the file again",
                )
            else:
                open_.add(index)
                waiting += reversed(missing)
        return self._made[int(root)]

    def _parts(self, index: int) -> list[int]:
        graph, kind = self.graph, self.graph.kind(index)

        def fields(*names: str) -> list[int]:
            return [int(graph.field(index, name)) for name in names]

        if kind == "relay.Call":
            return [*fields("op"), *graph.items(graph.field(index, "args"))]
        if kind in ("relay.Tuple", "Tuple"):
            return graph.items(graph.field(index, "fields"))
        if kind in ("relay.TupleGetItem", "TupleGetItem"):
            return fields("tuple_value")
        if kind in ("relay.If", "If"):
            return fields("cond", "true_branch", "false_branch")
        if kind == "relay.Let":
            return fields("value", "body")
        return fields("body") if kind == "relay.Function" else []

    def _make(self, index: int) -> p.RelayNode:
        graph, kind = self.graph, self.graph.kind(index)
        where = f"node {index} of {graph.name}"

        def made(name: str) -> p.RelayNode:
            return self._made[int(graph.field(index, name))]

        def all_made(name: str) -> list[p.RelayNode]:
            return [self._made[item] for item in graph.items(graph.field(index, name))]

        if kind == "relay.Var":
            return p.Local(where, index, self._name_of(index))
        if kind == "GlobalVar":
            return p.Global(where, graph.text(graph.field(index, "name_hint")))
        if kind == "Op":
            return p.Operator(where, graph.text(index) or graph.text(graph.field(index, "name")))
        if kind == "relay.Constant":
            return p.Constant(where, graph.array(graph.field(index, "data")))
        if kind == "relay.Call":
            attributes = graph.attributes(graph.field(index, "attrs"))
            return p.Call(where, made("op"), all_made("args"), attributes[1], attributes[0])
        if kind in ("relay.Tuple", "Tuple"):
            return p.Tuple(where, all_made("fields"))
        if kind in ("relay.TupleGetItem", "TupleGetItem"):
            return p.TupleItem(where, made("tuple_value"), int(graph.field(index, "index")))
        if kind in ("relay.If", "If"):
            return p.Branch(where, made("cond"), made("true_branch"), made("false_branch"))
        if kind == "relay.Let":
            return p.Bound(where, int(graph.field(index, "var")), made("value"), made("body"))
        if kind == "relay.Function":
            params = [
                p.FunctionParameter(
                    item,
                    self._name_of(item),
                    self._type(graph.field(item, "type_annotation")),
                    f"node {item}",
                )
                for item in graph.items(graph.field(index, "params"))
            ]
            return p.Function(where, params, made("body"))
        raise FrontendError(
            f"{graph.name} has {_REFUSED.get(kind, 'a ' + (kind or 'hole'))}, which is not taken.",
            where=where,
            remedy="write the model without it",
        )

    def _name_of(self, index: Any) -> str:
        graph = self.graph
        return graph.text(graph.field(graph.field(index, "vid"), "name_hint"))

    def _type(self, index: Any) -> p.Type:
        graph, kind = self.graph, self.graph.kind(index)
        if kind in ("relay.TensorType", "TensorType"):
            sizes = graph.value(graph.field(index, "shape"))
            return p.TensorType(
                tuple(size if isinstance(size, int) else None for size in sizes), graph.field(index, "dtype")
            )
        if kind == "TupleType":
            return tuple(self._type(item) for item in graph.items(graph.field(index, "fields")))
        return None
