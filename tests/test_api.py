# SPDX-License-Identifier: Apache-2.0
"""uir_tvm.compile and the executable: kinds of models and tensors, report, bad input."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from tvm import relax
from uir_tvm import CompileOptions
from uir_tvm.errors import FrontendError, ModelFormatError, ShapeError, TargetError

from tests import tiny
from tests.schedule import functions


def test_numpy_in_numpy_out() -> None:
    x = tiny.example()
    y = tiny.executable()(x)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32
    np.testing.assert_allclose(y, tiny.expected(x), atol=tiny.TOLERANCE)


def test_torch_in_torch_out() -> None:
    x = torch.from_numpy(tiny.example()).requires_grad_()
    y = tiny.executable()(x)
    assert isinstance(y, torch.Tensor) and not y.requires_grad
    np.testing.assert_allclose(y.numpy(), tiny.expected(tiny.example()), atol=tiny.TOLERANCE)


def test_a_result_outlives_the_next_call() -> None:
    """Memory is planned statically; results must not be part of the plan."""
    first = tiny.executable()(tiny.example(1))
    kept = first.copy()
    tiny.executable()(tiny.example(2))
    np.testing.assert_array_equal(first, kept)


def test_several_results_and_one_that_is_an_input() -> None:
    exe = uir_tvm.compile(tiny.elementwise(lambda x: (relax.op.exp(x), x), ((3, 5), "float32")))
    x = np.linspace(-1, 1, 15, dtype="float32").reshape(3, 5)
    first, second = exe(x)
    np.testing.assert_allclose(first, np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(second, x)


def test_report_counts_what_was_compiled() -> None:
    report = tiny.executable().report()
    assert report["model"] == "tiny" and report["target"] == "uir-cpu"
    assert (report["library"], report["custom"], report["kernels_through_igraph"]) == (1, 1, 1)
    assert report["kernels_without_igraph"] == []
    assert 0 < report["bytes_after"] < report["bytes_before"]
    assert set(report["seconds"]) >= {"import", "kernel graph", "kernels"}


def test_kernel_graph_is_that_of_the_executable() -> None:
    graph = tiny.executable().kernel_graph
    assert list(graph.kernels) == [kernel.name for kernel in tiny.executable().info.kernels]


def test_progress_reaches_the_last_kernel() -> None:
    seen: list[tuple[str, int, int]] = []
    uir_tvm.compile(tiny.module(), progress=lambda stage, done, total, _: seen.append((stage, done, total)))
    assert [stage for stage, *_ in seen][0] == "import" and seen[-1] == ("kernels", 1, 1)


def test_a_prim_func_is_a_model() -> None:
    exe = uir_tvm.compile(functions.elementwise(6, 10))
    rng = np.random.default_rng(0)
    x, bias = rng.random((6, 10), "float32"), rng.random(10, "float32")
    np.testing.assert_allclose(exe(x, bias), np.exp(x + bias), rtol=1e-6)
    assert exe.kernel_graph is None and exe.report()["kernels_through_igraph"] == 1


def test_operators_beside_call_tir_are_compiled_too() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((60, 128), "float32"))
    with builder.function("main", [x]):
        kernel = builder.add_func(functions.row_sum(), "row_sum")
        with builder.dataflow():
            total = builder.emit(relax.call_tir(kernel, (x,), relax.TensorType((60,), "float32")))
            result = builder.emit_output(relax.op.negative(total))
        builder.emit_func_output(result)
    data = np.random.default_rng(0).random((60, 128), "float32")
    np.testing.assert_allclose(uir_tvm.compile(builder.get())(data), -data.sum(1), rtol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ((), ("takes 1 inputs, 0 were given", "x: float32[4, 32]")),
        ((np.zeros((4, 33), "float32"),), ("wrong shape", "[4, 32]", "[4, 33]", "reshape or pad")),
        ((np.zeros((4, 32), "float64"),), ("wrong dtype", "float32", "float64", "convert it")),
        ((torch.zeros((4, 32), dtype=torch.int64),), ("wrong dtype", "given int64")),
        (([1.0],), ("is a list", "pass a NumPy array")),
    ],
)
def test_wrong_inputs_are_named(inputs: tuple[object, ...], words: tuple[str, ...]) -> None:
    with pytest.raises(ShapeError) as caught:
        tiny.executable()(*inputs)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("target", ["uir-foo", "uir-cpu:foo"])
def test_unknown_target_lists_what_there_is(target: str) -> None:
    with pytest.raises(TargetError) as caught:
        uir_tvm.compile(tiny.module(), target)
    assert "foo" in str(caught.value) and "one of " in caught.value.need and caught.value.remedy


def test_a_symbol_that_does_not_exist() -> None:
    n = tvm.tirx.Var("n", "int64")
    model = tiny.elementwise(relax.op.exp, ((n, 4), "float32"))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="no size 'm'") as caught:
        uir_tvm.compile(model, sizes={"m": 3})
    assert "one of n" in caught.value.need


@pytest.mark.parametrize("model", [object(), torch.nn.Linear(2, 2), tvm.IRModule()])
def test_what_is_no_model(model: object) -> None:
    with pytest.raises(FrontendError) as caught:
        uir_tvm.compile(model)
    assert caught.value.need and caught.value.remedy


@pytest.mark.parametrize("suffix", [".onnx", ".pt2", ".relax.json", ".tir.json", ".igraph", ".txt"])
def test_missing_file(tmp_path: pathlib.Path, suffix: str) -> None:
    with pytest.raises(ModelFormatError) as caught:
        uir_tvm.compile(tmp_path / f"model{suffix}")
    assert f"model{suffix}" in str(caught.value) and caught.value.remedy


@pytest.mark.parametrize("suffix", [".onnx", ".pt2", ".relax.json"])
def test_file_of_another_kind(tmp_path: pathlib.Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"\x00\xffnot a model" * 20)
    with pytest.raises(ModelFormatError) as caught:
        uir_tvm.compile(path)
    assert caught.value.remedy


def test_a_folder_is_no_model(tmp_path: pathlib.Path) -> None:
    (tmp_path / "model.onnx").mkdir()
    for path in (tmp_path, tmp_path / "model.onnx"):
        with pytest.raises(ModelFormatError, match="is a folder"):
            uir_tvm.compile(path)


def test_truncated_torch_program(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ModelFormatError, match="truncated"):
        uir_tvm.compile(path)


def test_token_ids_out_of_range_read_nothing() -> None:
    """A row of the table that does not exist reads as zeros: no crash, no other memory."""
    table = np.random.default_rng(0).random((10, 16), "float32") + 1
    exe = uir_tvm.compile(
        tiny.elementwise(lambda ids: relax.op.take(relax.const(table), ids, axis=0), ((5,), "int64"))
    )
    got = exe(np.array([3, 10**9, -(10**12), 9, 10], "int64"))
    np.testing.assert_array_equal(got[[0, 3]], table[[3, 9]])
    assert not exe.report()["kernels_without_igraph"]
    np.testing.assert_array_equal(got[[1, 2, 4]], 0)


def test_folders_may_be_given_as_text(tmp_path: pathlib.Path) -> None:
    names = ("dump_dir", "override_dir", "database")
    as_text, as_path = (CompileOptions(**dict.fromkeys(names, given)) for given in (str(tmp_path), tmp_path))
    assert as_text == as_path
