# SPDX-License-Identifier: Apache-2.0
"""``uir check``: where a model's operators would run, and the exit code where it does not compile."""

from __future__ import annotations

import json
import pathlib

import onnx
import uir_tvm
from click.testing import CliRunner
from onnx import TensorProto, helper
from uir_tvm.cli import main


def model(path: pathlib.Path, *operators: str) -> str:
    """An ONNX file of a chain of operators of one operand."""
    names = [f"v{index}" for index in range(len(operators) + 1)]
    nodes = [
        helper.make_node(op, [names[index]], [names[index + 1]], domain="my" if op == "Mine" else "")
        for index, op in enumerate(operators)
    ]
    first, last = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in (names[0], names[-1])
    )
    graph = helper.make_graph(nodes, "chain", [first], [last])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("my", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return str(path)


def test_a_model_that_compiles(tmp_path: pathlib.Path) -> None:
    result = CliRunner().invoke(main, ["check", model(tmp_path / "m.onnx", "Exp", "Softmax"), "--json"])
    found = json.loads(result.output)
    assert result.exit_code == 0 and found["compiles"] and set(found["counts"]) == {"igraph"}
    assert "softmax" in found["rows"][0]["operators"]


def test_a_model_with_one_unknown_operator(tmp_path: pathlib.Path) -> None:
    path = model(tmp_path / "m.onnx", "Exp", "Mine")
    found = CliRunner().invoke(main, ["check", path, "--json"])
    data = json.loads(found.output)
    assert found.exit_code == 9 and not data["compiles"] and data["error"]["remedy"]
    assert "refused" in data["counts"] and data["rows"][0]["remedy"]
    result = CliRunner().invoke(main, ["check", path])
    assert result.exit_code == 9 and "refused" in result.output


def test_a_model_that_is_compiled_at_the_call(tmp_path: pathlib.Path) -> None:
    """Python takes it as it is; a file of it needs a size and a value, which make it plain."""
    text = "g (float[n,4] x, int64[1] axes) => (float[m] y) { y = ReduceSum<keepdims=0>(x, axes) }"
    proto = onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 18]>' + text)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    found = uir_tvm.supports(path)
    assert found and found.counts == {"call": 1} and found.to_json()["compiles"]
    for options, code, remedy in (
        ((), 10, "--shape x=nx4"),
        (("--shape", "x=2x4"), 9, "--value axes="),
        (("--shape", "x=2x4", "--value", "axes=[1]"), 0, "1 igraph"),
    ):
        result = CliRunner().invoke(main, ["check", str(path), *options])
        assert result.exit_code == code and remedy in result.output, result.output


def test_a_model_that_serves_all_sizes(tmp_path: pathlib.Path) -> None:
    """It compiles as it is: sizes are named, with the places of operators and the program's conditions."""
    text = "g (float[n,4] x, float[n,4] z) => (float[n,4] y) { s = Add(x, z)  y = Softmax<axis=-1>(s) }"
    onnx.save(onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 18]>' + text), tmp_path / "m.onnx")
    result = CliRunner().invoke(main, ["check", str(tmp_path / "m.onnx"), "--json"])
    data = json.loads(result.output)
    assert result.exit_code == 0 and data["compiles"] and data["error"] is None
    assert data["counts"] == {"igraph": 1} and data["symbols"] == {"n": "at least 0"}
    assert data["inputs"] == ["x: float32[n, 4]", "z: float32[n, 4]"] and data["conditions"] == ["1 <= n"]
    told = CliRunner().invoke(main, ["check", str(tmp_path / "m.onnx")]).output
    assert "open sizes: n at least 0" in told and "for all sizes with 1 <= n" in told


def test_state_is_listed_before_and_after_compiling(tmp_path: pathlib.Path) -> None:
    text = "g (float[4] x, float[4] past) => (float[4] y, float[4] present)"
    text += " { present = Add(x, past) y = Exp(present) }"
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 18]>' + text), path)
    line = "state past: float32[4], in place, writes 16 bytes a call"
    for states in (["past"], ["past=present"]):
        found = CliRunner().invoke(main, ["check", str(path), *(f"--state={each}" for each in states)])
        assert found.exit_code == 0 and line in found.output
    wrong = CliRunner().invoke(main, ["check", str(path), "--state", "present"])
    assert wrong.exit_code == 2 and "INPUT=RESULT" in wrong.output
    made = CliRunner().invoke(main, ["compile", str(path), "--state", "past", "-o", str(tmp_path / "m.uir")])
    shown = CliRunner().invoke(main, ["inspect", str(tmp_path / "m.uir")])
    assert made.exit_code == 0 and line in made.output and line in shown.output
    said = json.loads(CliRunner().invoke(main, ["inspect", str(tmp_path / "m.uir"), "--json"]).output)
    assert said["state"][0]["how"] == "in place" and said["state"][0]["written"] == 16
