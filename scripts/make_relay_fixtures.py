# SPDX-License-Identifier: Apache-2.0
"""Write what the tests of `uir_tvm.frontend.relay` compare with, by a TVM that still has Relay.

Needs an environment of its own, with CPython 3.8: Apache's wheels with Relay are no longer on PyPI; hhb-tvm
3.2.3 is T-Head's build of TVM 0.16.dev0 and has Relay with its text, its JSON, its operators and LLVM::

    python3.8 -m venv relay-env
    relay-env/bin/pip install "numpy<1.24" hhb-tvm==3.2.3 tqdm tflite pytest
    relay-env/bin/python scripts/make_relay_fixtures.py

It writes ``tests/frontend/relay``: operators.relay (one function a case), operators.json.gz (the same, by
`tvm.ir.save_json`) and operators.npz (inputs and what TVM answers); one text a network, and what TVM answers
in networks.npz, the weights being numbers of their names (`weights.py`); lstm's also as JSON and parameters.
And ``python/uir_tvm/frontend/relay/attributes.json``: the attributes of every operator.
"""

import gzip
import json
import pathlib
import re
import sys
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUT = ROOT / "tests" / "frontend" / "relay"
TABLE = ROOT / "python" / "uir_tvm" / "frontend" / "relay" / "attributes.json"
sys.path[:0] = [str(ROOT / "scripts"), str(OUT)]

import tvm  # noqa: I001
from tvm import relay
from relay_fixtures.cases import CASES
from relay_fixtures.networks import NETWORKS
from weights import numbers

# this build's own default is RISC-V
TARGET = "llvm -mtriple=x86_64-linux-gnu"


def answer(mod, values, kind):
    """What TVM computes, without its fusions; quantised operators by their definition."""
    mod = relay.transform.InferType()(mod)
    with tvm.target.Target(TARGET):
        mod = relay.qnn.transform.CanonicalizeOps()(relay.qnn.transform.Legalize()(mod))
    with tvm.transform.PassContext(opt_level=0 if kind == "graph" else 1):
        result = relay.create_executor(kind, mod, tvm.cpu(), TARGET).evaluate()(*values)
    results = list(result) if isinstance(result, (list, tvm.runtime.container.ADT)) else [result]
    flat = []
    for value in results:
        flat += list(value) if isinstance(value, tvm.runtime.container.ADT) else [value]
    return [value.numpy() for value in flat]


def operators():
    mod, arrays = tvm.IRModule(), {}
    for name, (inputs, build) in CASES.items():
        params = [relay.var(f"x{i}", shape=s.shape, dtype=s.dtype) for i, s in enumerate(inputs)]
        function = relay.Function(params, build(*params))
        random = np.random.RandomState(zlib.crc32(name.encode()))
        values = [spec.draw(random) for spec in inputs]
        for i, value in enumerate(values):
            arrays[f"{name}/x{i}"] = value
        kind = "vm" if name.startswith(("dyn_", "language")) else "graph"
        try:
            for i, value in enumerate(answer(tvm.IRModule.from_expr(function), values, kind)):
                arrays[f"{name}/{i}"] = value
        except Exception as error:
            print("not answered:", name, str(error).strip().splitlines()[-1])
            continue
        mod[relay.GlobalVar(name)] = function
    mod = relay.transform.InferType()(mod)
    (OUT / "operators.relay").write_text(mod.astext())
    (OUT / "operators.json.gz").write_bytes(gzip.compress(tvm.ir.save_json(mod).encode(), 9, mtime=0))
    np.savez_compressed(OUT / "operators.npz", **arrays)


def renamed(function):
    """A function whose parameters have each its own name, which the unrolled LSTM's have not."""
    fresh, seen = {}, {}
    for param in function.params:
        seen[param.name_hint] = seen.get(param.name_hint, -1) + 1
        name = param.name_hint + (str(seen[param.name_hint]) if seen[param.name_hint] else "")
        fresh[param] = relay.var(name, param.type_annotation)
    return relay.Function(list(fresh.values()), relay.bind(function.body, fresh))


def networks():
    arrays = {}
    for name, (build, inputs) in NETWORKS.items():
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(renamed(build())))
        values = {}
        for param in mod["main"].params:
            kind = param.type_annotation
            shape = tuple(int(size) for size in kind.shape)
            values[param.name_hint] = numbers(param.name_hint, shape, kind.dtype)
        (OUT / (name + ".relay")).write_text(mod.astext())
        for i, value in enumerate(answer(mod, list(values.values()), "vm" if name == "lstm" else "graph")):
            arrays[f"{name}/{i}"] = value
        if name == "lstm":
            (OUT / "lstm.json").write_text(tvm.ir.save_json(mod))
            weights = {key: value for key, value in values.items() if key not in inputs}
            (OUT / "lstm.params").write_bytes(relay.save_param_dict(weights))
    np.savez_compressed(OUT / "networks.npz", **arrays)


def attributes():
    """Operator -> class of attributes; class -> attribute -> kind, and default where there is one."""
    list_fields = tvm._ffi.get_global_func("ir.AttrsListFieldInfo")
    foreign = re.compile(r"^(tir\.|qnn\.csi|memory|vm\.|relax|csi|contrib|annotation|cache_|parser)")
    names = sorted(name for name in tvm.ir.Op.list_op_names() if not foreign.match(name))
    classes = {str(tvm.ir.Op.get(name).attrs_type_key) for name in names}
    unnamed = (
        "GetValidCounts NonMaximumSuppression AllClassNonMaximumSuppression ROIAlign ROIPool Scanop Trilu "
        "DynExpandDims ScatterElements ScatterND StridedSlice Unique Dilate Stft DFT"
    ).split()
    classes |= {f"relay.attrs.{name}Attrs" for name in unnamed}
    table = {}
    for key in sorted(classes - {""}):
        node, given = made(key)
        if node is None:
            print("no attributes of", key)
            continue
        table[key] = {}
        for field in list_fields(node):
            kind = str(field.type_info).split(",")[0]
            entry = [kind]
            if str(field.name) not in given:
                entry.append(plain(getattr(node, str(field.name))))
            table[key][str(field.name)] = entry
    # its constructor takes numbers of another kind than its fields (include/tvm/relay/attrs/vision.h)
    table["relay.attrs.GetValidCountsAttrs"] = {
        "score_threshold": ["FloatImm", None],
        "id_index": ["int", 0],
        "score_index": ["int", 1],
    }
    known = {name: str(tvm.ir.Op.get(name).attrs_type_key) for name in names}
    return {"operators": known, "classes": table}


def made(key):
    """A node of attributes, and those that it asked for, tried with values of every kind."""
    choices = [1, "int32", [1], 1.0, [[1, 1]], relay.const(1), True]
    tried = {}
    while True:
        given = {name: choices[place] for name, place in tried.items()}
        try:
            return tvm.ir.make_node(key, **given), given
        except Exception as error:  # of the many that TVM raises
            missing = re.search("required field '([^']+)'", str(error))
        name = missing.group(1) if missing else (list(tried) or [None])[-1]
        if name is None:
            return None, {}
        tried[name] = tried.get(name, -1) + 1
        if tried[name] == len(choices):
            return None, {}


def plain(value):
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (tvm.tir.IntImm, tvm.tir.FloatImm)):
        return value.value
    if isinstance(value, (list, tuple, tvm.ir.Array)):
        return [plain(item) for item in value]
    return str(value)


if __name__ == "__main__":
    steps = sys.argv[1:] or ["attributes", "operators", "networks"]
    if "attributes" in steps:
        found = attributes()
        TABLE.parent.mkdir(exist_ok=True)
        rows = [
            '"{}": {{\n{}\n }}'.format(
                part,
                ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(found[part].items())),
            )
            for part in sorted(found)
        ]
        TABLE.write_text("{\n " + ",\n ".join(rows) + "\n}\n")
    if "operators" in steps:
        operators()
    if "networks" in steps:
        networks()
