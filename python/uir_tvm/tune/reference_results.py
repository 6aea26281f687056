# SPDX-License-Identifier: Apache-2.0
"""What a kernel computes on random inputs, as TVM's own lowering has it: candidates are compared with that.

Results are kept in the cache folder, by the kernel and by its inputs: a worker that was restarted, or
another one, finds them there.
"""

from __future__ import annotations

import hashlib
import io
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import tvm
from tvm import tirx

from .. import hardware
from ..bf16_roundings import keep_bf16_roundings
from ..cache import Cache
from ..function_attributes import origin_of
from ..igraph.dtypes import DTYPES
from ..schedule.blocks import collect
from ..schedule.wide_values import widen_values
from ..verify.agreement import Reference
from ..verify.cases import HIGHEST_INTEGER
from ..verify.function_side import built_by_tvm, propagating_nan, sums
from ..verify.index_limits import index_limits

#: Floats are drawn from the first interval; where much of a result is no number then (logarithms, square
#: roots), and more of it is one with the second, from that.
INTERVALS = ((-2.0, 2.0), (0.25, 2.0))
#: Share of a result that should be finite.
FINITE = 0.9
#: Bytes of references that are held in memory, the last one in any case.
HELD = 1 << 29
#: Elements at the start of an array by which it is told from others.
TOLD_BY = 1 << 16

_NUMPY = {row.tvm: np.dtype(row.numpy) for row in DTYPES.values()}
FOLDER = "references"


def reference_of(text: str, seed: int) -> Reference:
    """The reference of a kernel, computed once.

    Parameters
    ----------
    text : str
        The kernel, unscheduled (``tvm.ir.save_json``).
    seed : int
        Of the inputs.
    """
    key = (hashlib.sha256(text.encode()).digest(), seed)
    if key not in _held:
        _held[key] = _reference(text, seed)
    _held.move_to_end(key)
    while len(_held) > 1 and sum(reference.nbytes for reference in _held.values()) > HELD:
        _held.popitem(last=False)
    return _held[key]


#: By digest of the kernel and seed, what was used last at the end.
_held: OrderedDict[tuple[bytes, int], Reference] = OrderedDict()


def _reference(text: str, seed: int) -> Reference:
    func = tvm.ir.load_json(text)
    names = tuple(str(param.name) for param in func.params)
    stored = {str(store.buffer.name) for store in collect(func.body, tirx.BufferStore)}
    written = tuple(name in stored for name in names)
    tried = []
    for interval in INTERVALS:
        arguments = arguments_of(func, seed, interval)
        results = _kept(func, arguments, written)
        tried.append((_finite(results[0], written), interval, arguments, results))
        if tried[-1][0] >= FINITE:
            break
    _, interval, arguments, results = max(tried, key=lambda row: row[0])  # of equal ones the first
    return Reference(names, written, arguments, results, sums(func), interval)


def arguments_of(
    func: tirx.PrimFunc, seed: int, interval: tuple[float, float] = INTERVALS[0]
) -> tuple[np.ndarray, ...]:
    """Random arrays for all parameters of a kernel.

    Floats come from an interval, bools are either, integers are within every dimension that they index and
    small where they index none.
    """
    rng = np.random.default_rng(seed)
    limits = index_limits(func)
    low, high = interval
    arrays = []
    for param in func.params:
        shape = tuple(int(extent) for extent in param.shape)
        dtype = _NUMPY[str(param.dtype)]
        array: np.ndarray
        if dtype == np.bool_:
            array = rng.integers(0, 2, shape)
        elif dtype.kind in "iu":
            most = min(limits.get(str(param.name), HIGHEST_INTEGER), np.iinfo(dtype).max)
            array = rng.integers(0, most, shape)
        else:
            drawn = rng.random(shape, np.float64 if dtype == np.float64 else np.float32)
            array = low + (high - low) * drawn
        arrays.append(array.astype(dtype, copy=False))
    return tuple(arrays)


def _finite(results: Sequence[np.ndarray], written: Sequence[bool]) -> float:
    """Least share of numbers in what is written."""
    floats = [r for r, w in zip(results, written, strict=True) if w and r.dtype.kind not in "biu"]
    return min((float(np.isfinite(r.astype(np.float64)).mean()) for r in floats), default=1.0)


def _kept(
    func: tirx.PrimFunc, arguments: Sequence[np.ndarray], written: Sequence[bool]
) -> tuple[tuple[np.ndarray, ...], ...]:
    """The results on some arguments, from the cache folder where they are there."""
    widened = widen_values(func)
    forms = (func,) if widened.same_as(func) else (func, widened)
    built = [keep_bf16_roundings(form) for form in forms]
    digest = hashlib.sha256("".join(origin_of(form) for form in built).encode())
    for array in arguments:
        digest.update(f"{array.shape}".encode() + array.reshape(-1)[:TOLD_BY].tobytes())
    digest.update(repr((len(forms), list(written))).encode())
    cache, key = Cache(FOLDER), digest.digest()
    kept = cache.read(key, ".npz")
    if kept is not None:
        with np.load(io.BytesIO(kept)) as held:
            results = [
                {at: held[f"{form}_{at}"] for at, stored in enumerate(written) if stored}
                for form in range(len(forms))
            ]
    else:
        results = [_run(form, arguments, written) for form in forms]
        arrays = {f"{form}_{at}": array for form, row in enumerate(results) for at, array in row.items()}
        file = io.BytesIO()
        np.savez(file, **arrays)  # type: ignore[arg-type]
        cache.remember(key, file.getvalue(), ".npz")
    return tuple(
        tuple(
            row[at].view(array.dtype).reshape(array.shape) if at in row else array
            for at, array in enumerate(arguments)
        )
        for row in results
    )


def _run(
    func: tirx.PrimFunc, arguments: Sequence[np.ndarray], written: Sequence[bool]
) -> dict[int, np.ndarray]:
    """What a kernel writes, as TVM lowers it for this CPU: flat bytes, by the number of the parameter."""
    built = built_by_tvm(propagating_nan(func), {"mcpu": str(hardware.get("host").figures["mcpu"])})
    tensors = [tvm.runtime.tensor(array) for array in arguments]
    built["main"](*tensors)
    # as bytes: NumPy's files know no bfloat16
    return {
        at: np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8)
        for at, tensor in enumerate(tensors)
        if written[at]
    }
