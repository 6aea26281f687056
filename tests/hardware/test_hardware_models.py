# SPDX-License-Identifier: Apache-2.0
"""The registry finds every preset and says what there is when asked for what there is not."""

from __future__ import annotations

import pytest
from uir_tvm import hardware
from uir_tvm.errors import TargetError
from uir_tvm.hardware.rates import rates_of
from uir_tvm.igraph import from_json


def test_cpu_is_a_kind_with_the_host_first():
    assert "cpu" in hardware.kinds()
    assert hardware.names("cpu")[0] == "host"
    assert hardware.get().name == "host"


@pytest.mark.parametrize("kind, name", [(k, n) for k in hardware.kinds() for n in hardware.names(k)])
def test_every_preset_is_a_whole_model(kind, name):
    """Its own name and kind, positive sizes, and equal to itself after JSON (it travels inside graphs)."""
    model = hardware.get(name, kind)
    assert (model.name, model.kind) == (name, kind)
    assert min(model.num_groups, model.num_units, model.reg_bytes, model.vector_bytes) > 0
    assert from_json(model.to_json()) == model


@pytest.mark.parametrize("kind, name", [(k, n) for k in hardware.kinds() for n in hardware.names(k)])
def test_assumed_figures_are_figures(kind: str, name: str) -> None:
    model = hardware.get(name, kind)
    assert set(hardware.assumed_figures(model)) <= set(model.figures)


def test_what_nobody_publishes_of_an_mlu590_is_said() -> None:
    """Unlike an MLU370's, whose clusters and clock are known."""
    known, unknown = (hardware.assumed_figures(hardware.get(n, "bang")) for n in ("mlu370-x4", "mlu590"))
    assert {"clusters", "clock_hz"} <= set(unknown) and not {"clusters", "clock_hz"} & set(known)


@pytest.mark.parametrize("name", hardware.names("cpu"))
def test_cpu_figures_are_ordered_as_memories_are(name):
    model = hardware.get(name)
    f = model.figures
    assert model.vector_bytes < f["line_bytes"] * 2 <= f["tile_bytes"] < f["l1_bytes"] <= f["l2_bytes"]
    assert model.reg_bytes == f["l2_bytes"]
    assert (model.num_units, model.sram_bytes) == (1, 0)
    assert f["mcpu"]


@pytest.mark.parametrize("name", hardware.names("cuda"))
def test_cuda_limits_hold_together(name: str) -> None:
    """A warp of the largest registers fits, a block's sram leaves the kilobyte that the system keeps."""
    model = hardware.get(name, "cuda")
    f = model.figures
    lanes = 32
    assert model.num_units * lanes == 1024, "threads of the largest block"
    assert model.reg_bytes < 255 * 4 * lanes <= f["registers_per_sm"] * 4
    assert model.sram_bytes == f["sram_per_sm_bytes"] - 1024
    assert model.vector_bytes % lanes == 0 and f["tile_bytes"] * 2 <= model.reg_bytes
    # as the preferred tile is chosen: sixteen warps at once, with as many registers around it
    assert f["registers_per_sm"] // (2 * f["tile_bytes"] // 4) >= 16
    assert model.num_groups == f["sms"] and f["arch"].startswith("sm_")


@pytest.mark.parametrize("name", hardware.names("ascend"))
def test_ascend_limits_hold_together(name: str) -> None:
    """Tiles leave room for work buffers, memory is in whole blocks; two vector cores to a cube core."""
    model = hardware.get(name, "ascend")
    f = model.figures
    assert (model.num_units, model.sram_bytes) == (1, 0)
    assert model.num_groups == f["aiv_cores"] == 2 * f["aic_cores"]
    assert f["tile_bytes"] < model.reg_bytes < f["ub_bytes"]
    assert model.reg_bytes % f["reg_align"] == 0 and f["row_align_bytes"] == f["reg_align"] == 32
    assert f["transfer_bytes"] % f["line_bytes"] == 0 and f["transfer_bytes"] < f["tile_bytes"]
    assert f["arch"] == "dav-2201"


def test_the_larger_ascends_have_24_cube_cores_and_the_smaller_20() -> None:
    cores = {name: hardware.get(name, "ascend").figures["aic_cores"] for name in hardware.names("ascend")}
    assert cores == {"910b1": 24, "910b2": 24, "910b3": 20, "910b4": 20}


@pytest.mark.parametrize("name", hardware.names("bang"))
def test_bang_limits_hold_together(name: str) -> None:
    """Kernels leave the compiler its part of NRAM and SRAM, tiles leave room for work buffers."""
    model = hardware.get(name, "bang")
    f = model.figures
    assert (model.num_groups, model.num_units) == (f["clusters"], f["cores_per_cluster"])
    assert model.reg_bytes == f["nram_bytes"] - f["reserve_bytes"] > f["tile_bytes"]
    assert model.sram_bytes == f["sram_bytes"] - f["reserve_bytes"]
    assert model.reg_bytes % f["reg_align"] == 0 and f["line_bytes"] == model.vector_bytes == 128
    assert f["transfer_bytes"] < f["tile_bytes"] and f["sram_units"] == model.num_units
    assert set(f["unknown"]) <= set(f), "what is unknown has a default"


def test_what_is_not_published_is_marked() -> None:
    """A guess never passes for a figure: the model says which they are, and its rates repeat it."""
    assert {"clusters", "clock_hz"} <= set(hardware.get("mlu590", "bang").figures["unknown"])
    assert "clusters" not in hardware.get("mlu370-x8", "bang").figures["unknown"]
    rates = rates_of(hardware.get("mlu590", "bang"))
    assert "assumed" in rates.operations.source and "assumed" in rates.contract.source


def test_unknown_model_lists_the_known_ones():
    """A processor of 32 bits is none either."""
    for name in ("abacus", "pentium"):
        with pytest.raises(TargetError) as caught:
            hardware.get(name)
        assert name in caught.value.what
        assert caught.value.need.startswith("one of " + ", ".join(hardware.names("cpu")))


def test_unknown_kind_lists_the_known_ones():
    with pytest.raises(TargetError, match="abacus") as caught:
        hardware.names("abacus")
    assert "cpu" in caught.value.need
