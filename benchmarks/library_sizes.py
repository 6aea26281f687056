# SPDX-License-Identifier: Apache-2.0
"""What open sizes cost library operators: `python benchmarks/library_sizes.py`.

First the cost of ``uir.library.sized`` over the operator that it calls, at sizes that it knows and at new
ones. Then products with one packed weight for all sizes beside those with the layout that
oneDNN chooses for the size: microseconds, and their ratio. Rounds take turns; printed is the best of them,
as other programs can only make it longer.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import tvm
import tvm_ffi
from uir_tvm import threads
from uir_tvm.library import cpu
from uir_tvm.library.attrs import MatmulAttrs
from uir_tvm.library.sized import FUNCTION, sized_texts
from uir_tvm.sizes.open_size import SizeSpace
from uir_tvm.sizes.open_symbols import OpenSymbol

SPACE = SizeSpace([OpenSymbol("b", 2, None, 53), OpenSymbol("s", 2, None, 59)])
B, S = SPACE.symbol("b"), SPACE.symbol("s")
#: Columns and inner size of products.
PRODUCTS = (
    *((n, 384) for n in (96, 192, 400, 384, 1152, 1536)),
    *((384, 1536), (2304, 768), (768, 3072), (128256, 64)),
)
ROWS = (1, 8, 37, 128, 512)


def random(*shape: int) -> Any:
    return tvm.runtime.tensor(np.random.default_rng(1).standard_normal(shape).astype(np.float32))


def best(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Microseconds of each call, the best of rounds of some milliseconds in which they take turns."""
    counts, found = [], [float("inf")] * len(calls)
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        counts.append(max(1, min(2000, int(3e-3 / (time.perf_counter() - start)))))
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(counts[i]):
                call()
            found[i] = min(found[i], (time.perf_counter() - start) / counts[i] * 1e6)
    return found


def overhead(rounds: int) -> None:
    """Of a sized call, in Python: four more arguments are in it."""
    sized = tvm_ffi.get_global_func(FUNCTION)
    attributes = MatmulAttrs.contiguous((B * S, 4), (4, 4), plan="plain")
    operands, out = (random(6, 4), random(4, 4)), random(6, 4)
    plain = attributes.at({"b": 2, "s": 3}).to_json()
    function, texts = tvm_ffi.get_global_func(cpu.MATMUL), sized_texts(cpu.MATMUL, attributes)
    kept = [tvm_ffi.convert(text) for text in texts]
    text, sizes = tvm_ffi.convert(plain), tvm_ffi.Shape([2, 3])
    direct, through = best(
        [lambda: function(*operands, text, out), lambda: sized(*operands, *kept, sizes, out)], rounds
    )
    print(f"a known size: {direct:.2f} us directly, {through:.2f} us through {FUNCTION}")
    print("\na new size (us): the operator alone, and through the sized call")
    for m in (24, 96):
        first, second = [], []
        for step in range(20):
            for number, times in ((2 * step, first), (2 * step + 1, second)):
                attributes = MatmulAttrs.contiguous((S, 384), (384, 384))
                rows = m + number
                given, result = (random(rows, 384), random(384, 384)), random(rows, 384)
                if times is first:
                    numbers = attributes.at({"s": rows}).to_json()
                    start = time.perf_counter()
                    function(*given, numbers, result)
                else:
                    texts, size = sized_texts(cpu.MATMUL, attributes), tvm_ffi.Shape([rows])
                    start = time.perf_counter()
                    sized(*given, *texts, size, result)
                times.append((time.perf_counter() - start) * 1e6)
        print(f"  about {m} rows: {np.median(first):.0f}, {np.median(second):.0f}")


def compare(title: str, operator: str, attributes: Any, sizes: Any, operands: Any, rounds: int) -> float:
    """One line: the weight packed for all sizes, and for these."""
    numbers = attributes.at(sizes)
    own = attrs.evolve(numbers, packed_for=0)
    data, weight, out = operands
    function = tvm_ffi.get_global_func(operator)
    calls = []
    for each in (numbers, own):
        blob, text = cpu.pack_weight(weight, each), tvm_ffi.convert(each.to_json())
        calls.append(lambda blob=blob, text=text: function(data, blob, text, out))
    shared, chosen = best(calls, rounds)
    plans = list(dict.fromkeys(cpu.describe(each)["implementation"] for each in (numbers, own)))
    layouts = {np.from_dlpack(cpu.pack_weight(weight, each)).tobytes() for each in (numbers, own)}
    plans += ["two layouts"] * (len(layouts) > 1)
    print(
        f"{title:34s} {shared:9.1f} {chosen:9.1f} {shared / chosen:6.3f}  {', '.join(plans)}",
        flush=True,
    )
    return shared / chosen


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    threads.before_running()
    if given.threads:
        tvm_ffi.get_global_func("runtime.config_threadpool")(1, given.threads)
    print(cpu.available())
    overhead(given.rounds)
    print(f"\n{'':34s} {'for all':>9s} {'for it':>9s} ratio  implementations")
    ratios = []
    for n, k in PRODUCTS:
        attributes = MatmulAttrs.contiguous((S, k), (k, n), bias=False).with_packed_weight()
        weight = random(k, n)
        for m in ROWS:
            ratios.append(
                compare(
                    f"{m}x{k}x{n}",
                    cpu.MATMUL,
                    attributes,
                    {"s": m},
                    (random(m, k), weight, random(m, n)),
                    given.rounds,
                )
            )
    print(f"geometric mean of the ratios {np.exp(np.mean(np.log(ratios))):.3f}, worst {max(ratios):.3f}")


if __name__ == "__main__":
    main()
