// SPDX-License-Identifier: Apache-2.0
// What a model whose sizes are known at a run computes of them.
#ifndef PROJECT_SIZES_H_
#define PROJECT_SIZES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model.h"

namespace project {

/*! The quotient, rounded down; the divisor is positive. */
inline int64_t Div(int64_t number, int64_t divisor) { return number / divisor - (number % divisor < 0 ? 1 : 0); }
/*! What that leaves: never less than 0. */
inline int64_t Mod(int64_t number, int64_t divisor) { return number - Div(number, divisor) * divisor; }
inline int64_t Min(int64_t one, int64_t other) { return std::min(one, other); }
inline int64_t Max(int64_t one, int64_t other) { return std::max(one, other); }

/*! Blocks of a launch of some groups: a kernel deals its groups to at most so many. 0: there is nothing to launch. */
inline uint32_t Blocks(int64_t groups, int64_t most) { return static_cast<uint32_t>(Max(0, Min(groups, most))); }

/*! A size for calls that take 32 bits; a Failure where it has more. */
int Int(int64_t number);

/*! Throws a Failure that names the sizes where a condition does not hold. */
void Need(bool holds, const char* condition, const Sizes& sizes);

/*! A buffer whose shape sizes decide: bytes of an element, and the first and the last step that needs it. */
struct Span {
  std::vector<int64_t> shape;
  int64_t item_bytes;
  int first, last;
};

/*! Elements of a tensor; a Failure where they are beyond what a device addresses. */
int64_t ElementsOf(const std::vector<int64_t>& shape);
size_t BytesOf(const std::vector<int64_t>& shape, int64_t item_bytes);

/*!
 * Where buffers lie in one allocation: the largest first, each at the lowest offset that no buffer alive with it
 * covers. `fixed` follows them in the plan.
 */
Plan Planned(const Sizes& sizes, const std::vector<Span>& spans, const std::vector<Place>& fixed);

}  // namespace project

#endif  // PROJECT_SIZES_H_
