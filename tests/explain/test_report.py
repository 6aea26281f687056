# SPDX-License-Identifier: Apache-2.0
"""Explanations of executables, compiled and loaded, and of single graphs."""

from __future__ import annotations

import json
import pathlib

import attrs
import pytest
import uir_tvm
from uir_tvm.errors import ArtifactError, IGraphError, VerifyError
from uir_tvm.explain import explain, explain_text
from uir_tvm.igraph.text import print_igraph
from uir_tvm.runtime.executable import Executable

from tests import tiny
from tests.optimize.pairs import text

from . import graphs

KERNEL = "layer_norm_softmax"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    """The tiny model, saved and loaded."""
    return uir_tvm.load(tiny.executable().save(tmp_path_factory.mktemp("saved") / "tiny.uir"))


def test_the_tiny_model_by_hand() -> None:
    """One product, and one kernel that reads its (4, 32) floats and writes as many."""
    found = explain(tiny.executable())
    (kernel,) = found.kernels
    (work,) = found.library
    assert (kernel.name, kernel.hero, kernel.calls, kernel.reason) == (KERNEL, "normalization", 1, "")
    assert kernel.graph is not None
    written = [p for p in kernel.graph.traffic.pointers if p.role == "out"]
    assert [p.written_bytes for p in written] == [4 * 4 * 32]
    assert kernel.graph.traffic.exact and kernel.graph.traffic.least_bytes >= 2 * 4 * 4 * 32
    assert work.flops == 2 * 4 * 32 * 32
    (border,) = found.borders
    assert (border.producer, border.consumer, border.saved_bytes) == (
        "library matmul",
        KERNEL,
        2 * 4 * 4 * 32,
    )
    assert found.modelled_seconds == pytest.approx(
        (kernel.modelled_seconds or 0) + (work.modelled_seconds or 0)
    )


def test_a_loaded_file_says_what_the_compiled_model_says(loaded: Executable) -> None:
    assert explain(loaded).to_json() == explain(tiny.executable()).to_json()


def test_the_report_is_json(loaded: Executable) -> None:
    """Only where asked for, plain data, the same every time, with derived figures."""
    assert "explain" not in loaded.report()
    data = loaded.report(explain=True)
    again = json.loads(json.dumps(data))
    assert again["explain"] == data["explain"] == loaded.report(explain=True)["explain"]
    kernel = data["explain"]["kernels"][0]
    assert set(data["explain"]) == {
        "model", "target", "kernels", "library", "borders", "rates", "symbols", "fusion", "modelled_seconds",
    }  # fmt: skip
    assert {"dram_bytes", "least_bytes", "ratio", "levels", "pointers", "exact"} == set(
        kernel["graph"]["traffic"]
    )
    assert set(kernel["graph"]) == {
        "name", "hardware", "groups", "units", "traffic", "arithmetic", "roofline", "memory", "syncs",
        "phases", "passes", "sizes", "symbols", "intensity",
    }  # fmt: skip


def test_one_kernel(loaded: Executable) -> None:
    found = explain(loaded, KERNEL)
    assert [k.name for k in found.kernels] == [KERNEL] and found.library == () and len(found.borders) == 1
    with pytest.raises(KeyError):
        explain(loaded, "nope")


def test_a_kernel_without_an_igraph_keeps_its_reason() -> None:
    exe = tiny.executable()
    info = attrs.evolve(exe.info.kernels[0], fallback="igraph: too odd", texts={})
    other = Executable(exe.library, attrs.evolve(exe.info, kernels=(info,)), exe.kernel_graph)
    (kernel,) = explain(other).kernels
    assert (kernel.graph, kernel.reason, kernel.modelled_seconds) == (None, "igraph: too odd", None)
    assert explain(other).modelled_seconds is None


def test_a_file_without_texts_is_refused_with_a_remedy() -> None:
    exe = tiny.executable()
    info = attrs.evolve(exe.info.kernels[0], texts={"source": ""})
    other = Executable(exe.library, attrs.evolve(exe.info, kernels=(info,)), exe.kernel_graph)
    with pytest.raises(ArtifactError, match="no iGraph of the kernel"):
        explain(other)


def test_one_igraph_alone(tmp_path: pathlib.Path) -> None:
    graph = graphs.graph(graphs.STAGED)
    found = explain_text("# store_load_forwarding: bytes 6144 -> 5120\n" + print_igraph(graph))
    (kernel,) = found.kernels
    assert kernel.graph is not None and kernel.graph.traffic.dram_bytes == 5120
    assert [p.name for p in kernel.graph.passes] == ["store_load_forwarding"]
    assert (found.library, found.borders, kernel.calls) == ((), (), 1)


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(IGraphError):
        explain_text("igraph")
    beyond = graphs.SOFTMAX.replace("x[256*pid", "x[512*pid")
    with pytest.raises(VerifyError, match="beyond"):
        explain_text(print_igraph(graphs.graph(beyond)))


def test_barriers_of_all_units_make_phases() -> None:
    """Every unit adds up its part, then takes the maximum of all parts: two launches."""
    (kernel,) = explain_text(
        text("split", "before").replace("igraph share on host", f"{HOST}igraph share on host")
    ).kernels
    assert kernel.graph is not None and kernel.graph.phases == 2
    (use,) = kernel.graph.syncs
    assert (use.scope, use.needed, use.pointer) == ("dram", True, "part")


#: A device by the name that the text says.
HOST = """hardware host {
  kind = test
  num_groups = 4
  num_units = 1
  reg_bytes = 4096
  sram_bytes = 0
  vector_bytes = 32
}
"""
