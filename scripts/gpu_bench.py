# SPDX-License-Identifier: Apache-2.0
"""uir-cuda against torch, XLA and stock TVM on a GPU.

    python scripts/gpu_bench.py build DIR            # here, without a GPU: modules with cubins
    python DIR/gpu_bench.py run DIR --out RESULTS    # there: torch and a GPU suffice; TVM's runtime is in DIR

    python scripts/gpu_bench.py build DIR --model    # the same on the host model, with small sizes
    python DIR/gpu_bench.py run DIR --model

Every case is checked against float64 before it is timed. RESULTS gets gpu_bench.md and gpu_bench.json.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

# jax would take three quarters of the GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

HERE = pathlib.Path(__file__).resolve().parent
# Beside this file in a folder of artefacts, in benchmarks/ in the source tree.
sys.path.insert(0, str(HERE if (HERE / "gpu").is_dir() else HERE.parent / "benchmarks"))

from gpu import bundle, contenders, measure, models, operators
from gpu import run as runner


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    known = [case.name for case in (*operators.cases(False), *models.cases(False))]
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("build", "fill a folder with artefacts"), ("run", "check and time them")):
        command = commands.add_parser(name, help=text)
        command.add_argument("folder", type=pathlib.Path)
        command.add_argument("--model", action="store_true", help="the host model, with small sizes")
        command.add_argument("--only", default="", help="cases, with commas between: " + ", ".join(known))
    build, run = commands.choices["build"], commands.choices["run"]
    build.add_argument("--target", default="uir-cuda:h200", help="target and hardware model")
    build.add_argument("--arch", default="sm_90a", help="architecture of stock TVM's modules")
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    build.add_argument("--python", default="", help=f"version that runs it (3.12; with --model {here})")
    build.add_argument("--no-stock", action="store_true", help="without stock TVM's modules")
    run.add_argument("--out", type=pathlib.Path, default=pathlib.Path(), help="folder of the results (here)")
    run.add_argument("--check-only", action="store_true", help="no times")
    run.add_argument("--rounds", type=int, default=0, help=f"rounds of measurements ({measure.ROUNDS})")
    run.add_argument("--contenders", default="", help="with commas between: " + ", ".join(contenders.NAMES))
    options = parser.parse_args(arguments)
    try:
        options.only = runner.names(options.only, known)
        if options.command == "run":
            wanted = runner.names(options.contenders, contenders.NAMES)
            few = (contenders.OURS, contenders.EAGER)
            options.contenders = wanted or list(few if options.model else contenders.NAMES)
            options.rounds = options.rounds or (1 if options.model else measure.ROUNDS)
            if contenders.OURS not in options.contenders:
                raise ValueError(f"{contenders.OURS} must be among the contenders")
        else:
            options.python = options.python or (here if options.model else "3.12")
    except ValueError as error:
        parser.error(str(error))
    return options


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 when every case was built, or is right."""
    options = parse(arguments)
    try:
        if options.command == "run":
            return min(1, runner.run(options.folder, options))
        # Only here: it needs uir_tvm.
        from gpu.build import Plan, build

        plan = Plan(
            small=options.model,
            device="model" if options.model else "gpu",
            target=options.target,
            arch=options.arch,
            python=options.python,
            only=tuple(options.only),
            stock=not options.no_stock,
        )
        return min(1, build(options.folder, plan))
    except bundle.MissingError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
