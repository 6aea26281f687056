# SPDX-License-Identifier: Apache-2.0
"""A run of the benchmark: what it goes on with, and what an end before its end leaves."""

from __future__ import annotations

import os
import pathlib
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

CASES = ("one", "two", "three")
WORKLOADS = (
    *("softmax 4096x4096", "masked softmax 12x512x512", "log-softmax 512x50257", "rmsnorm+residual"),
    "swiglu 512x11008",
    *("rotary 32x512x128", "attention 12x512x64", "attention 32x2048x128", "group norm+silu", "mean 128x512"),
    *("bias 784x58", "transpose 784x58x2", "perceptron", "mobilenet", "mobilenet-v3", "unet"),
    *("minilm", "bert", "gpt2", "detector", "resnet"),
)


class Copy:
    """Stands for a copy of memory."""

    bytes = 2_000_000

    def __init__(self, threads: int) -> None: ...

    def __call__(self) -> None:
        time.sleep(0.0001)


@pytest.fixture
def started(cpu: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Callable[..., Any]:
    """Runs the cases with what one does; gives whether it was whole, its rows, and what it said."""
    monkeypatch.setattr(cpu, "StreamingCopy", Copy)

    def start(does: Callable[[str], None], *options: str) -> tuple[bool, Any, str]:
        ran = []

        def run_case(name: str, peers: list[str], *_: Any) -> dict[str, Any]:
            ran.append(name)
            does(name)
            seconds = dict.fromkeys(peers, 1.0)
            row = {"case": name, "seconds": seconds, "errors": dict.fromkeys(peers, 0.0)}
            return row | {"wrong": [], "failed": {}, "prepare": seconds}

        monkeypatch.setattr(cpu, "run_case", run_case)
        file = tmp_path / "rows.json"
        given = cpu.options().parse_args(["--resume", str(file), "--peers", "uir-cpu", *options])
        rows = cpu.Rows.read(file) if file.exists() else cpu.Rows("znver3", 2)
        with (tmp_path / "said").open("w+") as said:
            whole = cpu.run(CASES, rows, given, Console(file=said, width=150))
            said.seek(0)
            return whole, ran, said.read()

    return start


def test_a_run_goes_on_where_it_ended(started: Any) -> None:
    """It is ended as `timeout` does it; the next run takes what is left, and a third has nothing to do."""

    def ends(name: str) -> None:
        if name == "two":
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    whole, ran, said = started(ends)
    assert not whole and ran == ["one", "two"]
    assert "The run ends with 1 of 3 cases: it was told to end" in said
    whole, ran, said = started(lambda name: None)
    assert whole and ran == ["two", "three"] and ", 2 of 3] two: uir-cpu 1000.000 ms" in said
    assert started(lambda name: None)[1] == []


def test_a_limit_ends_a_run(started: Any) -> None:
    whole, ran, said = started(lambda name: time.sleep(5), "--limit", "0.2")
    assert not whole and ran == ["one"] and "0 of 3 cases: 0.2 s are over" in said
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_interrupt_ends_a_run(started: Any) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    assert "it was interrupted" in started(interrupt)[2]


def test_more_peers_are_run_again(started: Any) -> None:
    started(lambda name: None)
    assert started(lambda name: None, "--peers", "uir-cpu", "torch eager")[1] == list(CASES)


def test_the_workloads_of_the_table_are_cases(cpu: Any) -> None:
    """Every one that is compared has a name of its own."""
    for each in WORKLOADS:
        assert any(name.startswith(each) for name in cpu.NAMES), each
    assert len(set(cpu.NAMES)) == len(cpu.NAMES)


def test_loops_by_hand_are_right() -> None:
    """Rows that fill no vectors, and results that are stored past the caches, too."""
    import exp_ceiling
    import torch
    from operators import Function
    from torch.nn import functional as F

    def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 0.125 + mask, -1)

    functions: dict[str, Any] = {
        "softmax": lambda x: torch.softmax(x, -1),
        "log-softmax": lambda x: torch.log_softmax(x, -1),
        "masked softmax": masked,
        "swiglu": lambda gate, up: F.silu(gate) * up,
    }
    assert set(functions) == set(exp_ceiling.LOOPS)
    torch.manual_seed(3)
    for past in (exp_ceiling.BEYOND_CACHES, 0):
        exp_ceiling.BEYOND_CACHES, before = past, exp_ceiling.BEYOND_CACHES
        try:
            for name, function in functions.items():
                x = 3 * torch.randn(2, 3, 5, 1003)
                more = {"masked softmax": (torch.randn(2, 1, 1, 1003),), "swiglu": (torch.randn_like(x),)}
                inputs = (x, *more.get(name, ()))
                found = exp_ceiling.hand_written(Function(f"{name} 1x1", function), inputs)()
                torch.testing.assert_close(found, function(*inputs), rtol=2e-6, atol=2e-6)
        finally:
            exp_ceiling.BEYOND_CACHES = before
    with pytest.raises(ValueError, match="no loop is written for rotary"):
        exp_ceiling.hand_written(Function("rotary 1x1", lambda x: x), (torch.zeros(1),))
