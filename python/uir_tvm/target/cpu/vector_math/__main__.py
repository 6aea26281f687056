# SPDX-License-Identifier: Apache-2.0
"""Print the largest error and the time of every function, as the table of `docs/numerics.md`."""

from __future__ import annotations

import argparse

from .functions import MATH
from .measure_accuracy import REFERENCES, measure_error, nanoseconds_per_element


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m uir_tvm.target.cpu.vector_math", description=__doc__)
    parser.add_argument("--stride", type=int, default=1021, help="measure every STRIDE-th float32")
    parser.add_argument("--low", type=float, default=0.0, help="smallest magnitude")
    parser.add_argument("--high", type=float, default=float("nan"), help="largest magnitude (default: any)")
    parser.add_argument("names", nargs="*", default=list(REFERENCES), help="functions (default: all)")
    options = parser.parse_args()
    print("| function | largest error (ULP) | at x = | ns per element |")
    print("|---|---|---|---|")
    for name in options.names:
        worst = measure_error(MATH[name], REFERENCES[name], options.stride, options.low, options.high)
        elapsed = nanoseconds_per_element(MATH[name])
        print(f"| {name} | {worst.ulp:.2f} | {worst.x:.9g} | {elapsed:.2f} |", flush=True)


if __name__ == "__main__":
    main()
