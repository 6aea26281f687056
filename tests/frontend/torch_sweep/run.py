# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch compiled many at a time, and each result held against PyTorch's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import torch
import uir_tvm
from torch import Tensor, nn
from uir_tvm.errors import UirError
from uir_tvm.frontend import export_torch, from_torch

from .calls import RELATIVE, Call

#: How a call ended: as PyTorch computes it, with other numbers, in a typed error, in another exception; or
#: not judged: PyTorch itself refuses these arguments, or torch.export does.
RIGHT, WRONG, REFUSED, CRASHED, OUTSIDE = "right", "wrong", "refused", "crashed", "outside"


@attrs.frozen
class Outcome:
    """What became of a call; ``text`` says it, ``fallbacks`` are its kernels without iGraph."""

    call: Call
    state: str
    text: str = ""
    fallbacks: tuple[str, ...] = ()


class Bundle(nn.Module):
    """Several calls as one module; its outputs are theirs in a row."""

    def __init__(self, functions: Sequence[Callable[..., Any]], counts: Sequence[int]) -> None:
        super().__init__()
        self.functions, self.counts = functions, counts

    def forward(self, *args: Tensor) -> tuple[Tensor, ...]:
        results: list[Tensor] = []
        start = 0
        for function, count in zip(self.functions, self.counts, strict=True):
            results += flat(function(*args[start : start + count]))
            start += count
        return tuple(results)


def flat(result: Any) -> list[Tensor]:
    """The tensors of a result."""
    return [result] if isinstance(result, Tensor) else [t for item in result for t in flat(item)]


@attrs.frozen(eq=False)
class Expected:
    """A call with its inputs and what PyTorch makes of them."""

    call: Call
    inputs: list[Tensor]
    results: list[Tensor]


def expected(call: Call, seed: int) -> Expected | Outcome:
    """What PyTorch computes, or the outcome that it refuses the arguments."""
    inputs = call.tensors(seed)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            results = flat(
                call.function(*[value.clone() if value.is_contiguous() else value for value in inputs])
            )
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError) as error:
        return Outcome(call, OUTSIDE, f"PyTorch: {first_line(error)}")
    return Expected(call, inputs, [value.clone() for value in results])


def sweep(table: Sequence[Call], target: str = "uir-cpu", seed: int = 0, size: int = 24) -> Iterator[Outcome]:
    """Outcomes of calls, in the order of the table; ``size`` calls are compiled together."""
    known = [expected(call, seed) for call in table]
    for start in range(0, len(known), size):
        part = known[start : start + size]
        todo = [item for item in part if isinstance(item, Expected)]
        done = {item.call.name: item for item in part if isinstance(item, Outcome)}
        done.update({outcome.call.name: outcome for outcome in _judge(todo, target)})
        yield from (done[item.call.name] for item in part)


def _judge(items: Sequence[Expected], target: str) -> list[Outcome]:
    """All at once; where that fails, those that import, and at last each alone."""
    alone = [item for item in items if item.call.refused]
    together = [item for item in items if not item.call.refused]
    for chosen in (lambda _: True, _imports):
        kept = [item for item in together if chosen(item)]
        try:
            done = _run(kept, target) if kept else []
        except Exception:
            continue
        return done + [_alone(item, target) for item in [*alone, *together] if item not in kept]
    return [_alone(item, target) for item in items]


def _imports(item: Expected) -> bool:
    try:
        from_torch(export_torch(Bundle([item.call.function], [len(item.inputs)]), item.inputs))
    except Exception:
        return False
    return True


def _alone(item: Expected, target: str) -> Outcome:
    try:
        return _run([item], target)[0]
    except UirError as error:
        text = " ".join(str(error).split())
        if text.startswith("torch.export cannot export"):
            return Outcome(item.call, OUTSIDE, text)
        return Outcome(item.call, REFUSED, text)
    except Exception as error:
        return Outcome(item.call, CRASHED, f"{type(error).__name__}: {first_line(error)}")


def _run(items: Sequence[Expected], target: str) -> list[Outcome]:
    inputs = [value for item in items for value in item.inputs]
    module = Bundle([item.call.function for item in items], [len(item.inputs) for item in items])
    executable = uir_tvm.compile(export_torch(module, inputs), target)
    found = executable(*inputs)
    have = [found] if isinstance(found, np.ndarray | Tensor) else list(found)
    outcomes, start = [], 0
    fallbacks = tuple(kernel.name for kernel in executable.info.kernels if kernel.fallback)
    for item in items:
        mine = [torch.as_tensor(value) for value in have[start : start + len(item.results)]]
        start += len(item.results)
        fault = next(filter(None, map(difference, *_columns(item, mine))), "")
        # several calls share a module: only a lone one knows its kernels
        names = fallbacks if len(items) == 1 else ()
        outcomes.append(Outcome(item.call, WRONG if fault else RIGHT, fault, names))
    return outcomes


def _columns(item: Expected, mine: list[Tensor]) -> tuple[Any, ...]:
    exact = _exact(item)
    count = len(item.results)
    return [item.call] * count, mine, item.results, exact, [item.inputs[0]] * count


def _exact(item: Expected) -> list[Tensor | None]:
    """The results in float64, where PyTorch computes them so; integers count as float64 too."""
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            wide = [value.double() if value.is_floating_point() else value for value in item.inputs]
            results = flat(item.call.function(*wide))
    except Exception:
        return [None] * len(item.results)
    finally:
        torch.set_default_dtype(default)
    return [
        wide if wide.dtype == torch.float64 and wide.shape == narrow.shape else None
        for wide, narrow in zip(results, item.results, strict=True)
    ]


def difference(
    call: Call, have: Tensor, want: Tensor, exact: Tensor | None, given: Tensor | None = None
) -> str:
    """Where two results differ; empty if nowhere.

    A float passes that is near to PyTorch's, or near to the exact number, or as near to that as PyTorch's
    own.  ``given`` is the first input.
    """
    if have.dtype != want.dtype or have.shape != want.shape:
        return f"{have.dtype} {tuple(have.shape)} instead of {want.dtype} {tuple(want.shape)}"
    if not want.is_floating_point():
        wrong = have != want
    else:
        wide = want.double()
        least = given.double() if call.cancels and given is not None and given.shape == want.shape else None
        wrong = ~near(call, have.double(), wide, wide, want.dtype, least)
        if exact is not None:
            right = near(call, have.double(), exact, wide, want.dtype, least)
            wrong &= ~(right | _nearer(call, have.double(), wide, exact, want.dtype))
    if not bool(wrong.any()):
        return ""
    index = tuple(int(i) for i in wrong.nonzero()[0])
    return (
        f"{int(wrong.sum())} of {wrong.numel()} elements, at {index}: {have[index].item()!r} "
        f"instead of {want[index].item()!r}"
    )


def near(
    call: Call, have: Tensor, want: Tensor, scale: Tensor, dtype: torch.dtype, given: Tensor | None = None
) -> Tensor:
    """Whether each element is the wanted number, to the error that its call is allowed."""
    close = (have - want).abs() <= _allowed(call, scale, want, dtype, given)
    finite = torch.isfinite(want) & torch.isfinite(have)
    return (have == want) | (have.isnan() & want.isnan()) | (finite & close)


def _nearer(call: Call, have: Tensor, want: Tensor, exact: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether each element is as near to the exact number as PyTorch's own, and not far."""
    error = torch.minimum((want - exact).abs(), 50 * _allowed(call, want, want, dtype, None))
    return torch.isfinite(have) & torch.isfinite(want) & ((have - exact).abs() <= error)


def _allowed(call: Call, scale: Tensor, want: Tensor, dtype: torch.dtype, given: Tensor | None) -> Tensor:
    """The error of each element."""
    size = want.abs()
    if call.sums:
        finite = scale[torch.isfinite(scale)].abs()
        size = torch.full_like(want, float(finite.max()) if finite.numel() else 1.0)
    elif given is not None:
        size = torch.maximum(size, given.abs())
    return max(call.relative, RELATIVE[dtype]) * size + torch.finfo(dtype).smallest_normal


def first_line(error: BaseException) -> str:
    """The first line of an exception's text."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def agrees(outcome: Outcome) -> bool:
    """Whether a call ended as its row says: as PyTorch computes it, or in a typed error."""
    if outcome.call.refused:
        return outcome.state == REFUSED and outcome.call.refused in outcome.text
    return outcome.state in (RIGHT, REFUSED, OUTSIDE)
