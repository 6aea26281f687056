# SPDX-License-Identifier: Apache-2.0
"""Runs library operators on what stands for an Ascend NPU, in a process of its own: a runtime is loaded once.

``run_aclnn.py`` reads cases as JSON from standard input, and writes their results to the folder of its
argument: ``.npy`` files, or the error of a case as ``.txt``.
"""

from __future__ import annotations

import json
import pathlib
import sys

import ml_dtypes
import numpy as np
import tvm
import tvm_ffi
import uir_tvm  # noqa: F401  (registers the operators)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    assert str(tvm_ffi.get_global_func("uir.runtime.ext_dev.chosen")()) in ("", "npu")
    for name, case in json.load(sys.stdin).items():
        dtypes = [ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype for dtype in case["dtypes"]]
        arrays = [np.load(folder / f"{name}_{i}.npy").astype(dtype) for i, dtype in enumerate(dtypes)]
        try:
            tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in arrays]
            function = tvm_ffi.get_global_func(f"uir.library.ascend.{case['function']}")
            for _ in range(2):  # the second call finds workspace and functions
                function(*tensors[:-1], case["attrs"], tensors[-1])
            np.save(folder / f"{name}_out.npy", tensors[-1].numpy().astype("float32"))
        except Exception as error:
            (folder / f"{name}_error.txt").write_text(f"{type(error).__name__}: {error}")
    assert str(tvm_ffi.get_global_func("uir.runtime.ext_dev.chosen")()) == "npu"


if __name__ == "__main__":
    main()
