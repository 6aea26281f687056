# SPDX-License-Identifier: Apache-2.0
"""The cases of `onnx.backend.test`: node tests, and the model tests whose files the package carries."""

from __future__ import annotations

import functools
import pathlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

#: Kinds of cases whose models and data come with the package ``onnx``; `_light` adds another.
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@attrs.frozen(eq=False)
class Case:
    """A model, and what it makes of its inputs; ``data`` are pairs of inputs and results."""

    name: str
    kind: str
    model: onnx.ModelProto
    data: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float

    @property
    def group(self) -> str:
        """The operator that a node test is of; the kind of another."""
        if self.kind != "node":
            return self.kind
        bodies = [node.op_type for node in self.model.graph.node]
        if "_expanded" in self.name or len(bodies) != 1:
            plain = self.name.partition("_expanded")[0]
            return _operators().get(plain, "several operators")
        node = self.model.graph.node[0]
        return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"


@functools.cache
def load() -> dict[str, Case]:
    """All cases by name; random inputs are the package's own, with its seeds."""
    cases = {}
    for kind in KINDS:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = load_model_tests(kind=kind)
        for case in found:
            model, data = (case.model, case.data_sets) if kind == "node" else _read(case.model_dir)
            cases[case.name] = Case(case.name, kind, model, data or (), case.rtol, case.atol)
    cases.update((case.name, case) for case in _light())
    return cases


def _light() -> Iterator[Case]:
    """Whole networks with made-up weights, whose results the package carries."""
    for path in sorted((pathlib.Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx")):
        model = onnx.load(path)
        filled = {tensor.name for tensor in model.graph.initializer}
        given = [value for value in model.graph.input if value.name not in filled]
        inputs = [Runner.generate_dummy_data(x, seed=0, name=path.stem, random=False) for x in given]
        results = [
            numpy_helper.to_array(onnx.load_tensor(path.with_name(f"{path.stem}_output_{number}.pb")))
            for number in range(len(model.graph.output))
        ]
        yield Case(f"test_{path.stem}", "light", model, [(inputs, results)], 1e-3, 1e-5)


@functools.cache
def _operators() -> dict[str, str]:
    """Node test -> its operator, of those that are one node."""
    return {
        case.name: case.model.graph.node[0].op_type
        for case in load().values()
        if case.kind == "node" and len(case.model.graph.node) == 1
    }


def _read(folder: str) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    """A model of the package's files, with its data sets."""
    path = pathlib.Path(folder)
    model = onnx.load(path / "model.onnx")
    data = []
    for number in range(len(list(path.glob("test_data_set_*")))):
        part = path / f"test_data_set_{number}"
        data.append(
            (
                _tensors(part, "input", [value.type for value in model.graph.input]),
                _tensors(part, "output", [value.type for value in model.graph.output]),
            )
        )
    return model, data


def _tensors(folder: pathlib.Path, word: str, types: Iterable[onnx.TypeProto]) -> list[Any]:
    readers = {
        "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    }
    found = []
    for number, kind in enumerate(types):
        path = folder / f"{word}_{number}.pb"
        if path.is_file():
            proto, read = readers[kind.WhichOneof("value") or "tensor_type"]
            found.append(read(proto.FromString(path.read_bytes())))
    return found


def array_of(value: Any) -> Any:
    """A value of a data set as the compiler takes it: tensors in the standard's form become arrays."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
