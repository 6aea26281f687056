# SPDX-License-Identifier: Apache-2.0
"""State: what is written in place, what is copied and why; and that all compute what PyTorch does."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
import uir_tvm
from torch import Tensor, nn

#: Bytes of a row, and of a whole state.
ROW, WHOLE = 3 * 4, 2 * 5 * 3 * 4
IN_PLACE, COPIED = "in place", "copied"


class Two(nn.Module):
    """Two states of one shape and a function that changes them."""

    def __init__(self, change: Callable[[nn.Module, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.register_buffer("a", torch.arange(30.0).reshape(2, 5, 3))
        self.register_buffer("b", -torch.arange(30.0).reshape(2, 5, 3))
        self.change = change

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return self.change(self, x, at)


def _rows(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a.index_copy_(1, at, x)
    return m.a * 2


def _twice(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a.index_copy_(1, at, x)
    first = m.a.sum(1)
    m.a[:, :1] = x[:, 1:]
    return first + m.a.sum(1)


def _old_read_before(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    before = m.a.exp().sum(1)
    m.a.index_copy_(1, at, x)
    return before + m.a.sum(1)


def _old_read_after(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    before = m.a.clone()
    m.a.index_copy_(1, at, x)
    return (before * m.a.sum(1, keepdim=True)).sum(1)


def _part_of_old_read_after(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    before = m.a[:, 1:2].clone()
    m.a.index_copy_(1, at, x)
    return (before * m.a.sum(1, keepdim=True)).sum(1)


def _rows_of_itself(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a.index_copy_(1, at, m.a[:, 2:4].flip(1))
    return m.a + 0


def _swapped(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    held = m.a.clone()
    m.a.copy_(m.b)
    m.b.copy_(held)
    return m.a - m.b


def _mean(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a.mul_(0.75).add_(x.sum(1, keepdim=True), alpha=0.25)
    return m.a.sum(1)


def _turned(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a.copy_(m.a.flip(0) + 1)
    return m.a + 0


def _replaced(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a.copy_(x.sum(1, keepdim=True).exp())
    return m.a + m.b


def _from_the_other(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a.index_copy_(1, at, m.b[:, :2] * 2)
    m.b.index_copy_(1, at, m.a[:, :2] * 3)
    return m.a + m.b


def _across(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    a, b = m.a[:, :2].clone(), m.b[:, :2].clone()
    m.a.index_copy_(1, at, b)
    m.b.index_copy_(1, at, a)
    return m.a + m.b


def _batches(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    places = torch.stack([at, at + 1]).unsqueeze(-1).expand(2, 2, 3)
    m.a.scatter_(1, places, x)
    return m.a + 0


def _columns(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a[:, :, at] = torch.cat([x, x, x], 1)[:, :5, :2]
    return m.a + 0


def _added(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a.index_add_(1, at, x)
    return m.a + 0


def _returned(m: nn.Module, x: Tensor, at: Tensor) -> Tensor:
    m.a[:, 1:3] = x
    return m.a


#: Change -> how the states get their new values, bytes that are written and that are copied, of a and b.
CHANGES: dict[Callable[..., Tensor], tuple[tuple[str, int, int], ...]] = {
    _rows: ((IN_PLACE, 4 * ROW, 0),),
    _twice: ((IN_PLACE, 6 * ROW, 0),),
    _old_read_before: ((IN_PLACE, 4 * ROW, 0),),
    _old_read_after: ((COPIED, 4 * ROW, WHOLE),),
    _part_of_old_read_after: ((COPIED, 4 * ROW, 2 * ROW),),
    _rows_of_itself: ((IN_PLACE, 4 * ROW, 0),),
    _swapped: ((IN_PLACE, WHOLE, 0), (COPIED, WHOLE, WHOLE)),
    _mean: ((IN_PLACE, WHOLE, 0),),
    _turned: ((IN_PLACE, WHOLE, 0),),
    _replaced: ((IN_PLACE, WHOLE, 0),),
    _from_the_other: ((IN_PLACE, 4 * ROW, 0), (IN_PLACE, 4 * ROW, 0)),
    _across: ((IN_PLACE, 4 * ROW, 0), (COPIED, 4 * ROW, 4 * ROW)),
    _batches: ((IN_PLACE, 4 * ROW, 0),),
    _columns: ((IN_PLACE, 2 * 5 * 2 * 4, 0),),
    _added: ((IN_PLACE, WHOLE, 0),),
    _returned: ((IN_PLACE, 4 * ROW, 0),),
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__[1:])
def test_state_is_what_torch_leaves(change: Callable[..., Tensor]) -> None:
    module = Two(change)
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 2, 3)).astype("float32"))
    options = uir_tvm.CompileOptions(faults="raise")
    exe = uir_tvm.compile(copy.deepcopy(module), args=(x, torch.tensor([1, 3])), options=options)
    results = []
    for places in ([1, 2], [0, 1], [2, 0]):
        given = x * (1 + places[0]), torch.tensor(places)
        want = module(*given).clone()
        got = exe(*given)
        torch.testing.assert_close(got, want)
        results.append((got, want))
        for name in exe.state:
            torch.testing.assert_close(exe.state.torch(name), getattr(module, name))
    for got, want in results:
        torch.testing.assert_close(got, want, msg="a result is the caller's")
    found = tuple((spec.how, spec.written, spec.copied) for spec in exe.info.state)
    assert found == CHANGES[change]
    assert all(bool(spec.why) == (spec.how == COPIED) for spec in exe.info.state)
