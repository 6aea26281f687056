# SPDX-License-Identifier: Apache-2.0
"""Files that serve all sizes: of every front end, by the command line, checked, and refused where damaged."""

from __future__ import annotations

import functools
import json
import pathlib
import zipfile
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import tvm
import uir_tvm
from click.testing import CliRunner
from onnx import TensorProto, helper
from torch import Tensor, nn
from torch.export import Dim
from tvm import relax, te
from uir_tvm import CompileOptions
from uir_tvm.cli import main
from uir_tvm.errors import ArtifactError, NotCompiledError, OpenSizeError, SizeError
from uir_tvm.export.write import write_project
from uir_tvm.frontend.torch_symbols import OpenProgram
from uir_tvm.sizes.saved_sizes import holds


class Scores(nn.Module):
    """A product that the library computes, and a kernel for all sizes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.layer(x)) * 0.5 + x


MODEL = Scores().eval()


@functools.cache
def program() -> torch.export.ExportedProgram:
    return torch.export.export(MODEL, (torch.randn(4, 64),), dynamic_shapes=({0: Dim("n", min=2, max=512)},))


def expect_right(exe: Any, n: int) -> None:
    x = torch.randn(n, 64)
    torch.testing.assert_close(exe(x), MODEL(x).detach(), rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Saved without a call."""
    return uir_tvm.compile(program()).save(tmp_path_factory.mktemp("saved") / "model.uir")


def test_one_copy_of_the_weights_serves_all_sizes(saved: pathlib.Path) -> None:
    loaded = uir_tvm.load(saved)
    for n in (2, 53, 512):
        expect_right(loaded, n)
    assert loaded.compiled == 0
    weights = 64 * 64 * 4
    with zipfile.ZipFile(saved) as archive:
        assert archive.read("all0.uir").count(MODEL.layer.bias.detach().numpy().tobytes()) == 1
        assert archive.getinfo("all0.uir").file_size < 8 * weights
    with pytest.raises(SizeError, match="n cannot be 513"):
        loaded(torch.zeros(513, 64))


def run(*words: Any, code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["--json", *map(str, words)])
    assert result.exit_code == code, result.output
    return dict(json.loads(result.output))


def test_the_command_line(tmp_path: pathlib.Path) -> None:
    file, out = tmp_path / "program.pt2", tmp_path / "model.uir"
    torch.export.save(program(), file)
    made = run("compile", file, "-o", out)
    assert made["programs"] == run("inspect", out)["programs"] and not made["kept"]
    assert made["programs"][0]["conditions"] == ["1 <= x_0 <= 512"]
    assert run("run", out, "--random", "--size", "x_0=37")["outputs"][0]["shape"] == [37, 64]
    assert "1 <= x_0" in run("run", out, "--random", code=10)["need"]
    assert "1 <= x_0" in run("run", out, "--random", "--size", "x_0=0", code=10)["need"]
    kernels = run("inspect", out, "--size", "x_0=5")["kernel_list"]
    text = run("inspect", out, "--kernel", kernels[0]["kernel"], "--stage", "igraph")["igraph"]
    assert "size" in text
    explained = run("inspect", out, "--explain", "--size", "x_0=5")
    assert explained["symbols"]["sizes"] == {"x_0": 5} and explained["symbols"]["input_bytes"] == "256*x_0"
    assert {work["name"].split()[2] for work in explained["library"]} == {"5x64x64"}
    assert run("inspect", out, "--explain")["symbols"]["sizes"]["x_0"] > 5
    assert "1 <= x_0" in run("inspect", out, "--explain", "--size", "x_0=0", code=10)["need"]
    assert run("inspect", out, "--explain", "--size", "y_0=5", code=10)["error"] == "ShapeError"
    shown = CliRunner().invoke(main, ["inspect", str(out)]).output
    assert "for all sizes with 1 <= x_0 <= 512" in " ".join(shown.split())
    assert "bytes moved = " in shown and "*x_0" in shown


def test_sizes_that_do_not_say_which(tmp_path: pathlib.Path) -> None:
    """One lacks, is out of its range, is given twice, is none: what, what is needed, what to do."""
    b, n = tvm.tirx.Var("b", "int64"), tvm.tirx.Var("n", "int64")
    x = te.placeholder((b, n, 8), name="x")
    func = te.create_prim_func([x, te.compute((b, n, 8), lambda *at: te.exp(x[at]), "y")])
    func = func.with_attr("uir.sizes", {"b": [1, 8, 1], "n": [4, 64, 4]})
    out = uir_tvm.compile(func).save(tmp_path / "kernel.uir")
    given = ("run", out, "--random")
    assert run(*given, "--size", "b=2", "--size", "n=8")["outputs"][0]["shape"] == [2, 8, 8]
    for sizes, error, what, need in (
        (["b=2"], "NotCompiledError", "No number is given for n", "4 <= n <= 64"),
        ([], "NotCompiledError", "No number is given for b and n", "1 <= b <= 8"),
        (["b=9", "n=8"], "NotCompiledError", "without code for these shapes", "1 <= b <= 8"),
        (["b=2", "n=6"], "NotCompiledError", "without code for these shapes", "n % 4 == 0"),
        (["b=2", "b=3"], "SizeError", "b is given twice", "one number for each size"),
        (["m=2"], "ShapeError", "no size 'm'", "one of b, n"),
    ):
        options = [word for size in sizes for word in ("--size", size)]
        found = run(*given, *options, code=10)
        assert found["error"] == error and what in found["what"], (sizes, found)
        assert need in found["need"] and found["remedy"], (sizes, found)


def test_onnx_and_relax(tmp_path: pathlib.Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "y"], ["z"]), helper.make_node("Relu", ["z"], ["r"])],
        "test",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 8)),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, (8, "m")),
        ],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, ("n", "m"))],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(proto)
    rows = tvm.tirx.Var("rows", "int64")
    x = relax.Var("x", relax.TensorType((rows, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(relax.op.tanh(builder.emit(relax.op.add(x, x)))))
        builder.emit_func_output(output)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((6, 8), (8, 9)))
    loaded = uir_tvm.load(uir_tvm.compile(proto).save(tmp_path / "onnx.uir"))
    np.testing.assert_allclose(loaded(a, b), np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)
    loaded = uir_tvm.load(uir_tvm.compile(builder.get()).save(tmp_path / "relax.uir"))
    np.testing.assert_allclose(loaded(a), np.tanh(a + a), rtol=1e-5, atol=1e-5)


def test_chosen_sizes_are_saved_alone(tmp_path: pathlib.Path) -> None:
    exe = uir_tvm.compile(program(), options=CompileOptions(specialize=[{"n": 3}]))
    loaded = uir_tvm.load(exe.save(tmp_path / "three.uir"))
    expect_right(loaded, 3)
    with pytest.raises(NotCompiledError, match="without code"):
        loaded(torch.zeros(4, 64))
    expect_right(exe, 4)
    expect_right(uir_tvm.load(exe.save(tmp_path / "both.uir")), 5)


def test_projects_are_of_numbers(tmp_path: pathlib.Path) -> None:
    exe = uir_tvm.compile(program(), "uir-ascend", options=CompileOptions(device="model"))
    loaded = uir_tvm.load(exe.save(tmp_path / "model.uir"))
    with pytest.raises(NotCompiledError, match="for n = 32 alone") as caught:
        write_project(loaded.find({"n": 32}).executable, tmp_path / "other", check=False)
    assert "--size n=32" in caught.value.remedy and not (tmp_path / "other").exists()
    expect_right(exe, 32)
    project = write_project(exe.specialized(torch.zeros(32, 64)), tmp_path / "project", check=False)
    assert project.launches >= 1


def changed(path: pathlib.Path, name: str, change: Any) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()}
    parts[name] = change(parts[name])
    return parts


def without_conditions(manifest: bytes) -> bytes:
    data = json.loads(manifest)
    data["all sizes"][0]["conditions"] = ["__import__('os').getpid() > 0"]
    return json.dumps(data).encode()


def with_other_conditions(manifest: bytes) -> bytes:
    data = json.loads(manifest)
    data["all sizes"][0]["conditions"] = ["n < 2"]
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    "name, change",
    [
        ("all0.json", lambda data: data + b" "),
        ("all0.uir", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        ("manifest.json", lambda data: data.replace(b'"usual"', b'"unusual"')),
        ("manifest.json", lambda data: data.replace(b'"all sizes"', b'"no sizes"')),
        ("manifest.json", without_conditions),
        ("manifest.json", with_other_conditions),
    ],
)
def test_damaged_files_are_refused(
    saved: pathlib.Path, tmp_path: pathlib.Path, name: str, change: Any
) -> None:
    broken = tmp_path / "broken.uir"
    with zipfile.ZipFile(broken, "w") as archive:
        for each, data in changed(saved, name, change).items():
            archive.writestr(each, data)
    with pytest.raises(ArtifactError):
        uir_tvm.load(broken)


def test_files_that_end_too_early_are_refused(saved: pathlib.Path, tmp_path: pathlib.Path) -> None:
    whole = saved.read_bytes()
    for length in (0, 100, len(whole) // 2, len(whole) - 30):
        (tmp_path / "cut.uir").write_bytes(whole[:length])
        with pytest.raises(ArtifactError):
            uir_tvm.load(tmp_path / "cut.uir")


class Asserts(nn.Module):
    """What PyTorch checks of the sizes of its inputs."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        torch._check(x.shape[0] * 2 <= y.shape[0])
        return x + 1 if y.shape[0] % 4 == 0 else x - 1


def test_conditions_of_pytorch_have_texts() -> None:
    shapes = ({0: Dim.AUTO}, {0: Dim.AUTO(max=64)})
    exported = torch.export.export(
        Asserts(), (torch.zeros(3), torch.zeros(8)), dynamic_shapes=shapes, strict=False
    )
    opened = OpenProgram(exported)
    texts = opened.asserted()
    for n, m in ((2, 4), (3, 8), (3, 4), (2, 6), (30, 64), (34, 68)):
        sizes = {"x_0": n, "y_0": m}
        try:
            opened.check(sizes)
            right = True
        except SizeError:
            right = False
        assert all(holds(text, sizes) for text in texts) is right, (sizes, texts)


def test_conditions_without_a_text_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = OpenProgram(program())
    monkeypatch.setattr(opened, "_guards", lambda x: torch._assert(x.stride()[0] == 64, "packed"))
    with pytest.raises(OpenSizeError, match="have no text"):
        opened.asserted()
