# SPDX-License-Identifier: Apache-2.0
"""The libraries that `benchmarks/library.py` compares, each reduced to `prepare(case) -> call`.

Run as a script it is one worker: it reads one case per line (JSON), times it, answers one line. Every library
gets a process of its own because two OpenMP run-times in one process disturb each other's spinning threads.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[], Any]
C = ctypes
F32, BLOCKED_ANY, INFERENCE, CONV_DIRECT = 3, 1, 96, 1
SRC, WEIGHTS, DST = 1, 33, 17
QUERY_WEIGHTS = 131


def _ptr(a: np.ndarray) -> C.c_void_p:
    return C.c_void_p(a.ctypes.data)


def _operands(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    if case["op"] == "conv2d":
        n, c, h, w = case["x"]
        o, ci, kh, kw = case["w"]
        s, p = case["stride"], case["pad"]
        out = (n, o, (h + 2 * p - kh) // s + 1, (w + 2 * p - kw) // s + 1)
        shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] = (
            (n, c, h, w),
            (o, ci, kh, kw),
            out,
        )
    else:
        b, m, k, n = case["b"], case["m"], case["k"], case["n"]
        shapes = ((b, m, k), (b, k, n), (b, m, n)) if b > 1 else ((m, k), (k, n), (m, n))
    x, w = (rng.standard_normal(s, dtype=np.float32) for s in shapes[:2])
    return x, w, np.zeros(shapes[2], np.float32)


class Cblas:
    """`cblas_sgemm` of OpenBLAS or MKL, one call per matrix of a batch; packed where that is offered."""

    def __init__(self, path: str, prefix: str, packed: bool, preload: str = "") -> None:
        if preload:
            C.CDLL(preload, mode=C.RTLD_GLOBAL)
        self.lib = C.CDLL(path, mode=C.RTLD_GLOBAL)
        self.sgemm, self.packed = getattr(self.lib, prefix + "cblas_sgemm"), packed

    def prepare(self, case: dict[str, Any]) -> Call | None:
        if case["op"] != "matmul" or (self.packed and case["b"] > 1):
            return None
        x, w, y = _operands(case)
        b, m, k, n = case["b"], case["m"], case["k"], case["n"]
        one, zero = C.c_float(1.0), C.c_float(0.0)
        if self.packed:
            self.lib.cblas_sgemm_pack_get_size.restype = C.c_size_t
            buf = np.zeros(self.lib.cblas_sgemm_pack_get_size(162, m, n, k) + 64, np.uint8)
            self.lib.cblas_sgemm_pack(101, 162, 111, m, n, k, one, _ptr(w), n, _ptr(buf))
            return lambda: self.lib.cblas_sgemm_compute(
                101, 111, 151, m, n, k, _ptr(x), k, _ptr(buf), n, zero, _ptr(y), n
            )
        ptrs = [
            (_ptr(x.reshape(b, m, k)[i]), _ptr(w.reshape(b, k, n)[i]), _ptr(y.reshape(b, m, n)[i]))
            for i in range(b)
        ]

        def call(keep: Any = (x, w, y)) -> None:
            for px, pw, py in ptrs:
                self.sgemm(101, 111, 111, m, n, k, one, px, k, pw, n, zero, py, n)

        return call


class OneDnn:
    """oneDNN's matmul and convolution; packed: weights in the layout that the library asks for."""

    def __init__(self, path: str, packed: bool) -> None:
        self.lib, self.packed = C.CDLL(path), packed
        self.lib.dnnl_primitive_desc_query_md.restype = C.c_void_p
        self.lib.dnnl_memory_desc_get_size.restype = C.c_size_t
        self.engine = self._new("engine_create", 1, C.c_size_t(0))
        self.stream = self._new("stream_create", self.engine, 1)

    def _new(self, name: str, *args: Any) -> C.c_void_p:
        handle = C.c_void_p()
        status = getattr(self.lib, "dnnl_" + name)(C.byref(handle), *args)
        if status:
            raise RuntimeError(f"dnnl_{name}: status {status}")
        return handle

    def _md(self, shape: tuple[int, ...], any_layout: bool = False) -> C.c_void_p:
        dims = (C.c_int64 * 12)(*shape)
        if any_layout:
            return self._new("memory_desc_create_with_tag", len(shape), dims, F32, BLOCKED_ANY)
        strides = (C.c_int64 * 12)(*[int(np.prod(shape[i + 1 :])) for i in range(len(shape))])
        return self._new("memory_desc_create_with_strides", len(shape), dims, F32, strides)

    def _run(self, primitive: C.c_void_p, args: dict[int, C.c_void_p]) -> Call:
        class Arg(C.Structure):
            _fields_ = [("arg", C.c_int), ("memory", C.c_void_p)]

        array = (Arg * len(args))(*[Arg(i, m.value) for i, m in args.items()])
        return lambda: self.lib.dnnl_primitive_execute(primitive, self.stream, len(args), array)

    def prepare(self, case: dict[str, Any]) -> Call | None:
        if self.packed and case["op"] == "matmul" and case["b"] > 1:
            return None
        x, w, y = _operands(case)
        mx, mw, my = self._md(x.shape), self._md(w.shape), self._md(y.shape)
        wanted = self._md(w.shape, True) if self.packed else mw
        null = C.c_void_p()
        if case["op"] == "matmul":
            pd = self._new("matmul_primitive_desc_create", self.engine, mx, wanted, null, my, null)
        else:
            stride, zero, pad = ((C.c_int64 * 12)(*[v] * 2) for v in (case["stride"], 0, case["pad"]))
            head = (self.engine, INFERENCE, CONV_DIRECT, mx, wanted, null, my)
            pd = self._new("convolution_forward_primitive_desc_create", *head, stride, zero, pad, pad, null)
        primitive = self._new("primitive_create", pd)
        memory = {
            SRC: self._new("memory_create", mx, self.engine, _ptr(x)),
            WEIGHTS: self._new("memory_create", mw, self.engine, _ptr(w)),
            DST: self._new("memory_create", my, self.engine, _ptr(y)),
        }
        keep: list[Any] = [x, w, y]
        if self.packed:
            md = C.c_void_p(self.lib.dnnl_primitive_desc_query_md(pd, QUERY_WEIGHTS, 0))
            raw = np.zeros(self.lib.dnnl_memory_desc_get_size(md) + 64, np.uint8)
            body = raw[-raw.ctypes.data % 64 :]
            packed = self._new("memory_create", md, self.engine, _ptr(body))
            copy = self._new("reorder_primitive_desc_create", mw, self.engine, md, self.engine, null)
            reorder = self._new("primitive_create", copy)
            self._run(reorder, {SRC: memory[WEIGHTS], DST: packed})()
            memory[WEIGHTS] = packed
            keep.append(raw)
        run = self._run(primitive, memory)
        return lambda keep=keep: run()


class Torch:
    def __init__(self) -> None:
        import torch

        self.torch = torch
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    def prepare(self, case: dict[str, Any]) -> Call:
        torch = self.torch
        x, w, y = (torch.from_numpy(a) for a in _operands(case))
        if case["op"] == "conv2d":
            return lambda: torch.conv2d(x, w, None, case["stride"], case["pad"])
        return lambda: torch.matmul(x, w, out=y)


class Ort:
    """ONNX Runtime with the weight as an initializer, which it packs when the session is made."""

    def prepare(self, case: dict[str, Any]) -> Call:
        import onnxruntime as ort
        from onnx import TensorProto, helper, numpy_helper

        x, w, y = _operands(case)
        constant = case["op"] == "conv2d" or case["b"] == 1
        attrs = {"strides": [case["stride"]] * 2, "pads": [case["pad"]] * 4} if case["op"] == "conv2d" else {}
        node = helper.make_node("Conv" if case["op"] == "conv2d" else "MatMul", ["x", "w"], ["y"], **attrs)
        info = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape)
            for n, a in (("x", x), ("w", w), ("y", y))
        ]
        graph = helper.make_graph([node], "g", info[:1] if constant else info[:2], info[2:],
                                  [numpy_helper.from_array(w, "w")] if constant else [])  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        options = ort.SessionOptions()
        options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        if not constant:
            binding.bind_cpu_input("w", w)
        out = ort.OrtValue.ortvalue_from_numpy(y)
        binding.bind_ortvalue_output("y", out)
        return lambda keep=(x, w, out): session.run_with_iobinding(binding)


class Ours:
    """`uir.library.cpu.*` of this project; packed: constant weights."""

    def __init__(self, packed: bool) -> None:
        from uir_tvm.library import cpu

        cpu.require()

        self.cpu, self.packed = cpu, packed

    def prepare(self, case: dict[str, Any]) -> Call | None:
        import tvm

        if self.packed and case["op"] == "matmul" and case["b"] > 1:
            return None
        arrays = _operands(case)
        if case["op"] == "conv2d":
            attrs: Any = self.cpu.Conv2dAttrs(
                input=case["x"],
                weight=case["w"],
                strides=[case["stride"]] * 2,
                padding=[case["pad"]] * 4,
                packed=self.packed,
            )
        else:
            attrs = self.cpu.MatmulAttrs.contiguous(*(a.shape for a in arrays), packed=self.packed)
        x, w, y = (tvm.runtime.tensor(a) for a in arrays)
        if self.packed:
            w = self.cpu.pack_weight(w, attrs)
        function, text = tvm.get_global_func(f"uir.library.cpu.{case['op']}"), attrs.to_json()
        return lambda: function(x, w, text, y)


def make(name: str) -> Any:
    """The library called `name`; paths of those that are not Python packages come from the environment."""
    env = os.environ
    makers: dict[str, Callable[[], Any]] = {
        "openblas": lambda: Cblas(env["OPENBLAS_SO"], "scipy_", False),
        "mkl": lambda: Cblas(env["MKL_SO"], "", False, env.get("MKL_OMP_SO", "")),
        "mkl-packed": lambda: Cblas(env["MKL_SO"], "", True, env.get("MKL_OMP_SO", "")),
        "onednn": lambda: OneDnn(env["DNNL_SO"], False),
        "onednn-packed": lambda: OneDnn(env["DNNL_SO"], True),
        "torch": Torch,
        "ort": Ort,
        "ours": lambda: Ours(False),
        "ours-packed": lambda: Ours(True),
    }
    return makers[name]()


def measure(call: Call, budget_s: float = 0.04) -> tuple[float, float]:
    """Median and least seconds of one call, over as many as fit into `budget_s` (3 at least), after two."""
    call(), call()
    times, end = [], time.perf_counter() + budget_s
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times)


def main() -> None:
    library, calls = make(sys.argv[1]), {}
    for line in sys.stdin:
        case = json.loads(line)
        if case["name"] not in calls:
            calls[case["name"]] = library.prepare(case)
        call = calls[case["name"]]
        print(json.dumps(None if call is None else measure(call)), flush=True)


if __name__ == "__main__":
    main()
