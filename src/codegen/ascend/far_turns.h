// SPDX-License-Identifier: Apache-2.0
// Sine and cosine of large numbers: the scalar unit takes off their turns, where a chunk has any.
//
// From 2^22 on a float says too little of its turns for steps in floats.  The scalar unit multiplies its 24 bits by
// those 128 bits of 1 / (2 pi) that still count (Payne and Hanek's way), and rounds what is left once: an error of
// half a unit in the last place, for every float.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/ascend/emitter.h"
#include "codegen/ascend/vector_run.h"
#include "igraph/nodes.h"

namespace uir::codegen::ascend {

/*! \brief Where in a buffer the largest exponent of a chunk lies: behind a block of eight. */
constexpr int64_t kPeakPlace = 8;
/*! \brief The function that a text with large turns has before its kernels; a name that nothing else may have. */
extern const char* const kRestOfTurns;

/*! \brief The operands: x, what is left of it (put right in place), the buffer with the largest exponent. */
struct FarTurns {
  Tile x, rest, peak;
};

/*! \brief Puts right what is left of the large ones; `mode`: "sin" or "cos". */
void PrintFarRest(Emitter& e, const std::string& mode, const FarTurns& turns, const Bound& rows, const Bound& cols);

/*! \brief The text of `kRestOfTurns` with a blank line before it, where a graph asks for it; else nothing. */
std::string RestOfTurns(const ffi::Array<IGraph>& graphs);

}  // namespace uir::codegen::ascend
