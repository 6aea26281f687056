# SPDX-License-Identifier: Apache-2.0
"""A cost model that learns from measured schedules what `analytic` does not know.

The model is trained on how much longer than reckoned a schedule took, beside the other schedules of its task:
``log(seconds / analytic.seconds)`` less the task's mean.  What all schedules of a task have in common says
nothing of which one is fastest, and differs from task to task by more than schedules do.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import zipfile
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import xgboost

from .. import __version__
from ..errors import CostModelError
from ..explain import analytic
from ..igraph.nodes import HardwareModel, IGraph
from .features import NAMES, features

#: Fewer measurements of a kind of hardware than this, and the reckoned time stands alone.
ENOUGH = 16
#: So many more, and what was learned has half of its full weight.
HALF = 16
#: What a measurement of another kind of hardware counts, beside one of its own.
OTHERS = 0.1
#: Measurements that are kept, newest first: what a fit takes grows with them.
MOST = 20_000
#: Graphs whose features are remembered: searches ask for the same ones again and again.
REMEMBERED = 4096
#: A file that says otherwise is of another format.
FORMAT = 1

#: Trees are shallow and many: a task has tens of schedules, all of them noisy.
PARAMETERS = {
    "objective": "reg:squarederror",
    "max_depth": 5,
    "eta": 0.1,
    "min_child_weight": 2,
    "subsample": 0.8,
    "colsample_bytree": 0.5,
    "lambda": 1.0,
    "tree_method": "hist",
    "max_bin": 64,
    "verbosity": 0,
}
ROUNDS = 120
#: A prediction is at most e to this power from the reckoned time.
FARTHEST = 4.0


@attrs.frozen
class Group:
    """Measured schedules of one task.

    Parameters
    ----------
    origin : str
        `uir_tvm.tune.records.origin_of` the kernel: what makes two groups one task, with the hardware's name.
    graphs : sequence of IGraph
        As extracted.
    seconds : sequence of float
        Above 0, one for each; schedules that failed are not among them.
    """

    origin: str
    graphs: Sequence[IGraph]
    seconds: Sequence[float]


class CostModel:
    """Predicts how long schedules take.

    Parameters
    ----------
    seed : int
        Equal data, in equal order, with an equal seed give equal predictions.
    threads : int
        That a fit takes.
    """

    #: Of all models, by a graph's identity, with the graph, so that no other gets it: hardware, row, reckoned
    #: seconds.
    _known: ClassVar[OrderedDict[int, tuple[IGraph, HardwareModel | None, np.ndarray, float]]] = OrderedDict()

    def __init__(self, seed: int = 0, threads: int = 1) -> None:
        self.seed, self.threads = seed, threads
        self._rows: list[np.ndarray] = []
        #: log(seconds / reckoned seconds)
        self._logs: list[float] = []
        #: (origin, hardware's kind, hardware's name)
        self._tasks: list[tuple[str, str, str]] = []
        #: By kind of hardware.
        self._boosters: dict[str, xgboost.Booster] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def targets(self) -> list[str]:
        """What it was trained on: ``KIND:HARDWARE``, sorted."""
        return sorted({f"{kind}:{name}" for _, kind, name in self._tasks})

    def count(self, kind: str) -> int:
        """Measurements of a kind of hardware."""
        return sum(found == kind for _, found, _ in self._tasks)

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
        seen = [self._of(graph, hw) for graph in graphs]
        reckoned = np.array([seconds for _, seconds in seen])
        kind = str((graphs[0].hardware if hw is None else hw).kind)
        weight = self.weight(kind)
        if weight == 0:
            return reckoned
        rows = np.stack([row for row, _ in seen])
        learned = np.clip(self._fit(kind).inplace_predict(rows).astype(np.float64), -FARTHEST, FARTHEST)
        return np.asarray(reckoned * np.exp(weight * learned))

    def update(self, groups: Iterable[Group | tuple[str, Sequence[IGraph], Sequence[float]]]) -> None:
        """Learn from measurements.

        Parameters
        ----------
        groups : iterable of Group, or of (origin, graphs, seconds)
            Schedules that failed have no seconds: leave them out.

        Raises
        ------
        ValueError
            Seconds that are no times, or not one for each graph.
        """
        for group in groups:
            group = group if isinstance(group, Group) else Group(*group)
            if len(group.graphs) != len(group.seconds):
                raise ValueError(f"{len(group.graphs)} graphs have {len(group.seconds)} times")
            for graph, second in zip(group.graphs, group.seconds, strict=True):
                if not 0 < second < float("inf"):
                    raise ValueError(f"{second} is no time")
                hardware = graph.hardware
                row, reckoned = self._of(graph, None)
                self._rows.append(row)
                self._logs.append(float(np.log(second / reckoned)))
                self._tasks.append((group.origin, str(hardware.kind), str(hardware.name)))
        for data in (self._rows, self._logs, self._tasks):
            del data[:-MOST]  # type: ignore[attr-defined]
        self._boosters.clear()

    def _of(self, graph: IGraph, hw: HardwareModel | None) -> tuple[np.ndarray, float]:
        """A graph's row and its reckoned seconds."""
        found = self._known.get(id(graph))
        if found is None or found[0] is not graph or found[1] is not hw:
            found = (graph, hw, features(graph, hw), analytic.seconds(graph, hw))
            self._known[id(graph)] = found
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found[2], found[3]

    def _fit(self, kind: str) -> xgboost.Booster:
        """The trees of all data, those of a kind of hardware before others."""
        if kind not in self._boosters:
            weights = np.array([1.0 if task[1] == kind else OTHERS for task in self._tasks])
            matrix = xgboost.DMatrix(np.stack(self._rows), self._labels(), weight=weights)
            settings = {**PARAMETERS, "seed": self.seed, "nthread": self.threads}
            self._boosters[kind] = xgboost.train(settings, matrix, ROUNDS)
        return self._boosters[kind]

    def _labels(self) -> np.ndarray:
        """Logs less the mean of their task."""
        logs = np.array(self._logs)
        _, group = np.unique(["\0".join(task) for task in self._tasks], return_inverse=True)
        means = np.bincount(group, logs) / np.bincount(group)
        return np.clip(logs - means[group], -FARTHEST, FARTHEST)

    # --- files -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file with all that was learned from; all or nothing.

        Raises
        ------
        CostModelError
            The file cannot be written.
        """
        path = pathlib.Path(path)
        head = {
            "format": FORMAT,
            "uir_tvm": __version__,
            "columns": list(NAMES),
            "targets": self.targets,
            "seed": self.seed,
            "tasks": self._tasks,
        }
        rows = np.stack(self._rows) if self._rows else np.zeros((0, len(NAMES)), np.float32)
        text = np.frombuffer(json.dumps(head).encode(), np.uint8)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with partial.open("wb") as file:
                np.savez_compressed(file, head=text, rows=rows, logs=np.array(self._logs, np.float64))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            raise CostModelError(
                f"{path} cannot be written.",
                need="a file that this user may write, with room",
                limit=str(error),
                remedy="name another file",
            ) from error
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str], threads: int = 1) -> CostModel:
        """What `save` wrote.

        Raises
        ------
        CostModelError
            There is no such file; it is damaged, or of other columns than this version has.
        """
        path = pathlib.Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise CostModelError(
                f"{path} cannot be read.", need="a file of a cost model", limit=str(error)
            ) from error
        head, rows, logs = _read(path, content)
        if head["columns"] != list(NAMES):
            raise CostModelError(
                f"{path} is a cost model of other columns.",
                need=f"{len(NAMES)} columns of uir_tvm {__version__}",
                limit=f"{len(head['columns'])} columns of uir_tvm {head['uir_tvm']}",
                remedy="tune again into a new file, or take a file of this version",
            )
        model = cls(head["seed"], threads)
        model._rows, model._logs = list(rows), [float(value) for value in logs]
        model._tasks = [(str(a), str(b), str(c)) for a, b, c in head["tasks"]]
        return model


def _read(path: pathlib.Path, content: bytes) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """(head, rows, logs) of a file, which belong together."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            head = json.loads(data["head"].tobytes())
            rows, logs = data["rows"], data["logs"]
        fits = (
            head["format"] == FORMAT
            and isinstance(head["seed"], int)
            and isinstance(head["uir_tvm"], str)
            and rows.dtype == np.float32
            and rows.shape == (len(head["tasks"]), len(head["columns"]))
            and logs.shape == (len(head["tasks"]),)
            and logs.dtype == np.float64
            and all(len(task) == 3 for task in head["tasks"])
            and bool(np.isfinite(rows).all() and np.isfinite(logs).all())
        )
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, OSError) as error:
        raise _damaged(path, str(error)) from error
    if not fits:
        raise _damaged(path, "its parts do not belong together")
    return head, rows, logs


def _damaged(path: pathlib.Path, why: str) -> CostModelError:
    return CostModelError(
        f"{path} is no file of a cost model, or it is damaged.",
        limit=why.splitlines()[0] if why else "",
        remedy="delete it, or restore it; a model without it begins with no data",
    )
