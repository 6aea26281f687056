# SPDX-License-Identifier: Apache-2.0
"""Order on the modelled MLU: each wait and each meeting of a kernel is missed when it is left out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import bang_texts as texts

#: Six tiles through two places each of inputs and outputs: store, load, compute, wait.
PIPELINE = """  for (int i = 0; i < 8; ++i) {
    if (i >= 2) __memcpy_async(z + (i - 2) * 64, b + i % 2 * 64, 256, NRAM2GDRAM);
    if (i < 6) __memcpy_async(a + i % 2 * 64, x + i * 64, 256, GDRAM2NRAM);
    if (i >= 1 && i < 7) {
      __bang_add_scalar(b + (i - 1) % 2 * 64, a + (i - 1) % 2 * 64, 1.0f, 64);
      __bang_mul_scalar(b + (i - 1) % 2 * 64, b + (i - 1) % 2 * 64, 2.0f, 64);
    }
    __sync();  // of the iteration
  }"""


def run(source: str) -> texts.Result:
    x, z = np.arange(384, dtype=np.float32), np.zeros(384, np.float32)
    result = texts.run(source, [x, x, z])
    # Instructions take effect in the order of the program: what races is still computed so.
    np.testing.assert_array_equal(z, (x + 1) * 2)
    return result


def test_three_stages_in_order_are_clean() -> None:
    run(texts.text(PIPELINE)).check()


@pytest.mark.parametrize(
    ("wait", "pipe", "line", "other_pipe", "other_line"),
    [
        # Nothing at all: the function reads what a copy may still write.
        ("", "COMPUTE", "__bang_add_scalar", "IO", "GDRAM2NRAM"),
        # Copies are waited for; the store reads what a function may still write.
        ("__sync_io();", "IO", "NRAM2GDRAM", "COMPUTE", "__bang_mul_scalar"),
        # Functions are waited for, copies not: waiting for functions is no wait for copies.
        ("__sync_compute();", "COMPUTE", "__bang_add_scalar", "IO", "GDRAM2NRAM"),
        ("__sync_move();", "COMPUTE", "__bang_add_scalar", "IO", "GDRAM2NRAM"),
        ("uir_bang::take_sync();", "COMPUTE", "__bang_add_scalar", "IO", "GDRAM2NRAM"),
    ],
)
def test_a_missing_wait_is_found_with_both_lines(
    wait: str, pipe: str, line: str, other_pipe: str, other_line: str
) -> None:
    source = texts.text(PIPELINE.replace("__sync();", wait))
    race = run(source).findings[0]
    assert race.kind == "race" and race.space == "NRAM"
    assert (race.pipe, race.line) == (pipe, texts.line_of(source, line))
    assert (race.other_pipe, race.other_line) == (other_pipe, texts.line_of(source, other_line))


def test_the_right_waits_are_enough() -> None:
    for wait in ("__sync_io(); __sync_compute();", "__sync_io_move_compute();"):
        run(texts.text(PIPELINE.replace("__sync();", wait))).check()


def test_a_queue_keeps_the_order_of_its_instructions() -> None:
    """A place that is stored and loaded again needs no wait between; the other way loses what was there."""
    store, load = "__memcpy_async(z, a, 256, NRAM2GDRAM);", "__memcpy_async(a, x, 256, GDRAM2NRAM);"
    for first, second, kept in ((store, load, 1.0), (load, store, 5.0)):
        source = texts.text(f"  __bang_write_value(a, 64, 1.0f);\n  __sync_compute();\n  {first}\n  {second}")
        x, z = np.full(64, 5, np.float32), np.zeros(64, np.float32)
        texts.run(source, [x, x, z]).check()
        assert (z == kept).all()


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        # Between the queues of a core.
        ("__memcpy_async(a, x, 256, GDRAM2NRAM); {} __bang_add(c, a, a, 64);", "__sync_io();"),
        ("__bang_add(c, a, a, 64); {} __memcpy_async(z, c, 256, NRAM2GDRAM);", "__sync_compute();"),
        ("__bang_add(c, a, a, 64); {} __memcpy_async(w, c, 512, NRAM2WRAM);", "__sync_compute();"),
        ("__memcpy_async(c, a, 256, NRAM2NRAM); {} __bang_add(c, c, a, 64);", "__sync_move();"),
        ("__memcpy_async(c, a, 256, NRAM2NRAM); {} __memcpy_async(z, c, 256, NRAM2GDRAM);", "__sync_move();"),
        ("__memcpy_async(z, a, 256, NRAM2GDRAM); {} __bang_write_zero(a, 64);", "__sync_io();"),
        # Scalar code waits for copies; functions and the scalar unit wait for each other by themselves.
        ("__memcpy_async(c, x, 256, GDRAM2NRAM); {} y[0] = c[3];", "__sync_io();"),
        ("__memcpy_async(z, a, 256, NRAM2GDRAM); {} a[3] = 1.0f;", "__sync_io();"),
        ("__memcpy_async(z, a, 256, NRAM2GDRAM); {} y[0] = z[3];", "__sync_io();"),
        # They wait for the last function that touches the bytes and for those before, not for later ones.
        (
            "__bang_write_zero(a, 64); __bang_add(c, b, b, 64); {} __memcpy_async(z, c, 256, NRAM2GDRAM);",
            "y[0] = c[0];",
        ),
        (
            "__bang_write_zero(a, 64); __bang_add(c, b, b, 64); {} __memcpy_async(b, x, 256, GDRAM2NRAM);",
            "c[0] = 1.0f;",
        ),
        (
            "__bang_write_zero(a, 64); __bang_add(c, b, b, 64); y[0] = a[0]; {}"
            " __memcpy_async(z, c, 256, NRAM2GDRAM);",
            "__sync_compute();",
        ),
        # A blocking copy waits for everything before it.
        (
            "__bang_add(c, a, a, 64); {} __memcpy_async(z, c, 256, NRAM2GDRAM);",
            "__memcpy(y, a, 4, NRAM2GDRAM);",
        ),
    ],
)
def test_what_orders_what(body: str, needed: str) -> None:
    head = "  __memcpy(a, x, 256, GDRAM2NRAM);\n  __memcpy(b, x, 256, GDRAM2NRAM);\n  "
    for order, kinds in ((needed, []), ("", ["race"])):
        source = texts.text(head + body.replace("{}", order))
        assert texts.kinds(texts.run(source)) == kinds, order


@pytest.mark.parametrize(
    "body",
    [
        "__memcpy(a, x, 256, GDRAM2NRAM); __bang_add(c, a, a, 64); __memcpy(z, c, 256, NRAM2GDRAM);",
        # One queue works off its instructions one by one.
        "__memcpy_async(a, x, 256, GDRAM2NRAM); __memcpy_async(z, a, 256, NRAM2GDRAM);",
        "__memcpy(a, x, 256, GDRAM2NRAM); __bang_add(c, a, a, 64); __bang_mul(c, c, a, 64);",
        # The scalar unit and the vector unit.
        "__bang_write_zero(a, 64); y[0] = a[3]; a[3] = 1.0f; __bang_add(c, a, a, 64);",
        "for (int i = 0; i < 64; ++i) a[i] = (float)i; __memcpy_async(z, a, 256, NRAM2GDRAM);",
        # Different bytes.
        "__bang_write_zero(b, 64); __memcpy_async(a, x, 256, GDRAM2NRAM); __bang_add(c, b, b, 64);",
    ],
)
def test_what_needs_no_wait(body: str) -> None:
    texts.run(texts.text("  " + body)).check()


#: The memory core loads for its cluster; every core adds and hands over to the next; the memory core stores.
CLUSTER = """  __memcpy_async(s, x + taskIdY * 256, 1024, GDRAM2SRAM);
  __sync_cluster();  // loaded
  __memcpy_async(a, s + coreId * 64, 256, SRAM2NRAM);
  __sync_move();  // there
  __bang_add_scalar(b, a, 1.0f, 64);
  __sync_compute();  // added
  __memcpy_async(s + 256 + coreId * 64, b, 256, NRAM2SRAM);
  __sync_cluster();  // handed over
  __memcpy_async(c, s + 256 + (coreId + 1) % 4 * 64, 256, SRAM2NRAM);
  __memcpy_async(y + taskIdY * 256, s + 256, 1024, SRAM2GDRAM);
  __sync_move();  // taken over
  __memcpy_async(z + taskId * 64, c, 256, NRAM2GDRAM);"""


def run_cluster(body: str) -> texts.Result:
    x, y, z = np.arange(512, dtype=np.float32), np.zeros(512, np.float32), np.zeros(512, np.float32)
    result = texts.run(texts.text(body), [x, y, z], groups=2, units=4)
    if not result.findings:
        np.testing.assert_array_equal(y, x + 1)
        np.testing.assert_array_equal(z.reshape(2, 4, 64), np.roll((x + 1).reshape(2, 4, 64), -1, axis=1))
    return result


def test_a_cluster_in_order_is_clean() -> None:
    run_cluster(CLUSTER).check()


@pytest.mark.parametrize("which", ["loaded", "there", "added", "handed over", "taken over"])
def test_each_wait_of_a_cluster_is_needed(which: str) -> None:
    """In a form that orders nothing, so that the rest of the run is the same."""
    lines = []
    for line in CLUSTER.splitlines():
        lines.append(line.replace("__sync", "uir_bang::take_sync") if line.endswith(which) else line)
    assert lines != CLUSTER.splitlines()
    assert set(texts.kinds(run_cluster("\n".join(lines)))) == {"race"}


def test_a_race_between_cores_has_both_lines() -> None:
    body = CLUSTER.replace("__sync_cluster();  // handed over", "uir_bang::take_sync_cluster();")
    source = texts.text(body)
    races = run_cluster(body).findings
    lines = {(race.line, race.other_line) for race in races}
    written = texts.line_of(source, "NRAM2SRAM")
    assert lines == {
        (texts.line_of(source, "(coreId + 1) % 4"), written),
        (texts.line_of(source, "SRAM2GDRAM"), written),
    }
    assert {race.space for race in races} == {"SRAM"}
    assert {race.core for race in races} >= {"mpu"} and all(
        race.other_core.startswith("ipu") for race in races
    )


def test_cores_race_over_global_memory() -> None:
    """Clusters and tasks are ordered by nothing; cores of a cluster by a meeting."""
    body = "  __bang_write_zero(a, 64);\n  __memcpy(z, a, 4, NRAM2GDRAM);"
    result = texts.run(texts.text(body), groups=2)
    assert texts.kinds(result) == ["race"] and result.findings[0].space == "GDRAM"
    assert (result.findings[0].block, result.findings[0].other_block) == (1, 0)
    apart = body.replace("z,", "z + taskId,")
    texts.run(texts.text(apart), groups=2).check()
    handed = """  __bang_write_zero(a, 64);
  if (coreId == 0) __memcpy(z, a, 4, NRAM2GDRAM);
  __sync_all_ipu();
  if (coreId == 1) __memcpy(b, z, 4, GDRAM2NRAM);"""
    texts.run(texts.text(handed), units=4).check()
    source = texts.text(handed.replace("__sync_all_ipu();", ""))
    race = texts.run(source, units=4).findings[0]
    assert race.kind == "race" and (race.core, race.other_core) == ("ipu1", "ipu0")


def test_a_meeting_that_not_all_reach() -> None:
    source = texts.text("  if (coreId != 2) __sync_cluster();")
    result = texts.run(source, units=4)
    assert set(texts.kinds(result)) == {"deadlock"}
    assert result.findings[0].line == texts.line_of(source, "__sync_cluster")
    # The memory core belongs to it.
    left = texts.run(texts.text("  if (__is_mpu()) return;\n  __sync_cluster();"), units=4)
    assert set(texts.kinds(left)) == {"deadlock"}
    texts.run(texts.text("  if (__is_mpu()) return;\n  __sync_all_ipu();"), units=4).check()


def test_copies_of_a_cluster_are_the_memory_cores() -> None:
    """`coreId == 0` is never the core that makes them, so that nothing is copied."""
    source = texts.text("  if (coreId == 0) __memcpy(s, x, 256, GDRAM2SRAM);\n  __sync_cluster();")
    result = texts.run(source, units=4)
    assert texts.kinds(result) == ["mpu"] and result.findings[0].line == texts.line_of(source, "GDRAM2SRAM")
    texts.run(
        texts.text("  if (__is_mpu()) __memcpy(s, x, 256, GDRAM2SRAM);\n  __sync_cluster();"), units=4
    ).check()


def test_a_store_before_unloading_is_seen_across_iterations() -> None:
    """The memory core runs ahead: a meeting at the end of an iteration keeps it from the cores' bytes."""
    loop = """  for (int i = 0; i < 3; ++i) {
    __memcpy_async(s, x + i * 64, 256, GDRAM2SRAM);
    __sync_cluster();
    __memcpy_async(a, s, 256, SRAM2NRAM);
    __sync_cluster();  // read
  }"""
    texts.run(texts.text(loop), units=4).check()
    source = texts.text(loop.replace("__sync_cluster();  // read", "__sync_move();"))
    race = texts.run(source, units=4).findings[0]
    lines = {race.line, race.other_line}
    assert race.kind == "race"
    assert lines == {texts.line_of(source, "GDRAM2SRAM"), texts.line_of(source, "SRAM2NRAM")}
