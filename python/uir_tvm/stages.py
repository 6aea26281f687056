# SPDX-License-Identifier: Apache-2.0
"""The stages that a kernel goes through, as one table.

    relax     the model, imported and normalised             (whole module)
    tir       the kernel's PrimFunc, scheduled by its recipe  (PrimFunc)
    igraph    what extraction made of it, with its syncs      (IGraph, verified)
    optimize  what the target's passes made of it, verified   (Optimized: a graph, and a step per pass)
    source    what the target made of the iGraph              (source text; on uir-cpu TIR)

Each says how it is made, what its dump looks like, and how a dump is read back; `uir_tvm.pipeline` takes
kernels through them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import tvm
from tvm import tirx

from .dump_files import write_dump
from .errors import ArtifactError, first_line
from .frontend.from_kernel import IGRAPH
from .igraph import HardwareModel, IGraph
from .igraph.size_names import TIMES, text_of
from .igraph.space import Size
from .igraph.tir_sizes import sizes_at
from .options import CompileOptions
from .refusal import Attempt, Refusal

if TYPE_CHECKING:
    from .optimize import Optimized, PassRecord
    from .optimize.kept_step import KeptStep
    from .schedule.driver import Candidate
    from .verify import Equivalence


@attrs.define
class KernelRecord:
    """What became of one PrimFunc: the product of every stage, or why it left the pipeline."""

    name: str
    hero: str = ""
    recipe: str = ""
    #: Products by stage name: ``prim_func`` (as given), ``tir``, ``igraph``, ``optimize``, ``source``.
    products: dict[str, Any] = attrs.field(factory=dict)
    #: Seconds by stage.
    seconds: dict[str, float] = attrs.field(factory=dict)
    #: Why TVM's own lowering took the kernel instead; None: it went through an iGraph.
    refusal: Refusal | None = None
    #: Stages whose product came from the user's override folder.
    overridden: tuple[str, ...] = ()
    #: How its schedule is made; None: it is given, by hand or by a database.
    candidate: Candidate | None = None
    #: All candidates that were tried, in order.
    attempts: tuple[Attempt, ...] = ()
    #: Its schedule of a database, which takes the place of a recipe's.
    measured: tirx.PrimFunc | None = None
    #: Whether a stage lacked room for its tiles.
    lacked_room: bool = False
    #: What each of the passes did that every extracted graph goes through (`uir_tvm.optimize.FIRST`).
    first_steps: tuple[PassRecord | KeptStep, ...] = ()
    #: Where the whole record comes from: ``memory``, ``disk`` (`uir_tvm.kernel_cache`); empty: it was made.
    kept: str = ""
    #: What was compared with what it stands for, and how (`CompileOptions.equivalence`).
    equivalence: list[tuple[str, Equivalence]] = attrs.field(factory=list)
    #: Kernels for parts of its sizes: a launch takes the first whose sizes are those of the call, else this.
    variants: tuple[Variant, ...] = ()

    @property
    def handed(self) -> list[tuple[tuple[Size, ...], Any]]:
        """Sizes of each variant, and what is handed to TVM's code generation, in the order of a launch."""
        return [(each.sizes, each.record.lowered) for each in self.variants if each.record.refusal is None]

    def serving(self, sizes: Mapping[str, int]) -> KernelRecord:
        """What runs at some sizes: the first variant that has them, else this."""
        made = (each for each in self.variants if each.record.refusal is None)
        return next((each.record for each in made if each.has(sizes)), self)

    @property
    def fallback(self) -> str:
        """Why TVM's own lowering took the kernel instead, as text; empty: it went through an iGraph."""
        return "" if self.refusal is None else str(self.refusal)

    @property
    def igraph(self) -> IGraph | None:
        """The verified iGraph as extracted; None for a fallback."""
        return self.products.get("igraph")

    @property
    def optimized(self) -> IGraph | None:
        """The iGraph after the passes, which the target gets; None for a fallback."""
        made = self.products.get("optimize")
        return None if made is None else made.graph

    @property
    def steps(self) -> tuple[PassRecord | KeptStep, ...]:
        """What each pass did, the first ones too; none where the optimised graph came from the user."""
        made = self.products.get("optimize")
        return () if made is None else made.steps

    @property
    def num_phases(self) -> int:
        """In how many parts, one after the other, a target without a barrier of all units runs it."""
        from .optimize.split import num_phases

        return 1 if self.optimized is None or self.fallback else num_phases(self.optimized)

    @property
    def lowered(self) -> Any:
        """What is handed to TVM's code generation."""
        return self.products.get("source", self.products["prim_func"])


@attrs.frozen
class Variant:
    """A kernel for a part of the sizes of another, proved for these alone.

    Parameters
    ----------
    sizes : tuple of Size
        The ranges in which a launch takes it: of variables of the function's shapes, or of products of them.
    record : KernelRecord
        It has no variants itself.
    told : mapping of str to str
        What a model calls the variables of its sizes, where it has names or expressions of its own for them.
    """

    sizes: tuple[Size, ...]
    record: KernelRecord
    told: Mapping[str, str] = attrs.field(factory=dict, eq=False)

    def has(self, sizes: Mapping[str, int]) -> bool:
        """Whether a launch of these sizes takes it, unless an earlier one does."""
        numbers = sizes_at((size.name for size in self.sizes), sizes)
        each = [(size, numbers[str(size.name)]) for size in self.sizes]
        return all(s.low <= number <= s.high and number % s.multiple_of == 0 for s, number in each)

    @property
    def condition(self) -> str:
        """When a launch takes it, as text."""
        return " and ".join(_condition(size, self.told) for size in self.sizes)

    def to_json(self) -> dict[str, Any]:
        """What reports say of it; ``ranges`` are those of its sizes, by the names of the function's."""
        ranges = [
            {"name": str(s.name), "low": int(s.low), "high": int(s.high), "multiple_of": int(s.multiple_of)}
            for s in self.sizes
        ]
        return {
            "kernel": self.record.name,
            "condition": self.condition,
            "recipe": self.record.recipe,
            "ranges": ranges,
        }


def _condition(size: Size, told: Mapping[str, str]) -> str:
    name = str(size.name)
    factors = [text_of(factor, lambda one: told.get(one, one)) for factor in name.split(TIMES)]
    if len(factors) > 1 or size.multiple_of > 1:
        factors = [factor if factor.isidentifier() else f"({factor})" for factor in factors]
    name = " * ".join(factors)
    if size.low == size.high:
        return f"{name} == {size.low}"
    whole = f"({name})" if len(factors) > 1 else name
    divided = f" and {whole} % {size.multiple_of} == 0" if size.multiple_of > 1 else ""
    return f"{size.low} <= {name} <= {size.high}{divided}"


@attrs.frozen
class StageContext:
    """What a stage may look at."""

    target: tvm.target.Target
    hardware: HardwareModel
    options: CompileOptions


@attrs.frozen
class Stage:
    """One step: how it is made, what its dump looks like, how a dump is read back."""

    name: str
    make: Callable[[KernelRecord, StageContext], Any]
    suffix: str
    dump: Callable[[Any], str]
    #: None where a dump is for reading only.
    read: Callable[[str, StageContext | None], Any] | None


def _schedule(record: KernelRecord, context: StageContext) -> tirx.PrimFunc:
    func = record.products["prim_func"]
    if given_igraph(func) is not None:
        record.recipe = "given iGraph"
        return func
    if record.measured is not None:
        record.recipe = "database"
        return record.measured
    if record.candidate is None:
        record.recipe = "by hand"
        return func
    scheduled = record.candidate.make()
    record.recipe = record.candidate.recipe.hero
    return scheduled


def _extract(record: KernelRecord, context: StageContext) -> IGraph:
    from .extract import extract
    from .optimize import complete

    text = given_igraph(record.products["tir"])
    if text is not None:
        return _read_igraph(text, context)
    extracted = extract(record.products["tir"], context.hardware, name=record.name)
    made = complete(extracted, check=context.options.verify)
    record.first_steps = made.steps
    compare(record, made.graph, context)
    return made.graph


def compare(record: KernelRecord, graph: IGraph, context: StageContext) -> None:
    """Compare a graph with its function: the one that was given, or the user's own in its place."""
    from .verify.compared import Comparer

    source = record.products["tir" if "tir" in record.overridden else "prim_func"]
    if given_igraph(source) is None:
        Comparer(context.options.equivalence, record.equivalence).compare("igraph", source, graph)


def given_igraph(func: tirx.PrimFunc) -> str | None:
    """The text of the iGraph that a function stands for, if it does (see `frontend.from_igraph`)."""
    text = (func.attrs or {}).get(IGRAPH)
    return None if text is None else str(text)


def _verified(graph: IGraph, context: StageContext) -> IGraph:
    from .verify import verify

    if context.options.verify:
        verify(graph)
    return graph


def _optimize(record: KernelRecord, context: StageContext) -> Optimized:
    from .optimize import optimize
    from .optimize.split import still_splits
    from .target import registry
    from .verify import verify
    from .verify.compared import Comparer

    options, graph = context.options, record.products["igraph"]
    names = registry.of_target(context.target).passes if options.passes is None else options.passes
    comparer = Comparer(options.equivalence, record.equivalence)
    valid = still_splits(graph, verify if options.verify else None)
    checks = comparer.after_passes(graph, valid, options.fast_math)
    made = optimize(
        graph,
        names,
        fast_math=options.fast_math,
        check=checks.kept,
        reordered=checks.reordered,
        keep_going=True,
    )
    # without its buffers a loop waits for its loads: smaller tiles do better
    record.lacked_room = any(step.rule == "capacity" for step in made.faults)
    return attrs.evolve(made, steps=(*record.first_steps, *made.steps))


def _emit(record: KernelRecord, context: StageContext) -> Any:
    from .target import registry

    graph = record.products["optimize"].graph
    spec = registry.of_target(context.target)
    told = {name: getattr(context.options, name) for name in spec.told}
    if context.options.fast_math:
        # a printer may round products of fp32 as the device's fastest instructions do
        told["fast_math"] = True
    if told:
        graph = graph.replace(attrs={**dict(graph.attrs), **told})
    return spec.lower(graph, record.products["prim_func"])


def _read_tir(text: str, context: StageContext | None) -> tirx.PrimFunc:
    try:
        func = tvm.ir.load_json(text)
    except Exception as error:  # TVM's reader raises whatever its C++ throws
        raise ArtifactError(
            "The file is no dump of TVM.", need=first_line(error), remedy="dump it with --dump"
        ) from error
    if not isinstance(func, tirx.PrimFunc):
        raise ArtifactError(
            f"The file holds a {type(func).__name__}, not a PrimFunc.",
            need="a .tir.json dump",
            remedy="dump it with --dump",
        )
    return func


def _read_igraph(text: str, context: StageContext | None) -> IGraph:
    from .igraph.parser import parse_igraph

    graph = parse_igraph(text)
    return graph if context is None else _verified(graph, context)


def _read_optimized(text: str, context: StageContext | None) -> Optimized:
    from .optimize import Optimized

    return Optimized(_read_igraph(text, context))


STAGES: tuple[Stage, ...] = (
    Stage("tir", _schedule, ".tir.json", tvm.ir.save_json, _read_tir),
    Stage("igraph", _extract, ".igraph", str, _read_igraph),
    Stage("optimize", _optimize, ".opt.igraph", str, _read_optimized),
    Stage(
        "source",
        _emit,
        ".source.txt",
        lambda product: product.script() if hasattr(product, "script") else str(product),
        None,
    ),
)


def dump(stage: Stage, record: KernelRecord, context: StageContext) -> None:
    """Write what a stage made, where that is asked for."""
    if context.options.dump_dir is not None:
        product = record.products[stage.name]
        suffix = getattr(product, "suffix", stage.suffix)
        write_dump(context.options.dump_dir, record.name, suffix, stage.dump(product))
