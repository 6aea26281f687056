# SPDX-License-Identifier: Apache-2.0
"""Each check of the model of the 910B: a kernel that breaks the rule, and its twin that keeps it."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from tests.device import ascend_texts as texts

ALL = texts.ALL
#: A tile of 64 floats, loaded.
TILE = f"""  LocalTensor<float> t = ub.GetWithOffset<float>(64, 0);
  LocalTensor<float> u = ub.GetWithOffset<float>(64, 1024);
  DataCopy(t, gx, 64);
  {ALL}
"""


@attrs.frozen
class Case:
    """Two texts that differ in one piece, and what the bad one is found to be."""

    kind: str
    body: str
    bad: str
    good: str
    pipe: str = "V"
    arrays: int = 64


def tile(line: str) -> str:
    return TILE + line


CASES = {
    # --- addresses ---
    "vector function at an odd address": Case("misaligned", tile("  Adds(u[@], t, 1.0f, 8);"), "4", "8"),
    "copy to an odd address": Case("misaligned", tile("  DataCopy(t[@], gx, 8);"), "4", "8", "MTE2"),
    "copy from global memory between elements": Case(
        "misaligned",
        tile("  gy.SetGlobalBuffer((__gm__ float*)(x + @), 8); DataCopy(u, gy, 8);"),
        "2",
        "4",
        "MTE2",
    ),
    "target of a maximum with its place": Case(
        "misaligned", tile("  WholeReduceMax(u[@], t, 64, 1, 1, 1, 8);"), "1", "2"
    ),
    # --- bounds ---
    "vector function beyond its tensor": Case("out-of-bounds", tile("  Adds(u, t, 1.0f, @);"), "72", "64"),
    "repeats beyond the source": Case(
        "out-of-bounds",
        tile("  auto w = ub.GetWithOffset<float>(256, 4096); Adds(w, t, 1.0f, 64, 2, {1, 1, 8, @});"),
        "8",
        "0",
    ),
    "copy beyond the parameter": Case("out-of-bounds", tile("  DataCopy(u, gx[@], 32);"), "40", "32", "MTE2"),
    "store beyond the parameter": Case("out-of-bounds", tile("  DataCopy(gz[@], t, 64);"), "8", "0", "MTE3"),
    "copy beyond what the text says of a tensor": Case(
        "out-of-bounds",
        tile("  gx.SetGlobalBuffer((__gm__ float*)x, @); DataCopy(u, gx, 64);"),
        "60",
        "64",
        "MTE2",
    ),
    "tensor that begins behind its end": Case("out-of-bounds", tile("  Adds(u[@], t, 1.0f, 0);"), "64", "56"),
    "copy of no rows": Case(
        "limit", tile("  DataCopyPad(u, gx, {@, 4, 0, 0, 0}, {false, 0, 0, 0.0f});"), "0", "1", "MTE2"
    ),
    "copy of empty rows": Case("limit", tile("  DataCopyPad(gz, t, {1, @, 0, 0, 0});"), "0", "4", "MTE3"),
    "copy of no elements": Case("limit", tile("  DataCopy(u, gx, @);"), "0", "8", "MTE2"),
    "copy of no blocks": Case("limit", tile("  DataCopy(u, t, {1, @, 0, 0});"), "0", "1", "V"),
    "piece beyond its buffer": Case(
        "out-of-bounds", "  ub.GetWithOffset<float>(64, @);", "65408", "65280", ""
    ),
    "element beyond the tensor": Case("out-of-bounds", tile("  (void)t.GetValue(@);"), "64", "63", "S"),
    "gather beyond the source": Case(
        "out-of-bounds",
        tile(
            f"""  LocalTensor<int32_t> o = ub.GetWithOffset<int32_t>(64, 2048);
  Duplicate(o, (int32_t)@, 64);
  {ALL}
  Gather(u, t, o.ReinterpretCast<uint32_t>(), 0, 64);"""
        ),
        "256",
        "252",
    ),
    # --- numbers of the instructions ---
    "repeats": Case(
        "repeat",
        tile("  auto w = ub.GetWithOffset<float>(64, 4096); Adds(w, t, 1.0f, 8, @, {1, 1, 0, 0});"),
        "256",
        "1",
    ),
    "mask of too many elements": Case("mask", tile("  Adds(u, t, 1.0f, @, 1, {1, 1, 8, 8});"), "65", "64"),
    "mask of no element": Case("mask", tile("  Adds(u, t, 1.0f, uint64_t{@}, 1, {1, 1, 8, 8});"), "0", "1"),
    "mask with bits beyond a repeat": Case(
        "mask", tile("  uint64_t m[2] = {1, @}; Adds(u, t, 1.0f, m, 1, {1, 1, 8, 8});"), "1", "0"
    ),
    "repeat stride": Case("limit", tile("  Adds(u, t, 1.0f, 64, 1, {1, 1, @, 8});"), "256", "255"),
    "rows of a copy": Case(
        "limit", tile("  DataCopyPad(u, gx, {@, 4, 0, 0, 0}, {false, 0, 0, 0.0f});"), "4096", "8", "MTE2"
    ),
    "bytes of a copy": Case("limit", tile("  DataCopy(u, gx, @);"), "60", "64", "MTE2"),
    "rows that are no whole elements": Case(
        "limit", tile("  DataCopyPad(u, gx, {1, @, 0, 0, 0}, {false, 0, 0, 0.0f});"), "6", "8", "MTE2"
    ),
    "padding": Case(
        "limit", tile("  DataCopyPad(u, gx, {1, 4, 0, 0, 0}, {true, 0, @, 0.0f});"), "9", "7", "MTE2"
    ),
    "elements of a comparison": Case(
        "limit",
        tile("  Compare(u.ReinterpretCast<uint8_t>(), t, t, CMPMODE::EQ, @);"),
        "60",
        "64",
    ),
    "stride of a transpose of one repeat": Case(
        "limit",
        """  LocalTensor<half> h = ub.GetWithOffset<half>(512, 0), g = ub.GetWithOffset<half>(512, 2048);
  uint64_t s[16], d[16];
  for (int i = 0; i < 16; ++i) { s[i] = h[i * 16].GetPhyAddr(); d[i] = g[i * 16].GetPhyAddr(); }
  TransDataTo5HD<half>(d, s, {false, false, 1, @, 0});""",
        "16",
        "0",
    ),
    # --- types ---
    "arithmetic that the vector core lacks": Case(
        "dtype",
        "  LocalTensor<@> t = ub.GetWithOffset<@>(64, 0); Duplicate(t, (@)1, 64); "
        + ALL
        + " Add(t, t, t, 64);",
        "bfloat16_t",
        "half",
    ),
    "cast that the vector core lacks": Case(
        "dtype",
        tile("  Cast(u.ReinterpretCast<int32_t>(), t, RoundMode::CAST_@, 64);"),
        "NONE",
        "RINT",
    ),
    # --- values ---
    "store of what nobody wrote": Case("unwritten", tile("  DataCopy(gz, @, 64);"), "u", "t", "MTE3"),
    "poison that goes through arithmetic": Case(
        "unwritten",
        tile(f"  auto w = ub.GetWithOffset<float>(64, 4096); Add(w, t, @, 64); {ALL} DataCopy(gz, w, 64);"),
        "u",
        "t",
        "MTE3",
    ),
    "reduction over the padding of a row": Case(
        "unwritten",
        tile(
            f"""  DataCopyPad(u, gx, {{1, 20, 0, 0, 0}}, {{@, 0, 3, 0.0f}});
  {ALL}
  WholeReduceMax(t, u, 8, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);"""
        ),
        "false",
        "true",
    ),
    "element that nobody wrote": Case("unwritten", tile("  (void)@.GetValue(3);"), "u", "t", "S"),
    "gather by what nobody wrote": Case(
        "unwritten",
        tile(
            f"""  LocalTensor<int32_t> o = ub.GetWithOffset<int32_t>(64, 2048);
  Duplicate(o, (int32_t)0, @);
  {ALL}
  Gather(u, t, o.ReinterpretCast<uint32_t>(), 0, 64);"""
        ),
        "56",
        "64",
    ),
    # --- operands over each other ---
    "target that shares part of the source": Case(
        "overlap",
        tile("  LocalTensor<float> w = ub.GetWithOffset<float>(128, 0); Adds(w[@], t, 1.0f, 64);"),
        "32",
        "64",
    ),
    "repeat that reads what the one before wrote": Case(
        "overlap", tile("  @(t, u, t, 64, 2, {1, 1, 1, 0, 0, 0});"), "Div", "Add"
    ),
    "gather onto its source": Case(
        "overlap",
        tile(
            f"""  LocalTensor<int32_t> o = ub.GetWithOffset<int32_t>(64, 2048);
  Duplicate(o, (int32_t)0, 64);
  {ALL}
  Gather(@, t, o.ReinterpretCast<uint32_t>(), 0, 64);"""
        ),
        "t",
        "u",
    ),
    # --- memory and paths ---
    "buffers beyond the usable UB": Case(
        "capacity", "  TBuf<TPosition::VECCALC> more; pipe.InitBuffer(more, @);", "122912", "122880", ""
    ),
    "tensor without a buffer": Case(
        "no-memory", tile("  LocalTensor<float> n; Adds(u, @, 1.0f, 64);"), "n", "t"
    ),
    "buffer that a vector core does not have": Case(
        "no-memory", "  TBuf<TPosition::@> b; pipe.InitBuffer(b, 64);", "A1", "VECIN", ""
    ),
    # --- flags ---
    "event id": Case(
        "event-id", "  SetFlag<HardEvent::MTE2_V>(@); WaitFlag<HardEvent::MTE2_V>(@);", "8", "7", "MTE2"
    ),
    "wait for a flag that nothing set": Case(
        "flag-not-set", "  SetFlag<HardEvent::MTE2_V>(1); WaitFlag<HardEvent::MTE2_V>(@);", "2", "1"
    ),
    "flag that nothing waits for": Case(
        "flag-left", "  SetFlag<HardEvent::MTE2_V>(1); @", "", "WaitFlag<HardEvent::MTE2_V>(1);", "MTE2"
    ),
    "flag set twice": Case(
        "flag-set-twice",
        """  SetFlag<HardEvent::MTE2_V>(0); SetFlag<HardEvent::MTE2_V>(@);
  WaitFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(@);""",
        "0",
        "1",
        "MTE2",
    ),
    "flag set again before its wait has happened": Case(
        "flag-set-twice",
        """  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  @
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);""",
        "",
        "SetFlag<HardEvent::V_MTE2>(0); WaitFlag<HardEvent::V_MTE2>(0);",
        "MTE2",
    ),
    "pipe that a vector core does not have": Case("pipe", "  PipeBarrier<PIPE_@>();", "M", "V", "M"),
    "barrier of the scalar unit": Case("pipe", "  PipeBarrier<PIPE_@>();", "S", "V", "S"),
    "kernel of another kind": Case(
        "task-type", "@", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);", "", ""
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_check(name: str) -> None:
    case = CASES[name]
    for text, kind in ((case.bad, case.kind), (case.good, None)):
        source = texts.text(case.body.replace("@", text))
        x = np.ones(64, np.float32)
        result = texts.run(source, [x, x.copy(), x.copy()])
        wanted = [] if kind is None else [kind]
        # A flag that is misused is also left over, or missing.
        assert texts.kinds(result)[: len(wanted) or None] == wanted, [str(f) for f in result.findings]
        if kind is None:
            continue
        first = result.findings[0]
        assert first.pipe == case.pipe and first.kernel == "k" and first.core == "aiv"
        lines = source.splitlines()
        assert first.line > 4 and lines[first.line - 1].strip(), "the line of the text that breaks the rule"


#: A pipeline of queues, as samples of the toolkit have it; `@` marks where a test changes it.
QUEUES = """  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, 256);
  pipe.InitBuffer(out, 2, 256);
  GlobalTensor<float> gx, gz;
  gx.SetGlobalBuffer((__gm__ float*)x);
  gz.SetGlobalBuffer((__gm__ float*)z);
  for (int i = 0; i < 8; ++i) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, gx[i * 64], 64);
    in.EnQue(a);
    LocalTensor<float> b = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
    Adds(c, b, 1.0f, 64);
    out.EnQue(c);
    in.FreeTensor(b);
    LocalTensor<float> d = out.DeQue<float>();
    DataCopy(gz[i * 64], d, 64);
    out.FreeTensor(d);
  }"""


@pytest.mark.parametrize(("event", "place"), [("MTE2_V", "queued"), ("V_MTE2", "free")])
def test_ids_of_a_queue_are_its_own(event: str, place: str) -> None:
    """It takes one for a tensor that is in it, one for a buffer that is free again: a static id meets it."""
    body = """  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  LocalTensor<float> t = queue.AllocTensor<float>();
  DataCopy(t, gx, 64);
  queue.EnQue(t);
  @queued
  LocalTensor<float> u = queue.DeQue<float>();
  queue.FreeTensor(u);
  @free"""

    def found(number: int) -> texts.Result:
        flag = f"SetFlag<HardEvent::{event}>({number}); WaitFlag<HardEvent::{event}>({number});"
        lines = body.replace(f"@{place}", flag).replace("@queued", "").replace("@free", "")
        return texts.run(texts.text(lines), [np.ones(64, np.float32)])

    assert set(texts.kinds(found(0))) == {"event-id"}
    assert "held by the TPipe or by a queue" in found(0).findings[0].what
    found(1).check()


def test_a_flag_that_is_up_when_a_queue_takes_its_id() -> None:
    body = """  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  SetFlag<HardEvent::MTE2_V>(@);
  LocalTensor<float> t = queue.AllocTensor<float>();
  DataCopy(t, gx, 64);
  queue.EnQue(t);
  queue.DeQue<float>();
  WaitFlag<HardEvent::MTE2_V>(@);
  queue.FreeTensor(t);"""
    x = [np.ones(64, np.float32)]
    found = texts.run(texts.text(body.replace("@", "0")), x)
    assert texts.kinds(found) == ["event-id"] and found.findings[0].line == texts.line_of(body, "EnQue") + 11
    texts.run(texts.text(body.replace("@", "1")), x).check()


def test_ids_of_a_tpipe_of_a_cube_core_are_its_own() -> None:
    """It holds the first three of M_MTE1 for the vendor's matrix functions, set."""
    body = "  TPipe pipe;\n  WaitFlag<HardEvent::M_MTE1>(@);\n  SetFlag<HardEvent::M_MTE1>(@);"
    found = texts.run(texts.text(body.replace("@", "2"), task="AIC_ONLY", frame=False), [], core="aic")
    assert texts.kinds(found) == ["event-id", "event-id"]
    swapped = "  TPipe pipe;\n  SetFlag<HardEvent::M_MTE1>(3);\n  WaitFlag<HardEvent::M_MTE1>(3);"
    texts.run(texts.text(swapped, task="AIC_ONLY", frame=False), [], core="aic").check()


#: What CreateVecIndex meets -> the finding, and what mends it.
INDICES = {
    "V still reads the first block": (
        "race",
        "  Adds(u, t, 1, 64);\n  @\n  CreateVecIndex(t, 0, 64U);",
        "SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);",
    ),
    "MTE3 still reads the first block": (
        "race",
        "  DataCopy(gz, t, 64);\n  @\n  CreateVecIndex(t, 0, 64U);",
        ALL,
    ),
    "the text has set the flag that it takes": (
        "flag-set-twice",
        "  SetFlag<HardEvent::S_V>(0);\n  @\n  CreateVecIndex(u, 0, 64U);",
        "WaitFlag<HardEvent::S_V>(0); SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);",
    ),
    "the flag that it takes may still be up": (
        "flag-set-twice",
        "  SetFlag<HardEvent::S_V>(0);\n  WaitFlag<HardEvent::S_V>(0);\n  Adds(t, t, 1, 64);\n  @\n"
        "  CreateVecIndex(u, 0, 64U);",
        "SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);",
    ),
}


@pytest.mark.parametrize("name", INDICES)
def test_an_index_row_by_the_vendors_function_is_the_scalar_units(name: str) -> None:
    """CreateVecIndex writes its first block by SetValue, and then takes event 0 of S_V."""
    kind, body, mended = INDICES[name]
    tiles = f"""  LocalTensor<int32_t> t = ub.GetWithOffset<int32_t>(64, 0);
  LocalTensor<int32_t> u = ub.GetWithOffset<int32_t>(64, 1024);
  DataCopy(t, gx, 64);
  {ALL}
"""
    x, z = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    found = texts.run(texts.text(tiles + body.replace("@", ""), dtype="int32_t"), [x, x, z])
    kinds = set(texts.kinds(found)) - {"flag-left"}
    assert kind in kinds, found.findings
    texts.run(texts.text(tiles + body.replace("@", mended), dtype="int32_t"), [x, x, z]).check()


def test_queues_order_what_goes_through_them() -> None:
    x, z = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    texts.run(texts.text(QUEUES, frame=False), [x, x.copy(), z]).check()
    np.testing.assert_array_equal(z, x + 1)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("    in.EnQue(a);\n", "", "queue"),
        ("    in.FreeTensor(b);\n", "", "queue"),
        ("    out.FreeTensor(d);\n", "", "queue"),
        ("    out.FreeTensor(d);\n", "    out.FreeTensor(d); out.FreeTensor(d);\n", "queue"),
        ("    in.EnQue(a);\n", "    in.EnQue(a); in.EnQue(a);\n", "queue"),
        ("in.FreeTensor(b);", "out.FreeTensor(b);", "queue"),
        ("pipe.InitBuffer(out, 2, 256);", "", "queue"),
        ("pipe.InitBuffer(out, 2, 256);", "pipe.InitBuffer(out, 2, 128);", "out-of-bounds"),
        ("pipe.InitBuffer(out, 2, 256);", "pipe.InitBuffer(out, 63, 256);", "buffer"),
        # What is read outside of the queue's order.
        ("    in.EnQue(a);\n", "    Adds(a, a, 1.0f, 64);\n    in.EnQue(a);\n", "race"),
    ],
)
def test_queues_that_are_misused(old: str, new: str, kind: str) -> None:
    assert old in QUEUES
    x = np.arange(512, dtype=np.float32)
    result = texts.run(texts.text(QUEUES.replace(old, new), frame=False), [x, x.copy(), x.copy()])
    assert kind in texts.kinds(result), [str(f) for f in result.findings]


def test_a_launch_that_takes_too_long_ends() -> None:
    source = texts.text("  for (;;) PipeBarrier<PIPE_V>();")
    x = np.ones(64, np.float32)
    result = texts.run(source, [x, x, x], max_seconds=0.2)
    assert texts.kinds(result) == ["time-limit"]
