# SPDX-License-Identifier: Apache-2.0
"""Kernels whose sizes are known at launch: right at any size, with no finding, by one text for each target.

``UIR_UPDATE_GOLDEN=1 pytest tests/target/test_sizes.py`` writes the goldens anew.
"""

from __future__ import annotations

import os
import pathlib
import re

import numpy as np
import pytest
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.device.run_text import run
from uir_tvm.errors import DeviceError, ShapeError, SizeError
from uir_tvm.igraph import IGraph, interpreter, var
from uir_tvm.optimize import optimize
from uir_tvm.target import registry
from uir_tvm.verify import verify

from tests.corpus.sized import Sized
from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of

from .sized_kernels import BY_NAME, agree, printed

FOLDER = pathlib.Path(__file__).parent
#: Targets whose groups have one unit alone.
SINGLE = ("uir-ascend",)
CASES = [
    pytest.param(row, one, id=f"{row.name}-{one.name}")
    for row in DEVICE_TARGETS
    for one in BY_NAME.values()
    if one.units == 1 or row.name not in SINGLE
]


@pytest.fixture(params=DEVICE_TARGETS, ids=name_of)
def row(request: pytest.FixtureRequest) -> DeviceTarget:
    """Each target that has a device."""
    return request.param


@pytest.mark.parametrize(("row", "one"), CASES)
def test_equals_the_interpreter_at_any_size(row: DeviceTarget, one: Sized) -> None:
    graph = one.graph(row.hardware)
    check_at_any_size(one, graph, printed(row, one))


@pytest.mark.parametrize(("row", "one"), CASES)
def test_equals_the_interpreter_after_the_passes(row: DeviceTarget, one: Sized) -> None:
    """The verifier takes the graph, and what all passes of the target make of it."""
    record, graph = registry.get(row.name), one.graph(row.hardware)
    verify(graph)
    kernel = record.lower(optimize(graph, tuple(record.passes)).graph)
    assert isinstance(kernel, DeviceKernel)
    check_at_any_size(one, graph, kernel)


def check_at_any_size(one: Sized, graph: IGraph, kernel: DeviceKernel) -> None:
    for n in one.points(graph):
        arrays = one.inputs(graph, n)
        ran = run(kernel, arrays, sizes={"n": n}, max_seconds=60).check()
        assert not ran.unwritten or n == 0
        (wanted,) = interpreter.run(graph, *arrays, sizes={"n": n})
        agree(one, ran.outputs["y"], wanted, (n, kernel.source))


def test_workspaces_follow_the_size(row: DeviceTarget) -> None:
    """What one phase hands over to the next is as large as the size says."""
    kernel = printed(row, BY_NAME["turned_around"])
    (handed,) = kernel.workspace
    assert handed.nbytes == 300 * 32 and handed.nbytes_at({"n": 40}) == 40 * 32
    assert [launch.blocks_at({"n": 40}) for launch in kernel.launches] == [10, 10]


@pytest.mark.parametrize("name", ["exp_of_rows", "twice_in_a_row"])
def test_goldens(row: DeviceTarget, name: str) -> None:
    """The text is the one that was read and approved."""
    source = printed(row, BY_NAME[name]).source
    path = FOLDER / row.name.removeprefix("uir-") / "golden" / f"{name}{row.suffix}"
    if os.environ.get("UIR_UPDATE_GOLDEN"):
        path.write_text(source)
    assert source == path.read_text()


#: Target -> what wide accesses of a run of floats look like.
WIDE = {"uir-cuda": "store_vec<float, 4>", "uir-ascend": "DataCopyParams(1, cols / 8, 0, 0)"}


@pytest.mark.parametrize("name", WIDE)
def test_what_divides_a_size_makes_accesses_wide(name: str) -> None:
    """A run that begins and ends where n says is moved by wide accesses where 8 divides n, else by others."""
    (row,) = (one for one in DEVICE_TARGETS if one.name == name)
    one = BY_NAME["twice_in_a_row"]
    divided, any_size = printed(row, one), printed(row, one, size="size n = [0, 16392]")
    # both stores
    assert divided.source.count(WIDE[name]) >= 2
    assert WIDE[name] not in any_size.source
    for n in (0, 1, 255, 257, 16392):
        arrays = one.inputs(one.graph(row.hardware, {", 8]": "]"}), n)
        ran = run(any_size, arrays, sizes={"n": n}, max_seconds=60).check()
        np.testing.assert_array_equal(ran.outputs["y"], np.tile(arrays[0], 2))


def test_groups_that_fit_are_not_dealt() -> None:
    """A device with a core for every group has no loop over them, and starts as many blocks as there are."""
    for row in DEVICE_TARGETS:
        kernel = printed(row, BY_NAME["exp_of_rows"], size="size n = [0, 40]")
        assert "groups;" not in kernel.source.partition('extern "C" void')[0]
        (launch,) = kernel.launches
        assert launch.groups == (var("n") + 3) // 4
        assert [launch.blocks_at({"n": n}) for n in (0, 1, 4, 5, 40)] == [0, 1, 1, 2, 10]


def test_blocks_are_no_more_than_the_device_has() -> None:
    counts = {row.name: printed(row, BY_NAME["exp_of_rows"]).launches[0] for row in DEVICE_TARGETS}
    assert {name: one.blocks_at({"n": 301}) for name, one in counts.items()} == {
        "uir-cuda": 76,
        "uir-ascend": 48,
        "uir-bang": 16,
    }
    assert {one.blocks_at({"n": 5}) for one in counts.values()} == {2}


def test_nothing_is_launched_for_nothing(row: DeviceTarget) -> None:
    ran = run(printed(row, BY_NAME["exp_of_rows"]), [np.zeros(0, np.float32)], sizes={"n": 0})
    assert not ran.results and ran.outputs["y"].size == 0


#: A range in which addresses leave 32 bits, and the number of groups what a launch takes.
HUGE = "size n = [0, 20000000000]"


def test_addresses_of_64_bits_where_the_range_asks_for_them(row: DeviceTarget) -> None:
    one = BY_NAME["exp_of_rows"]
    kernel = printed(row, one, size=HUGE)
    assert re.search(r"int64_t\(?(32|pid)", kernel.source)
    x = np.linspace(-1, 1, 8 * 37, dtype=np.float32)
    ran = run(kernel, [x], sizes={"n": 37}, max_seconds=60).check()
    agree(one, ran.outputs["y"], np.exp(x), kernel.source)


def test_more_groups_than_a_launch_takes() -> None:
    (launch,) = printed(DEVICE_TARGETS[0], BY_NAME["exp_of_rows"], size=HUGE).launches
    assert launch.blocks_at({"n": 4 * (2**31 - 1)}) == 2**31 - 1
    with pytest.raises(DeviceError, match="2147483648 groups"):
        launch.blocks_at({"n": 4 * (2**31 - 1) + 1})


@pytest.mark.parametrize("sizes", [{}, {"n": 302}, {"n": -1}, {"m": 4}, {"n": 4, "m": 4}])
def test_sizes_that_a_kernel_does_not_take(sizes: dict[str, int]) -> None:
    kernel = printed(DEVICE_TARGETS[0], BY_NAME["exp_of_rows"])
    with pytest.raises(SizeError) as error:
        run(kernel, [np.zeros(32, np.float32)], sizes=sizes)
    assert error.value.need


def test_a_size_that_is_not_divided() -> None:
    with pytest.raises(SizeError, match="n is 12") as error:
        run(
            printed(DEVICE_TARGETS[0], BY_NAME["twice_in_a_row"]), [np.zeros(12, np.float32)], sizes={"n": 12}
        )
    assert "a multiple of 8" in error.value.need


def test_inputs_have_the_elements_of_the_size() -> None:
    kernel = printed(DEVICE_TARGETS[0], BY_NAME["exp_of_rows"])
    with pytest.raises(ShapeError, match="has 32 elements") as error:
        run(kernel, [np.zeros(32, np.float32)], sizes={"n": 5})
    assert error.value.need == "40 elements"


# -- faults in the text ---------------------------------------------------------------------------
#: Target -> what is planted in the text, by a pattern, in what graph.
FAULTS: dict[str, list[tuple[str, str, str]]] = {
    "uir-cuda": [
        ("exp_of_rows", r"min\(n_1 - 4 \* pid, 4\)", "4"),
        ("exp_of_rows", r"min\(n_1 - 4 \* pid, 4\)", "min(n_1 - 4 * pid + 1, 4)"),
        ("twice_in_a_row", r"y \+ n_1 \+", "y + n_1 + 4 +"),
        ("gathered_rows", r"n_1 - 4 \* pid", "301 - 4 * pid"),
        ("neighbours", r"__syncthreads\(\);", ""),
    ],
    "uir-ascend": [
        ("exp_of_rows", r"n - 4 \* pid > 4 \? 4 : n - 4 \* pid;", "4;"),
        ("exp_of_rows", r"n - 4 \* pid > 4 \? 4 : n - 4 \* pid;", "n - 4 * pid > 2 ? 4 : n - 4 * pid;"),
        ("exp_of_rows", r"pid < groups", "pid <= groups"),
        ("exp_of_rows", r"\(\(n \+ 3\) >> 2\)", "(n + 4) / 4"),
        ("exp_of_rows", r"(Set|Wait)Flag<HardEvent::MTE3_MTE2>\(0\);", ""),
        ("exp_of_rows", r"  WaitFlag<HardEvent::MTE3_MTE2>\(0\);\n}", "}"),
        ("twice_in_a_row", r"y_gm\[n \+", "y_gm[n + 8 +"),
    ],
    "uir-bang": [
        ("exp_of_rows", r"n - 4 \* pid > 4 \? 4 : n - 4 \* pid;", "4;"),
        ("exp_of_rows", r"pid < groups", "pid <= groups"),
        ("exp_of_rows", r"__sync_compute\(\);", ""),
        ("twice_in_a_row", r"y \+ n \+", "y + n + 8 +"),
        ("gathered_rows", r"at < rows_1", "at < 301"),
        ("neighbours", r"__sync_cluster\(\);\n  }", "}"),
    ],
}


def caught(kernel: DeviceKernel, one: Sized, graph: IGraph, source: str) -> str:
    """What the host model says of a text, at the first size where it says anything; else nothing."""
    for n in one.points(graph):
        arrays = one.inputs(graph, n)
        ran = run(kernel, arrays, sizes={"n": n}, source=source, max_seconds=60)
        if found := [finding for result in ran.results for finding in result.findings]:
            return f"n = {n}: {found[0]}"
    return ""


@pytest.mark.parametrize(
    ("row", "name", "pattern", "instead"),
    [(row, *fault) for row in DEVICE_TARGETS for fault in FAULTS[row.name]],
    ids=lambda value: value.name if isinstance(value, DeviceTarget) else None,
)
def test_faults_in_the_text_are_found(row: DeviceTarget, name: str, pattern: str, instead: str) -> None:
    one = BY_NAME[name]
    graph, kernel = one.graph(row.hardware), printed(row, one)
    wrong, count = re.subn(pattern, instead, kernel.source)
    assert count > 0, kernel.source
    assert caught(kernel, one, graph, wrong)
