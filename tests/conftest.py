# SPDX-License-Identifier: Apache-2.0
"""What tests run under: in the folders about kernels, each that is compiled is compared with its function.

A test that compares what its kernels give with a reference of its own says so (`compares_itself`), and is
spared that.
A fault of the compiler itself fails the test: in a user's build the kernel would fall back.
"""

from __future__ import annotations

import gc
import logging
import math
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from uir_tvm import _native, garbage
from uir_tvm.errors import EquivalenceError

from . import quick_decompositions, quick_stack
from .asked import ALL

quick_stack.install()
# imports make no garbage, and looking for it takes a tenth of their time
gc.disable()
# before test modules import torch, whose symbols TVM would read too
_native.load()
#: How many objects make a search for garbage worthwhile, and how often older ones are searched too.
RARE = (10_000, 10, 10)
# What an earlier run left decides no test; those of the cache turn it on, in a folder of their own.
os.environ["UIR_KERNEL_CACHE"] = "off"
# Each variant is one more kernel to compile: tests/test_variants.py asks for them.
os.environ.setdefault("UIR_VARIANTS", "faster" if ALL else "named")
# The suite draws the same examples in every run, so that a change is judged by what it changes; the campaign
# draws others each time. On a busy machine nothing is said of time.
settings.register_profile(
    "uir", derandomize=not ALL, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("uir")

#: A comparison takes about as long as a kernel takes to compile; the other folders compile the same recipes.
COMPARED = frozenset({"conformance", "optimize", "schedules", "verify"})
#: Who tells of differences.
COMPARER = logging.getLogger("uir_tvm.verify.compared")


class _Differences(logging.Handler):
    """Collects the differences that the compiler found, and then worked around."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[EquivalenceError] = []

    def emit(self, record: logging.LogRecord) -> None:
        args = record.args if isinstance(record.args, tuple) else ()
        self.found += [arg for arg in args if isinstance(arg, EquivalenceError)]


def _compares_itself(request: pytest.FixtureRequest) -> bool:
    """Whether a test compares the results of its kernels itself, on this target."""
    mark = request.node.get_closest_marker("compares_itself")
    if mark is None or ALL:
        return False
    target = getattr(request.node, "callspec", None) and request.node.callspec.params.get("target")
    return target not in mark.kwargs.get("but", ())


def pytest_collection_finish() -> None:
    """What is loaded by now stays: no garbage is sought there."""
    quick_decompositions.install()
    gc.enable()
    gc.freeze()
    # a compilation need not count them to find that out (`tests/test_garbage.py` lets it)
    garbage._arranged_until = math.inf
    gc.set_threshold(*RARE)


@pytest.fixture(autouse=True)
def differences(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[EquivalenceError]]:
    """Kernels whose iGraph did not compute what it stands for: none, unless the test takes them out."""
    folder = request.path.relative_to(request.config.rootpath / "tests").parts[0]
    if folder in COMPARED and "UIR_EQUIVALENCE" not in os.environ:
        monkeypatch.setenv("UIR_EQUIVALENCE", "none" if _compares_itself(request) else "sampled")
    if "UIR_FAULTS" not in os.environ:
        monkeypatch.setenv("UIR_FAULTS", "raise")
    handler = _Differences()
    # a test of `uir --quiet` leaves the loggers above it silent; to set a level goes through all loggers
    if COMPARER.level != logging.WARNING:
        COMPARER.setLevel(logging.WARNING)
    COMPARER.addHandler(handler)
    yield handler.found
    COMPARER.removeHandler(handler)
    assert not handler.found, "\n".join(map(str, handler.found))
