# SPDX-License-Identifier: Apache-2.0
"""What differs between two kernel graphs of one model, as models of their own that can be timed."""

from __future__ import annotations

import hashlib
import pathlib
import statistics
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
import tvm
from tvm import relax
from tvm_ffi.structural import structural_hash

from .. import threads
from ..igraph.dtypes import DTYPES
from ..kernel_graph import KernelGraph, LibraryOp, Tensor, to_relax, vm_passes
from ..kernel_graph.nodes import Node
from ..options import CompileOptions
from ..pipeline import recording
from ..schedule.hardware_of import model_of_target
from ..target import registry
from .agreement import differences
from .cold_cache import ColdCache
from .job import DEFAULTS, OK, WRONG, Plain, Result, Settings, settings_of
from .records import bare
from .reference_results import Reference
from .timed_places import calls_of, in_turns

#: A call that takes so many times as long as the default's is timed no further.
HOPELESS = 1.5
#: Integers that may be indices.
INTEGERS = 2


@attrs.frozen
class Segment(Plain):
    """A part of a model, to be timed beside the default's same part.

    Parameters
    ----------
    kernel : str
        What people call it.
    module : str
        Path of its Relax module (``tvm.ir.save_json``), on this machine.
    target, place : str
        As of `Job`.
    seed : int
        Of the inputs.
    settings : Settings
    """

    kernel: str
    module: str
    target: str
    place: str
    seed: int = 0
    settings: Settings = attrs.field(default=DEFAULTS, converter=settings_of)


@attrs.frozen
class Difference:
    """Parts of two graphs that compute the same tensors of the same ones, and how often there are such."""

    default: KernelGraph
    other: KernelGraph
    count: int


def difference(default: KernelGraph, other: KernelGraph) -> Difference | None:
    """The first part in which two graphs of one model differ; None where there is none that stands alone."""
    known = {_signature(node) for node in other.nodes}
    theirs_known = {_signature(node) for node in default.nodes}
    mine = [node for node in default.nodes if _signature(node) not in known]
    theirs = [node for node in other.nodes if _signature(node) not in theirs_known]
    clusters = _clusters([*mine, *theirs])
    for cluster in clusters:
        parts = [node for node in mine if id(node) in cluster], [n for n in theirs if id(n) in cluster]
        if all(parts):
            found = _alone(default, other, *parts)
            if found is not None:
                return Difference(*found, len(clusters))
    return None


def _signature(node: Node) -> tuple[Any, ...]:
    """What a node computes, and of which tensors; constants are told apart by their sizes alone."""
    code: Any = (
        structural_hash(bare(node.prim_func)) if not isinstance(node, LibraryOp) else node.attrs.to_json()
    )
    read = tuple(t.name if t.constant is None else (t.shape, t.dtype) for t in node.inputs)
    return code, read, tuple(tensor.name for tensor in node.outputs)


def _clusters(nodes: Sequence[Node]) -> list[set[int]]:
    """Nodes, by identity, that hang together by what one of them writes and others read or write too."""
    written = {tensor.name for node in nodes for tensor in node.outputs}
    found: list[tuple[set[int], set[str]]] = []
    for node in nodes:
        names = {t.name for t in (*node.inputs, *node.outputs) if t.name in written}
        joined = [row for row in found if row[1] & names]
        found = [row for row in found if not row[1] & names]
        found.append(
            ({id(node)}.union(*(row[0] for row in joined)), names.union(*(row[1] for row in joined)))
        )
    order = {id(node): at for at, node in enumerate(nodes)}
    return sorted((row[0] for row in found), key=lambda cluster: min(order[one] for one in cluster))


def _alone(
    default: KernelGraph, other: KernelGraph, mine: Sequence[Node], theirs: Sequence[Node]
) -> tuple[KernelGraph, KernelGraph] | None:
    """Two graphs with the inputs and outputs that both parts have; None where one lacks what others read."""
    inside = set(map(id, mine))
    needed = {t.name for node in default.nodes if id(node) not in inside for t in node.inputs}
    needed |= {tensor.name for tensor, _ in default.outputs}
    results = [tensor.name for node in mine for tensor in node.outputs if tensor.name in needed]
    inputs: dict[str, Tensor] = {}
    for part in (mine, theirs):
        own = {tensor.name for node in part for tensor in node.outputs}
        for node in part:
            for tensor in node.inputs:
                if tensor.constant is None and tensor.name not in own:
                    inputs.setdefault(tensor.name, tensor)
    made = [_graph(part, inputs, results) for part in (mine, theirs)]
    return None if made[0] is None or made[1] is None else (made[0], made[1])


def _graph(nodes: Sequence[Node], inputs: Mapping[str, Tensor], results: Sequence[str]) -> KernelGraph | None:
    own = {tensor.name: tensor for node in nodes for tensor in node.outputs}
    read = {tensor.name: tensor for node in nodes for tensor in node.inputs}
    if not results or any(name not in own for name in results) or set(inputs) & set(own):
        return None
    given = tuple(read.get(name, tensor) for name, tensor in inputs.items())
    outputs = tuple((own[name], own[name].shape) for name in results)
    return KernelGraph(tuple(nodes), given, outputs, True, 0, 0)


def write(graph: KernelGraph, folder: pathlib.Path) -> str:
    """The path of a file with a graph's module; equal ones share one."""
    text = str(tvm.ir.save_json(to_relax(graph)))
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
    if not path.is_file():
        path.write_text(text)
    return str(path)


class _Executable:
    """A segment that runs."""

    def __init__(self, segment: Segment) -> None:
        target = registry.resolve(segment.target, segment.place).target
        mod = tvm.ir.load_json(pathlib.Path(segment.module).read_text())
        types = [param.ty for param in mod["main"].params]
        options = CompileOptions(dump_dir=None, override_dir=None, database=None)
        with recording(options):
            built = relax.build(vm_passes(target)(mod), target, relax_pipeline=None)
        threads.before_running()
        self.main = relax.VirtualMachine(built, tvm.cpu())["main"]
        rng = np.random.default_rng(segment.seed)
        self.arrays = [_random(rng, [int(n) for n in t.shape], str(t.dtype)) for t in types]
        self.tensors = [tvm.runtime.tensor(array) for array in self.arrays]
        self.between = ColdCache(model_of_target(target), self.tensors, self.arrays)

    def results(self) -> tuple[np.ndarray, ...]:
        """What it computes of its inputs."""
        found = self.main(*self.tensors)
        # a whole model may have one result, and then gives no tuple
        every = (found,) if isinstance(found, tvm.runtime.Tensor) else tuple(found)
        return tuple(np.array(tensor.numpy()) for tensor in every)

    def once(self) -> float:
        """Seconds of a call amid other work."""
        self.between()
        start = time.perf_counter()
        self.main(*self.tensors)
        return time.perf_counter() - start

    def sample(self, least: float) -> float:
        """The median of calls that take so long together, within limits."""
        return statistics.median(self.once() for _ in range(calls_of(self.once(), least)))


def _random(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    kind = np.dtype(next(row.numpy for row in DTYPES.values() if row.tvm == dtype))
    if kind.kind in "biu":
        return rng.integers(0, INTEGERS, shape).astype(kind)
    return (2 * rng.random(shape, np.float32) - 1).astype(kind)


def compare(segments: Sequence[Segment]) -> list[Result]:
    """Time segments in turns; the first one is the default, which the others must agree with.

    Raises
    ------
    Exception
        Whatever a build raises: a process that measures makes a result of it.
    """
    made = [_Executable(segment) for segment in segments]
    wanted = made[0].results()
    names = tuple(f"output {number}" for number in range(len(wanted)))
    reference = Reference(names, (True,) * len(wanted), wanted, (wanted,), True, 0)
    results: dict[int, Result] = {}
    for number, one in enumerate(made[1:], 1):
        found = differences(reference, one.results())
        if found:
            results[number] = Result((), WRONG, str(found[0]))
    first = {number: made[number].once() for number in range(len(made)) if number not in results}
    alive = [number for number, seconds in first.items() if seconds <= HOPELESS * first[0] or not number]
    again = {number: made[number].once() for number in first if number not in alive}
    alive += [number for number, seconds in again.items() if seconds <= HOPELESS * first[0]]
    settings = segments[0].settings
    samplers = [partial(made[number].sample, settings.min_repeat_seconds) for number in alive]
    samples = dict(zip(alive, in_turns(samplers, settings.repeats), strict=True))
    for number, seconds in first.items():
        results[number] = Result(samples.get(number) or (min(seconds, again.get(number, seconds)),), OK)
    return [results[number] for number in range(len(segments))]
