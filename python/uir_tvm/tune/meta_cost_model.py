# SPDX-License-Identifier: Apache-2.0
"""Our cost model as MetaSchedule's search strategies ask for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm.ir.utils import derived_object
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.cost_model import PyCostModel

from ..igraph.nodes import IGraph
from .cost_model import CostModel

#: Scores are this over seconds: MetaSchedule takes the highest, and none below 0.
UNIT = 1e-6


@derived_object
class UirCostModel(PyCostModel):
    """Scores candidates of one task by the seconds that a `CostModel` predicts.

    Parameters
    ----------
    model : CostModel
        Shared by all tasks of a session.
    graph_of : callable
        The iGraph of a candidate's schedule; None where it has none (it cannot be extracted, or breaks a
        rule). Asked often for the same schedules: it should remember.
    origin : str
        Of the task (`uir_tvm.tune.shelf.origin_of`).
    """

    def __init__(self, model: CostModel, graph_of: Callable[[Schedule], IGraph | None], origin: str) -> None:
        super().__init__()
        self.model, self.graph_of, self.origin = model, graph_of, origin

    def load(self, path: str) -> None:
        """Go on from a file; see `CostModel.load`."""
        self.model = CostModel.load(path, self.model.threads)

    def save(self, path: str) -> None:
        """See `CostModel.save`."""
        self.model.save(path)

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Learn from runs, as MetaSchedule's own measuring gives them; a run that failed has no seconds."""
        graphs, seconds = [], []
        for candidate, result in zip(candidates, results, strict=True):
            graph = self.graph_of(candidate.sch)
            if graph is not None and result.run_secs:
                graphs.append(graph)
                seconds.append(float(np.median([float(second) for second in result.run_secs])))
        self.model.update([(self.origin, graphs, seconds)])

    def predict(self, context: Any, candidates: Sequence[Any]) -> np.ndarray:
        """A score for each candidate: 0 without an iGraph."""
        scores = np.zeros(len(candidates))
        found = [(at, self.graph_of(candidate.sch)) for at, candidate in enumerate(candidates)]
        some = [(at, graph) for at, graph in found if graph is not None]
        if some:
            scores[[at for at, _ in some]] = UNIT / self.model.predict([graph for _, graph in some])
        return scores
