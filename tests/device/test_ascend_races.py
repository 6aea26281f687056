# SPDX-License-Identifier: Apache-2.0
"""Order on the modelled 910B: each flag and barrier of a kernel is missed when it is left out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import ascend_texts as texts

#: Two tiles through two places of the UB: loads run ahead of the vector unit, stores behind it.
PIPELINE = """  LocalTensor<float> t[2] = {ub.GetWithOffset<float>(64, 0), ub.GetWithOffset<float>(64, 256)};
  LocalTensor<float> u[2] = {ub.GetWithOffset<float>(64, 512), ub.GetWithOffset<float>(64, 768)};
  for (int i = 0; i < 2; ++i) {
    SetFlag<HardEvent::V_MTE2>(i);  // before: t is free
    SetFlag<HardEvent::MTE3_V>(i);  // before: u is free
  }
  for (int i = 0; i < 6; ++i) {
    int p = i % 2;
    WaitFlag<HardEvent::V_MTE2>(p);  // t is free
    DataCopy(t[p], gx[i * 64], 64);
    SetFlag<HardEvent::MTE2_V>(p);  // t is there
    WaitFlag<HardEvent::MTE2_V>(p);  // t is there
    WaitFlag<HardEvent::MTE3_V>(p);  // u is free
    Adds(u[p], t[p], 1.0f, 64);
    SetFlag<HardEvent::V_MTE2>(p);  // t is free
    PipeBarrier<PIPE_V>();  // within V
    Muls(u[p], u[p], 2.0f, 64);
    SetFlag<HardEvent::V_MTE3>(p);  // u is there
    WaitFlag<HardEvent::V_MTE3>(p);  // u is there
    DataCopy(gz[i * 64], u[p], 64);
    SetFlag<HardEvent::MTE3_V>(p);  // u is free
  }
  for (int i = 0; i < 2; ++i) {
    WaitFlag<HardEvent::V_MTE2>(i);  // after: t is free
    WaitFlag<HardEvent::MTE3_V>(i);  // after: u is free
  }"""


def run(source: str) -> texts.Result:
    x, z = np.arange(384, dtype=np.float32), np.zeros(384, np.float32)
    result = texts.run(source, [x, x, z])
    # Instructions take effect in the order of the program: what races is still computed so.
    np.testing.assert_array_equal(z, (x + 1) * 2)
    return result


def test_a_pipeline_in_order_is_clean() -> None:
    run(texts.text(PIPELINE)).check()


@pytest.mark.parametrize(
    ("what", "pipe", "line", "other_pipe", "other_line"),
    [
        ("t is free", "MTE2", "DataCopy(t[p]", "V", "Adds("),
        ("t is there", "V", "Adds(", "MTE2", "DataCopy(t[p]"),
        ("u is free", "V", "Adds(", "MTE3", "DataCopy(gz"),
        ("u is there", "MTE3", "DataCopy(gz", "V", "Muls("),
    ],
)
def test_a_missing_flag_is_found_with_both_lines(
    what: str, pipe: str, line: str, other_pipe: str, other_line: str
) -> None:
    source = texts.text(PIPELINE)
    without = "\n".join("" if what in text else text for text in source.splitlines())
    result = run(without)
    race = result.findings[0]
    assert race.kind == "race" and race.space == "UB"
    assert (race.pipe, race.line) == (pipe, texts.line_of(source, line))
    assert (race.other_pipe, race.other_line) == (other_pipe, texts.line_of(source, other_line))


def test_a_missing_barrier_is_found() -> None:
    source = texts.text(PIPELINE)
    result = run(source.replace("PipeBarrier<PIPE_V>();", ""))
    assert texts.kinds(result) == ["race"]
    race = result.findings[0]
    assert (race.pipe, race.other_pipe) == ("V", "V")
    assert (race.line, race.other_line) == (texts.line_of(source, "Muls("), texts.line_of(source, "Adds("))
    assert "PipeBarrier<PIPE_V> is missing" in race.what


@pytest.mark.parametrize(
    "event",
    ["MTE2_V>(p);  // t is there", "MTE3_V>(p);  // u is free", "V_MTE3>(p);", "V_MTE2>(p);  // t is free"],
)
def test_a_wait_that_orders_nothing_is_missed(event: str) -> None:
    """A wait is needed when somebody misses its order: this is how tests show that none is too many."""
    old = f"    WaitFlag<HardEvent::{event}"
    assert PIPELINE.count(old) == 1
    source = texts.text(PIPELINE.replace(old, old.replace("WaitFlag", "uir_ascendc::take_flag")))
    assert {"race"} <= set(texts.kinds(run(source))) <= {"race", "flag-set-twice"}


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        # The scalar unit: its accesses are known to others by flags alone, what it waits for to all.
        (
            "t.SetValue(3, 5.0f); {} Adds(u, t, 1.0f, 8);",
            "SetFlag<HardEvent::S_V>(0); WaitFlag<HardEvent::S_V>(0);",
        ),
        (
            "Adds(u, t, 1.0f, 8); {} (void)u.GetValue(1);",
            "SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);",
        ),
        (
            "Adds(u, t, 1.0f, 64); {} DataCopy(gz, u, 64);",
            "SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);",
        ),
        # Through a third pipe.
        (
            "Adds(u, t, 1.0f, 64); {} DataCopy(gz, u, 64);",
            "SetFlag<HardEvent::V_MTE2>(0); WaitFlag<HardEvent::V_MTE2>(0);"
            " SetFlag<HardEvent::MTE2_MTE3>(0); WaitFlag<HardEvent::MTE2_MTE3>(0);",
        ),
        # Copies of one pipe, in the UB and in global memory.
        ("DataCopy(t, gx, 64); {} DataCopy(t[8], gx, 8);", "PipeBarrier<PIPE_MTE2>();"),
        ("DataCopy(gz, t, 64); {} DataCopy(gz[8], t, 8);", "PipeBarrier<PIPE_MTE3>();"),
        (
            "DataCopy(gz, t, 64); {} DataCopy(u, gz, 64);",
            "SetFlag<HardEvent::MTE3_MTE2>(0); WaitFlag<HardEvent::MTE3_MTE2>(0);",
        ),
    ],
)
def test_what_orders_what(body: str, needed: str) -> None:
    head = f"""  LocalTensor<float> t = ub.GetWithOffset<float>(64, 0);
  LocalTensor<float> u = ub.GetWithOffset<float>(64, 1024);
  Duplicate(t, 0.0f, 64);
  {texts.ALL}
"""
    x = np.ones(64, np.float32)
    for order, kinds in ((needed, []), ("", ["race"])):
        source = texts.text(head + "  " + body.replace("{}", order))
        assert texts.kinds(texts.run(source, [x, x.copy(), x.copy()])) == kinds, order


def test_bytes_are_told_apart() -> None:
    """Neighbouring elements of one block of 32 bytes are no race; the same element is."""
    for element, kinds in ((2, []), (1, ["race"])):
        source = texts.text(
            f"""  LocalTensor<float> t = ub.GetWithOffset<float>(64, 0);
  Duplicate(t, 0.0f, 64);
  {texts.ALL}
  WholeReduceSum(t[1], t, 1, 1, 1, 1, 8);
  (void)t.GetValue({element});"""
        )
        x = np.ones(64, np.float32)
        found = texts.kinds(texts.run(source, [x, x.copy(), x.copy()]))
        assert found == kinds


#: Every core writes its piece, then reads that of the next one.
CORES = """  LocalTensor<float> t = ub.GetWithOffset<float>(64, 0);
  int64_t me = GetBlockIdx(), next = (me + 1) % GetBlockNum();
  DataCopy(t, gx[me * 64], 64);
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(gy[me * 64], t, 64);
  SyncAll<true>();
  DataCopy(t, gy[next * 64], 64);
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(gz[me * 64], t, 64);"""


def test_cores_meet_in_sync_all() -> None:
    x, y, z = (np.zeros(256, np.float32) for _ in range(3))
    x[:] = np.arange(256)
    source = texts.text(CORES)
    texts.run(source, [x, y, z], blocks=4).check()
    np.testing.assert_array_equal(z, np.roll(x, -64))


def test_cores_that_do_not_meet_race() -> None:
    x, y, z = (np.zeros(256, np.float32) for _ in range(3))
    source = texts.text(CORES)
    # The next core's piece is read before it is written, or written after it was read.
    result = texts.run(source.replace("SyncAll<true>();", ""), [x, y, z], blocks=4)
    races = [finding for finding in result.findings if finding.kind == "race" and finding.space == "GM"]
    assert races and all(race.block != race.other_block for race in races)


def test_cores_that_wait_for_others_that_have_ended() -> None:
    source = texts.text(CORES.replace("SyncAll<true>();", "if (me) SyncAll<true>();"))
    x = np.zeros(256, np.float32)
    result = texts.run(source, [x, x.copy(), x.copy()], blocks=4)
    assert "deadlock" in texts.kinds(result)


def test_stores_of_two_cores_to_one_place() -> None:
    source = texts.text(
        f"""  LocalTensor<float> t = ub.GetWithOffset<float>(64, 0);
  Duplicate(t, 1.0f, 64);
  {texts.ALL}
  DataCopyPad(gz[GetBlockIdx() * STEP], t, {{1, 28, 0, 0, 0}});"""
    )
    x = np.zeros(256, np.float32)
    for step, kinds in ((7, []), (6, ["race"])):
        result = texts.run(source.replace("STEP", str(step)), [x, x.copy(), x.copy()], blocks=8)
        assert texts.kinds(result) == kinds
