# SPDX-License-Identifier: Apache-2.0
"""Functions with a work tensor on the model of the 910B, against NumPy, and the rules of that tensor."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from tests.device import ascend_texts as texts
from tests.device.test_ascend_vector import C, computed

FUNCTIONS = {"Tanh": np.tanh, "Sin": np.sin, "Cos": np.cos, "Erf": scipy.special.erf}
WORK = "  LocalTensor<uint8_t> w = ub.GetWithOffset<uint8_t>({}, 49152);\n"


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_function(name: str, dtype: str) -> None:
    x = np.linspace(-4, 4, 128).astype(dtype)
    got = computed(WORK.format(2048) + f"  {name}(c, a, w, 128);", x, x)
    # One rounding of the result, and the library's own last bit.
    tolerance = 3e-7 if dtype == "float32" else 1e-3
    np.testing.assert_allclose(got, FUNCTIONS[name](x.astype(np.float64)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("Erf(u, t, w, 64);", None),
        ("Erf(t, t, w, 64);", "overlap"),
        ("Sin(t, t, w, 64);", None),
        ("Sin(u, t, w[64], 64);", "limit"),
        ("Sin(u, t, ub.GetWithOffset<uint8_t>(768, 1024), 64);", "overlap"),
        ("Adds(u, t, 1.0f, 64); Sin(u, t, w, 64);", "race"),
    ],
)
def test_work_tensors(body: str, kind: str | None) -> None:
    source = texts.text(
        f"""  LocalTensor<float> t = ub.GetWithOffset<float>(64, 0);
  LocalTensor<float> u = ub.GetWithOffset<float>(64, 1024);
{WORK.format(768)}  DataCopy(t, gx, 64);
  {texts.ALL}
  {body}"""
    )
    x = np.ones(64, np.float32)
    assert texts.kinds(texts.run(source, [x, x.copy(), x.copy()])) == ([kind] if kind else [])


@pytest.mark.parametrize("axis", [0, 1])
def test_broadcast(axis: int) -> None:
    x = np.arange(16, dtype=np.float32)
    source, shape = ((1, 16), (8, 16)) if axis == 0 else ((16, 1), (16, 24))
    got = computed(
        WORK.format(2048)
        + f"""  const uint32_t from[2] = {{{source[0]}, {source[1]}}}, to[2] = {{{shape[0]}, {shape[1]}}};
  BroadCast<{C["float32"]}, 2, {axis}>(c, a, to, from, w);""",
        x,
        x,
        out=shape[0] * shape[1],
    )
    np.testing.assert_array_equal(got.reshape(shape), np.broadcast_to(x.reshape(source), shape))
