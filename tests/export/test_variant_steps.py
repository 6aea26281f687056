# SPDX-License-Identifier: Apache-2.0
"""Variants in projects: a run launches the first whose ranges its sizes meet, as the runtime here does."""

from __future__ import annotations

import importlib
import math
import pathlib
import re
import subprocess
from typing import Any

import attrs
import numpy as np
import pytest
import uir_tvm
from tvm import te, tirx, topi
from uir_tvm import CompileOptions, variants
from uir_tvm.export.device_program import WORKING, Buffer, HostProgram, KernelStep, VariantSteps
from uir_tvm.export.kernel_call import KernelLaunches
from uir_tvm.export.open_sizes import OpenSizes
from uir_tvm.export.program_text import launched
from uir_tvm.export.variant_steps import launches, taken_texts
from uir_tvm.export.write import write_project
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.runtime.model_info import KernelInfo
from uir_tvm.schedule.size_ranges import SizeRanges

from tests.asked import asked

#: Whatever the model says of them, so that there are variants on every device.
RANGES = SizeRanges(rows=(4, 9), lengths=(), rows_by_length=(), gain=0.0)
ROW = {"low": 0, "high": 40, "multiple_of": 1}


def softmax() -> tirx.PrimFunc:
    """Softmax of some rows of 24."""
    x = te.placeholder((tirx.Var("n", "int64"), 24), name="x")
    func = te.create_prim_func([x, topi.nn.softmax(x, -1)]).with_attr("global_symbol", "softmax")
    return with_sizes(func, {"n": Size("n", 1, 200)})


def silenced(text: str, kernel: str) -> str:
    """A kernel that does nothing."""
    found = re.search(rf"void {kernel}\([^)]*\) {{\n", text)
    assert found is not None, kernel
    return text[: found.end()] + "  return;\n" + text[found.end() :]


@pytest.mark.parametrize("target", asked(["uir-bang"], ["uir-ascend", "uir-bang"]))
def test_a_run_takes_the_first_variant_that_its_sizes_meet(
    target: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides of every border are right; where a variant writes nothing, its sizes alone go wrong."""
    kind = target.removeprefix("uir-")
    monkeypatch.setattr(variants, "SIZE_RANGES", {kind: RANGES})
    exe: Any = uir_tvm.compile(softmax(), target, options=CompileOptions(variants="faster"))
    project = write_project(uir_tvm.load(exe.save(tmp_path / "softmax.uir")), tmp_path / "p")
    text = (project.path / "model.cpp").read_text()
    assert "if (1 <= n && n <= 4) {" in text and "} else if (1 <= n && n <= 9) {" in text
    assert "- `1 <= n <= 4`\n- `1 <= n <= 9`" in (project.path / "README.md").read_text()
    assert project.launches == 1
    host = importlib.import_module(f"uir_tvm.target.{kind}.project_on_model")

    def wrong(rows: int, program: pathlib.Path) -> float:
        """How far the program's result is from what NumPy computes."""
        x = np.random.default_rng(rows).standard_normal((rows, 24)).astype("float32")
        x.tofile(tmp_path / "x.bin")
        command = [program, "--project", project.path, "--size", f"n={rows}", "--output", tmp_path]
        done = subprocess.run([*command, tmp_path / "x.bin"], capture_output=True, text=True, timeout=120)
        if "nothing wrote" in done.stderr:
            return math.inf
        assert done.returncode == 0, done.stderr
        got = np.fromfile(tmp_path / "output0.bin", "float32").reshape(rows, 24)
        want = np.exp(x - x.max(-1, keepdims=True))
        return float(np.abs(got - want / want.sum(-1, keepdims=True)).max())

    # sums of 24 numbers and a vector unit's exponential
    if asked(False, True):
        program = host.build(project.path, tmp_path / "build", objects=tmp_path / "objects")
        assert all(wrong(rows, program) < 1e-6 for rows in (1, 4, 5, 9, 10))
    (file,) = (project.path / "kernels").glob("softmax_n_9.*")
    file.write_text(silenced(file.read_text(), "softmax_n_9"))
    program = host.build(project.path, tmp_path / "again", objects=tmp_path / "objects")
    assert all(wrong(rows, program) < 1e-6 for rows in (1, 4, 10))
    assert all(wrong(rows, program) == math.inf for rows in (5, 9))


def code(**fields: Any) -> dict[str, Any]:
    """What is kept of a kernel of one launch, with a workspace that follows its size."""
    params = [{"name": name} for name in "xy"]
    row = {"name": "k", "grid": 8, "params": ["x", "w", "y"], "groups": "(n + 3) // 4"}
    workspace = [{"name": "w", "bytes": 0, "item_bytes": 4, "dims": ["n - 2"]}]
    return {
        "params": params,
        "workspace": workspace,
        "launches": [row],
        "sizes": [{"name": "n", **ROW}],
    } | fields


def chosen(shape: tuple[Any, ...], few: bool = True) -> tuple[Any, Any, dict[str, Buffer]]:
    """The launches of a kernel of n rows with a variant for up to 4 rows and one for one alone."""
    ranges = [[{"name": "n", "low": 1, "high": 1, "multiple_of": 1}], [{"name": "n", **ROW, "high": 4}]]
    rows = [
        {"kernel": "one", "ranges": ranges[0], "code": code(sizes=[], workspace=[], launches=[])},
        {"kernel": "few", "ranges": ranges[1], **({"code": code()} if few else {})},
    ]
    whole = KernelInfo("whole", "", "", "", code=code(shapes=[["n", 8]] * 2), variants=rows)
    buffers = {name: Buffer(name, "float32", shape, 0, WORKING) for name in ("a", "b")}
    open_sizes = OpenSizes(("rows",), (), {"rows": 7})
    call = KernelLaunches(whole.code, ("a", "b"), buffers, open_sizes, {"n": shape[0]})
    return *launches(whole, ("a", "b"), buffers, call, "w_"), buffers


def test_conditions_and_launches_are_in_terms_of_the_program_s_sizes() -> None:
    """What a variant's launches hand over is not less than nothing where they do not run."""
    steps, (one, few), buffers = chosen(("2*rows", 8))
    assert one == VariantSteps(("2 * rows == 1",), ())
    assert few.conditions == ("2 * rows <= 4",)
    assert few.steps == (KernelStep("k", 8, ("a", "w_1_w", "b"), "(2 * rows + 3) // 4", ("2 * rows",)),)
    assert steps[0].operands == ("a", "w_w", "b")
    assert buffers["w_w"].shape == ("2 * rows - 2", 4)
    assert buffers["w_1_w"].shape == ("max(0, 2 * rows - 2)", 4)


def test_where_a_call_s_shape_is_a_number_the_variant_is_known() -> None:
    """It takes the place of the kernel, or is none."""
    steps, found, _ = chosen((1, 8))
    assert (steps, found) == ((), ())
    steps, found, _ = chosen((3, 8))
    assert steps[0].operands == ("a", "w_0_w", "b") and found == ()
    steps, found, _ = chosen((5, 8))
    assert steps[0].operands == ("a", "w_w", "b") and found == ()


def test_a_variant_without_code_leaves_its_sizes_to_the_kernel() -> None:
    _, found, _ = chosen(("rows", 8), few=False)
    assert [each.conditions for each in found] == [("rows == 1",)]


def test_when_a_size_lies_in_a_range() -> None:
    assert taken_texts("n", ROW) == ["n <= 40"]
    assert taken_texts("n + 1", {"low": 4, "high": 64, "multiple_of": 4}) == [
        "4 <= n + 1 <= 64",
        "(n + 1) % 4 == 0",
    ]
    assert taken_texts("b * n", {"low": 1, "high": 1, "multiple_of": 1}) == ["b * n == 1"]


def test_kernels_of_variants_are_launched_and_live_with_their_node() -> None:
    steps, found, buffers = chosen(("rows", 8))
    from uir_tvm.export.arena import plan
    from uir_tvm.export.device_program import NodeSteps

    variant = attrs.evolve(found[1], steps=(attrs.evolve(found[1].steps[0], function="few"),))
    group = NodeSteps("title", steps, (variant,))
    program = HostProgram("m", "h", buffers, (group,), (), (), {}, None, plan([]))
    assert launched(program) == ["few", "k"]
    assert [step.function for step in program.steps()] == ["k"]
