# SPDX-License-Identifier: Apache-2.0
"""Programs of Relay with open sizes (``?``) are read once and serve every shape."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

pytest.importorskip("lark")

import uir_tvm
from uir_tvm.errors import NotCompiledError

from .fixtures import NETWORKS, answers, text_of, values_of
from .test_importer import HEADER

#: What the body reads, and NumPy's meaning of it.
PROGRAMS = {
    "nn.softmax(%x)": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "strided_slice(%x, begin=[1, 0], end=[2147483647, 2], strides=[1, 1], axes=None)": lambda x: x[1:, :2],
    "strided_slice(%x, begin=[0, 0], end=[-1, 4], strides=[1, 1], axes=None)": lambda x: x[:-1],
    "reshape(%x, newshape=[-1, 2])": lambda x: x.reshape(-1, 2),
    "repeat(%x, repeats=3, axis=0)": lambda x: x.repeat(3, 0),
    "split(%x, indices_or_sections=2, axis=1)": lambda x: np.split(x, 2, 1)[0],
    # what exporters make of a shape: the batch kept, the rest inferred
    """%0 = shape_of(%x, dtype="int64");
    %1 = expand_dims(take(%0, 0i64, axis=0), axis=0);
    %2 = full(-1i64, shape=[1], dtype="int64");
    %3 = concatenate((%1, %2, full(2i64, shape=[1], dtype="int64")), axis=0);
    dyn.reshape(%x, %3, newshape=[])""": lambda x: x.reshape(len(x), -1, 2),
    # a quotient of sizes as a size
    """%0 = divide(ndarray_size(%x, dtype="int64"), 2i64);
    %1 = concatenate((expand_dims(%0, axis=0), full(2i64, shape=[1], dtype="int64")), axis=0);
    dyn.reshape(%x, %1, newshape=[])""": lambda x: x.reshape(-1, 2),
    # a size among the numbers: the sum of all over how many there are
    """%0 = cast(ndarray_size(%x, dtype="int64"), dtype="float32");
    divide(sum(%x), %0)""": lambda x: x.mean(),
    """%0 = shape_of(%x, dtype="int64");
    %1 = multiply(%0, full(2i64, shape=[2], dtype="int64"));
    %2 = maximum(%1, full(1i64, shape=[2], dtype="int64"));
    broadcast_to(sum(%x), shape=[2, 3])""": lambda x: np.full((2, 3), x.sum()),
}


@pytest.mark.parametrize("body", PROGRAMS, ids=lambda body: re.findall(r"[a-z_.]+\(", body)[-1])
def test_one_reading_serves_many_shapes(body: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "model.relay"
    file.write_text(HEADER + f"def @main(%x: Tensor[(?, 4), float32]) {{ {body} }}")
    executable = uir_tvm.compile(file)
    for rows in (3, 7, 2):
        x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
        result = executable(x)
        first = result[0] if isinstance(result, list | tuple) else result
        np.testing.assert_allclose(np.asarray(first), PROGRAMS[body](x), rtol=1e-5, atol=1e-6)
    report = executable.report()
    assert len(report["programs"]) == 1, report["imported_by_shape"]


def test_inputs_that_must_agree_are_one_size(tmp_path: pathlib.Path) -> None:
    """Relay names no sizes: what is added has one; a row alone is compiled for its shape."""
    file = tmp_path / "model.relay"
    parameters = ", ".join(f"%{name}: Tensor[(?, 3), float32]" for name in "xyz")
    joined = "concatenate((add(%x, %y), %z), axis=1)"
    file.write_text(HEADER + f"def @main({parameters}) {{ {joined} }}")
    executable = uir_tvm.compile(file)
    for rows in (4, 9):
        x = np.full((rows, 3), 1, np.float32)
        assert np.asarray(executable(x, x, 5 * x)).tolist() == [[2, 2, 2, 5, 5, 5]] * rows
    (program,) = executable.report()["programs"]
    assert program["conditions"][-2:] == ["x_0 == y_0", "x_0 == z_0"]
    x = np.full((4, 3), 1, np.float32)
    assert np.asarray(executable(x, x[:1], x)).tolist() == [[2, 2, 2, 1, 1, 1]] * 4


def test_a_network_with_an_open_batch_is_saved_for_every_batch(tmp_path: pathlib.Path) -> None:
    values = values_of("mobilenet")
    data = values.pop(NETWORKS["mobilenet"])
    text = text_of("mobilenet")
    opened = text.replace("%data: Tensor[(1,", "%data: Tensor[(?,")
    assert opened != text
    (tmp_path / "m.relay").write_text(opened)
    np.savez(tmp_path / "m.npz", **values)
    executable = uir_tvm.compile(tmp_path / "m.relay")
    executable.save(tmp_path / "m.uir")
    loaded = uir_tvm.load(tmp_path / "m.uir")
    want = answers("networks")["mobilenet/0"]
    for rows in (1, 3):
        got = np.asarray(loaded(np.concatenate([data] * rows)))
        np.testing.assert_allclose(got, np.concatenate([want] * rows), rtol=1e-5, atol=1e-6)
    assert len(executable.report()["programs"]) == 1


def test_sizes_agree_before_a_call_says_so(tmp_path: pathlib.Path) -> None:
    """A file is made for equal sizes, since no others can be meant; loaded, it refuses the others by name."""
    (tmp_path / "m.relay").write_text(
        HEADER + "def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) { add(%x, %y) }"
    )
    uir_tvm.compile(tmp_path / "m.relay").save(tmp_path / "m.uir")
    loaded = uir_tvm.load(tmp_path / "m.uir")
    x = np.ones((5, 3), np.float32)
    assert (np.asarray(loaded(x, x)) == 2).all()
    with pytest.raises(NotCompiledError, match="without code for these shapes"):
        loaded(x, x[:4])
