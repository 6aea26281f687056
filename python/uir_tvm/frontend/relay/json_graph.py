# SPDX-License-Identifier: Apache-2.0
"""TVM's serialised objects: the JSON of `tvm.ir.save_json`, arrays and dictionaries of parameters.

The layouts are those of TVM 0.16: ``src/node/serialization.cc`` (nodes that name each other by number),
``include/tvm/runtime/ndarray.h`` (`NDArray::Save`) and ``src/runtime/file_utils.cc`` (`SaveParams`).
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ...errors import ModelFormatError
from .attributes import CLASSES, Schema

ARRAY_MAGIC = 0xDD5E40F096B4A13F
PARAMS_MAGIC = 0xF7E58D4F05049CB7
#: DLPack's codes of dtypes.
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
#: Kinds of attributes that are numbers or texts by themselves; others are numbers of nodes.
_PLAIN: dict[str, Callable[[str], Any]] = {
    "int": int,
    "int64_t": int,
    "double": float,
    "bool": lambda text: text not in ("0", "false", "False"),
}


class Reader:
    """A cursor in bytes.

    Raises
    ------
    ModelFormatError
        From every method, where the bytes end too early or are no such thing.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.at, self.name = data, 0, name

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ModelFormatError(
                f"{self.name} is truncated.",
                where=f"byte {self.at}",
                need=f"{size} bytes more",
                limit=f"{len(self.data) - self.at} are left",
                remedy="save it again",
            )
        self.at += size
        return self.data[self.at - size : self.at]

    def unpack(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def array(self) -> np.ndarray:
        """An array as `NDArray::Save` writes it."""
        magic, _, _, _, ndim = self.unpack("QQiii")
        code, bits, lanes = self.unpack("BBH")
        if magic != ARRAY_MAGIC or not 0 <= ndim <= 64:
            raise ModelFormatError(
                f"{self.name} holds no array.", where=f"byte {self.at}", remedy="save it again"
            )
        shape = self.unpack(f"{ndim}q")
        (size,) = self.unpack("q")
        dtype = self._dtype(code, bits, lanes)
        count = int(np.prod(shape, dtype=np.int64))
        if any(extent < 0 for extent in shape) or size != count * dtype.itemsize:
            raise ModelFormatError(
                f"{self.name} holds an array of shape {shape} and {dtype} in {size} bytes.",
                remedy="save it again",
            )
        return np.frombuffer(self.take(size), dtype).reshape(shape).copy()

    def _dtype(self, code: int, bits: int, lanes: int) -> np.dtype:
        name = f"{_CODES.get(code, f'code {code} ')}{bits}"
        name = "bool" if name == "uint1" else name
        try:
            if lanes != 1:
                raise TypeError
            return np.dtype(getattr(ml_dtypes, name, name))
        except TypeError:
            raise ModelFormatError(
                f"{self.name} holds an array of {name} in {lanes} lanes.",
                need="integers, floats or bool of 8 to 64 bits",
                remedy="cast it before it is saved",
            ) from None


def read_params(data: bytes, name: str) -> dict[str, np.ndarray]:
    """The parameters that `relay.save_param_dict` wrote.

    Raises
    ------
    ModelFormatError
        The bytes are none, or end too early.
    """
    reader = Reader(data, name)
    magic, _, count = reader.unpack("QQQ")
    if magic != PARAMS_MAGIC:
        raise ModelFormatError(
            f"{name} holds no parameters of Relay.",
            need="bytes of relay.save_param_dict",
            remedy="save them with relay.save_param_dict(params), or as .npz",
        )
    try:
        names = [reader.take(reader.unpack("Q")[0]).decode() for _ in range(count)]
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{name} is damaged: {error}", remedy="save it again") from error
    (arrays,) = reader.unpack("Q")
    if arrays != count:
        raise ModelFormatError(f"{name} names {count} parameters and holds {arrays}.", remedy="save it again")
    return {key: reader.array() for key in names}


class Graph:
    """Objects that name each other by number.

    Parameters
    ----------
    text : str
        JSON.
    name : str
        Of its source, for errors.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        try:
            self.data = json.loads(text)
            self.nodes: list[dict[str, Any]] = self.data["nodes"]
            self.root = int(self.data["root"])
            self._arrays: list[str] = self.data.get("b64ndarrays", [])
            assert isinstance(self.nodes, list)
        except (ValueError, KeyError, TypeError, AssertionError, RecursionError) as error:
            raise ModelFormatError(
                f"{name} is no JSON of TVM, or truncated.",
                where=str(error).strip() or type(error).__name__,
                need='an object with "root" and "nodes"',
                remedy="save it with tvm.ir.save_json(mod)",
            ) from error
        self._read: dict[int, np.ndarray] = {}

    def kind(self, index: Any) -> str:
        """The class of a node."""
        return str(self.node(index).get("type_key", ""))

    def node(self, index: Any) -> dict[str, Any]:
        number = int(index)
        if not 0 <= number < len(self.nodes):
            raise ModelFormatError(
                f"{self.name} names node {number}.", limit=f"it has {len(self.nodes)}", remedy="save it again"
            )
        return self.nodes[number]

    def field(self, index: Any, name: str) -> str:
        """A field of a node, as it is written."""
        return str(self.node(index)["attrs"][name])

    def items(self, index: Any) -> list[int]:
        """The nodes that an array holds."""
        return [int(item) for item in self.node(index).get("data", [])]

    def text(self, index: Any) -> str:
        node = self.node(index)
        return str(node.get("repr_str", ""))

    def array(self, index: Any) -> np.ndarray:
        number = int(index)
        if number not in self._read:
            try:
                data = base64.b64decode(self._arrays[number], validate=True)
            except (binascii.Error, IndexError, TypeError) as error:
                raise ModelFormatError(
                    f"array {number} of {self.name} is missing or damaged.", remedy="save it again"
                ) from error
            self._read[number] = Reader(data, f"array {number} of {self.name}").array()
        return self._read[number]

    def value(self, index: Any) -> Any:
        """A node as a number, a text, a list, an array or None."""
        kind = self.kind(index)
        if kind == "":
            return None
        if kind in ("IntImm", "FloatImm"):
            number = self.field(index, "value")
            return int(number) if kind == "IntImm" else float(number)
        if kind == "runtime.String":
            return self.text(index)
        if kind in ("Array", "runtime.Array"):
            return [self.value(item) for item in self.items(index)]
        if kind == "relay.Constant":
            return self.array(self.field(index, "data"))
        if kind in ("runtime.BoxInt", "runtime.BoxFloat", "runtime.BoxBool"):
            return json.loads(str(self.node(index)["attrs"]["value"]))
        if kind == "tir.Any":
            return None
        return f"<{kind}>"

    def attributes(self, index: Any) -> tuple[str, dict[str, Any]]:
        """The class of a node of attributes, and what it says."""
        kind = self.kind(index)
        schema: Schema = CLASSES.get(kind, {})
        found: dict[str, Any] = {}
        for name, text in self.node(index).get("attrs", {}).items():
            declared = schema[name].kind if name in schema else ""
            found[name] = self._attribute(declared, str(text))
        return kind, found

    def _attribute(self, declared: str, text: str) -> Any:
        if declared in _PLAIN:
            return _PLAIN[declared](text)
        if declared == "DataType":
            return text
        # releases differ in whether a text is an object
        if declared in ("str", "runtime.String") and not (text.isdigit() and self._is_text(text)):
            return text
        return self.value(text) if declared else text

    def _is_text(self, index: str) -> bool:
        return int(index) < len(self.nodes) and self.kind(index) == "runtime.String"
