# SPDX-License-Identifier: Apache-2.0
"""Rows of `cpu.py`: kept in files, and shown as a line, a table, or Markdown."""

from __future__ import annotations

import json
import os
import pathlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from rich.table import Table

OURS = "uir-cpu"
#: The loop that shows what exponentials take at least (`exp_ceiling.py`).
LIMIT = "hand-written loop"
#: Forms of ours, and the limit: the ratio is to none of these.
NO_COMPETITORS = frozenset({OURS, LIMIT, "backend uir", "backend uir, frozen"})

Row = dict[str, Any]


class OtherRun(Exception):
    """Files whose rows cannot stand in one table."""


@attrs.frozen
class Rows:
    """What one or more runs on one machine found.

    Attributes
    ----------
    cpu : str
        The processor by the name that it gives itself; empty where a file does not say.
    threads : int
    rows : dict of str to dict
        By case (`one_case.py`), in the order in which they were run.
    """

    cpu: str
    threads: int
    rows: dict[str, Row] = attrs.field(factory=dict)

    @classmethod
    def read(cls, path: pathlib.Path) -> Rows:
        """Those of a file."""
        found = json.loads(path.read_text())
        return cls(found.get("cpu", ""), found["threads"], {row["case"]: row for row in found["rows"]})

    def write(self, path: pathlib.Path) -> None:
        """Into a file, which has all or, when this is cut off, what it had before."""
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        text = {"cpu": self.cpu, "threads": self.threads, "rows": list(self.rows.values())}
        beside.write_text(json.dumps(text, indent=1))
        beside.replace(path)

    def joined(self, other: Rows, name: str) -> Rows:
        """With the rows of another run, which replace those of the same case.

        Raises
        ------
        OtherRun
            On another processor, or with another number of threads.
        """
        mine, theirs = (self.cpu or other.cpu, self.threads), (other.cpu or self.cpu, other.threads)
        if mine != theirs:
            raise OtherRun(
                f"{name} is of {theirs[0]} with {theirs[1]} threads, not of {mine[0]} with {mine[1]}: "
                "show or write it apart"
            )
        return Rows(mine[0], self.threads, self.rows | other.rows)

    def has(self, case: str, peers: Iterable[str]) -> bool:
        """Whether a case has a time, or a reason for none, of each of these peers."""
        row = self.rows.get(case)
        return row is not None and set(peers) <= {*row["seconds"], *row["failed"]}

    def peers(self, order: Sequence[str]) -> list[str]:
        """All that the rows have, in an order, others last."""
        found = dict.fromkeys(p for row in self.rows.values() for p in (*row["seconds"], *row["failed"]))
        return [p for p in order if p in found] + [p for p in found if p not in order]


def read_all(paths: Sequence[pathlib.Path]) -> Rows:
    """The rows of some files as those of one run; a later file's replace an earlier one's.

    Raises
    ------
    OtherRun
    """
    found = Rows.read(paths[0])
    for path in paths[1:]:
        found = found.joined(Rows.read(path), str(path))
    return found


def ratio(row: Row, ours: str = OURS) -> float | None:
    """Seconds of the fastest peer over ours; None where either has none that are right."""
    others = {p: s for p, s in row["seconds"].items() if p not in NO_COMPETITORS and p not in row["wrong"]}
    if not others or ours not in row["seconds"] or ours in row["wrong"]:
        return None
    return float(min(others.values()) / row["seconds"][ours])


def of_limit(row: Row, ours: str = OURS) -> float | None:
    """Seconds of ours over those of the hand-written loop; None where there is none."""
    found = row["seconds"]
    return found[ours] / found[LIMIT] if {ours, LIMIT} <= set(found) and LIMIT not in row["wrong"] else None


def line(row: Row, peers: Sequence[str]) -> str:
    """A row while the run goes on."""
    shown = ", ".join(f"{p} {row['seconds'][p] * 1e3:.3f} ms" for p in peers if p in row["seconds"])
    notes = [f"WRONG: {row['wrong']}"] if row["wrong"] else []
    notes += [f"{peer} failed: {why}" for peer, why in row["failed"].items()]
    return "  ".join([f"{row['case']}: {shown}", *notes])


def _cell(row: Row, peer: str) -> str:
    """Milliseconds of a peer, with the difference where it is wrong."""
    if peer not in row["seconds"]:
        return "failed" if peer in row["failed"] else ""
    wrong = f" WRONG by {row['errors'][peer]:.0e}" if peer in row["wrong"] else ""
    return f"{row['seconds'][peer] * 1e3:.3f}{wrong}"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def cells(rows: Iterable[Row], peers: Sequence[str], ours: str = OURS) -> list[list[str]]:
    """The table: heads, rows, and the geometric mean of the ratios, where there are any."""
    rows = list(rows)
    limited = any(of_limit(row, ours) is not None for row in rows)
    heads = ["case", *peers, f"best peer / {ours}"]
    heads += [f"{ours} / {LIMIT}"] if limited else []
    found = [[*heads, "of copy bandwidth"]]
    for row in rows:
        limit = [_number(of_limit(row, ours), ".2f")] if limited else []
        share = _number(row.get("share_of_copy"), ".0%")
        ratios = [_number(ratio(row, ours), ".2f"), *limit]
        found.append([row["case"], *(_cell(row, peer) for peer in peers), *ratios, share])
    speeds = [speed for row in rows if (speed := ratio(row, ours)) is not None]
    if speeds:
        mean = f"{statistics.geometric_mean(speeds):.2f}"
        found.append(["geometric mean", *[""] * len(peers), mean, *[""] * (limited + 1)])
    return found


def table(rows: Iterable[Row], peers: Sequence[str], ours: str = OURS, machine: str = "") -> Table:
    """What a terminal shows."""
    heads, *body = cells(rows, peers, ours)
    where = f"{machine}: " if machine else ""
    title = f"{where}medians in ms; best peer / {ours} above 1 means {ours} is faster"
    out = Table(title=title, title_justify="left")
    for at, head in enumerate(heads):
        out.add_column(head, justify="right" if at else "left")
    for row in body:
        out.add_row(*row)
    return out


def markdown(rows: Iterable[Row], peers: Sequence[str], ours: str = OURS) -> str:
    """What a page has."""
    heads, *body = cells(rows, peers, ours)
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(each)} |" for each in (heads, rule, *body))


def reasons(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each peer that has failed on a case."""
    return [f"{row['case']}: {peer} failed: {why}" for row in rows for peer, why in row["failed"].items()]
