# SPDX-License-Identifier: Apache-2.0
"""Models with symbols: bound at the call or ahead of time, checked, shared by threads, saved and loaded."""

from __future__ import annotations

import concurrent.futures
import functools
import json
import pathlib
import threading
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from click.testing import CliRunner
from torch import Tensor, nn
from torch.export import Dim
from tvm import relax, te
from tvm.ir import PrimType
from uir_tvm import CompileOptions
from uir_tvm.cli import main
from uir_tvm.errors import ArtifactError, NotCompiledError, ShapeError, SizeError
from uir_tvm.kernel_graph.to_relax import graph_constants
from uir_tvm.runtime import specialized
from uir_tvm.shared_constants import LEAST

op = relax.op


class Related(nn.Module):
    """Two inputs, one of them twice as long; a size among the results."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        return torch.exp(x).reshape(-1, 2, 4).sum(1) + y, x.shape[0] * 3


class Nested(nn.Module):
    """A dictionary, and a number that is a symbol."""

    def forward(self, given: dict[str, Tensor], times: int) -> dict[str, Any]:
        x = given["x"]
        with torch.no_grad():
            places = torch.arange(x.shape[1]) * 2.0
        return {"out": x + places, "count": x.shape[0] * times}


@functools.cache
def program() -> torch.export.ExportedProgram:
    n = Dim("n", min=2, max=64)
    shapes = ({0: 2 * n}, {0: n})
    return torch.export.export(Related(), (torch.randn(8, 4), torch.randn(4, 4)), dynamic_shapes=shapes)


def inputs(n: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(n)
    return torch.randn(2 * n, 4), torch.randn(n, 4)


@functools.cache
def two() -> Any:
    return uir_tvm.compile(program(), options=CompileOptions(specialize=[{"n": 2}, {"n": 5}]))


def expect_right(exe: Any, n: int) -> None:
    got, want = exe(*inputs(n)), Related()(*inputs(n))
    torch.testing.assert_close(got[0], want[0], rtol=1e-5, atol=1e-5)
    assert got[1] == want[1] == 6 * n


def test_derived_sizes_and_sizes_as_results() -> None:
    exe = uir_tvm.compile(program())
    for n in (2, 3, 2):
        expect_right(exe, n)
    assert exe.compiled == 2 and exe.report()["symbols"] == {"n": "from 2 to 64"}
    assert str(exe.info.inputs[0]) == "x: float32[2*n, 4]"


@pytest.mark.parametrize(
    "shapes, error, said",
    [
        (((6, 4), (4, 4)), SizeError, "disagree on n: axis 0 of x is 6, not 8"),
        (((2, 4), (1, 4)), SizeError, "n cannot be 1"),
        (((130, 4), (65, 4)), SizeError, "n cannot be 65"),
        (((4, 5), (2, 4)), ShapeError, "wrong shape"),
        (((4,), (2, 4)), ShapeError, "wrong shape"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_compiled(
    shapes: Any, error: type[Exception], said: str
) -> None:
    before = two().compiled
    with pytest.raises(error, match=said):
        two()(*[torch.zeros(shape) for shape in shapes])
    with pytest.raises(ShapeError, match="wrong dtype"):
        two()(torch.zeros(4, 4), torch.zeros(2, 4, dtype=torch.float64))
    assert two().compiled == before


def test_a_condition_of_the_trace_is_checked() -> None:
    def fours(x: Tensor) -> Tensor:
        return x + 1 if x.shape[0] % 4 == 0 else x - 1

    class Fours(nn.Module):
        forward = staticmethod(fours)

    exe = uir_tvm.compile(Fours(), args=(torch.zeros(8),), dynamic_shapes=({0: Dim.AUTO},))
    assert exe.signature.symbols == ("x_0",)
    assert exe(torch.zeros(12)).sum() == 12
    with pytest.raises(SizeError) as caught:
        exe(torch.zeros(6))
    assert "% 4 == 0" in caught.value.need


def test_numbers_and_nested_arguments() -> None:
    dims = {"given": {"x": {0: Dim("batch"), 1: Dim("length")}}, "times": Dim.DYNAMIC}
    exe = uir_tvm.compile(Nested(), args=({"x": torch.zeros(4, 4)}, 3), dynamic_shapes=dims)
    assert exe.signature.symbols == ("batch", "length", "times")
    for shape, times in (((2, 3), 5), ((0, 3), 5), ((2, 3), 7), ((2, 3), 5)):
        x = torch.ones(shape)
        want = Nested()({"x": x}, times)
        for got in (exe({"x": x}, times), exe(given={"x": x}, times=times)):
            torch.testing.assert_close(got["out"], want["out"])
            assert got["count"] == want["count"]
    assert exe.compiled == 3
    with pytest.raises(ShapeError, match="times is a float"):
        exe({"x": torch.ones(2, 3)}, 5.0)


def test_fixed_sizes_make_a_plain_executable() -> None:
    exe = uir_tvm.compile(program(), sizes={"n": 3})
    assert isinstance(exe, uir_tvm.Executable) and exe.info.inputs[0].shape == (6, 4)
    same = uir_tvm.compile(program(), shapes={"x": (6, 4)})
    assert isinstance(same, uir_tvm.Executable) and same.info.inputs == exe.info.inputs
    with pytest.raises(ShapeError, match="no size 'n'"):
        uir_tvm.compile(Related(), args=inputs(4), sizes={"n": 4})
    with pytest.raises(ShapeError, match="No size is given for n"):
        two().make({})


def test_relax_shapes_numbers_and_unknown_shapes() -> None:
    n, m = tvm.tirx.Var("n", "int64"), tvm.tirx.Var("m", "int64")
    x = relax.Var("x", relax.TensorType((n, 8), "float32"))
    shape = relax.Var("shape", relax.ShapeType([m, 4]))
    any_ = relax.Var("any", relax.TensorType(dtype="float32", ndim=2))
    k = relax.Var("k", PrimType("int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, shape, any_, k]):
        with builder.dataflow():
            doubled = builder.emit(op.concat([x, x], 0))
            cast = builder.match_cast(
                doubled, relax.TensorType((tvm.tirx.Var("twice", "int64"), 8), "float32")
            )
            fields = [op.reshape(x, shape), op.exp(any_), op.full((k, k + 1), relax.const(2.0)), op.exp(cast)]
            output = builder.emit_output(relax.Tuple([builder.emit(field) for field in fields]))
        builder.emit_func_output(output)
    exe = uir_tvm.compile(builder.get())
    assert exe.signature.symbols == ("n", "m", "any_0", "any_1", "k")
    for rows, size in ((2, 3), (4, 1)):
        given = np.ones((rows, 8), "float32")
        got = exe(given, (2 * rows, 4), np.zeros((size, 2), "float32"), size)
        assert [part.shape for part in got] == [(2 * rows, 4), (size, 2), (size, size + 1), (2 * rows, 8)]
        np.testing.assert_allclose(got[3], np.exp(np.ones((2 * rows, 8))), rtol=1e-5)
    with pytest.raises(SizeError, match="Axis 1 of shape is 5"):
        exe(given, (4, 5), np.zeros((3, 2), "float32"), 1)
    with pytest.raises(SizeError, match="cannot be computed with n = 4, m = 9"):
        exe(given, (9, 4), np.zeros((3, 2), "float32"), 1)


def kernel() -> tvm.tirx.PrimFunc:
    n = tvm.tirx.Var("n", "int64")
    given = te.placeholder((n, 8), name="given")
    return te.create_prim_func([given, te.compute((n, 8), lambda i, j: given[i, j] * 2.0, name="twice")])


def test_kernels_with_symbols() -> None:
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        twice = builder.add_func(kernel(), "twice")
        with builder.dataflow():
            called = builder.emit(relax.call_tir(twice, x, relax.TensorType((n, 8), "float32")))
            output = builder.emit_output(called)
        builder.emit_func_output(output)
    for model in (builder.get(), kernel()):
        exe = uir_tvm.compile(model)
        for rows in (1, 5):
            np.testing.assert_array_equal(exe(np.ones((rows, 8), "float32")), np.full((rows, 8), 2.0))
        assert all(each["kernels_through_igraph"] for each in exe.report()["specializations"])


def test_threads_compile_a_shape_once() -> None:
    exe, given = uir_tvm.compile(program()), inputs(7)
    ready = threading.Barrier(4)

    def call(_: int) -> Tensor:
        ready.wait()
        return exe(*given)[0]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for got in pool.map(call, range(4)):
            torch.testing.assert_close(got, Related()(*given)[0], rtol=1e-5, atol=1e-5)
    assert exe.compiled == 1 and exe.report()["kept"][0]["calls"] == 4


def test_what_is_made_ahead_of_time_is_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialized, "KEPT", 1)
    exe = uir_tvm.compile(program(), options=CompileOptions(specialize=[{"n": 2}]))
    for n in (3, 4, 2):
        expect_right(exe, n)
    assert [(row["sizes"]["n"], row["made"]) for row in exe.report()["kept"]] == [
        (2, "ahead of time"),
        (4, "at the call"),
    ]
    assert exe.compiled == 3


def test_saved_with_code_for_two_shapes(tmp_path: pathlib.Path) -> None:
    path = two().save(tmp_path / "two.uir")
    loaded = uir_tvm.load(path)
    for n in (2, 5):
        expect_right(loaded, n)
    with pytest.raises(NotCompiledError) as caught:
        loaded(*inputs(4))
    assert "n = 2; n = 5" in caught.value.need
    with pytest.raises(SizeError, match="disagree on n"):
        loaded(torch.zeros(6, 4), torch.zeros(4, 4))
    expect_right(uir_tvm.load(loaded.save(tmp_path / "again.uir")), 5)
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], whole.replace(b'"sizes"', b'"sixes"', 1)):
        (tmp_path / "broken.uir").write_bytes(broken)
        with pytest.raises(ArtifactError):
            uir_tvm.load(tmp_path / "broken.uir")


def run(*words: Any, code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["--json", *map(str, words)])
    assert result.exit_code == code, result.output
    return dict(json.loads(result.output))


def test_the_command_line(tmp_path: pathlib.Path) -> None:
    file, out = tmp_path / "program.pt2", tmp_path / "two.uir"
    torch.export.save(program(), file)
    found = run("check", file, code=10)
    assert found["counts"] == {"call": 1} and len(found["symbols"]) == 1
    (name,) = found["symbols"]
    assert run("check", file, "--size", f"{name}=3")["compiles"]
    assert name in run("compile", file, "-o", out, code=10)["remedy"]
    made = run("compile", file, "-o", out, "--specialize", f"{name}=2", "--specialize", f"{name}=5")
    assert [row["sizes"] for row in made["kept"]] == [{name: 2}, {name: 5}]
    assert run("inspect", out)["symbols"] == found["symbols"]
    assert run("run", out, "--random", "--size", f"{name}=5")["outputs"][0]["shape"] == [5, 4]
    assert run("run", out, "--random", code=10)["error"] == "NotCompiledError"


def test_shapes_share_their_weights() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).eval()
    exe = uir_tvm.compile(model, args=(torch.randn(4, 64),), dynamic_shapes=({0: Dim("n")},))
    first, second = (exe.make({"n": n}).executable.kernel_graph for n in (2, 3))
    held = [
        {
            int(tensor.constant.value.__chandle__())
            for tensor in graph_constants(graph)
            if tensor.bytes >= LEAST
        }
        for graph in (first, second)
    ]
    assert held[0] and held[0] == held[1]


class Lengths(nn.Module):
    """Only how long a tensor without elements is matters."""

    def forward(self, x: Tensor, nothing: Tensor) -> Tensor:
        return x * nothing.shape[0]


def test_a_tensor_without_elements_says_a_size() -> None:
    """What has no elements is a constant, but not how many it does not have."""
    dims = ({0: Dim("rows", max=64)}, {0: Dim("length", max=64)})
    exe = uir_tvm.compile(Lengths(), args=(torch.ones(3), torch.zeros(5, 0)), dynamic_shapes=dims)
    for rows, length in ((3, 5), (4, 7), (4, 9)):
        got = exe(torch.ones(rows), torch.zeros(length, 0))
        torch.testing.assert_close(torch.as_tensor(np.asarray(got)), torch.full((rows,), float(length)))
    assert exe.report()["imported_by_shape"] == ""
