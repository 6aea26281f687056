// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace uir::library {

/*! What becomes of a weight before it is laid out. */
enum class WeightTransform {
  kNone,
  kWinograd,  // windows [o, i, 3, 3] of float32 become [o, i, 4, 4], as F(2x2, 3x3) multiplies them
};

/*! G w G^T of windows of 3x3, 16 numbers each, each rounded once. */
std::vector<float> WinogradWindows(const float* windows, int64_t count);

}  // namespace uir::library
