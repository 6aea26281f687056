# SPDX-License-Identifier: Apache-2.0
"""A cost model that learns from measured schedules what `analytic` does not know: MetaSchedule's `XGBModel`.

It is told how many times longer than reckoned a schedule took, and scores schedules by the least such ratio
of their task over theirs: what all schedules of a task have in common says nothing of which one is fastest.
There is one model for each kind of hardware.
"""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import tvm
from tvm.s_tir.meta_schedule.cost_model import XGBModel
from tvm.s_tir.meta_schedule.cost_model.xgb_model import XGBConfig
from tvm.s_tir.meta_schedule.runner import RunnerResult

from .. import __version__
from ..errors import CostModelError
from ..explain import analytic
from ..explain.features import NAMES, features
from ..igraph.nodes import HardwareModel, IGraph
from ..whole_files import replacing

#: Fewer measurements of a kind of hardware than this, and the reckoned time stands alone.
ENOUGH = 16
#: So many more, and what was learned has half of its full weight.
HALF = 16
#: Measurements of a kind that are kept, newest tasks first: what training takes grows with them.
MOST = 20_000
#: Graphs whose features are remembered: searches ask for the same ones again and again.
REMEMBERED = 4096
#: A prediction is at most e to this power from the reckoned time.
FARTHEST = 4.0
#: The part of a file that says what it is; the others are MetaSchedule's, one for each kind of hardware.
HEAD = "head.json"


@attrs.frozen
class _TaskTag:
    """What `XGBModel` asks of a context: by what measurements of a task are told from others'."""

    mod: tvm.IRModule


class _Extractor:
    """Features of iGraphs, and their reckoned seconds, remembered by the graphs' identity."""

    #: With the graph, so that no other gets what is its own.
    known: ClassVar[OrderedDict[int, tuple[IGraph, HardwareModel | None, np.ndarray, float]]] = OrderedDict()

    def of(self, graph: IGraph, hw: HardwareModel | None = None) -> tuple[np.ndarray, float]:
        """A graph's rows and its reckoned seconds."""
        found = self.known.get(id(graph))
        if found is None or found[0] is not graph or found[1] is not hw:
            found = (graph, hw, features(graph, hw), analytic.seconds(graph, hw))
            self.known[id(graph)] = found
            if len(self.known) > REMEMBERED:
                self.known.popitem(last=False)
        return found[2], found[3]

    def extract_from(self, context: Any, candidates: Sequence[tuple[IGraph, HardwareModel | None]]) -> Any:
        """As a `FeatureExtractor` of MetaSchedule gives them."""
        return [tvm.runtime.tensor(self.of(*candidate)[0]) for candidate in candidates]


class _Trees(XGBModel._cls):  # type: ignore[misc]
    """MetaSchedule's model, whose candidates are (iGraph, hardware model or None)."""

    def __init__(self, seed: int, threads: int) -> None:
        config = XGBConfig(seed=seed, nthread=threads)
        super().__init__(config=config, num_warmup_samples=ENOUGH, verbose_eval=0)
        self.extractor = _Extractor()

    def save(self, path: str) -> None:
        """As MetaSchedule does, without XGBoost's remarks on its own format."""
        with warnings.catch_warnings(action="ignore"):
            super().save(path)

    def load(self, path: str) -> None:
        """What `save` wrote."""
        with warnings.catch_warnings(action="ignore"):
            super().load(path)
        self.last_train_size = self.data_size


class CostModel:
    """Predicts how long schedules take.

    Parameters
    ----------
    seed : int
        Equal data, in equal order, with an equal seed give equal predictions.
    threads : int
        That training takes.
    """

    def __init__(self, seed: int = 0, threads: int = 1) -> None:
        self.seed, self.threads = seed, threads
        self._extractor = _Extractor()
        self._trees: dict[str, Any] = {}
        self._names: set[str] = set()

    def __len__(self) -> int:
        return sum(map(self.count, self._trees))

    @property
    def targets(self) -> list[str]:
        """What it was trained on: ``KIND:HARDWARE``, sorted."""
        return sorted(self._names)

    def count(self, kind: str) -> int:
        """Measurements of a kind of hardware."""
        return int(self._trees[kind].data_size) if kind in self._trees else 0

    def weight(self, kind: str) -> float:
        """How much of what was learned counts for a kind of hardware: 0 with few data, up to 1."""
        more = self.count(kind) - ENOUGH
        return 0.0 if more < 0 else (more + HALF) / (more + 2 * HALF)

    def predict(self, graphs: Sequence[IGraph], hw: HardwareModel | None = None) -> np.ndarray:
        """Seconds of schedules, to rank them by: lower is faster.

        Parameters
        ----------
        graphs : sequence of IGraph
            As extracted; of one hardware model.
        hw : HardwareModel, optional
            Default: that of the graphs.

        Returns
        -------
        ndarray
            float64, one for each.  Differences between schedules of a task are what it learns; all of them
            together may be off by a factor.
        """
        if not graphs:
            return np.zeros(0)
        reckoned = np.array([self._extractor.of(graph, hw)[1] for graph in graphs])
        kind = str((graphs[0].hardware if hw is None else hw).kind)
        weight = self.weight(kind)
        if weight == 0:
            return reckoned
        scores = self._trees[kind].predict(None, [(graph, hw) for graph in graphs])
        return np.asarray(reckoned / np.clip(scores, np.exp(-FARTHEST), np.exp(FARTHEST)) ** weight)

    def update(self, origin: str, graphs: Sequence[IGraph], seconds: Sequence[float]) -> None:
        """Learn from measured schedules of a task.

        Parameters
        ----------
        origin : str
            `uir_tvm.function_attributes.origin_of` the kernel, which tells the task with the hardware's name.
        graphs : sequence of IGraph
            As extracted; of one hardware model.
        seconds : sequence of float
            Above 0, one for each: schedules that failed are left out.

        Raises
        ------
        ValueError
            Seconds that are no times, or not one for each graph.
        """
        if len(graphs) != len(seconds):
            raise ValueError(f"{len(graphs)} graphs have {len(seconds)} times")
        if not all(0 < second < float("inf") for second in seconds):
            raise ValueError(f"{list(seconds)} are no times")
        if not graphs:
            return
        hardware = graphs[0].hardware
        kind, name = str(hardware.kind), f"{hardware.kind}:{hardware.name}"
        trees = self._trees.setdefault(kind, _Trees(self.seed, self.threads))
        context = _TaskTag(tvm.IRModule({}).with_attr("uir.task", f"{origin} {name}"))
        times = zip(graphs, seconds, strict=True)
        results = [RunnerResult([second / self._extractor.of(graph)[1]], None) for graph, second in times]
        trees.update(context, [(graph, None) for graph in graphs], results)
        self._names.add(name)
        while trees.data_size > MOST and len(trees.data) > 1:
            trees.data_size -= len(trees.data.popitem(last=False)[1].costs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file with all that was learned; all or nothing.

        Raises
        ------
        CostModelError
            The file cannot be written.
        """
        path = pathlib.Path(path)
        head = {"uir_tvm": __version__, "columns": NAMES, "targets": self.targets, "seed": self.seed}
        with (
            tempfile.TemporaryDirectory() as folder,
            replacing(path, CostModelError) as partial,
            zipfile.ZipFile(partial, "w") as file,
        ):
            file.writestr(HEAD, json.dumps(head))
            for kind, trees in self._trees.items():
                trees.save(f"{folder}/{kind}.tar")
                file.write(f"{folder}/{kind}.tar", f"{kind}.tar")

    @classmethod
    def load(cls, path: str | os.PathLike[str], threads: int = 1) -> CostModel:
        """What `save` wrote; take such files from those whose programs you would run, as it has pickles.

        Raises
        ------
        CostModelError
            There is no such file; it is damaged, or of other columns than this version has.
        """
        path = pathlib.Path(path)
        if not path.is_file():
            raise CostModelError(f"{path} cannot be read.", need="a file of a cost model")
        try:
            with zipfile.ZipFile(path) as file, tempfile.TemporaryDirectory() as folder:
                head = json.loads(file.read(HEAD))
                if head["columns"] != list(NAMES):
                    raise CostModelError(
                        f"{path} is a cost model of other columns.",
                        need=f"{len(NAMES)} columns of uir_tvm {__version__}",
                        limit=f"{len(head['columns'])} columns of uir_tvm {head['uir_tvm']}",
                        remedy="tune again into a new file, or take a file of this version",
                    )
                model = cls(int(head["seed"]), threads)
                model._names = set(map(str, head["targets"]))
                for part in file.namelist():
                    if part != HEAD:
                        trees = model._trees[part.removesuffix(".tar")] = _Trees(model.seed, threads)
                        trees.load(file.extract(part, folder))
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, OSError) as error:
            raise CostModelError(
                f"{path} is no file of a cost model, or it is damaged.",
                limit=str(error).partition("\n")[0],
                remedy="delete it, or restore it; a model without it begins with no data",
            ) from error
        return model
