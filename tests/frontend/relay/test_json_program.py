# SPDX-License-Identifier: Apache-2.0
"""The JSON of a module means what its text means, and what is damaged is said."""

from __future__ import annotations

import functools
import gzip
import json

import numpy as np
import pytest

pytest.importorskip("lark")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm_ffi import structural_equal
from uir_tvm.errors import FrontendError, ModelFormatError, ShapeError
from uir_tvm.frontend import from_relay
from uir_tvm.frontend.relay import import_program, load_params, parse_json
from uir_tvm.frontend.relay.relay_program import Program

from .fixtures import HERE, facts_of, values_of


@functools.cache
def operators() -> Program:
    return parse_json(gzip.decompress((HERE / "operators.json.gz").read_bytes()).decode())


def test_every_case_is_imported_alike() -> None:
    """Attributes, constants and structure: both forms of each case become the same Relax function."""
    text = facts_of("operators")
    assert set(operators()) == set(text)
    for name in text:
        mods = [import_program(p, {}, shapes={}, function=name) for p in (text, operators())]
        assert structural_equal(*(mod["main"] for mod in mods), map_free_vars=True), name


def test_parameters_are_read() -> None:
    params = load_params(HERE / "lstm.params")
    want = {name: value for name, value in values_of("lstm").items() if name != "data"}
    assert params.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_array_equal(params[name], value)
    data = (HERE / "lstm.params").read_bytes()
    for size in range(0, len(data), 97):
        with pytest.raises(ModelFormatError):
            load_params(data[:size])


def test_what_is_no_module() -> None:
    for text, what in (
        ("{", "no JSON of TVM"),
        ("{}", "no JSON of TVM"),
        ('{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "IntImm"}]}', "holds a IntImm"),
        ('{"root": 7, "nodes": []}', "names node 7"),
    ):
        with pytest.raises(ModelFormatError, match=what):
            parse_json(text)


def test_a_node_that_is_part_of_itself() -> None:
    data = json.loads((HERE / "lstm.json").read_text())
    call = next(i for i, node in enumerate(data["nodes"]) if node["type_key"] == "relay.TupleGetItem")
    data["nodes"][call]["attrs"]["tuple_value"] = str(call)
    with pytest.raises(ModelFormatError, match="part of itself"):
        parse_json(json.dumps(data))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_damage_is_said(data: st.DataObject) -> None:
    """A truncated file, or a node in the place of another: a typed error or nothing."""
    text = (HERE / "lstm.json").read_text()
    with pytest.raises(FrontendError):
        from_relay(text[: data.draw(st.integers(1, len(text.rstrip()) - 1))])
    graph = json.loads(text)
    nodes = graph["nodes"]
    place, other = (data.draw(st.integers(1, len(nodes) - 1)) for _ in range(2))
    nodes[place] = nodes[other]
    try:
        from_relay(json.dumps(graph))
    except (FrontendError, ShapeError) as error:
        assert error.remedy
