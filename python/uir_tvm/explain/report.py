# SPDX-License-Identifier: Apache-2.0
"""What a kernel, or a whole model, does with its memory and time, put together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from .. import hardware
from ..errors import ArtifactError
from ..hardware.rates import Rates, rates_of
from ..igraph.dealt import DEALT
from ..igraph.nodes import HardwareModel, IGraph
from ..igraph.parser import parse_igraph
from ..optimize.split import num_phases
from ..refusal import Attempt
from ..sizes.symbolic_shapes import Size, Sizes, value_of
from ..verify import verify
from ..verify.access import GraphFacts
from .arithmetic import Arithmetic, arithmetic
from .at_sizes import at_sizes
from .call_sizes import sizes_at_call
from .fusion_choices import FusionChoice, fusion_choices
from .library_traffic import LibraryWork, library_work
from .memory_peaks import MemoryUse, memory
from .pass_savings import PassEffect, pass_effects
from .plain import plain
from .program_figures import ProgramFigures, graph_at, program_figures
from .roofline import Roofline, roofline
from .sized_figures import SizedFigures, sized_figures
from .syncs import SyncUse, syncs
from .traffic import Traffic, touches, traffic
from .unfused import Border, borders, node_name

#: Rules that a graph must keep for its elements to be counted.
RULES = ("form", "shape", "dtype", "bounds")

#: Stages whose text may hold a kernel's iGraph, the last made first.
IGRAPH_STAGES = ("optimize", "igraph")
#: In the text of a graph with a loop over a unit's tiles (`igraph.dealt`).
DEALT_TEXT = f"[{DEALT}=true"


@attrs.frozen
class GraphReport:
    """What one iGraph does: see the fields' classes.

    Attributes
    ----------
    groups, units : int
        How it runs: groups, and units of each.
    phases : int
        Parts that run one after the other on a target without a barrier of all units (`optimize.split`).
    sizes : mapping of str to int
        Of a graph with sizes: those at which the figures hold.
    symbols : SizedFigures or None
        Of a graph with sizes: what holds for all of them, as expressions.
    """

    name: str
    hardware: str
    groups: int
    units: int
    traffic: Traffic
    arithmetic: Arithmetic
    roofline: Roofline
    memory: tuple[MemoryUse, ...]
    syncs: tuple[SyncUse, ...]
    phases: int
    passes: tuple[PassEffect, ...] = ()
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    symbols: SizedFigures | None = None

    @property
    def intensity(self) -> float | None:
        """Operations per byte of dram."""
        return self.arithmetic.intensity(self.traffic.dram_bytes)


@attrs.frozen
class KernelReport:
    """One kernel of a model.

    Attributes
    ----------
    calls : int
        Nodes of the kernel graph that run it.
    graph : GraphReport or None
        None where it did not go through an iGraph; ``reason`` says why.
    attempts : tuple of Attempt
        The candidates that were tried for it, in order.
    """

    name: str
    hero: str
    recipe: str
    calls: int
    graph: GraphReport | None
    reason: str = ""
    attempts: tuple[Attempt, ...] = ()

    @property
    def modelled_seconds(self) -> float | None:
        """Of all calls."""
        seconds = self.graph.roofline.modelled_seconds if self.graph is not None else None
        return None if seconds is None else seconds * self.calls


@attrs.frozen
class Explanation:
    """A model, or one iGraph by itself.

    Attributes
    ----------
    kernels : tuple of KernelReport
        Longest modelled time first.
    library : tuple of LibraryWork
    borders : tuple of Border
        Every pair of neighbours in the kernel graph, by reason.
    rates : Rates
        What times were modelled with.
    symbols : ProgramFigures or None
        Of a program with open sizes: what holds for all of them, and those at which all else is told.
    fusion : tuple of FusionChoice
        Where one kernel was a trade against two: which way the price took, at usual sizes.
    """

    model: str
    target: str
    kernels: tuple[KernelReport, ...]
    library: tuple[LibraryWork, ...]
    borders: tuple[Border, ...]
    rates: Rates
    symbols: ProgramFigures | None = None
    fusion: tuple[FusionChoice, ...] = ()

    @property
    def modelled_seconds(self) -> float | None:
        """Of everything, one after the other; None where any part is not known."""
        parts = [kernel.modelled_seconds for kernel in self.kernels]
        parts += [None if w.modelled_seconds is None else w.modelled_seconds * w.calls for w in self.library]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data: fields and derived figures by name."""
        return plain(self)


def explain_graph(
    graph: IGraph,
    rates: Rates | None = None,
    passes: tuple[PassEffect, ...] = (),
    sizes: Mapping[str, int] | None = None,
) -> GraphReport:
    """What one iGraph does.

    Parameters
    ----------
    graph : IGraph
        A graph that passes the verifier's rules up to ``bounds``.
    rates : Rates, optional
        Default: those of its hardware model.
    passes : tuple of PassEffect, optional
        What made it.
    sizes : mapping of str to int, optional
        Of a graph with sizes: those that figures are wanted at; default: `usual_sizes`.

    Raises
    ------
    IGraphError
        Sizes that the graph does not take.
    """
    symbols = sized_figures(graph)
    graph, chosen = at_sizes(graph, sizes)
    facts = GraphFacts(graph)
    rates = rates_of(graph.hardware) if rates is None else rates
    moved = traffic(facts, [touch for step in facts.steps for touch in touches(step)])
    work = arithmetic(facts)
    processors = int(graph.hardware.num_groups) * int(graph.hardware.num_units)
    return GraphReport(
        str(graph.name),
        str(graph.hardware.name),
        int(graph.num_groups),
        int(graph.num_units),
        moved,
        work,
        roofline(moved, work, rates, facts.num_parallel, processors),
        memory(facts),
        syncs(graph),
        num_phases(graph),
        passes,
        chosen,
        symbols,
    )


def explain_text(text: str) -> Explanation:
    """What one iGraph by itself does.

    Raises
    ------
    IGraphError
        The text is no iGraph.
    VerifyError
        It breaks a rule that counting relies on (`RULES`).
    """
    graph = parse_igraph(text)
    verify(graph, RULES)
    rates = rates_of(graph.hardware)
    report = explain_graph(graph, rates, pass_effects(text))
    kernel = KernelReport(str(graph.name), str(graph.attrs.get("hero", "")), "", 1, report)
    return Explanation(str(graph.name), str(graph.hardware.name), (kernel,), (), (), rates)


def explain(exe: Any, kernel: str | None = None, sizes: Sizes | None = None) -> Explanation:
    """What a compiled or loaded model does.

    Parameters
    ----------
    exe : Executable
    kernel : str, optional
        One kernel alone, with its borders.
    sizes : mapping of str to int, optional
        Of an executable that serves all sizes: those at which figures are told.

    Raises
    ------
    KeyError
        There is no such kernel.
    ArtifactError
        The file was saved without what this needs.
    """
    graph: Mapping[str, Any] | None = None
    if exe.kernel_graph is not None:
        graph = json.loads(exe.kernel_graph.to_json())
    whole, symbols = graph, None
    if graph is not None and sizes:
        symbols, graph = program_figures(graph, sizes), graph_at(graph, sizes)
    calls = Counter(node_name(node) for node in graph["nodes"]) if graph is not None else Counter()
    infos = [info for info in exe.info.kernels if kernel in (None, info.name)]
    if kernel is not None and not infos:
        raise KeyError(kernel)
    texts = [_text(info) for info in infos]
    graphs = [parse_igraph(text) if text else None for text in texts]
    rates = rates_of(next((g.hardware for g in graphs if g is not None), None) or _hardware(exe.info.target))
    reports = []
    for info, text, parsed in zip(infos, texts, graphs, strict=True):
        values = {} if parsed is None else _sizes_of(exe, info, parsed, whole)
        report = None if parsed is None else _explained(parsed, rates, pass_effects(text), values, sizes)
        count = calls[info.name] if graph is not None else 1
        tried = tuple(Attempt(**attempt) for attempt in info.attempts)
        reports.append(KernelReport(info.name, info.hero, info.recipe, count, report, info.fallback, tried))
    reports.sort(key=lambda k: (k.modelled_seconds is None, -(k.modelled_seconds or 0.0), k.name))
    found = borders(graph) if graph is not None else ()
    if kernel is not None:
        found = tuple(b for b in found if kernel in (b.producer, b.consumer))
    library = library_work(graph, rates) if graph is not None and kernel is None else ()
    chosen = fusion_choices(graph) if graph is not None and kernel is None else ()
    return Explanation(exe.info.name, exe.info.target, tuple(reports), library, found, rates, symbols, chosen)


def _sizes_of(exe: Any, info: Any, graph: IGraph, whole: Mapping[str, Any] | None) -> dict[str, Size | None]:
    """What a kernel's own sizes are in terms of the program's; nothing where its calls differ in that."""
    if not graph.sizes or "shapes" not in info.code:
        return {}
    calls = [[spec.shape for spec in (*exe.info.inputs, *exe.info.outputs)]]
    if whole is not None:
        tensors = {tensor["name"]: tensor["shape"] for tensor in whole["tensors"]}
        mine = [node for node in whole["nodes"] if node_name(node) == info.name]
        calls = [[tensors[name] for name in (*node["inputs"], *node["outputs"])] for node in mine]
    names, own = [str(size.name) for size in graph.sizes], info.code["shapes"]
    found = [sizes_at_call(names, own, shapes) for shapes in calls]
    return found[0] if found and all(row == found[0] for row in found) else {}


def _explained(
    graph: IGraph,
    rates: Rates,
    passes: tuple[PassEffect, ...],
    values: Mapping[str, Size | None],
    sizes: Sizes | None,
) -> GraphReport:
    """A kernel of a program; where the program's sizes say its own, in terms of these."""
    known = {name: value for name, value in values.items() if value is not None}
    if not known or len(known) < len(values) or not sizes:
        return explain_graph(graph, rates, passes)
    numbers = {name: value_of(value, sizes) for name, value in known.items()}
    report = explain_graph(graph, rates, passes, numbers)
    assert report.symbols is not None
    return attrs.evolve(report, symbols=report.symbols.in_terms_of(known), sizes=sizes)


def _hardware(target: str) -> HardwareModel:
    """The hardware model of a target's name: ``NAME`` or ``NAME:MODEL``."""
    from ..target import registry

    name, _, model = target.partition(":")
    return hardware.get(model or None, registry.get(name).kind)


def _text(info: Any) -> str:
    """The text of a kernel's iGraph; empty where it has none."""
    if info.fallback:
        return ""
    found = [str(info.texts[stage]) for stage in IGRAPH_STAGES if stage in info.texts]
    if found:
        # what a unit does of its tiles is no expression of sizes: of the graph before it has a loop of them
        return next((text for text in found if DEALT_TEXT not in text), found[0])
    raise ArtifactError(
        f"The file holds no iGraph of the kernel '{info.name}'.",
        need="the text of the stage " + " or ".join(IGRAPH_STAGES),
        limit="it has " + (", ".join(info.texts) or "no text"),
        remedy="compile the model again: uir compile MODEL -o FILE",
    )
