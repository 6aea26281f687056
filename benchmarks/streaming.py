# SPDX-License-Identifier: Apache-2.0
"""Streaming operators on a device's host model: modelled time beside that of their bytes.

    python benchmarks/streaming.py --target uir-ascend          every operator; uir-bang alike
    python benchmarks/streaming.py --only "softmax 4096x4096" gelu
    python benchmarks/streaming.py --json out.json --markdown

An operator streams when memory should bind it: the least time is that of every input read once and every
output written once, at the bandwidth of the hardware preset.  The share is that time over the modelled one.
Beside it stand what binds (a pipe, or the memory), how busy the pipe that computes was, and the start: what
passes before the first byte moves, which no kernel can hide.  All times are modelled (see docs/targets),
none is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import attrs
import ml_dtypes  # noqa: F401  bfloat16 for NumPy
import numpy as np
import tvm
from rich.console import Console
from rich.table import Table
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.errors import UirError
from uir_tvm.runtime import modelled
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target import registry
from uir_tvm.target.ascend import costs as ascend_costs
from uir_tvm.target.bang import costs as bang_costs

Shape = tuple[int, ...]


@attrs.frozen
class Streaming:
    """An operator over some shapes, all inputs of one dtype."""

    name: str
    build: Callable[..., Any]
    shapes: tuple[Shape, ...]
    dtype: str = "float32"


def _ascend_start(hw: Any) -> float:
    """Of the costs of `ascend_costs`: the launch, and the head of the first load."""
    load = ascend_costs.PIPES["MTE2"]
    cycles = ascend_costs.KERNEL_CYCLES + load.head + load.head_per_block * int(hw.num_groups)
    return cycles / float(hw.figures["clock_hz"])


def _bang_start(hw: Any) -> float:
    """Of the costs of `bang_costs`: the launch, and the head of the first load."""
    load = bang_costs.PIPES["IO"]
    return (bang_costs.KERNEL_CYCLES + load.head + load.start) / float(hw.figures["clock_hz"])


@attrs.frozen
class Device:
    """Where a target's kernels run under a model of time.

    Attributes
    ----------
    device : str
        TVM's name of it.
    compute : str
        The pipe that computes.
    start : callable
        Hardware model -> seconds of a launch before the first byte arrives, which no kernel can hide.
    """

    device: str
    compute: str
    start: Callable[[Any], float]


#: Targets with a model of time; another one is a row here.
DEVICES: Mapping[str, Device] = {
    "uir-ascend": Device("ext_dev", "V", _ascend_start),
    "uir-bang": Device("ext_dev", "COMPUTE", _bang_start),
}


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return op.nn.layer_norm(x, gamma, beta, axes=[-1])


def _rms_norm(x: Any, gamma: Any) -> Any:
    return op.nn.rms_norm(x, gamma, axes=[-1])


def _bias_gelu(x: Any, bias: Any) -> Any:
    return op.nn.gelu(op.add(x, bias))


def _swiglu(gate: Any, up: Any) -> Any:
    return op.multiply(op.nn.silu(gate), up)


def _both(name: str, build: Callable[..., Any], *shapes: Shape) -> tuple[Streaming, Streaming]:
    """The operator in fp32 and in fp16."""
    label = "x".join(map(str, shapes[0]))
    return (
        Streaming(f"{name} {label}", build, shapes),
        Streaming(f"{name} {label} fp16", build, shapes, "float16"),
    )


_BIG, _ROW, _COLUMN = (4096, 4096), (4096,), (4096, 1)
OPERATORS: tuple[Streaming, ...] = (
    *_both("add", op.add, _BIG, _BIG),
    Streaming("add 1000x777", op.add, ((1000, 777), (1000, 777))),
    Streaming("add 512x1024", op.add, ((512, 1024), (512, 1024))),
    *_both("relu", op.nn.relu, _BIG),
    *_both("times a row", op.multiply, _BIG, _ROW),
    *_both("plus a column", op.add, _BIG, _COLUMN),
    *_both("softmax", op.nn.softmax, _BIG),
    Streaming("softmax 4096x1000", op.nn.softmax, ((4096, 1000),)),
    Streaming("softmax 64x65536", op.nn.softmax, ((64, 65536),)),
    *_both("row sum", lambda x: op.sum(x, axis=-1), _BIG),
    *_both("column sum", lambda x: op.sum(x, axis=0), _BIG),
    *_both("layer norm", _layer_norm, (4096, 1024), (1024,), (1024,)),
    *_both("rms norm", _rms_norm, (4096, 4096), (4096,)),
    *_both("bias, gelu", _bias_gelu, _BIG, _ROW),
    *_both("tanh gelu", op.nn.gelu_tanh, _BIG),
    *_both("silu x up", _swiglu, _BIG, _BIG),
    *_both("transpose", op.permute_dims, _BIG),
    Streaming("cast 4096x4096 to fp16", lambda x: op.astype(x, "float16"), (_BIG,)),
)


@attrs.frozen
class Row:
    """One operator; times in microseconds, all modelled."""

    operator: str
    bytes: int
    microseconds: float
    least: float
    bound: str
    compute: float
    start: float
    error: str = ""

    @property
    def share(self) -> float:
        """Of the memory's bandwidth."""
        return self.least / self.microseconds if self.microseconds else 0.0

    def cells(self) -> list[str]:
        """What the table shows."""
        if self.error:
            return [self.operator, f"{self.bytes / 1e6:.1f}", "", f"{self.least:.1f}", "", self.error, "", ""]
        share = f"{100 * self.share:.0f} %"
        times = [f"{self.microseconds:.1f}", f"{self.least:.1f}", share, self.bound, f"{self.compute:.1f}"]
        times.append(f"{self.start:.1f}")
        return [self.operator, f"{self.bytes / 1e6:.1f}", *times]


#: Heads of `Row.cells`.
HEADS = ("operator", "MB", "us", "least us", "share", "bound by", "computing us", "start us")


def measure(one: Streaming, target: str, preset: str | None = None) -> Row:
    """The modelled run of one operator."""
    device = DEVICES[target]
    spec = registry.get(target)
    hw = hardware.get(preset, spec.kind)
    example = from_relax(one.build, one.shapes, lambda *_: None, dtypes=[one.dtype] * len(one.shapes))
    func = example.func.with_attr("global_symbol", "operator")
    types = [param.ty for param in func.params]
    sizes = [math.prod(int(s) for s in t.shape) * np.dtype(str(t.dtype)).itemsize for t in types]
    least = 1e6 * sum(sizes) / float(hw.figures["dram_bytes_per_second"])
    dev = tvm.device(device.device, 0)
    tensors = [tvm.runtime.tensor(a, dev) for a in example.inputs]
    tensors += [
        tvm.runtime.empty(tuple(int(s) for s in t.shape), str(t.dtype), dev) for t in types[len(tensors) :]
    ]
    try:
        module = tvm.build(tvm.IRModule({"operator": func}), target=spec.target(str(hw.name)))
        with modelled.recording() as found:
            module["operator"](*tensors)
    except (UirError, RuntimeError) as error:  # one operator that fails must not hide the others
        return Row(one.name, sum(sizes), 0, least, "", 0, 0, str(error).strip().splitlines()[-1])
    launches = found.times.launches
    if not launches:
        return Row(one.name, sum(sizes), 0, least, "", 0, 0, "ran on the host")
    computing = sum(row.pipes[device.compute].busy_seconds for row in launches if device.compute in row.pipes)
    longest = max(launches, key=lambda row: row.seconds)
    times = (1e6 * computing, 1e6 * device.start(hw) * len(launches))
    return Row(one.name, sum(sizes), 1e6 * found.times.seconds, least, longest.bound, *times)


def markdown(rows: Sequence[Row]) -> str:
    """The table as a page has it."""
    lines = [HEADS, ["---"] * len(HEADS), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> int:
    """Prints the table; 1 where an operator failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=sorted(DEVICES), default="uir-ascend")
    parser.add_argument("--preset", help="hardware model (default: the target's own)")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="operators whose name holds one of these")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    chosen = [one for one in OPERATORS if not args.only or any(text in one.name for text in args.only)]
    rows = []
    for one in chosen:
        rows.append(measure(one, args.target, args.preset))
        print(*rows[-1].cells(), sep="  ", file=sys.stderr, flush=True)
    if args.json:
        data = [attrs.asdict(row) | {"share": row.share} for row in rows]
        args.json.write_text(json.dumps({"target": args.target, "times": "modelled", "rows": data}, indent=1))
    if args.markdown:
        print(markdown(rows))
    else:
        table = Table(*HEADS)
        for row in rows:
            table.add_row(*row.cells())
        Console().print(table)
    return int(any(row.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
