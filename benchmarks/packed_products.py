# SPDX-License-Identifier: Apache-2.0
"""One product with a weight of 4 bits on devices, *modelled*, not measured: what a token is made of.

    python benchmarks/packed_products.py --target uir-bang uir-ascend --rows 1 4 --shape 4096 4096
    python benchmarks/packed_products.py --target uir-bang --rows 128 --pipes --times-only

A whole model of Llama-2-7B's shapes (`llama_shapes.py`) takes long to interpret for a long prompt; its time
is nearly that of its products, in the proportion of their weights.
"""

from __future__ import annotations

import argparse

import numpy as np
import tvm
import uir_tvm
from rich.console import Console
from rich.table import Table
from tvm import relax
from uir_tvm import CompileOptions
from uir_tvm.quantized import Packing, dequantized
from uir_tvm.quantized_calls import dequantize_call
from uir_tvm.runtime.modelled import Times, recording

#: Q4_1 of GGUF, and what `uir_tvm.llm.load` makes of weights="q4".
PACKING = Packing(4, 32, 0, "float16", True)
#: Sums of float32 in another order, beside the largest of the results.
NEAR = 1e-5


def parts(columns: int, length: int) -> list[np.ndarray]:
    """Random codes, scales and offsets of a weight [columns, length]."""
    rng = np.random.default_rng(0)
    made = [rng.integers(0, 256, PACKING.packed_shape(columns, length), np.uint8)]
    sides = PACKING.scales_shape(columns, length)
    return made + [(0.1 * rng.standard_normal(sides)).astype(np.float16) for _ in range(2)]


def product(rows: int, weight: list[np.ndarray]) -> tvm.IRModule:
    """x [rows, length] by the turned weight."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((rows, PACKING.shape_of(weight[0].shape)[1]), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            values = builder.emit(dequantize_call(builder, PACKING, *map(relax.const, weight)))
            found = builder.emit_output(relax.op.matmul(x, builder.emit(relax.op.permute_dims(values))))
        builder.emit_func_output(found)
    return builder.get()


def run(target: str, rows: int, columns: int, length: int, values: bool = True) -> Times:
    """Its modelled times, after the result is compared unless nothing is computed."""
    weight = parts(columns, length)
    exe = uir_tvm.compile(product(rows, weight), target, options=CompileOptions(device="model"))
    x = np.random.default_rng(1).standard_normal((rows, length)).astype(np.float32)
    with recording(hardware=exe.hardware, values=values) as noted:
        found = np.asarray(exe(x))
    if values:
        wanted = x @ dequantized(weight[0], weight[1], weight[2], PACKING).T
        assert np.abs(found - wanted).max() <= NEAR * np.abs(wanted).max(), (target, rows)
    return noted.times


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", nargs="*", default=["uir-ascend", "uir-bang"])
    parser.add_argument("--rows", nargs="*", type=int, default=[1])
    parser.add_argument("--shape", nargs=2, type=int, default=[4096, 4096], help="outputs and inputs")
    parser.add_argument("--pipes", action="store_true", help="also what each pipe of the device did")
    parser.add_argument(
        "--times-only", action="store_true", help="compute and compare nothing, which is faster"
    )
    arguments = parser.parse_args()
    console = Console(width=120)
    table = Table(title="products of 4 bits, modelled, not measured")
    for name in ("target", "rows", "us", "bound by", "KiB moved", "us of the memory"):
        table.add_column(name)
    for target in arguments.target:
        for rows in arguments.rows:
            launches = run(target, rows, *arguments.shape, not arguments.times_only).launches
            longest = max(launches, key=lambda launch: launch.seconds)
            memory = sum(each.pipes["memory"].busy_seconds for each in launches if "memory" in each.pipes)
            seconds, moved = (sum(getattr(each, name) for each in launches) for name in ("seconds", "bytes"))
            figures = (1e6 * seconds, longest.bound, moved / 1024, 1e6 * memory)
            told = (f"{each:.1f}" if isinstance(each, float) else each for each in figures)
            table.add_row(target, str(rows), *told)
            for number, launch in enumerate(launches if arguments.pipes else ()):
                for name, pipe in launch.pipes.items():
                    console.print(
                        f"{target}, {rows} rows, launch {number}, {name}: {1e6 * pipe.busy_seconds:.1f} us "
                        f"of the busiest core, {pipe.instructions} instructions, {pipe.bytes} bytes"
                    )
    console.print(table)


if __name__ == "__main__":
    main()
