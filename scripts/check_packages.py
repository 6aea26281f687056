# SPDX-License-Identifier: Apache-2.0
"""Build the sdist, install it into a fresh environment of every Python at hand, and compile a model there.

The model is compiled and run outside this folder, so that nothing of the source tree can stand in for what a
package lacks.  A build of the native library takes some minutes; the wheel that the first Python of a version
makes is kept in ``--keep``.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
#: Compiles a matrix product with a softmax on two targets and runs both; prints what the package is.
TRY = """
import json, numpy as np, tvm, uir_tvm
from tvm import relax
builder = relax.BlockBuilder()
x = relax.Var("x", relax.TensorType((8, 64), "float32"))
w = relax.const(np.ones((64, 32), "float32") / 64)
with builder.function("main", [x]):
    builder.emit_func_output(builder.emit(relax.op.nn.softmax(relax.op.matmul(x, w))))
array = np.random.default_rng(0).standard_normal((8, 64)).astype("float32")
for target in ("uir-cpu", "uir-cuda"):
    out = uir_tvm.compile(builder.get(), target=target)(array)
    np.testing.assert_allclose(out, np.full((8, 32), 1 / 32), rtol=1e-5)
print(json.dumps({"version": uir_tvm.__version__, "file": uir_tvm.__file__}))
"""


def pythons(names: list[str]) -> list[str]:
    """The interpreters among these names, and those of pyenv, that are of a version we support."""
    candidates = [found for name in names if (found := shutil.which(name))]
    candidates += map(str, sorted((pathlib.Path.home() / ".pyenv/versions").glob("*/bin/python")))
    found: dict[str, str] = {}
    for path in candidates:
        asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        if version in VERSIONS:
            found.setdefault(version, path)
    return [found[version] for version in VERSIONS if version in found]


def check(python: str, sdist: pathlib.Path, keep: pathlib.Path) -> dict[str, str]:
    """Build the wheel with one interpreter, install it, and try it."""
    with tempfile.TemporaryDirectory(prefix="uir-package-") as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        own = str(pathlib.Path(folder) / "bin/python")
        pip = [own, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        wheels = keep / f"cp{''.join(_version(own).split('.'))}"
        subprocess.run([*pip, "wheel", "--no-deps", "-w", str(wheels), str(sdist)], check=True)
        (wheel,) = wheels.glob("uir_tvm-*.whl")
        constraints = ["-c", str(ROOT / "constraints.txt")]
        subprocess.run([*pip, "install", *constraints, str(wheel)], check=True)
        done = subprocess.run([own, "-c", TRY], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{python}: the installed package does not work\n{done.stdout}{done.stderr}")
        return {"python": python, "wheel": wheel.name, **json.loads(done.stdout.splitlines()[-1])}


def _version(python: str) -> str:
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [f"python{v}" for v in VERSIONS]
    parser.add_argument("--python", nargs="*", default=names, help="interpreters (default: all at hand)")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "dist", help="folder of sdist and wheels")
    args = parser.parse_args()
    found = pythons(args.python)
    if not found:
        raise SystemExit(f"none of {', '.join(args.python)} is a Python of {', '.join(VERSIONS)}")
    args.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="uir-build-") as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        own = str(pathlib.Path(folder) / "bin/python")
        subprocess.run([own, "-m", "pip", "--quiet", "install", "build"], check=True)
        subprocess.run([own, "-m", "build", "--sdist", "--outdir", str(args.keep), str(ROOT)], check=True)
    (sdist,) = args.keep.glob("uir_tvm-*.tar.gz")
    for python in found:
        print(json.dumps(check(python, sdist, args.keep)), flush=True)


if __name__ == "__main__":
    main()
