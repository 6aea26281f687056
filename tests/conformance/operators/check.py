# SPDX-License-Identifier: Apache-2.0
"""Compile cases for a target, run them, and hold them against what stock TVM builds of the same model."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs
import numpy as np
import tvm
import uir_tvm
from tvm import relax
from uir_tvm.errors import UirError
from uir_tvm.runtime.kernel import tensor_of

from tests.stock import stock

from .case import Case, dtypes_of, module, numpy_dtype

#: ``right``: as stock TVM. ``wrong``: other numbers. ``refused``: a typed error. ``crashed``: another error.
#: ``unbuilt``: stock TVM does not build it, and we refuse it by a typed error, or Relax takes no such call.
#: ``ours``: stock TVM does not build it, we do.
Status = Literal["right", "wrong", "refused", "crashed", "unbuilt", "ours"]
#: How a kernel runs: through an iGraph, by a library, by TVM's lowering on the host, or as no kernel at all.
How = Literal["igraph", "library", "host", "view"]
#: Relative to the largest value or to one: sums differ in their order, functions by some ULP; stock TVM
#: computes in the narrow floats themselves.
TOLERANCE = {
    "float64": 1e-10,
    "float32": 3e-5,
    "float16": 1e-2,
    "bfloat16": 6e-2,
    "float8_e4m3fn": 0.13,
    "float8_e5m2": 0.26,
}


@attrs.frozen
class Outcome:
    """What became of one case on one target."""

    case: Case
    target: str
    status: Status
    #: How its kernels run, sorted; of a case in company those of all of it.
    how: tuple[How, ...] = ()
    #: The reasons of kernels that are left to the host, or what is wrong.
    detail: str = ""


Arrays = list[list[np.ndarray]]


def expected(cases: Sequence[Case]) -> list[list[np.ndarray] | str]:
    """The results of every case: NumPy's meaning where it has one, else stock TVM's; why it has none."""
    asked = [case for case in cases if case.reference is None]
    stock = iter(_shared(asked, _stock, lambda error: _line(error)) if asked else ())
    return [next(stock) if case.reference is None else _meant(case) for case in cases]


def _meant(case: Case) -> list[np.ndarray]:
    assert case.reference is not None
    wanted = case.reference(*case.arrays())
    return [np.asarray(array) for array in (wanted if isinstance(wanted, tuple) else (wanted,))]


def check(cases: Sequence[Case], target: str, wanted: Sequence[list[np.ndarray] | str]) -> list[Outcome]:
    """Outcomes of cases that stock TVM gives these results for."""
    found = _shared(cases, lambda some: _ours(some, target), lambda error: error)
    outcomes = []
    for case, got, want in zip(cases, found, wanted, strict=True):
        outcome = _outcome(case, target, got, want)
        if outcome.status == "wrong" and len(cases) > 1:
            # alone: whose fault it is, and how that one runs
            outcome = check([case], target, [want])[0]
        outcomes.append(outcome)
    return outcomes


def _shared(cases: Sequence[Case], run: Callable[[Sequence[Case]], list[Any]], failed: Any) -> list[Any]:
    """``run`` of all cases at once; where that fails, of halves, down to the one at fault."""
    try:
        return run(cases)
    except Exception as error:  # whatever TVM raises is the outcome of a case
        if len(cases) == 1:
            return [failed(error)]
    half = len(cases) // 2
    return [*_shared(cases[:half], run, failed), *_shared(cases[half:], run, failed)]


def _stock(cases: Sequence[Case]) -> list[list[np.ndarray]]:
    with contextlib.redirect_stdout(io.StringIO()):
        built = stock(module(cases))
        machine = relax.VirtualMachine(built, tvm.cpu())
        result = machine["main"](*(tensor_of(array, array.shape) for array in _inputs(cases)))
    found = _by_case(cases, [leaf.numpy() for leaf in _flat(result)])
    return [_declared(case, arrays) for case, arrays in zip(cases, found, strict=True)]


def _declared(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays in the dtypes that the operator declares; some of stock TVM's lowerings leave others."""
    pairs = zip(arrays, dtypes_of(case), strict=True)
    return [array.astype(numpy_dtype(dtype)) for array, dtype in pairs]


def _ours(cases: Sequence[Case], target: str) -> list[tuple[list[np.ndarray], tuple[How, ...], str]]:
    program = uir_tvm.compile(module(cases), target)
    how, why = described(program)
    result = program(*_inputs(cases))
    arrays = [np.asarray(leaf) for leaf in _flat(result)]
    return [(mine, how, why) for mine in _by_case(cases, arrays)]


def described(program: Any) -> tuple[tuple[How, ...], str]:
    """How the kernels of an executable run, and the reasons of those that are left to the host."""
    ways: set[How] = {"host" if kernel.fallback else "igraph" for kernel in program.info.kernels}
    if program.info.graph.get("library"):
        ways.add("library")
    reasons = sorted({kernel.fallback.splitlines()[0] for kernel in program.info.kernels if kernel.fallback})
    return tuple(sorted(ways)) or ("view",), "; ".join(reasons)


def _inputs(cases: Sequence[Case]) -> list[np.ndarray]:
    return [array for case in cases for array in case.arrays()]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, list | tuple | tvm.ir.Array):
        return [leaf for item in result for leaf in _flat(item)]
    return [result]


def _by_case(cases: Sequence[Case], arrays: list[np.ndarray]) -> list[list[np.ndarray]]:
    rest = iter(arrays)
    return [[next(rest) for _ in dtypes_of(case)] for case in cases]


def _outcome(case: Case, target: str, got: Any, want: list[np.ndarray] | str) -> Outcome:
    if isinstance(got, Exception):
        typed = isinstance(got, UirError)
        if not _is_model(case) or (isinstance(want, str) and typed):
            return Outcome(case, target, "unbuilt", detail=want if isinstance(want, str) else _line(got))
        status: Status = "refused" if typed else "crashed"
        return Outcome(case, target, status, detail=f"{type(got).__name__}: {_line(got)}")
    arrays, how, why = got
    if isinstance(want, str):
        return Outcome(case, target, "ours", how, why)
    for number, (mine, theirs) in enumerate(zip(arrays, want, strict=True)):
        if problem := difference(mine, theirs, case.tolerance):
            return Outcome(case, target, "wrong", how, f"output {number}: {problem}")
    return Outcome(case, target, "right", how, why)


def _is_model(case: Case) -> bool:
    """Whether Relax takes the call at all; where it does not, the error is its own."""
    try:
        module([case])
    except Exception:  # whatever its inference raises
        return False
    return True


def difference(got: np.ndarray, want: np.ndarray, times: float = 1.0) -> str:
    """What tells two arrays apart; empty where they are as near as their dtype allows."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    got, want = np.atleast_1d(got), np.atleast_1d(want)
    limit = TOLERANCE.get(str(want.dtype))
    if limit is None:
        wrong = got != want
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        finite = np.abs(b[np.isfinite(b)])
        bound = (
            times * limit * max(1.0, float(finite.max(initial=0)) if finite.max(initial=0) < 1e30 else 1.0)
        )
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(a - b) <= bound + times * limit * np.where(np.isfinite(b), np.abs(b), 0)
        wrong = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return ""
    place = tuple(int(axis[0]) for axis in np.nonzero(wrong))
    return f"{int(wrong.sum())} of {wrong.size} differ, at {place} {got[place]} for {want[place]}"


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return (lines[0] if isinstance(error, UirError) else lines[-1]) if lines else type(error).__name__


#: What a reason names of a case, and what stands for it in a table of all.
PLAIN = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"^UnsupportedOperatorError: (TVM cannot lower the operator).*", r"\1."),
        (r"^UnsupportedOperatorError: (TVM's own lowering fails on kernels without an iGraph).*", r"\1."),
        (r"fp8e\w+", "fp8"),
        (r"Rows of \w+ do not", "Rows of a tile do not"),
        (r"cannot (compute [\w.]+ of|reduce) [^:;]*: there is", "cannot compute this: there is"),
        (r"does not convert \w+ to \w+", "does not convert from or to this dtype"),
        (r"\w+ takes no (\w+)_t on this chip \(form [^)]*\)", r"Copies take no \1 on this chip"),
    )
)


def plainly(why: str) -> str:
    """Reasons without what they name of a case, each once."""
    for pattern, plain in PLAIN:
        why = pattern.sub(plain, why)
    return "; ".join(dict.fromkeys(why.split("; ")))


def placed(case: Case, target: str) -> tuple[tuple[str, ...], str]:
    """How the kernels of a case run on a target, and why not otherwise.

    ``refused`` with the reason; ``untaken`` where Relax has no such call.
    """
    if not _is_model(case):
        return ("untaken",), ""
    ways: tuple[str, ...]
    try:
        ways, why = described(uir_tvm.compile(module([case]), target))
    except Exception as error:  # whatever it is, it is what becomes of the case
        ways, why = ("refused",), f"{type(error).__name__}: {_line(error)}"
    return ways, plainly(why)
