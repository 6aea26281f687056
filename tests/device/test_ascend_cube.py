# SPDX-License-Identifier: Apache-2.0
"""Products on the modelled cube core, alone and beside vector cores."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import ascend_texts as texts

C = {"float16": "half", "float32": "float", "int8": "int8_t"}

#: c (m, n) = a (m, k) b (k, n); `{flags}` may be left out line by line.
PRODUCT = """  TPipe pipe;
  TBuf<TPosition::A1> l1a;
  TBuf<TPosition::B1> l1b;
  TBuf<TPosition::A2> l0a;
  TBuf<TPosition::B2> l0b;
  TBuf<TPosition::CO1> l0c;
  pipe.InitBuffer(l1a, 65536);
  pipe.InitBuffer(l1b, 65536);
  pipe.InitBuffer(l0a, 32768);
  pipe.InitBuffer(l0b, 32768);
  pipe.InitBuffer(l0c, 65536);
  GlobalTensor<T> ga, gb;
  GlobalTensor<O> gc;
  ga.SetGlobalBuffer((__gm__ T*)x, M * K);
  gb.SetGlobalBuffer((__gm__ T*)y, K * N);
  gc.SetGlobalBuffer((__gm__ O*)z, M * N);
  constexpr int C0 = 32 / sizeof(T), MA = (M + 15) / 16 * 16, KA = (K + 15) / 16 * 16, KB = (K + C0 - 1) / C0;
  constexpr int NB = (N + 15) / 16, F = 512 / sizeof(T);  // elements of a fractal
  LocalTensor<T> a1 = l1a.Get<T>(), b1 = l1b.Get<T>(), a2 = l0a.Get<T>(), b2 = l0b.Get<T>();
  LocalTensor<S> c = l0c.Get<S>();
  DataCopy(a1, ga, Nd2NzParams(1, M, K, 0, K, MA, 1, 0));
  DataCopy(b1, gb, Nd2NzParams(1, K, N, 0, N, KA, 1, 0));
  SetFlag<HardEvent::MTE2_MTE1>(0);
  WaitFlag<HardEvent::MTE2_MTE1>(0);
  for (int i = 0; i < MA / 16; ++i) {
    LoadData(a2[i * KB * F], a1[i * F], LoadData2DParams(0, KB, MA / 16, 0, 0, false, 0));
  }
%s
  SetFlag<HardEvent::MTE1_M>(0);
  WaitFlag<HardEvent::MTE1_M>(0);
  Mmad(c, a2, b2, MmadParams(M, N, K, 0, false, true));
  SetFlag<HardEvent::M_FIX>(0);
  WaitFlag<HardEvent::M_FIX>(0);
  Fixpipe<O, S, CFG_ROW_MAJOR>(gc, c, FixpipeParamsV220(N, M, MA, N, false, QUANT, 0, 1, 0, 0, 0));
"""

#: B from NZ to Zn: fractals of two bytes are turned one by one, those of four by squares of two.
HALF_B = """  for (int i = 0; i < KA / 16; ++i) {
    LoadData(b2[i * NB * F], b1[i * F], LoadData2DParams(0, NB, KA / 16, 0, 0, true, 0));
  }"""


def product(m: int, n: int, k: int, dtype: str, out: str, load_b: str) -> str:
    quant = "F322F16" if out == "half" else "NoQuant"
    head = f"""  using T = {C[dtype]};
  using S = {"int32_t" if dtype == "int8" else "float"};
  using O = {out};
  constexpr int M = {m}, N = {n}, K = {k};
  constexpr QuantMode_t QUANT = QuantMode_t::{quant};
"""
    return texts.text(head + PRODUCT % load_b, task="AIC_ONLY", frame=False)


@pytest.mark.parametrize("shape", [(32, 64, 48), (16, 16, 16), (30, 40, 70), (1, 32, 64)])
@pytest.mark.parametrize("out", ["float", "half"])
def test_product_of_halfs(shape: tuple[int, int, int], out: str) -> None:
    m, n, k = shape
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(k, n)).astype(np.float16)
    z = np.zeros((m, n), np.float32 if out == "float" else np.float16)
    source = product(m, n, k, "float16", out, HALF_B)
    if m == 1:
        # One row is read as a plain vector: K elements one after the other.
        source = source.replace(
            "    LoadData(a2[i * KB * F], a1[i * F], LoadData2DParams(0, KB, MA / 16, 0, 0, false, 0));",
            "    LoadData(a2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));",
        ).replace("DataCopy(a1, ga, Nd2NzParams(1, M, K, 0, K, MA, 1, 0));", "DataCopy(a1, ga, K);")
    result = texts.run(source, [a, b, z], core="aic", timed=True).check()
    expected = a.astype(np.float64) @ b.astype(np.float64)
    # Sums of k products of fp16, added up in fp32, then one rounding to the output.
    np.testing.assert_allclose(
        z, expected, rtol=1e-6 if out == "float" else 1e-3, atol=2e-5 if out == "float" else 1e-3
    )
    assert result.modelled["pipes"]["M"]["instructions"] == 1


def test_product_of_floats_turns_squares() -> None:
    """B (k, n) lies in L1 as rows of pairs of fractals: each pair is a square of 16 x 16 that is turned."""
    m = n = k = 32
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    z = np.zeros((m, n), np.float32)
    source = product(
        m,
        n,
        k,
        "float32",
        "float",
        """  for (int i = 0; i < K / 16; ++i) {
    // Fractals 2i and 2i + 1 along k are the halves of the turned square; they are N / 16 apart.
    LoadDataWithTranspose(b2[i * 2 * N / 16 * 128], b1[i * N / 16 * 256],
                          LoadData2dTransposeParams(0, N / 16, 1, 0, N / 16 - 1));
  }""",
    ).replace(
        "DataCopy(b1, gb, Nd2NzParams(1, K, N, 0, N, KA, 1, 0));",
        # Pairs of fractals side by side, row by row of 16: columns of 16 elements one after the other in L1.
        """for (int i = 0; i < K / 16; ++i) {
    for (int j = 0; j < N / 16; ++j) {
      DataCopy(b1[(i * N / 16 + j) * 256], gb[i * 16 * N + j * 16], Nd2NzParams(1, 16, 16, 0, N, 16, 1, 0));
    }
  }""",
    )
    texts.run(source, [a, b, z], core="aic").check()
    np.testing.assert_allclose(z, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dropped",
    ["MTE2_MTE1", "MTE1_M", "M_FIX"],
    ids=["load before copy", "product before load", "store before product"],
)
def test_a_missing_flag_is_a_race(dropped: str) -> None:
    a, z = np.ones((16, 16), np.float16), np.zeros((16, 16), np.float32)
    source = product(16, 16, 16, "float16", "float", HALF_B)
    lines = [line for line in source.splitlines() if f"HardEvent::{dropped}>" not in line]
    assert len(lines) == len(source.splitlines()) - 2
    result = texts.run("\n".join(lines), [a, a.copy(), z], core="aic")
    race = next(finding for finding in result.findings if finding.kind == "race")
    assert (
        race.other_line > 0
        and race.pipe == dropped.split("_")[1]
        and race.other_pipe == dropped.split("_")[0]
    )


def test_operands_that_the_cube_does_not_take() -> None:
    a, z = np.ones((16, 16), np.float16), np.zeros((16, 16), np.float32)
    good = product(16, 16, 16, "float16", "float", HALF_B)
    for bad, kind in {
        ("Mmad(c, a2, b2, ", "Mmad(c, a2[16], b2, "): "misaligned",
        ("MmadParams(M, N, K, 0", "MmadParams(M, N, 5000, 0"): "limit",
        ("FixpipeParamsV220(N, M, MA, N,", "FixpipeParamsV220(N, 9000, MA, N,"): "limit",
        ("FixpipeParamsV220(N, M, MA, N,", "FixpipeParamsV220(N, M + 8, MA, N,"): "out-of-bounds",
        ("Nd2NzParams(1, M, K, 0, K, MA", "Nd2NzParams(1, M, K, 0, K, 0"): "limit",
        ("LoadData(b2[i", "LoadData(a2[i"): "unwritten",
    }.items():
        old, new = bad
        result = texts.run(good.replace(old, new), [a, a.copy(), z], core="aic")
        assert kind in texts.kinds(result), (new, texts.kinds(result))


MIX = """  if ASCEND_IS_AIC {
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    pipe.InitBuffer(l1, 1024);
    LocalTensor<float> t = l1.Get<float>();
    GlobalTensor<float> gx, gz;
    gx.SetGlobalBuffer((__gm__ float*)x);
    gz.SetGlobalBuffer((__gm__ float*)z);
    DataCopy(t, gx, 256);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(gz, t, 256);
    CrossCoreSetFlag<2, PIPE_MTE3>(3);
  }
  if ASCEND_IS_AIV {
    TPipe pipe;
    TBuf<TPosition::VECCALC> ub;
    pipe.InitBuffer(ub, 1024);
    LocalTensor<float> t = ub.GetWithOffset<float>(128, 0);
    GlobalTensor<float> gy, gz;
    gy.SetGlobalBuffer((__gm__ float*)y);
    gz.SetGlobalBuffer((__gm__ float*)z);
    CrossCoreWaitFlag(3);
    DataCopy(t, gz[GetSubBlockIdx() * 128], 128);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(gy[GetSubBlockIdx() * 128], t, 128);
  }"""


def test_cube_and_vector_cores_of_a_block() -> None:
    """The cube core writes, both vector cores read their half: without the flags that is a race."""
    x, y, z = np.arange(256, dtype=np.float32), np.zeros(256, np.float32), np.zeros(256, np.float32)
    source = texts.text(MIX, task="MIX_AIC_1_2", frame=False)
    texts.run(source, [x, y, z], core="mix_1_2").check()
    np.testing.assert_array_equal(y, x)
    lines = [line for line in source.splitlines() if "CrossCore" not in line]
    result = texts.run("\n".join(lines), [x, y, z], core="mix_1_2")
    race = result.findings[0]
    assert race.kind == "race" and {race.core, race.other_core} == {"aiv", "aic"}


def test_order_comes_back_by_another_core() -> None:
    """What a vector core waited for of the cube core is known to the cube core by the vector core's flag."""
    again = """    CrossCoreSetFlag<2, PIPE_MTE3>(3);
    CrossCoreWaitFlag(0);
    DataCopy(gz, t, 256);
    CrossCoreSetFlag<2, PIPE_MTE3>(3);
"""
    taken = """    CrossCoreWaitFlag(3);
    CrossCoreSetFlag<2, PIPE_MTE2>(0);
    CrossCoreWaitFlag(3);
"""
    body = MIX.replace("    CrossCoreSetFlag<2, PIPE_MTE3>(3);\n", again)
    body = body.replace("    CrossCoreWaitFlag(3);\n", taken)
    x, y, z = np.arange(256, dtype=np.float32), np.zeros(256, np.float32), np.zeros(256, np.float32)
    source = texts.text(body, task="MIX_AIC_1_2", frame=False)
    texts.run(source, [x, y, z], core="mix_1_2").check()
    np.testing.assert_array_equal(y, x)
    # a flag of the vector core that it sets before it has waited brings no order back
    early = body.replace(taken, "".join(taken.splitlines(True)[i] for i in (1, 0, 2)))
    found = texts.run(texts.text(early, task="MIX_AIC_1_2", frame=False), [x, y, z], core="mix_1_2")
    race = found.findings[0]
    assert race.kind == "race" and race.core == race.other_core == "aic" and "PIPE_MTE3" in race.what


def test_a_flag_that_no_core_sets() -> None:
    source = texts.text(MIX, task="MIX_AIC_1_2", frame=False).replace(
        "CrossCoreSetFlag<2, PIPE_MTE3>(3);", ""
    )
    x = np.arange(256, dtype=np.float32)
    result = texts.run(source, [x, x.copy(), x.copy()], core="mix_1_2")
    assert texts.kinds(result) == ["deadlock"] and result.findings[0].count == 2
    assert result.findings[0].line == texts.line_of(source, "CrossCoreWaitFlag")
