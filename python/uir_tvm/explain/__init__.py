# SPDX-License-Identifier: Apache-2.0
"""What a compiled model does with its memory and time: traffic, arithmetic, roofline, syncs, peaks, borders.

`explain(exe)` explains an executable, compiled or loaded, `explain_text(text)` one iGraph; `render` writes
either for a terminal, `Explanation.to_json` for machines.
"""

from __future__ import annotations

from .report import Explanation, GraphReport, KernelReport, explain, explain_graph, explain_text
from .report_text import render

__all__ = [
    "Explanation",
    "GraphReport",
    "KernelReport",
    "explain",
    "explain_graph",
    "explain_text",
    "render",
]
