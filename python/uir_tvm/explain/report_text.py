# SPDX-License-Identifier: Apache-2.0
"""Reports as text for a terminal: a table of what takes time, then a block for each kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..hardware.rates import Rate, Rates
from ..igraph.iops import WORK
from ..refusal import Attempt
from .fusion_choices import FusionChoice, WayCost
from .pass_savings import Figure, PassEffect
from .program_figures import ProgramFigures
from .report import Explanation, GraphReport, KernelReport
from .sized_figures import SizedFigures
from .syncs import SyncUse
from .traffic import PointerTraffic
from .unfused import Border

INDENT = "  "
#: Width of the words in the left margin of a block.
MARGIN = 11
#: Figures of passes in words.
FIGURES = {
    "iops": "iOps of a unit",
    "bytes": "dram",
    "syncs": "syncs of a unit",
    "reg": "reg at the fullest",
    "sram": "sram at the fullest",
}
#: Slices of a peak that are listed one by one.
LISTED = 8


def render(explanation: Explanation) -> str:
    """The whole report."""
    one = len(explanation.kernels) == 1 and not explanation.library
    parts = [list(_rates(explanation.rates))]
    if not one:
        parts.append(list(_summary(explanation)))
    parts += [list(_kernel(kernel, explanation.borders, alone=one)) for kernel in explanation.kernels]
    if not one and explanation.borders:
        parts.append(list(_borders(explanation.borders)))
    if explanation.fusion:
        parts.append(list(_choices(explanation.fusion)))
    return "\n\n".join("\n".join(part) for part in parts if part)


# --- figures -------------------------------------------------------------------------------------


def bytes_text(count: float) -> str:
    """``1.5 MiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{_three(count)} {unit}"


def count_text(count: float) -> str:
    """``1.5 M``."""
    for unit in ("", "k", "M", "G", "T"):
        if count < 1000 or unit == "T":
            break
        count /= 1000
    return f"{_three(count)} {unit}" if unit else f"{count:.0f}"


def seconds_text(seconds: float | None) -> str:
    """``1.5 ms``; ``?`` where it is not known."""
    if seconds is None:
        return "?"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{_three(seconds / scale)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def percent_text(share: float | None) -> str:
    """``37%``; ``?`` where it is not known."""
    return "?" if share is None else f"{share:.0%}"


def _three(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:.{max(0, 2 - max(0, math.floor(math.log10(number))))}f}" if number else "0"


def _times(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio:.2f}x"


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _at_most(text: str, exact: bool) -> str:
    return text if exact else f"at most {text}"


# --- tables --------------------------------------------------------------------------------------


def _table(rows: Sequence[Sequence[str]], left: int = 1) -> Iterator[str]:
    """Rows in columns; the first ``left`` and the last one aligned at the left, the others at the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    last = len(widths) - 1
    for row in rows:
        cells = [
            cell.ljust(width) if k < left or k == last else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _rates(rates: Rates) -> Iterator[str]:
    yield "times are modelled: no resource ever waits for another; rates of the hardware model:"
    listed: list[tuple[str, Rate, str]] = [
        ("additions, multiplications", rates.operations, "/s"),
        ("contractions", rates.contract, "/s"),
    ]
    for row in rates.memory:
        name = "dram" if row.name == "dram" else f"dram ({row.name})"
        if row.capacity_bytes is not None:
            name = f"dram ({row.name}, for kernels that touch up to {bytes_text(row.capacity_bytes)})"
        listed.append((name, row.rate, "B/s"))
    if rates.sram.per_second is not None:
        listed.append(("sram", rates.sram, "B/s"))
    rows = [
        (name, "unknown" if r.per_second is None else f"{count_text(r.per_second)}{unit}", r.source)
        for name, r, unit in listed
    ]
    for line in _table(rows):
        yield INDENT + line


def _summary(explanation: Explanation) -> Iterator[str]:
    whole = explanation.modelled_seconds
    symbols = explanation.symbols
    at = "" if symbols is None else ", at " + ", ".join(f"{n} = {size}" for n, size in symbols.sizes.items())
    yield f"{explanation.model} on {explanation.target}: modelled {seconds_text(whole)}{at}"
    if symbols is not None:
        yield from _block("any size", list(_program(symbols)))
    rows: list[tuple[float, Sequence[str]]] = []
    for kernel in explanation.kernels:
        rows.append((kernel.modelled_seconds or -1.0, _kernel_row(kernel, whole)))
    for work in explanation.library:
        total = None if work.modelled_seconds is None else work.modelled_seconds * work.calls
        intensity = f"{work.flops / work.bytes:.2f}" if work.bytes else "?"
        cells = [
            str(work.calls),
            seconds_text(work.modelled_seconds),
            seconds_text(total),
            _share(total, whole),
        ]
        cells += [bytes_text(work.bytes), "1.00x", intensity, work.limit or "?", work.name]
        rows.append((total if total is not None else -1.0, cells))
    header = ["calls", "each", "all", "share", "dram each", "of least", "op/B", "limit", "kernel"]
    ordered = [cells for _, cells in sorted(rows, key=lambda row: -row[0])]
    yield from _table([header, *ordered], left=0)


def _share(part: float | None, whole: float | None) -> str:
    return "?" if part is None or not whole else percent_text(part / whole)


def _kernel_row(kernel: KernelReport, whole: float | None) -> Sequence[str]:
    graph = kernel.graph
    if graph is None:
        return [str(kernel.calls), *("?" for _ in range(7)), f"{kernel.name} (no iGraph)"]
    total = kernel.modelled_seconds
    intensity = graph.intensity
    return [
        str(kernel.calls),
        seconds_text(graph.roofline.modelled_seconds),
        seconds_text(total),
        _share(total, whole),
        bytes_text(graph.traffic.dram_bytes),
        _times(graph.traffic.ratio),
        "?" if intensity is None else f"{intensity:.2f}",
        graph.roofline.limit or "?",
        kernel.name,
    ]


# --- one kernel ----------------------------------------------------------------------------------


def _block(word: str, lines: Sequence[str]) -> Iterator[str]:
    """Lines under a word in the margin."""
    for k, line in enumerate(lines):
        yield f"{INDENT}{(word if k == 0 else '').ljust(MARGIN)}{line}"


def _kernel(kernel: KernelReport, found: Sequence[Border], alone: bool) -> Iterator[str]:
    said = ", ".join(
        filter(
            None,
            [
                f"hero {kernel.hero}" if kernel.hero else "",
                f"recipe {kernel.recipe}" if kernel.recipe else "",
            ],
        )
    )
    yield f"{kernel.name}: " + "; ".join(filter(None, [said, _many(kernel.calls, "call")]))
    if kernel.graph is None:
        yield from _block("no iGraph", kernel.reason.splitlines())
    else:
        yield from _graph(kernel.graph)
    if any(attempt.refused for attempt in kernel.attempts):
        yield from _block("tried", [_attempt(attempt) for attempt in kernel.attempts])
    mine = [b for b in found if kernel.name in (b.producer, b.consumer)]
    yield from _block(
        "borders", [_border(b) for b in mine] or (["none in the kernel graph"] if alone else [])
    )


def _attempt(attempt: Attempt) -> str:
    of = [attempt.form, f"tiles {attempt.shrink} times smaller" if attempt.shrink > 1 else ""]
    name = ", ".join([attempt.recipe, *filter(None, of)])
    if not attempt.refused:
        return f"{name}: {attempt.reason or 'taken'}"
    return f"{name}: {attempt.refused} at {attempt.stage}: {attempt.reason}"


def _graph(graph: GraphReport) -> Iterator[str]:
    units = f"{_many(graph.groups, 'group')} of {_many(graph.units, 'unit')}"
    phases = "" if graph.phases == 1 else f", in {graph.phases} phases (a barrier of all units between)"
    sizes = ", ".join(f"{name} = {value}" for name, value in graph.sizes.items())
    at = f", at {sizes} (known at launch)" if sizes else ""
    yield from _block("runs", [f"{units} on {graph.hardware}{phases}{at}"])
    if graph.symbols is not None:
        yield from _block("any size", list(_for_all_sizes(graph.symbols, sizes)))
    yield from _block("moves", list(_moves(graph)))
    yield from _block("computes", list(_computes(graph)))
    yield from _block("modelled", list(_modelled(graph)))
    yield from _block("on chip", list(_on_chip(graph)))
    yield from _block("syncs", [line for use in graph.syncs for line in _sync(use)] or ["none"])
    if graph.passes:
        yield from _block("passes", list(_passes(graph.passes)))


def _for_all_sizes(found: SizedFigures, sizes: str) -> Iterator[str]:
    """Expressions of the sizes, and what has none."""
    known = {
        "groups": found.groups,
        "bytes": found.dram_bytes,
        "bytes read": found.read_bytes,
        "bytes written": found.written_bytes,
        "operations": found.operations,
        "workspace bytes": "" if found.workspace_bytes == "0" else found.workspace_bytes,
    }
    for name, text in known.items():
        if text:
            bound = name.startswith("bytes") and not found.exact
            yield f"{name} {'<=' if bound else '='} {text}"
    missing = [name for name in ("bytes", "operations") if not known[name]]
    if missing:
        yield f"{' and '.join(missing)}: no expression was found; below at {sizes}"
    yield from (f"bytes of {name} = {text}" for name, text in found.pointers.items() if text)


def _program(found: ProgramFigures) -> Iterator[str]:
    """What a program moves and computes for all of its sizes."""
    rows = {
        "bytes": found.bytes,
        "bytes of inputs": found.input_bytes,
        "bytes of outputs": found.output_bytes,
        "operations of the library": found.library_operations,
    }
    yield from (f"{name} = {text}" for name, text in rows.items() if text and text != "0")
    yield f"bytes of weights = {found.weight_bytes}"


def _moves(graph: GraphReport) -> Iterator[str]:
    for level in graph.traffic.levels:
        if level.bytes:
            text = f"read {bytes_text(level.read_bytes)}, written {bytes_text(level.written_bytes)}"
            line = f"{level.level:<5}{_at_most(text, level.exact)}"
            if level.level == "dram":
                least = _at_most(bytes_text(graph.traffic.least_bytes), graph.traffic.exact)
                line += f"; least {least}: {_times(graph.traffic.ratio)}"
            yield line
    for pointer in graph.traffic.pointers:
        yield "     " + _pointer(pointer)


def _pointer(pointer: PointerTraffic) -> str:
    sides = []
    for word, moved, least in (
        ("read", pointer.read_bytes, pointer.least_read_bytes),
        ("written", pointer.written_bytes, pointer.least_written_bytes),
    ):
        if moved:
            times = (
                "" if moved == least else f" ({_times(moved / least)})" if least else " (need not be in dram)"
            )
            sides.append(f"{word} {bytes_text(moved)}{times}")
    said = _at_most(", ".join(sides), pointer.exact) if sides else "not touched"
    return f"{pointer.pointer}: {pointer.role} {pointer.dtype}, {pointer.elements} elements; {said}"


def _computes(graph: GraphReport) -> Iterator[str]:
    work = graph.arithmetic
    kinds = [f"{kind} {count_text(work.count(kind))}" for kind in WORK if work.count(kind)]
    if not kinds:
        yield "nothing"
        return
    intensity = graph.intensity
    per_byte = "" if intensity is None else f", {intensity:.2f} per byte of dram"
    yield _at_most(f"{count_text(work.total)} operations{per_byte} ({', '.join(kinds)})", work.exact)


def _modelled(graph: GraphReport) -> Iterator[str]:
    roof = graph.roofline
    if roof.modelled_seconds is None:
        known = [f"{t.resource} {seconds_text(t.seconds)}" for t in roof.levels if t.seconds is not None]
        yield f"unknown ({roof.why_unknown})" + (f"; {', '.join(known)}" if known else "")
        return
    times = ", ".join(
        f"{t.resource} {seconds_text(t.seconds)} ({percent_text(t.share)})" for t in roof.levels
    )
    yield f"{seconds_text(roof.modelled_seconds)} a call, by {roof.limit or 'nothing'}: {times}"
    memory = "" if roof.memory == "dram" else f" (dram at the rate of {roof.memory})"
    balance = "" if roof.balance == 1.0 else f"; {percent_text(roof.balance)} of the units have work"
    share = percent_text(roof.share_of_bound)
    yield f"roofline {seconds_text(roof.bound_seconds)}: {share} of it reached{memory}{balance}"


def _on_chip(graph: GraphReport) -> Iterator[str]:
    if not graph.memory:
        yield "nothing"
    for use in graph.memory:
        budget = "the hardware model has none"
        if use.share is not None:
            budget = f"{percent_text(use.share)} of {bytes_text(use.budget_bytes)}"
        yield (
            f"{use.level} of {use.owner}: {bytes_text(use.placed_bytes)}, {budget}; "
            f"most alive at {use.at.split()[0]}: {bytes_text(use.peak_bytes)}"
        )
        for live in use.alive[:LISTED]:
            place = "" if live.address is None else f" at byte {live.address}"
            yield f"  {bytes_text(live.bytes)} {live.dtype} {live.slice}{place}"
        rest = use.alive[LISTED:]
        if rest:
            yield f"  {bytes_text(sum(live.bytes for live in rest))} in {len(rest)} smaller ones"


def _sync(use: SyncUse) -> Iterator[str]:
    times = "once" if use.executions == 1 else f"{use.executions} times"
    yield f"iOp {use.position}: {use.iop}, {times} a unit"
    if not use.needed:
        yield "  nothing needs it: no two units meet in an element without it"
        return
    when = f" in a later iteration of {use.carried}" if use.carried else ""
    yield f"  because {use.first},"
    yield f"  and another unit's {use.second}{when}" + ("" if use.proved else " (not proved)")
    if use.lower:
        yield f"  sync.{use.lower} would do"


def _passes(effects: Sequence[PassEffect]) -> Iterator[str]:
    """A line for each pass that changed a figure, and one for those that changed none."""
    for effect in effects:
        if effect.figures:
            yield f"{effect.name}: " + ", ".join(_figure(f) for f in effect.figures)
        elif effect.refused:
            yield f"{effect.name}: refused ({effect.effect})"
    others = [effect.name for effect in effects if not effect.figures and not effect.refused]
    if others:
        yield f"{', '.join(others)}: changed the graph, but not its iOps, bytes, syncs or peaks"


def _figure(figure: Figure) -> str:
    text = count_text if figure.name in ("iops", "syncs") else bytes_text
    name = FIGURES.get(figure.name, figure.name)
    return f"{name} {text(figure.before)} -> {text(figure.after)}"


# --- borders -------------------------------------------------------------------------------------


def _border(border: Border) -> str:
    times = "" if border.times == 1 else f" ({border.times} times)"
    return (
        f"{border.producer} -> {border.consumer}{times}: {border.reason}; "
        f"one kernel would save {bytes_text(border.saved_bytes)}"
    )


def _borders(found: Sequence[Border]) -> Iterator[str]:
    yield "neighbours that are two kernels, costliest first:"
    for border in found:
        yield INDENT + _border(border)
        yield f"{INDENT}  over {', '.join(border.tensors)}"


# --- fusion by its price -------------------------------------------------------------------------

#: What merging does in a candidate of each sort, and what else there is.
WAYS = {
    "repeated": ("computed where it is read, each time", "computed once"),
    "few rows": ("computed inside a kernel of few rows", "computed by all units"),
    "recomputed": ("computed by each of its readers", "stored"),
    "siblings": ("read by one kernel", "read by two kernels"),
    "attention": ("computed by one kernel", "computed by products of the library around a softmax"),
}


def _choices(found: Sequence[FusionChoice]) -> Iterator[str]:
    yield "fusion that its modelled price decided, most at stake first:"
    for choice in found:
        taken, left = WAYS[choice.candidate] if choice.merged else WAYS[choice.candidate][::-1]
        times = "" if len(choice.values) == 1 else f" ({len(choice.values)} times)"
        prices = (choice.together, choice.apart) if choice.merged else (choice.apart, choice.together)
        yield f"{INDENT}{choice.candidate}: {choice.values[0]}{times}, {taken}: {_way(prices[0])}"
        yield f"{INDENT}  {left}: {_way(prices[1])}; kernels {', '.join(choice.kernels)}"


def _way(cost: WayCost) -> str:
    units = f"{cost.units} unit" + ("s" if cost.units != 1 else "")
    moved = f"{bytes_text(cost.bytes)}, {count_text(cost.operations)} operations"
    return f"modelled {seconds_text(cost.modelled_seconds)} ({moved}, {units})"
