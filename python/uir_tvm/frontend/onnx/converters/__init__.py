# SPDX-License-Identifier: Apache-2.0
"""Our converters of ONNX operators to Relax: where TVM's refuse or are wrong. One row per operator."""

from __future__ import annotations

from collections.abc import Mapping

from .elementwise import ELEMENTWISE
from .narrow_floats import NARROW_CASTS
from .node import Converter
from .open_shapes import SIZED
from .packed_weights import PACKED_WEIGHTS
from .quantized import QUANTIZED
from .recurrence import RECURRENCE
from .reductions import REDUCTIONS
from .resize import RESIZE
from .views import VIEWS

#: Operator -> converter; of another domain than the standard's: ``domain::Operator``.
CONVERTERS: Mapping[str, Converter] = {
    **ELEMENTWISE,
    **NARROW_CASTS,
    **PACKED_WEIGHTS,
    **QUANTIZED,
    **RECURRENCE,
    **REDUCTIONS,
    **RESIZE,
    **SIZED,
    **VIEWS,
}
