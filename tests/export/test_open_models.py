# SPDX-License-Identifier: Apache-2.0
"""Projects of models that leave sizes open: one build computes what PyTorch does, whatever the sizes."""

from __future__ import annotations

import importlib
import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import uir_tvm  # noqa: E402
from torch.export import Dim  # noqa: E402
from uir_tvm.errors import ExportError, NotCompiledError, ShapeError, SizeError  # noqa: E402
from uir_tvm.export.write import write_project  # noqa: E402

from tests.asked import asked  # noqa: E402

#: A file of a shape that some input has, and numbers of each size.
SIZES = {"b": 64, "n": 96}


class Attend(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Products with biases, heads that are views, scores with a term of their own, a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(32, 96), torch.nn.Linear(96, 32)
        self.queries, self.keys = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32, bias=False)

    def forward(self, x, term):  # type: ignore[no-untyped-def]
        hidden = x + self.down(torch.nn.functional.gelu(self.up(x)))
        batch, length = x.shape[:2]
        queries, keys = (
            part(hidden).view(batch, length, 4, 8).transpose(1, 2) for part in (self.queries, self.keys)
        )
        return hidden, torch.softmax(queries @ keys.transpose(2, 3) + term, -1)


class Images(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Convolutions of images of any size, one of which strides."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.second = torch.nn.Conv2d(8, 4, 3, stride=2, padding=1, bias=False)

    def forward(self, image):  # type: ignore[no-untyped-def]
        return torch.relu(self.second(torch.relu(self.first(image))))


def attend() -> tuple[Any, Any, Any]:
    axes = {0: Dim("b", max=SIZES["b"]), 1: Dim("n", max=SIZES["n"])}
    inputs = (torch.zeros(2, 6, 32), torch.zeros(2, 4, 6, 6))
    return Attend(), inputs, (axes, {0: axes[0], 2: axes[1], 3: axes[1]})


def images() -> tuple[Any, Any, Any]:
    axes = {2: Dim("b", min=8, max=SIZES["b"]), 3: Dim("n", min=8, max=SIZES["n"])}
    return Images(), (torch.zeros(1, 3, 12, 10),), (axes,)


MODELS = {"attend": attend, "images": images}
CASES = asked(
    [("uir-ascend", "attend")], [(f"uir-{kind}", name) for kind in ("ascend", "bang") for name in MODELS]
)


class Built:
    """A model, its file, and its project with the program."""

    def __init__(self, target: str, name: str, folder: pathlib.Path) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(11)
            module, inputs, axes = MODELS[name]()
        self.module, self.inputs = module.eval().requires_grad_(False), inputs
        options = uir_tvm.CompileOptions()
        exe = uir_tvm.compile(
            self.module, target, args=inputs, dynamic_shapes=axes, options=options, name=name
        )
        self.file = exe.save(folder / "model.uir")
        project = write_project(uir_tvm.load(self.file), folder / "project")
        assert project.launches and project.library_calls and not project.on_host
        self.path = project.path
        host = importlib.import_module(f"uir_tvm.target.{target.removeprefix('uir-')}.project_on_model")
        self.program = host.build(project.path, folder / "build")

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [self.program, "--project", self.path, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module", params=CASES, ids=["-".join(case) for case in CASES])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(*request.param, tmp_path_factory.mktemp("open"))


def shaped(shape: tuple[int, ...], like: tuple[int, ...], sizes: dict[str, int]) -> tuple[int, ...]:
    """A shape of example inputs with other sizes in the place of theirs."""
    return tuple(
        sizes[{2: "b", 6: "n", 12: "b", 10: "n"}[extent]] if extent in like else extent for extent in shape
    )


def test_it_checks_itself(built: Built) -> None:
    """With inputs of small sizes, which are kept beside them."""
    kept = dict(line.split("=") for line in (built.path / "check/sizes.txt").read_text().split())
    assert all(int(size) < 32 for size in kept.values()) and set(kept) == {"b", "n"}
    done = built.run("--check")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_one_build_computes_what_torch_does(built: Built, tmp_path: pathlib.Path) -> None:
    """float32 sums of at most 96 terms: 1e-5 of the largest number."""
    rng = np.random.default_rng(2)
    for b, n in ((8, 9), (9, 8), (17, 30)):
        given = []
        for number, example in enumerate(built.inputs):
            shape = shaped(tuple(example.shape), (2, 6, 12, 10), {"b": b, "n": n})
            given.append(rng.standard_normal(shape).astype("float32"))
            given[-1].tofile(tmp_path / f"{number}.bin")
        files = [tmp_path / f"{number}.bin" for number in range(len(given))]
        done = built.run("--size", f"n={n}", "--size", f"b={b}", "--output", tmp_path, *files)
        assert done.returncode == 0, done.stderr
        wanted = built.module(*map(torch.from_numpy, given))
        for i, want in enumerate(wanted if isinstance(wanted, tuple) else (wanted,)):
            got = np.fromfile(tmp_path / f"output{i}.bin", "float32").reshape(want.shape)
            np.testing.assert_allclose(got, want.numpy(), atol=1e-5 * float(want.abs().max()))


def test_wrong_sizes_are_refused_before_anything_runs(built: Built, tmp_path: pathlib.Path) -> None:
    """By name, with what is needed and what to do."""
    (tmp_path / "x.bin").write_bytes(b"")
    files = [tmp_path / "x.bin"] * len(built.inputs)
    for arguments, said in (
        (["--size", "b=8", "--size", "n=97"], "not compiled for b = 8, n = 97.\n  need:   "),
        (["--size", "b=8"], "The size n is missing (--size n=37): those that it leaves open are b, n."),
        (["--size", "b=8", "--size", "n=8", "--size", "m=8"], "The model has no size m"),
        (["--size", "b=8", "--size", "b=8"], "b is given twice"),
        (["--size", "b=-8", "--size", "n=8"], "a name and a whole number"),
        (["--size", "b=8", "--size", "n=8"], "has 0 bytes"),
    ):
        done = built.run(*arguments, *files)
        assert done.returncode == 2 and said in done.stderr, (arguments, done.stderr)
    done = built.run("--size", "b=8", "--size", "n=8")
    assert done.returncode == 2 and "Those of check/inputs have sizes of their own" in done.stderr


def test_inputs_say_the_sizes_to_check_with(built: Built, tmp_path: pathlib.Path) -> None:
    """Those that the project does not take are refused, and so are inputs that disagree."""
    exe = uir_tvm.load(built.file)

    def inputs(b: int, n: int) -> list[np.ndarray]:
        shapes = [shaped(tuple(x.shape), (2, 6, 12, 10), {"b": b, "n": n}) for x in built.inputs]
        return [np.zeros(shape, "float32") for shape in shapes]

    project = write_project(exe, tmp_path / "p", inputs=inputs(9, 11))
    assert (project.path / "check/sizes.txt").read_text() == "b=9\nn=11\n"
    with pytest.raises(SizeError):
        write_project(exe, tmp_path / "q", inputs=inputs(9, 97))
    with pytest.raises(ShapeError):
        write_project(exe, tmp_path / "q", inputs=[*inputs(9, 11)[:-1], inputs(10, 11)[-1][..., :7]])
    assert not (tmp_path / "q").exists()
    assert "sizes.txt" not in {
        path.name for path in write_project(exe, tmp_path / "r", check=False).path.rglob("*")
    }


def test_a_loaded_file_for_all_sizes_has_no_code_for_some_alone(built: Built, tmp_path: pathlib.Path) -> None:
    exe = uir_tvm.load(built.file).find({"b": 8, "n": 8}).executable
    with pytest.raises(NotCompiledError, match="no code for b = 8, n = 8 alone"):
        write_project(exe, tmp_path / "p")


class Chosen(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x, mask):  # type: ignore[no-untyped-def]
        return torch.softmax(x[mask], -1)


class Scanned(torch.nn.Module):  # type: ignore[misc, name-defined]
    """The median along an open axis has no kernel for all sizes."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        return torch.sort(x, dim=1).values


@pytest.mark.parametrize(
    ("module", "inputs", "axes", "said"),
    [
        (Chosen(), (torch.zeros(20, 32), torch.zeros(20) > 0.5), None, "while it runs"),
        (Scanned(), (torch.zeros(4, 6),), ({1: Dim("n", max=64)},), "compiled for the sizes of a call"),
    ],
    ids=["found", "by sizes"],
)
def test_what_no_project_has(module: Any, inputs: Any, axes: Any, said: str, tmp_path: pathlib.Path) -> None:
    exe = uir_tvm.compile(module, "uir-ascend", args=inputs, dynamic_shapes=axes)
    with pytest.raises(ExportError, match=said) as caught:
        write_project(exe, tmp_path / "p")
    assert caught.value.need and caught.value.remedy and not (tmp_path / "p").exists()
