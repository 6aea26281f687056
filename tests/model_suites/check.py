# SPDX-License-Identifier: Apache-2.0
"""Compile one architecture of a suite, run it, and compare it with torch."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import attrs
import torch
from torch.utils import _pytree as pytree
from uir_tvm import api
from uir_tvm.errors import TorchExportError, UirError
from uir_tvm.frontend.torch import export_torch
from uir_tvm.runtime.specialized import SpecializedExecutable

from . import SUITES
from .case import ModelCase
from .outcome import NOT_BUILT, REFUSED, RIGHT, UNTYPED, WRONG, Outcome

#: Largest difference to torch, relative to the largest value of the same output: both compute in fp32 and
#: differ in the order of sums and by some ULP of transcendental functions, through tens of layers.
LIMIT = 1e-4
SEED = 0


def check(suite: str, name: str, target: str = "uir-cpu") -> Outcome:
    """What becomes of an architecture; every exception is an outcome.

    Parameters
    ----------
    suite, name : str
        As in `SUITES`.
    target : str
        One that runs on this machine.
    """
    case = SUITES[suite][name]
    with _quiet():
        torch.manual_seed(SEED)
        try:
            module, args, kwargs = case.build()
            _spread(module)
            with torch.no_grad():
                expected = module(*_copied(args), **_copied(kwargs))
        except Exception as error:  # whatever the library raises of a row of the table
            return Outcome(suite, name, case.family, NOT_BUILT, reason=_told(error))
        return _compiled(case, target, module, args, kwargs, expected)


def _spread(module: torch.nn.Module) -> None:
    """Random numbers in matrices that begin as one number, such as a router's: which of equals is the largest
    PyTorch does not say.
    """
    for parameter in module.parameters():
        if parameter.dim() > 1 and parameter.is_floating_point() and parameter.numel() > 1:
            if bool((parameter == parameter.reshape(-1)[0]).all()):
                torch.nn.init.normal_(parameter, std=0.02)


def _compiled(
    case: ModelCase, target: str, module: torch.nn.Module, args: Any, kwargs: Any, expected: Any
) -> Outcome:
    parameters = sum(parameter.numel() for parameter in module.parameters())
    outcome = Outcome(case.suite, case.name, case.family, UNTYPED, parameters=parameters)
    start = time.perf_counter()
    try:
        exe = api.compile(module, target, args=_copied(args), kwargs=_copied(kwargs), name="model")
        seconds = time.perf_counter() - start
        got = exe(*_copied(args), **_copied(kwargs))
    except UirError as error:
        by = "torch.export" if isinstance(error, TorchExportError) else "uir_tvm"
        reason = f"{type(error).__name__}: {error.what}" + (f" ({error.where})" if error.where else "")
        seconds = time.perf_counter() - start
        return attrs.evolve(outcome, state=REFUSED, by=by, reason=reason, seconds=seconds)
    except Exception as error:  # what the sweep looks for
        return attrs.evolve(outcome, reason=_told(error), seconds=time.perf_counter() - start)
    error, reason = difference(got, expected)
    if error > LIMIT and (altered := _altered(module, args, kwargs, expected, got)):
        return attrs.evolve(outcome, state=REFUSED, by="torch.export", reason=altered, seconds=seconds)
    # a model whose data decide sizes is one executable too
    info = exe.specializations[0].executable.info if isinstance(exe, SpecializedExecutable) else exe.info
    fallbacks = tuple(f"{kernel.name}: {kernel.fallback}" for kernel in info.kernels if kernel.fallback)
    return attrs.evolve(
        outcome,
        state=RIGHT if error <= LIMIT else WRONG,
        reason=reason,
        error=error,
        kernels=len(info.kernels) - len(fallbacks),
        without_igraph=len(fallbacks),
        library=info.graph.get("library", 0),
        opaque=info.graph.get("opaque", ()),
        fallbacks=fallbacks,
        seconds=seconds,
    )


def _altered(module: torch.nn.Module, args: Any, kwargs: Any, expected: Any, got: Any) -> str:
    """That torch.export's program is not what the module computes, where ours is that program."""
    program = export_torch(module, _copied(args), _copied(kwargs)).module()
    with torch.no_grad():
        exported = program(*_copied(args), **_copied(kwargs))
    its, ours = difference(exported, expected)[0], difference(got, exported)[0]
    if its <= LIMIT or ours > LIMIT:
        return ""
    return f"the exported program differs from the module by {its:.1e}, the executable from it by {ours:.1e}"


def difference(got: Any, expected: Any) -> tuple[float, str]:
    """The largest difference of two nested results, each tensor's relative to its largest finite value.

    Returns
    -------
    tuple of float and str
        Infinite, with the reason, where structures, shapes, dtypes, integers or what is not finite differ.
    """
    have, want = (pytree.tree_flatten_with_path(value)[0] for value in (got, expected))
    if [pytree.keystr(path) for path, _ in have] != [pytree.keystr(path) for path, _ in want]:
        return float("inf"), "results are nested otherwise"
    worst = (0.0, "")
    for (path, left), (_, right) in zip(have, want, strict=True):
        error, reason = _distance(left, right)
        if error > worst[0]:
            worst = error, f"{pytree.keystr(path)}: {reason}" if reason else ""
    return worst


def _distance(got: Any, expected: Any) -> tuple[float, str]:
    if not isinstance(expected, torch.Tensor):
        return (0.0, "") if got == expected else (float("inf"), f"{got!r} instead of {expected!r}")
    got = torch.as_tensor(got)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return float("inf"), f"{got.dtype} {tuple(got.shape)}, not {expected.dtype} {tuple(expected.shape)}"
    if not expected.numel():
        return 0.0, ""
    if not expected.is_floating_point():
        wrong = int((got != expected).sum())
        return (float("inf"), f"{wrong} of {expected.numel()} integers differ") if wrong else (0.0, "")
    finite = torch.isfinite(expected)
    if not torch.equal(torch.isfinite(got), finite):
        return float("inf"), "other elements are finite"
    same = torch.where(finite, torch.zeros(()), expected.double())
    if not torch.allclose(torch.where(finite, torch.zeros(()), got.double()), same, equal_nan=True):
        return float("inf"), "what is not finite differs"
    left, right = (torch.where(finite, value, torch.zeros(())).double() for value in (got, expected))
    scale = max(float(right.abs().max()), torch.finfo(torch.float32).tiny)
    return float((left - right).abs().max()) / scale, f"relative to {scale:.2g}"


def _copied(value: Any) -> Any:
    return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, value)


def _told(error: Exception) -> str:
    """An exception with the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno}"
    return f"{type(error).__name__}: {str(error).strip()[:400]} ({place})"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No advice of the libraries among the rows."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
