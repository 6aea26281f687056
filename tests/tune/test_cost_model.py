# SPDX-License-Identifier: Apache-2.0
"""The learned cost model: what it learns, when it is listened to, and its files."""

from __future__ import annotations

import itertools
import pathlib

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.errors import CostModelError
from uir_tvm.explain import analytic
from uir_tvm.igraph import IGraph
from uir_tvm.tune import cost_model
from uir_tvm.tune.cost_model import CostModel

from tests.tune.graphs import tiled


def schedules(cols: int) -> list[IGraph]:
    """Schedules of one task: 1024 rows dealt out in many ways."""
    return [
        tiled(units=units, trips=1024 // units // rows, rows=rows, cols=cols, stages=stages)
        for units, rows, stages in itertools.product((4, 8, 16, 32), (1, 2, 4, 8, 16), (1, 2))
    ]


def odd_seconds(graph: IGraph) -> float:
    """Times that nothing reckoned says: units in flight cost four times as much as they should."""
    staged = any("pipeline" in loop.attrs for _, loops in graph.walk() for loop in loops)
    return analytic.seconds(graph) * (4.0 if staged else 1.0)


def group(origin: str, cols: int) -> tuple[str, list[IGraph], list[float]]:
    graphs = schedules(cols)
    return origin, graphs, [odd_seconds(graph) for graph in graphs]


@pytest.fixture(scope="module")
def learned() -> CostModel:
    model = CostModel(seed=3)
    model.update(*group("a", 64))
    model.update(*group("b", 256))
    return model


def rank(values) -> np.ndarray:
    return np.argsort(np.argsort(values))


def correlation(found, wanted) -> float:
    return float(np.corrcoef(rank(found), rank(wanted))[0, 1])


def test_without_data_it_reckons() -> None:
    graphs = schedules(64)
    model = CostModel()
    assert model.predict(graphs).tolist() == [analytic.seconds(graph) for graph in graphs]
    assert model.predict([]).shape == (0,) and model.weight("ascend") == 0


def test_few_data_count_for_nothing_and_more_for_more() -> None:
    origin, graphs, seconds = group("a", 64)
    model, weights = CostModel(), []
    for at in range(0, 40, 5):
        model.update(origin, graphs[at : at + 5], seconds[at : at + 5])
        weights.append(model.weight("ascend"))
    assert weights[:3] == [0, 0, 0] and weights == sorted(weights) and 0.5 <= weights[-1] < 1
    assert model.weight("bang") == 0, "of another kind of hardware it knows nothing"
    assert len(model) == 40 and model.targets == ["ascend:910b2"]


def test_it_learns_what_reckoning_misses(learned: CostModel) -> None:
    """On a task that it was not trained on."""
    _, graphs, seconds = group("c", 128)
    reckoned = [analytic.seconds(graph) for graph in graphs]
    assert correlation(learned.predict(graphs), seconds) > 0.9 > correlation(reckoned, seconds)


def test_what_a_task_has_in_common_is_not_learned() -> None:
    """Twice the time for all schedules of a task changes nothing."""
    origin, graphs, seconds = group("a", 64)
    one, two = CostModel(seed=1), CostModel(seed=1)
    one.update(origin, graphs, seconds)
    two.update(origin, graphs, [2 * second for second in seconds])
    assert two.predict(graphs) == pytest.approx(one.predict(graphs), rel=1e-4)


def test_equal_data_give_equal_predictions(learned: CostModel) -> None:
    again = CostModel(seed=3)
    again.update(*group("a", 64))
    again.update(*group("b", 256))
    graphs = schedules(128)
    assert again.predict(graphs).tolist() == learned.predict(graphs).tolist()


def test_times_must_be_times() -> None:
    graph = tiled()
    for seconds in ([0.0], [float("inf")], [float("nan")], [-1.0], []):
        with pytest.raises(ValueError):
            CostModel().update("a", [graph], seconds)


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks that were told last, one of them in any case."""
    monkeypatch.setattr(cost_model, "MOST", 50)
    model = CostModel()
    model.update(*group("a", 64))
    model.update(*group("b", 256))
    assert len(model) == model.count("ascend") == len(schedules(64))


def test_a_saved_model_predicts_the_same(learned: CostModel, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "model.uir"
    learned.save(file)
    found = CostModel.load(file)
    graphs = schedules(32)
    assert found.predict(graphs).tolist() == learned.predict(graphs).tolist()
    assert found.targets == learned.targets and len(found) == len(learned)
    assert [path.name for path in tmp_path.iterdir()] == ["model.uir"]


def test_an_empty_model_is_saved(tmp_path: pathlib.Path) -> None:
    CostModel(seed=5).save(tmp_path / "empty")
    found = CostModel.load(tmp_path / "empty")
    assert len(found) == 0 and found.seed == 5


def test_damaged_files_are_refused(learned: CostModel, tmp_path: pathlib.Path) -> None:
    """Cut short anywhere, with a byte changed, or something else altogether."""
    file = tmp_path / "model"
    learned.save(file)
    content = file.read_bytes()
    damaged = [content[: len(content) * part // 8] for part in range(8)]
    middle = len(content) // 2
    damaged.append(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    damaged += [b"PK\x05\x06" + bytes(18), b"{}", np.zeros(3).tobytes()]
    for text in damaged:
        file.write_bytes(text)
        with pytest.raises(CostModelError, match="damaged"):
            CostModel.load(file)


def test_other_columns_are_refused(
    learned: CostModel, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned.save(tmp_path / "model")
    monkeypatch.setattr(cost_model, "NAMES", cost_model.NAMES[:-1])
    with pytest.raises(CostModelError, match="other columns"):
        CostModel.load(tmp_path / "model")


def test_files_that_are_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(CostModelError, match="cannot be read"):
        CostModel.load(tmp_path / "none")
    with pytest.raises(CostModelError, match="cannot be written"):
        CostModel().save(tmp_path / "none" / "model")


def test_graphs_of_another_device_can_be_asked_about(learned: CostModel) -> None:
    hw = hardware.get("910b4", "ascend")
    assert learned.predict([tiled(hw=hw)]).shape == (1,)


def test_a_graph_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search asks for its whole pool at every proposal; but no graph gets what is another's."""
    asked: list[IGraph] = []
    kept = cost_model.features
    monkeypatch.setattr(cost_model, "features", lambda graph, hw: asked.append(graph) or kept(graph, hw))
    model, graphs = CostModel(), schedules(64)[:5]
    once = model.predict(graphs)
    assert model.predict(graphs[::-1]).tolist() == once[::-1].tolist() and len(asked) == 5
    faster = hardware.get("910b1", "ascend")
    assert (model.predict(graphs, faster) < once).all() and len(asked) == 10
