# SPDX-License-Identifier: Apache-2.0
"""Rows end under masks: right at every length, and no memory beyond a tensor is read or written."""

from __future__ import annotations

import concurrent.futures
import ctypes
import mmap
import os
import signal
import traceback
from collections.abc import Callable

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tirx, topi
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.pipeline import try_kernel
from uir_tvm.schedule.blocks import collect
from uir_tvm.target.cpu import first_lanes, transpose
from uir_tvm.target.cpu.elements import element
from uir_tvm.target.cpu.llvm_text import LlvmText
from uir_tvm.target.cpu.processors import Processor
from uir_tvm.target.cpu.stream import ADDRESS

from tests.open_functions import INNER, OPEN, OpenFunction, kernel_of

from .support import HOST, llvm_target

MASKED = first_lanes.masked_bytes(HOST)
masks = pytest.mark.skipif(not MASKED, reason="this processor moves nothing under masks")


def guarded(array: np.ndarray) -> np.ndarray:
    """A copy that ends where a page ends, behind which no page may be touched."""
    size = -(-max(array.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + size), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    made = np.frombuffer(memory, array.dtype, array.size, size - array.nbytes).reshape(array.shape)
    made[...] = array
    return made


def run_guarded(call: Callable[..., None], *arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays after a call on copies that end at a page's end; in a child, which a fault may end."""
    shared = mmap.mmap(-1, max(sum(a.nbytes for a in arrays), 1))
    copies = [guarded(a) for a in arrays]
    child = os.fork()
    if child == 0:
        # in a thread of the child's own: the pool that TVM made for this one has lost its threads
        with concurrent.futures.ThreadPoolExecutor(1) as alone:
            failed = alone.submit(call, *(tvm_ffi.from_dlpack(a) for a in copies)).exception()
        if failed is not None:
            traceback.print_exception(failed)
        shared.write(b"".join(a.tobytes() for a in copies))
        os._exit(failed is not None)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        pytest.fail(f"the kernel ended with {signal.Signals(os.WTERMSIG(ended)).name}")
    assert os.WEXITSTATUS(ended) == 0
    out, at = [], 0
    for array in arrays:
        out.append(np.frombuffer(shared, array.dtype, array.size, at).reshape(array.shape))
        at += array.nbytes
    return out


def buffer_of(name: str, dtype: str) -> tirx.Buffer:
    """A parameter of any length that lies wherever its elements may."""
    size, width = tirx.Var(f"{name}_size", "int64"), np.dtype(dtype).itemsize
    return tirx.decl_buffer((size,), dtype, name=name, data_alignment=width, layout=None)


@masks
@pytest.mark.parametrize(
    ("dtype", "in_parts"),
    [
        *(
            (kind, False)
            for kind in ("fp64", "fp32", "fp16", "bf16", "int64", "int32", "int16", "uint8", "bool")
        ),
        *((kind, True) for kind in ("fp64", "fp32", "int32")),
    ],
)
def test_only_the_first_lanes_are_loaded_and_stored(dtype: str, in_parts: bool) -> None:
    """Zeros stand behind what is loaded; what lies behind what is stored stays: masked, and by halves."""
    lanes, storage = 16, element(dtype).storage
    assert first_lanes.supported(dtype, frozenset((1, 2, 4, 8)))
    text, n = LlvmText(), tirx.Var("n", "int32")
    x, y, z = (buffer_of(name, storage) for name in "xyz")
    zero = tirx.const(0, "int64")
    held = tirx.decl_buffer((lanes,), storage, name="held", layout=None)
    whole = tirx.Ramp(zero, tirx.const(1, "int64"), lanes)
    body = tirx.SeqStmt(
        [
            tirx.AllocBuffer(held),
            tirx.BufferStore(held, first_lanes.load(text, x, zero, lanes, n), [whole]),
            tirx.BufferStore(y, tirx.BufferLoad(held, [whole]), [whole]),
            first_lanes.store(text, z, zero, tirx.BufferLoad(held, [whole]), n, in_parts),
        ]
    )
    func = tirx.PrimFunc([x, y, z, n], text.attach(body)).with_attr(
        {"global_symbol": "kernel", "tirx.noalias": True}
    )
    with called_by_a_program():
        built = tvm.compile(tvm.IRModule({"kernel": func}), target=llvm_target())["kernel"]
    rng = np.random.default_rng(1)
    for count in (-1, 0, 1, 2, 5, 7, 8, 15, 16):
        bits = rng.integers(0, 100, 16).astype(storage)
        first = bits[: max(count, 1)].copy()  # an array of nothing has no address
        found = run_guarded(
            lambda a, b, c, count=count: built(a, b, c, count),
            first,
            np.full(16, 99, storage),
            np.full(max(count, 1), 99, storage),
        )
        wanted = np.where(np.arange(16) < count, bits, np.zeros(16, storage))
        np.testing.assert_array_equal(found[1], wanted)
        np.testing.assert_array_equal(found[2][: max(count, 0)], bits[: max(count, 0)])
        assert count > 0 or found[2][0] == 99


@masks
@pytest.mark.parametrize(("bits", "lanes"), [(32, 16), (32, 8), (64, 8), (16, 16), (32, 4)])
def test_parts_of_blocks_are_transposed(bits: int, lanes: int) -> None:
    text = LlvmText()
    dtype = f"int{bits}"
    rows, cols = tirx.Var("rows", "int64"), tirx.Var("cols", "int64")
    source, target = buffer_of("x", dtype), buffer_of("y", dtype)
    zero = tirx.const(0, "int64")
    step = transpose.transpose(
        text, bits, source, zero, rows + 3, target, zero, cols + 1, lanes, (rows, cols)
    )
    func = tirx.PrimFunc([source, target, rows, cols], text.attach(step)).with_attr(
        {"global_symbol": "kernel", "tirx.noalias": True}
    )
    with called_by_a_program():
        built = tvm.compile(tvm.IRModule({"kernel": func}), target=llvm_target())["kernel"]
    for r, c in [
        (1, 1),
        (1, lanes),
        (lanes, 1),
        (2, 3),
        (lanes, lanes // 2 + 1),
        (lanes - 1, lanes),
        (lanes, lanes - 1),
        (lanes, lanes),
    ]:
        given = np.arange(c * (r + 3), dtype=dtype).reshape(c, r + 3)
        # the last row of either ends with what is there of it
        flat, out = given.reshape(-1)[: c * (r + 3) - 3], np.full(r * (c + 1) - 1, -1, dtype)
        _, found = run_guarded(lambda a, b, r=r, c=c: built(a, b, r, c), flat.copy(), out)
        found = np.append(found, -1).astype(dtype).reshape(r, c + 1)
        np.testing.assert_array_equal(found[:, :c], given[:, :r].T)
        assert (found[:, c] == -1).all()


def test_memory_of_a_kernel_holds_the_last_lanes() -> None:
    """TVM keeps of what a kernel allocates as much as accesses reach: the columns of a tile, and no more."""
    function = OpenFunction(
        "normalization",
        [("n", 21, 70)],
        lambda x: topi.nn.softmax(x, 1),
        lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    )
    kernel = kernel_of(function.func(), "uir-cpu")
    inputs = function.inputs({"n": 2})
    want = function.reference(*inputs)
    *_, found = run_guarded(kernel, *inputs, np.full(want.shape, np.nan, "float32"))
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


#: Kernels whose rows end under masks: by two vectors and more, in blocks, in sums along either side.
FUNCTIONS = [
    "masked scores",
    "transpose of two open dimensions",
    "softmax of open rows",
    "sum of an open axis",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_stay_within_their_tensors(name: str) -> None:
    function = INNER[name]
    kernel = kernel_of(function.func(), "uir-cpu")
    outer, inner = function.sizes
    _, longest = function.ranges[inner]
    for rows, length in [(1, 1), (2, 2), (1, 15), (3, 16), (1, 17), (2, 37), (1, 64), (17, 33), (1, longest)]:
        if length > longest:
            continue
        inputs = function.inputs({outer: rows, inner: length})
        want = function.reference(*inputs)
        *_, found = run_guarded(kernel, *inputs, np.full(want.shape, np.nan, "float32"))
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4, err_msg=f"{rows} x {length}")


@pytest.mark.parametrize(
    ("name", "processor", "is_full"),
    [
        ("softmax of open rows", "skylake-avx512", False),
        ("transpose of two open dimensions", "haswell", False),
        ("softmax of open rows", "neoverse-n1", True),
        ("product", "skylake-avx512", True),
        ("gather", "skylake-avx512", True),
    ],
)
def test_full_tiles_have_code_of_their_own_where_bounds_cost(
    name: str, processor: str, is_full: bool
) -> None:
    """One text of what a unit does where rows end under masks, a second where products or tables are."""
    target = tvm.target.Target({"kind": "llvm", "keys": ["uir", "cpu"], **_llvm(processor)})
    record = try_kernel({**OPEN, **INNER}[name].func(), target, "kernel")
    assert record.refusal is None, record.refusal
    loops = [each for each in collect(record.lowered.body, tirx.For) if str(each.loop_var.name) == "place"]
    assert loops
    last = [each.body.seq[-1] if isinstance(each.body, tirx.SeqStmt) else each.body for each in loops]
    # who asks for an address has stores that bypass the caches
    found = [
        isinstance(step, tirx.IfThenElse)
        and step.else_case is not None
        and ADDRESS not in str(step.condition)
        for step in last
    ]
    assert found == [is_full] * len(loops)


def _llvm(processor: str) -> dict[str, str]:
    found = Processor.named(processor)
    assert found is not None
    return {"mcpu": processor, "mtriple": f"{found.machine}-linux-gnu"}
