# SPDX-License-Identifier: Apache-2.0
"""The command ``uir`` as a user types it: output, JSON, exit codes, messages, files left behind."""

from __future__ import annotations

import json
import logging
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
import uir_tvm
from click.testing import CliRunner, Result
from onnx import TensorProto, helper
from uir_tvm.cli import main
from uir_tvm.optimize import FIRST, PASSES
from uir_tvm.options import DEVICES, TOOLKITS
from uir_tvm.target.registry import TARGETS
from uir_tvm.toolkits import Toolkit

from tests import tiny

KERNEL = "layer_norm_softmax"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """The command sets up logging for its process."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def uir(*args: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, [str(arg) for arg in args])


def ok(*args: object) -> Result:
    """Run the command, which must succeed."""
    result = uir(*args)
    assert result.exit_code == 0, result.output
    return result


def refused(code: int, *args: object) -> str:
    """Run the command, which must end with that code and a message without traceback."""
    result = uir(*args)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.stderr and result.stdout == ""
    return result.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The tiny model as a dump."""
    return tiny.relax_dump(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def compiled(model: pathlib.Path) -> pathlib.Path:
    """What `uir compile` wrote."""
    ok("compile", model, "--dump", model.parent / "stages")
    return model.with_suffix(".uir")


def onnx_model(*operators: str) -> onnx.ModelProto:
    """A chain of operators on fp32 [2, 3]."""
    names = ["x", *(f"t{i}" for i in range(len(operators) - 1)), "y"]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(operators)]
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    graph = helper.make_graph(nodes, "test", value[:1], value[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_compile_says_what_came_of_it(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    result = ok("compile", model, "-o", tmp_path / "out.uir")
    assert "every custom kernel went through an iGraph" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out.uir"]


def test_compile_onnx_with_shapes(tmp_path: pathlib.Path) -> None:
    proto = onnx_model("Exp", "Neg")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    np.save(tmp_path / "x.npy", np.zeros((5, 3), "float32"))
    for words in (("--shape", "x=5x3"), ()):  # for one shape, for all
        ok("compile", path, *words)
        ok("run", tmp_path / "model.uir", "--input", tmp_path / "x.npy", "-o", tmp_path / "y.npz")
        np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["output0"], -np.ones((5, 3)))


def test_compile_onnx_with_values(tmp_path: pathlib.Path) -> None:
    """An input that decides a shape becomes a constant, by a text or a file."""
    nodes = [onnx.helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    inputs = [
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (2, 3)),
        onnx.helper.make_tensor_value_info("axes", onnx.TensorProto.INT64, (1,)),
    ]
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ("n",))
    graph = onnx.helper.make_graph(nodes, "sum", inputs, [output])
    path = tmp_path / "sum.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)]), path)
    assert "'axes' decides" in refused(9, "compile", path)
    np.save(tmp_path / "axes.npy", np.array([1]))
    np.save(tmp_path / "x.npy", np.ones((2, 3), "float32"))
    for value in ("axes=[1]", f"axes={tmp_path / 'axes.npy'}"):
        ok("compile", path, "--value", value)
        ok("run", tmp_path / "sum.uir", "--input", tmp_path / "x.npy", "-o", tmp_path / "y.npz")
        np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["output0"], [3, 3])
    for value in ("axes=one", "axes=nowhere.npy", "[1]"):
        assert "--value" in refused(2, "compile", path, "--value", value)


def test_run_reads_and_writes_arrays(compiled: pathlib.Path, tmp_path: pathlib.Path) -> None:
    x = tiny.example()
    np.save(tmp_path / "x.npy", x)
    ok("run", compiled, "--input", tmp_path / "x.npy", "-o", tmp_path / "y")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "y.npz"]
    got = np.load(tmp_path / "y.npz")["output0"]
    np.testing.assert_allclose(got, tiny.expected(x), atol=tiny.TOLERANCE)


@pytest.mark.parametrize("place", ["before", "after"])
def test_json_may_stand_before_and_after_the_command(compiled: pathlib.Path, place: str) -> None:
    args = ["run", compiled, "--random", "--repeat", "3"]
    data = json.loads(ok(*(["--json", *args] if place == "before" else [*args, "--json"])).stdout)
    assert data["outputs"][0]["shape"] == [tiny.ROWS, tiny.WIDTH] and data["median_seconds"] > 0
    assert data["outputs"][0]["mean"] == pytest.approx(1 / tiny.WIDTH, rel=1e-5), "rows of a softmax sum to 1"


def test_inspect_lists_the_kernels(compiled: pathlib.Path) -> None:
    assert KERNEL in ok("inspect", compiled).stdout
    data = json.loads(ok("inspect", compiled, "--json").stdout)
    assert data["kernel_list"] == [
        {"kernel": KERNEL, "hero": "normalization", "recipe": "normalization", "igraph": True}
    ]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("--stage", "relax"), "R.call_dps_packed"),
        (("--stage", "tir", "--kernel", KERNEL), "uir.parallel"),
        (("--stage", "igraph", "--kernel", KERNEL), f"igraph {KERNEL} on host"),
        (("--stage", "source", "--kernel", KERNEL), "T.Ramp"),
    ],
)
def test_inspect_shows_every_stage(compiled: pathlib.Path, args: tuple[str, ...], word: str) -> None:
    assert word in ok("inspect", compiled, *args).stdout


@pytest.mark.parametrize("args", [(), ("--stage", "relax"), ("--kernel", KERNEL), ("--explain",)])
def test_inspect_loads_no_code(
    compiled: pathlib.Path, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is only looked at may come from anywhere."""
    monkeypatch.setattr("tvm_ffi.load_module", lambda *_, **__: pytest.fail("code is loaded"))
    ok("inspect", compiled, *args)


def test_inspect_shows_all_stages_of_a_kernel(compiled: pathlib.Path) -> None:
    data = json.loads(ok("--json", "inspect", compiled, "--kernel", KERNEL).stdout)
    assert set(data) == {"kernel", "tir", "igraph", "optimize", "source"}


def test_dumps_compile(compiled: pathlib.Path, tmp_path: pathlib.Path) -> None:
    stages = compiled.parent / "stages"
    for name in (f"{KERNEL}.tir.json", f"{KERNEL}.igraph", "tiny.relax.json"):
        ok("compile", stages / name, "-o", tmp_path / "k.uir")
        ok("run", tmp_path / "k.uir", "--random")


def test_override_changes_the_result(tmp_path: pathlib.Path) -> None:
    onnx.save(onnx_model("LeakyRelu"), tmp_path / "model.onnx")
    stages = tmp_path / "stages"
    ok("compile", tmp_path / "model.onnx", "--dump", stages)
    (path,) = stages.glob("*.opt.igraph")
    assert "0.01" in path.read_text()
    path.write_text(re.sub(r"0\.0(10*\d*|099\d+)", "0.5", path.read_text()))
    for other in stages.iterdir():
        if other != path:
            other.unlink()
    ok("compile", tmp_path / "model.onnx", "--override", stages)
    np.save(tmp_path / "x.npy", np.full((2, 3), -4, "float32"))
    ok("run", tmp_path / "model.uir", "--input", tmp_path / "x.npy", "-o", tmp_path / "y.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["output0"], np.full((2, 3), -2))


def test_targets_and_doctor() -> None:
    rows = json.loads(ok("targets", "--json").stdout)
    models = {"uir-cpu": "host", "uir-cuda": "h200", "uir-ascend": "910b2", "uir-bang": "mlu370-x8"}
    assert [row["target"] for row in rows] == list(models)
    assert all(models[row["target"]] in row["hardware models"] for row in rows)
    assert all(row["state"].startswith("ready (") for row in rows[1:])
    checks = {row["check"]: row["state"] for row in json.loads(ok("doctor", "--json").stdout)}
    assert checks["apache-tvm"] == checks["native library"] == "ok" and "UIR_DUMP_DIR" in checks
    assert "uir-cpu" in ok("targets").stdout and "native library" in ok("doctor").stdout


@pytest.mark.parametrize("command", [(), ("compile",), ("run",), ("inspect",), ("targets",), ("doctor",)])
def test_help(command: tuple[str, ...]) -> None:
    text = ok(*command, "--help").stdout
    assert "--json" in text and "Usage:" in text


@pytest.mark.parametrize(
    "args",
    [
        ("frobnicate",),
        ("compile",),
        ("compile", "m.onnx", "--shape", "x=axb"),
        ("run", "m.uir", "--random", "--input", "x.npy"),
        ("run", "m.uir", "--repeat", "0"),
        ("inspect", "m.uir", "--stage", "igraph"),
        ("inspect", "m.uir", "--stage", "nonsense"),
    ],
)
def test_wrong_usage(args: tuple[str, ...]) -> None:
    assert refused(2, *args)


def test_a_wrong_shape_names_its_option() -> None:
    assert "'--shape'" in refused(2, "compile", "m.onnx", "--shape", "x=axb")


def test_unknown_kernel(compiled: pathlib.Path) -> None:
    assert KERNEL in refused(2, "inspect", compiled, "--kernel", "nope")


def test_bad_models_leave_no_file(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Each with its own class, remedy and exit code."""
    onnx.save(onnx_model("Exp"), tmp_path / "cut.onnx")
    (tmp_path / "cut.onnx").write_bytes((tmp_path / "cut.onnx").read_bytes()[:40])
    onnx.save(onnx_model("Exp", "Frobnicate"), tmp_path / "unknown.onnx")
    (tmp_path / "model.txt").write_text("")
    out = tmp_path / "out.uir"
    cases: list[tuple[int, str, list[object]]] = [
        (9, "ModelFormatError", [tmp_path / "cut.onnx"]),
        (9, "Frobnicate", [tmp_path / "unknown.onnx"]),
        (9, "There is no file", [tmp_path / "absent.onnx"]),
        (9, "no known kind", [tmp_path / "model.txt"]),
        (4, "no target 'uir-foo'", [model, "--target", "uir-foo"]),
        (4, "no hardware model 'foo'", [model, "--target", "uir-cpu:foo"]),
    ]
    for code, words, args in cases:
        message = refused(code, "compile", *args, "-o", out)
        assert words in message and "remedy:" in message
        assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.onnx", "model.txt", "unknown.onnx"]


def test_the_destination_is_checked_before_the_model_is_read(tmp_path: pathlib.Path) -> None:
    assert "no folder" in refused(11, "compile", "absent.onnx", "-o", tmp_path / "absent" / "out.uir")


def test_bad_inputs_and_files_of_run(compiled: pathlib.Path, tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 3), "float32"))
    (tmp_path / "bad.npy").write_text("text")
    (tmp_path / "bad.uir").write_bytes(compiled.read_bytes()[:5000])
    assert "wrong shape" in refused(10, "run", compiled, "--input", tmp_path / "x.npy")
    assert "0 were given" in refused(10, "run", compiled)
    assert "numpy.save" in refused(10, "run", compiled, "--input", tmp_path / "bad.npy")
    assert "is truncated" in refused(11, "run", tmp_path / "bad.uir", "--random")
    assert "no file" in refused(11, "inspect", tmp_path / "absent.uir")
    assert "cannot be written" in refused(
        11, "run", compiled, "--random", "-o", tmp_path / "absent" / "y.npz"
    )


def test_errors_as_json(tmp_path: pathlib.Path) -> None:
    result = uir("compile", tmp_path / "absent.onnx", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 9 and data["error"] == "ModelFormatError" and data["remedy"]
    result = uir("--json", "run")
    assert result.exit_code == 2 and json.loads(result.stdout)["error"] == "MissingParameter"


def test_faults_of_the_compiler(model: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short message; -vv shows where it was raised."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("InternalError: Check failed: (x > 0)\nmore lines")

    monkeypatch.setattr("uir_tvm.api.compile", fail)
    message = refused(70, "compile", model)
    assert "Check failed" in message and "more lines" not in message and "-vv" in message
    result = uir("compile", model, "-vv")
    assert result.exit_code == 70 and "Traceback" in result.stderr


def test_installed_command(tmp_path: pathlib.Path) -> None:
    """In a process of its own: nothing but JSON on standard output, the exit code of the error."""
    command = [sys.executable, "-m", "uir_tvm.cli", "run", str(tmp_path / "absent.uir"), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 11 and json.loads(run.stdout)["error"] == "ArtifactError"
    assert "Traceback" not in run.stderr


def test_passes_lists_the_table() -> None:
    names = [row["pass"] for row in json.loads(ok("passes", "--json").stdout)]
    assert names == [row.name for row in (*FIRST, *PASSES)]
    shown = ok("passes").stdout
    assert all(name in shown for name in names)


def test_passes_of_ones_own(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """What the passes changed stands above the graph that the target got."""
    ok("compile", model, "-o", tmp_path / "none.uir", "--passes", "none")
    more = ("--passes", "dead,allocate", "--fast-math", "--convolution", "direct", "--fusion", "merged")
    more = (*more, "--attention", "kernel")
    ok("compile", model, "-o", tmp_path / "some.uir", *more)
    args = ("--kernel", KERNEL, "--stage", "optimize")
    none, some = (ok("inspect", tmp_path / name, *args).stdout for name in ("none.uir", "some.uir"))
    assert "# load_cse: " in none and "# allocate" not in none  # what every graph goes through
    assert 0 < some.index("# load_cse: ") < some.index("# allocate: ") < some.index("hardware ")
    said = refused(13, "compile", model, "-o", tmp_path / "bad.uir", "--passes", "speed")
    assert "load_cse, store_load_forwarding" in said


def test_a_device_target_from_model_to_result(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Compile for the host model of a GPU, look at the text, run: as for the CPU, and right."""
    out, stages = tmp_path / "out.uir", tmp_path / "stages"
    compile_options = ("--target", "uir-cuda:a100", "--device", "model", "--dump", stages)
    report = json.loads(ok("compile", model, "-o", out, "--json", *compile_options).stdout)
    assert (report["target"], report["device"]) == ("uir-cuda:a100", "model")
    assert report["kernels_without_igraph"] == []
    text = ok("inspect", out, "--kernel", KERNEL, "--stage", "source").stdout
    assert "__global__" in text and (stages / f"{KERNEL}.cu").read_text().strip() == text.strip()
    np.save(tmp_path / "x.npy", tiny.example())
    ok("run", out, "--input", tmp_path / "x.npy", "-o", tmp_path / "y.npz")
    got = np.load(tmp_path / "y.npz")["output0"]
    np.testing.assert_allclose(got, tiny.expected(tiny.example()), atol=tiny.TOLERANCE)
    explained = json.loads(ok("inspect", out, "--explain", "--json").stdout)
    assert "a100" in json.dumps(explained)


@pytest.mark.parametrize("row", TOOLKITS, ids=[row.option for row in TOOLKITS])
def test_a_version_of_a_toolkit_is_chosen(row: Toolkit, model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """By the option, else by the variable; the text says which, and another is wrong usage."""
    file, earliest = tmp_path / "m.uir", row.versions[0]
    command = ("compile", model, "--target", row.target, "--device", "model", "-o", file)
    for version in row.versions:
        ok(*command, f"--{row.option}", version)
        sources = [kernel.texts["source"] for kernel in uir_tvm.load(file).info.kernels]
        assert sources and row.said_by(sources) == version
    refused(2, *command, f"--{row.option}", "1")
    env = {row.variable: "1"}
    told = CliRunner().invoke(main, [str(arg) for arg in command], env=env)
    assert told.exit_code not in (0, 2) and row.variable in told.stderr and earliest in told.stderr
    assert f"--{row.option}" in ok("compile", "--help").output


def test_a_device_that_the_target_has_not(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    said = refused(4, "compile", model, "-o", tmp_path / "out.uir", "--device", "gpu")
    assert "uir-cpu does not run on 'gpu'" in said and "one of auto, cpu" in said


def test_every_place_can_be_asked_for() -> None:
    """The choices of --device are the places of all targets, and the choice among them."""
    assert set(DEVICES) == {"auto"} | {place.name for spec in TARGETS.values() for place in spec.places}


def test_a_target_that_is_none(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """What is said tells a wrong name, wrong hardware and an option from each other."""
    out = tmp_path / "out.uir"
    assert "one of uir-cpu" in refused(4, "compile", model, "-o", out, "--target", "bang")
    assert "one of mlu370-x4" in refused(4, "compile", model, "-o", out, "--target", "uir-bang:mlu")
    said = refused(4, "compile", model, "-o", out, "--target", "uir-bang -cores=3")
    assert "takes no options" in said and "TARGET:HARDWARE" in said and not out.exists()


def test_modelled_times_say_what_is_assumed(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Of hardware of which not all is published; the file remembers for what it was compiled."""
    out, trace = tmp_path / "out.uir", tmp_path / "trace.json"
    ok("compile", model, "-o", out, "--target", "uir-bang:mlu590", "--device", "model")
    report = json.loads(ok("inspect", out, "--json").stdout)
    assert report["hardware"] == "mlu590" and "clock_hz" in report["assumed_figures"]
    found = json.loads(ok("run", out, "--random", "--timeline", trace, "--json").stdout)["modelled"]
    assert found["assumed_figures"] == report["assumed_figures"]
    least = tiny.expected(tiny.example()).nbytes
    assert least <= found["bytes"] <= 16 * least, "bytes of global memory alone"
    events = json.loads(trace.read_text())["traceEvents"]
    assert {"COMPUTE", "IO"} <= {event["tid"] for event in events}
    said = " ".join(ok("inspect", out, "--modelled").stdout.split())
    assert "assumed of mlu590, since nobody publishes it: transfer_bytes, clusters" in said


def test_doctor_knows_what_cuda_needs() -> None:
    rows = {row["check"]: row for row in json.loads(ok("doctor", "--json").stdout)}
    assert {rows[name]["state"] for name in ("GPU", "CUDA compiler", "CUDA host model")} <= {"ok", "absent"}
    assert all(rows[name]["detail"] for name in ("GPU", "CUDA compiler", "CUDA host model"))
