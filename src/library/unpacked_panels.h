// SPDX-License-Identifier: Apache-2.0
// Many rows by a weight of few bits whose blocks are unpacked, some at a time, for all rows: they are panels then, as
// those of a product of float32 (`panel_rows.h`).
#pragma once

#include "library/panel_rows.h"
#include "library/quantized_kernels.h"

namespace uir::library {

//! `rows` rows, shared out among `tasks` threads by blocks of outputs; false where this CPU has no tiles for that, or
//! outputs do not lie side by side.
bool RunUnpackedPanels(const QuantizedKernels& kernels, const Panels& panels, const PlainRows& x, const Operands& at,
                       int64_t rows, int tasks);

}  // namespace uir::library
