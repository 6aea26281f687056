# SPDX-License-Identifier: Apache-2.0
"""Who catches a fault in emitted text: a finding of the host model, a wrong result, or nobody."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.device.run_text import Ran, run
from uir_tvm.errors import ToolchainError

from .text_faults import TextFault

FINDING, RESULT, UNCOMPILED, NEEDLESS, HARMLESS = (
    "finding",
    "wrong result",
    "no text",
    "NEEDLESS",
    "no effect",
)
VERDICTS = (FINDING, RESULT, UNCOMPILED, HARMLESS, NEEDLESS)
#: Seconds that one run of a small kernel may take.
LIMIT = 20.0


@attrs.frozen
class Verdict:
    """What became of one fault.

    ``no effect`` is a change of numbers that changes nothing for this shape: the same bits in all outputs.
    ``NEEDLESS`` is a barrier without which nothing is found: it may go, or the model has a gap.
    """

    fault: TextFault
    kernel: str
    by: str
    detail: str = ""


class Judge:
    """Judges faults of one printed function against the run of its right text.

    Raises
    ------
    AssertionError
        The right text has findings: then no fault can be judged.
    """

    def __init__(self, name: str, kernel: DeviceKernel, inputs: Sequence[np.ndarray]) -> None:
        self.name, self.kernel, self.inputs = name, kernel, inputs
        self.right: Ran = run(kernel, inputs, max_seconds=LIMIT)
        findings = [str(finding) for result in self.right.results for finding in result.findings]
        assert not findings, f"{name}: {findings}"
        assert not self.right.unwritten, f"{name}: nothing wrote all of {self.right.unwritten}"

    def __call__(self, fault: TextFault) -> Verdict:
        try:
            ran = run(self.kernel, self.inputs, source=fault.source, max_seconds=LIMIT)
        except ToolchainError as error:
            return Verdict(fault, self.name, UNCOMPILED, error.where)
        for result in ran.results:
            if result.findings:
                first = result.findings[0]
                return Verdict(fault, self.name, FINDING, f"{first.kind}: {first}")
        if ran.unwritten:
            return Verdict(fault, self.name, FINDING, f"nothing wrote all of {', '.join(ran.unwritten)}")
        for output, expected in self.right.outputs.items():
            got = ran.outputs[output]
            if got.tobytes() != expected.tobytes():
                return Verdict(fault, self.name, RESULT, _first_difference(output, got, expected))
        return Verdict(fault, self.name, NEEDLESS if fault.barrier else HARMLESS)


def _first_difference(name: str, got: np.ndarray, expected: np.ndarray) -> str:
    width = expected.dtype.itemsize
    differs = (got.view(np.uint8) != expected.view(np.uint8)).reshape(-1, width).any(axis=1)
    at = int(np.flatnonzero(differs)[0])
    return f"{name}[{at}] is {got[at]}, not {expected[at]} ({int(differs.sum())} of {differs.size} differ)"
