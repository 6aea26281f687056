// SPDX-License-Identifier: Apache-2.0
// What a conversion between layouts takes (`Emitter::Convert` prints it).
//
// All figures of a layout are powers of two, so a coordinate is a string of bits of which some number the lane and
// the others the register.  The number of an element's register is the sum of what the *receiving* register's bits
// give and what the receiving lane's bits give.  Where the latter are zero, one shuffle brings a whole register;
// where they take d values, d shuffles of different registers do and every lane keeps one.  From three on, scratch is
// cheaper: each value is stored and loaded once.
#pragma once

#include <utility>

#include "codegen/cuda/step.h"

namespace uir::codegen::cuda {

/*! \brief The cheapest conversion of elements of so many bytes; where lanes meet in it is left open. */
Conversion ConversionOf(const Fragment& to, const Fragment& from, int bytes);

/*! \brief Where element (i, j) lies in its lane. */
RegisterOffset OffsetOf(const Fragment& fragment, int64_t i, int64_t j);

/*! \brief Coordinates of a lane's first element. */
std::pair<int64_t, int64_t> FirstOf(const Fragment& fragment, int lane);

}  // namespace uir::codegen::cuda
