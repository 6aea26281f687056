# SPDX-License-Identifier: Apache-2.0
"""How an operator that runs outside kernels is called, as text.

``{"operator": "aten::digamma.default", "args": [{"tensor": 0}], "kwargs": {}, "complex": [], "reason": ""}``

One whose data decide the shapes of its results (`FOUND`) has ``results`` too: shape and dtype of each, in the
names of the sizes that it finds (``[["u0", "16"], "float32"]``). One of ONNX has its ``node`` in place of
arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

#: The registered function that runs such a call, and that for calls that find sizes: it returns its results.
FUNCTION, FOUND = "uir.opaque.torch", "uir.opaque.found"
#: What holds sizes that were found to what the program takes them for: (sizes, names and conditions as text).
CHECK = "uir.opaque.check"
#: Begins the names of ONNX's operators.
ONNX = "onnx::"
#: The operator that a number in a tensor is: its result has as many elements as the number says.
NUMBER = "uir::number"


class OpaqueCall:
    """A call as its text says.

    Parameters
    ----------
    text : str
        What `dumps` made.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        call = loads(text)
        self.operator: str = call["operator"]
        self.reason: str = call["reason"]
        #: Shape in the names of sizes, and dtype, of each result of a call that finds sizes.
        self.results: list[tuple[list[str], str]] = [
            (shape, dtype) for shape, dtype in call.get("results", ())
        ]

    def to_json(self) -> str:
        """The text."""
        return self.text


def dumps(
    operator: str, args: Any, kwargs: Mapping[str, Any], complex_: Sequence[int], reason: str, **more: Any
) -> str:
    """The text of a call; arguments are encoded already."""
    call = {"operator": operator, "args": args, "kwargs": dict(kwargs), "complex": list(complex_)}
    return json.dumps({**call, "reason": reason, **more})


def loads(text: str) -> dict[str, Any]:
    """The inverse of `dumps`."""
    return json.loads(text)


def decoded(value: Any, tensors: Sequence[Any], torch: Any) -> Any:
    """An argument with tensors in their places, and PyTorch's words: dtypes, layouts, memory formats.

    Parameters
    ----------
    value
        Plain data; a mapping has one key, which says what it stands for.
    tensors : sequence of torch.Tensor
    torch : module
    """
    if isinstance(value, list):
        return [decoded(item, tensors, torch) for item in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "number" in value:
        return complex(*value["number"]) if isinstance(value["number"], list) else float(value["number"])
    if "device" in value:
        return torch.device("cpu")
    (word,) = value.values()
    return getattr(torch, word)
