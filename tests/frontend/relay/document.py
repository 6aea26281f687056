# SPDX-License-Identifier: Apache-2.0
"""The table of operators in docs/relay.md.  As a script it writes the table into the page."""

from __future__ import annotations

import pathlib
import re

from uir_tvm.frontend.relay.operators import REFUSED, TABLES

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "relay.md"
BEGIN, END = "<!-- operators -->\n", "<!-- end of operators -->\n"


def table() -> str:
    """What is taken, by kind, and what is refused for a reason."""
    lines = ["| kind | operators |", "|---|---|"]
    lines += [
        f"| {kind} | {', '.join(f'`{name}`' for name in sorted(rows))} |" for kind, rows in TABLES.items()
    ]
    reasons: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        reasons.setdefault(reason, []).append(name)
    lines += ["", "| not taken | because |", "|---|---|"]
    lines += [f"| {', '.join(f'`{n}`' for n in sorted(names))} | {why} |" for why, names in reasons.items()]
    count = sum(map(len, TABLES.values()))
    return BEGIN + f"{count} operators are taken.\n\n" + "\n".join(lines) + "\n" + END


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: table(), text, flags=re.DOTALL))
