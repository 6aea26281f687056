// SPDX-License-Identifier: Apache-2.0
// Products of bytes with a constant weight of integers, exact in 32 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "library/attrs.h"

namespace uir::library {

//! Outputs of a panel. A packed weight is its panels; of a panel every pair of inputs in turn, the two numbers of its
//! 16 outputs side by side, an odd last input with zeros. Then of all outputs, rounded up to panels: int32 numbers with
//! which the sums begin; and float32 factors, terms, and two numbers, the least and the greatest result (see `Finish`).
constexpr int64_t kIntegerColumns = 16;

/*! Bytes of a packed weight. */
int64_t IntegerBytes(const IntegerAttrs& attrs);

/*! What a result is: the sums, or sums * factor + term between two bounds, in float32 or rounded to bytes. */
enum class IntegerResult { kSums, kFloats, kBytes };

struct IntegerData {
  const char* x = nullptr;
  bool has_sign = false;  // of x
  int64_t zero = 0;       // of x
  const char* weight = nullptr;
  char* out = nullptr;
  IntegerResult result = IntegerResult::kSums;
};

/*! [n, h, w, c] -> [n, oh, ow, o]. */
void RunIntegerProduct(const IntegerAttrs& attrs, const IntegerData& data, int threads);

/*! The instructions that this CPU has for it, the best first, which are used. */
std::vector<std::string> IntegerVectors();
/*! Use one of these; false where it is none. For tests. */
bool SetIntegerVectors(const std::string& name);

}  // namespace uir::library
