# SPDX-License-Identifier: Apache-2.0
"""A model of torch, compiled, exported and built: the project's program computes what torch does."""

from __future__ import annotations

import pathlib
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import uir_tvm  # noqa: E402
from uir_tvm.export.write import write_project  # noqa: E402
from uir_tvm.target.ascend import project_on_model as ascend_host  # noqa: E402


class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Products with biases, two activations, a residual, and heads that are views."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(32, 96), torch.nn.Linear(96, 32)
        self.queries, self.keys = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32, bias=False)

    def forward(self, x):  # type: ignore[no-untyped-def]
        hidden = x + self.down(torch.nn.functional.gelu(self.up(x)))
        heads = [part(hidden).view(2, 10, 4, 8).transpose(1, 2) for part in (self.queries, self.keys)]
        return hidden, torch.sigmoid(heads[0] @ heads[1].transpose(2, 3) * 0.35)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path, torch.nn.Module]:
    folder = tmp_path_factory.mktemp("block")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        module = Block().eval().requires_grad_(False)
    exe = uir_tvm.compile(torch.export.export(module, (torch.zeros(2, 10, 32),)), "uir-ascend", name="block")
    path = exe.save(folder / "block.uir")
    project = write_project(uir_tvm.load(path), folder / "project")
    assert project.launches >= 2 and project.library_calls >= 3 and project.on_host == 0
    return project.path, ascend_host.build(project.path, folder / "build"), module


def test_it_checks_itself(built: tuple[pathlib.Path, pathlib.Path, torch.nn.Module]) -> None:
    project, program, _ = built
    done = subprocess.run([program, "--project", project, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_it_computes_what_torch_does(
    built: tuple[pathlib.Path, pathlib.Path, torch.nn.Module], tmp_path: pathlib.Path
) -> None:
    """float32 sums of at most 96 terms: 1e-5 of the largest number."""
    project, program, module = built
    x = np.random.default_rng(2).standard_normal((2, 10, 32)).astype("float32")
    x.tofile(tmp_path / "x.bin")
    command = [program, "--project", project, "--output", tmp_path, tmp_path / "x.bin"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for i, want in enumerate(module(torch.from_numpy(x))):
        got = np.fromfile(tmp_path / f"output{i}.bin", "float32").reshape(want.shape)
        np.testing.assert_allclose(got, want.numpy(), atol=1e-5 * float(want.abs().max()))
