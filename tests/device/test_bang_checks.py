# SPDX-License-Identifier: Apache-2.0
"""What the host model of MLUs checks: for each check a text that violates it, and one that does not."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.device.device_kernel import describe_device
from uir_tvm.device.launch import DeviceArray
from uir_tvm.errors import DeviceModelError, ToolchainError
from uir_tvm.target.bang import host_model as bang

from tests.device import bang_texts as texts

#: Loads 64 elements of x to `a` and fills `b`; a line that violates something comes behind.
READY = """  __memcpy(a, x, 256, GDRAM2NRAM);
  __bang_write_value(b, 64, 1.0f);
"""

#: Kind, a line that violates it, and one that does not.
CASES = [
    ("size", "__memcpy(a, x, 0, GDRAM2NRAM);", "__memcpy(a, x, 4, GDRAM2NRAM);"),
    ("size", "__bang_add(c, a, b, 0);", "__bang_add(c, a, b, 1);"),
    ("size", "__bang_cycle_add(c, a, b, 60, 16);", "__bang_cycle_add(c, a, b, 64, 16);"),
    ("size", "__bang_sumpool(c, a, 16, 4, 1, 2, 1, 1, 2);", "__bang_sumpool(c, a, 32, 2, 1, 2, 1, 1, 2);"),
    ("size", "__bang_matmul(c, a, w, 1, 4, 64);", ""),
    ("size", "__bang_reshape_filter(c, a, 2, 1, 1, 32);", ""),
    ("size", "__bang_gt_bitindex(c, a, b, 60);", "__bang_gt_bitindex(c, a, b, 64);"),
    # Where operands lie.
    ("space", "__memcpy(a, b, 256, GDRAM2NRAM);", "__memcpy(a, x, 256, GDRAM2NRAM);"),
    ("space", "__memcpy(x, a, 256, NRAM2NRAM);", "__memcpy(c, a, 256, NRAM2NRAM);"),
    ("space", "__bang_add(c, x, b, 64);", "__bang_add(c, a, b, 64);"),
    ("space", "float t[64]; __bang_add(t, a, b, 64);", "__bang_add(c, a, b, 64);"),
    ("space", "__bang_matmul(c, a, b, 1, 16, 64);", ""),
    # Bounds: of memories as the text declares them, and of parameters.
    (
        "out-of-bounds",
        "__memcpy(nram + 32700, x, 256, GDRAM2NRAM);",
        "__memcpy(nram + 32512, x, 256, GDRAM2NRAM);",
    ),
    ("out-of-bounds", "__bang_write_zero(a + 8190, 4);", "__bang_write_zero(a + 8188, 4);"),
    ("out-of-bounds", "__memcpy(a, x + 250, 256, GDRAM2NRAM);", "__memcpy(a, x + 192, 256, GDRAM2NRAM);"),
    (
        "out-of-bounds",
        "__memcpy(a, x, 64, GDRAM2NRAM, 64, 256, 4);",
        "__memcpy(a, x, 64, GDRAM2NRAM, 64, 256, 3);",
    ),
    ("out-of-bounds", "x[256] = 1.0f;", "x[255] = 1.0f;"),
    ("out-of-bounds", "x[0] = a[1 << 24];", "x[0] = a[1];"),
    # Ways of copies.
    (
        "path",
        "__memcpy(x, w, 256, WRAM2GDRAM, 64, 64, 3);",
        "__bang_write_value(c, 128, 1.0f); __memcpy(w, c, 512, NRAM2WRAM); __memcpy(x, w, 512, WRAM2GDRAM);",
    ),
    ("path", "__memcpy(c, a, 256, NRAM2NRAM, 1);", "__memcpy(c, a, 256, NRAM2NRAM);"),
    # Alignment.
    ("misaligned", "__memcpy(wram + 4, a, 512, NRAM2WRAM);", "__memcpy(wram + 8, a, 512, NRAM2WRAM);"),
    ("misaligned", "__memcpy(w, a, 256, NRAM2WRAM);", "__memcpy(w, a, 512, NRAM2WRAM);"),
    (
        "misaligned",
        "__memcpy(w, a, 8, NRAM2WRAM, 16388, 16, 3);",
        "__memcpy(w, a, 8, NRAM2WRAM, 16384, 16, 3);",
    ),
    # WRAM is 64 ranges: an address stands for the same place in each, segments go to one after the other.
    ("out-of-bounds", "__memcpy(wram + 512, a, 512, NRAM2WRAM);", "__memcpy(wram + 504, a, 512, NRAM2WRAM);"),
    ("stride", "__memcpy(w, a, 8, NRAM2WRAM, 64, 16, 3);", "__memcpy(w, a, 8, NRAM2WRAM, 16384, 16, 63);"),
    ("misaligned", "__memcpy(c + 1, a, 64, NRAM2NRAM);", "__memcpy(c + 16, a, 64, NRAM2NRAM);"),
    # Segments.
    (
        "segments",
        "__memcpy(a, x, 4, GDRAM2NRAM, 4, 4, -1);",
        "__memcpy(a, x, 4, GDRAM2NRAM, 4, 4, 0);",
    ),
    (
        "segments",
        "__memcpy(c, a, 4, NRAM2NRAM, 8, 2, 32, 1, 8, 2, 32, 2);",
        "__memcpy(c, a, 4, NRAM2NRAM, 8, 2, 32, 1, 8, 1, 32, 2);",
    ),
    (
        "stride",
        "__memcpy(a, x, 16, GDRAM2NRAM, 8, 16, 3);",
        "__memcpy(a, x, 16, GDRAM2NRAM, 16, 16, 3);",
    ),
    (
        "stride",
        "__bang_write_value(c, 4, 1.0f, 8, 1, 64, 1);",
        "__bang_write_value(c, 4, 1.0f, 16, 1, 64, 1);",
    ),
    # Operands that share bytes.
    ("overlap", "__bang_add(a + 1, a, b, 32);", "__bang_add(a, a, b, 32);"),
    ("overlap", "__bang_transpose(a, a, 4, 8);", "__bang_transpose(c, a, 4, 8);"),
    ("overlap", "__memcpy(a + 16, a, 128, NRAM2NRAM);", "__memcpy(a + 32, a, 128, NRAM2NRAM);"),
    ("overlap", "__bang_half2float(a, (half *)a, 32);", "__bang_float2half_rn((half *)a, a, 32);"),
    # Of several sources the first alone may be the target, or none, where the header says no more.
    (
        "overlap",
        "__bang_band((int *)b, (int *)a, (int *)b, 64);",
        "__bang_band((int *)a, (int *)a, (int *)b, 64);",
    ),
    (
        "overlap",
        "__bang_bxor((short *)b, (short *)b, (short *)b, 64);",
        "__bang_bxor((short *)c, (short *)b, (short *)b, 64);",
    ),
    ("overlap", "__bang_maxequal(b, a, b, 64);", "__bang_nan_maximum(b, a, b, 64);"),
    ("overlap", "__bang_or(b, a, b, 64);", "__bang_or(a, a, b, 64);"),
    ("overlap", "__bang_floor(a, a, 64);", "__bang_floor(c, a, 64);"),
    ("overlap", "__bang_int2float(b, (int *)b, 64, 0);", "__bang_int322float_rn(b, (int *)b, 64, 0);"),
    # Bytes that nobody wrote.
    ("unwritten", "__memcpy(x, c, 16, NRAM2GDRAM);", "__memcpy(x, a, 16, NRAM2GDRAM);"),
    ("unwritten", "__bang_add(c, a, b, 65); __memcpy(x, c, 260, NRAM2GDRAM);", "__bang_add(c, a, b, 65);"),
    ("unwritten", "x[0] = c[0];", "x[0] = a[0];"),
    ("unwritten", "x[0] = __bang_sum(a, 65);", "x[0] = __bang_sum(a, 64);"),
    # A scalar argument is loaded by the text.
    ("unwritten", "__bang_add_scalar(b, a, c[0], 64);", "__bang_add_scalar(b, a, a[0], 64);"),
    (
        "unwritten",
        "half v = ((half *)c)[0]; __bang_write_value(b, 64, v);",
        "half v = ((half *)a)[0]; __bang_write_value(b, 64, v);",
    ),
    ("unwritten", "__bang_argmax(c, a, 65);", "__bang_argmax(c, a, 64);"),
    # Block launches.
    ("no-memory", "__memcpy(s, a, 256, NRAM2SRAM);", ""),
    ("no-memory", "s[0] = 1.0f;", ""),
    ("block-sync", "__sync_cluster();", "__sync();"),
    ("block-sync", "__sync_all_ipu();", "__sync_io_move_compute();"),
]


@pytest.mark.parametrize(("kind", "wrong"), [(kind, wrong) for kind, wrong, _ in CASES])
def test_a_violation_is_found_at_its_line(kind: str, wrong: str) -> None:
    source = texts.text(READY + "  " + wrong)
    findings = texts.run(source).findings
    assert findings and findings[0].kind == kind, findings
    assert findings[0].line == texts.line_of(source, wrong)
    assert findings[0].kernel == "k" and findings[0].core == "ipu0"


def test_only_the_text_has_its_accesses_looked_at() -> None:
    """What functions of the header put on their stack is the model's own, and has no calls before it."""
    source = texts.text("  __memcpy(a, x, 256, GDRAM2NRAM); __bang_add(c, a, a, 64); y[0] = 1.0f;")
    command = ["objdump", "-d", str(bang.compile(source))]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"call.*<__tsan_(?:read|write)", code)) == 1


def test_what_is_allowed_is_not_found() -> None:
    """The right lines of all cases, each between waits for everything."""
    lines = "\n".join(f"  {right}" for _, _, right in CASES if right)
    texts.run(texts.text(READY + lines)).check()


def test_wram_is_out_of_reach_for_scalar_code() -> None:
    source = texts.text(READY + "  __memcpy(w, a, 512, NRAM2WRAM);\n  x[0] = w[0];")
    findings = texts.run(source).findings
    assert [(f.kind, f.line) for f in findings] == [("space", texts.line_of(source, "x[0] = w[0]"))]


def test_a_result_that_nothing_wrote_is_told() -> None:
    """Unknown bytes of global memory stay unknown on their way."""
    source = texts.text("  __memcpy(a, x, 256, GDRAM2NRAM);\n  __memcpy(y, a, 256, NRAM2GDRAM);")
    x = DeviceArray(64, np.float32, "x")
    result = texts.run(source, [x])
    assert [f.kind for f in result.findings] == ["unwritten"]
    texts.run(source, [x.fill(np.ones(64, np.float32))]).check()


def test_capacity_is_that_of_the_architecture() -> None:
    """768 KiB of NRAM are as much as an MLU370 has, and more than an MLU590's 512."""
    source = texts.text(READY).replace("nram[32768]", "nram[786432]")
    texts.run(source, on=texts.device()).check()
    result = texts.run(source, on=texts.device(arch=592, nram_bytes=512 << 10))
    assert texts.kinds(result) == ["capacity"] and result.findings[0].space == "NRAM"


@pytest.mark.parametrize(
    ("line", "without", "with_it"),
    [("__bang_div(c, a, b, 64);", 372, 592), ("__bang_abs((half *)c, (half *)a, 64);", None, 372)],
)
def test_functions_by_architecture(line: str, without: int | None, with_it: int) -> None:
    source = texts.text(READY + "  " + line)
    texts.run(source, on=texts.device(arch=with_it)).check()
    if without:
        assert texts.kinds(texts.run(source, on=texts.device(arch=without))) == ["arch"]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_quotients_by_zero_are_undefined(zero: float) -> None:
    """The header: src1 can not be equal to zero.  What nobody wrote is no zero."""
    source = texts.text(
        "  __memcpy(a, x, 1024, GDRAM2NRAM);\n  __bang_div(c, a, a, 256);\n  __bang_div(c, b, b, 9);"
    )
    x = np.ones(256, np.float32)
    texts.run(source, [x], on=texts.device(arch=592)).check()
    x[70] = zero
    (finding,) = texts.run(source, [x], on=texts.device(arch=592)).findings
    assert (finding.kind, finding.line) == ("undefined", texts.line_of(source, "__bang_div(c, a"))
    assert "element 70" in finding.what


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("misaligned", "__bang_add(c, a + 1, b, 32);"),
        ("size", "__bang_add(c, a, b, 40);"),
        ("arch", "__bang_sqrt(c, a, 64);"),
        ("arch", "__bang_fusion(FUSION_FMA, c, a, b, b, 64, 64);"),
        ("arch", "__memcpy(c, a, 4, NRAM2NRAM, 8, 2, 32, 1, 8, 2, 32, 1);"),
        ("misaligned", "__memcpy(c, a, 192, NRAM2NRAM);"),
        ("misaligned", "__memcpy(c, a, 64, NRAM2NRAM);"),
    ],
)
def test_earlier_architectures_work_on_whole_cycles(kind: str, line: str) -> None:
    """What an MLU290 refuses, an MLU370 takes."""
    source = texts.text(READY + "  " + line)
    assert texts.kinds(texts.run(source, on=texts.device(arch=290))) == [kind]
    texts.run(source, on=texts.device()).check()


@pytest.mark.parametrize("name", hardware.names("bang"))
def test_a_preset_is_its_architecture(name: str) -> None:
    """Presets name it by a text; the model checks by its number."""
    described = describe_device(hardware.get(name, "bang"))
    source = texts.text(READY + "  __bang_div(c, a, b, 64);")
    found = texts.kinds(texts.run(source, on=described))
    assert found == ([] if described["figures"]["arch"] == "592" else ["arch"])


def test_an_architecture_is_a_number() -> None:
    with pytest.raises(DeviceModelError, match="no number"):
        texts.run(texts.text(READY), on={**texts.DEVICE, "figures": {"arch": "mtp_372"}})


def test_arithmetic_of_bf16_is_of_later_architectures() -> None:
    line = "  __bang_add((bfloat16_t *)c, (bfloat16_t *)a, (bfloat16_t *)b, 64);"
    source = texts.text(READY + line)
    assert texts.kinds(texts.run(source, on=texts.device())) == ["arch"]
    texts.run(source, on=texts.device(arch=592)).check()
    # Conversions are there before.
    line = "  __bang_float2bfloat16_rn((bfloat16_t *)c, a, 64);"
    texts.run(texts.text(READY + line), on=texts.device()).check()


def test_types_without_a_function_do_not_compile() -> None:
    with pytest.raises(ToolchainError, match="no matching function"):
        bang.compile(texts.text("  __bang_add((int *)c, (int *)a, (int *)b, 64);"))


def test_lines_of_launches_are_kept() -> None:
    source = "a\nk<<<dim,\n   type, queue>>>(x,\n y);\n"
    rewritten = bang.rewrite_launches(source)
    assert rewritten == 'a\nuir_bang::Launch("k", k, dim,\n   type, queue)(x,\n y);\n'


HOST = """
extern "C" void k_launch(cnrtQueue_t queue, float *x, float *y, float *z) {{
  cnrtDim3_t dim{{{dim}}};
  k<<<dim, {kind}, queue>>>(x, y, z);
}}
"""

#: Every task writes its number.
NUMBER = "  if (__is_mpu()) return;\n  a[0] = (float)taskId;\n  __memcpy(z + taskId, a, 4, NRAM2GDRAM);"


@pytest.mark.parametrize(
    ("dim", "kind", "tasks"),
    [
        ("6, 1, 1", "cnrtFuncTypeBlock", 6),
        ("2, 3, 1", "cnrtFuncTypeBlock", 6),
        ("4, 2, 1", "cnrtFuncTypeUnion1", 8),
    ],
)
def test_host_launchers_run_their_launches(dim: str, kind: str, tasks: int) -> None:
    source = texts.text(NUMBER) + HOST.format(dim=dim, kind=kind)
    z = np.full(16, -1, np.float32)
    arrays = [np.ones(16, np.float32), np.ones(16, np.float32), z]
    bang.launch(bang.compile(source), "k_launch", arrays, block=0).check()
    np.testing.assert_array_equal(z[:tasks], np.arange(tasks))
    assert (z[tasks:] == -1).all()


@pytest.mark.parametrize(
    ("dim", "kind"),
    [("6, 1, 1", "cnrtFuncTypeUnion1"), ("8, 1, 1", "cnrtFuncTypeUnion2"), ("0, 1, 1", "cnrtFuncTypeBlock")],
)
def test_launches_that_no_device_takes(dim: str, kind: str) -> None:
    source = texts.text(NUMBER) + HOST.format(dim=dim, kind=kind)
    arrays = [np.ones(16, np.float32) for _ in range(3)]
    result = bang.launch(bang.compile(source), "k_launch", arrays, block=0)
    assert [(f.kind, f.line) for f in result.findings] == [("launch", texts.line_of(source, "k<<<"))]


def test_what_cannot_run_at_all() -> None:
    compiled = bang.compile(texts.text(NUMBER))
    with pytest.raises(DeviceModelError, match="no kernel 'other'"):
        bang.launch(compiled, "other", [])
    with pytest.raises(DeviceModelError, match="groups of 3 cores"):
        bang.launch(compiled, "k", [], block=3)


def test_a_launch_has_a_time_limit() -> None:
    source = texts.text("  for (;;) __sync();")
    assert texts.kinds(texts.run(source, max_seconds=0.2)) == ["time-limit"]
