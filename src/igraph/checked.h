// SPDX-License-Identifier: Apache-2.0
// Integers of 64 bits that say so instead of wrapping: addresses that wrap are other addresses.
#pragma once

#include <tvm/ffi/error.h>

#include <cstdint>

namespace uir {

[[noreturn]] inline void ThrowOverflow(int64_t a, const char* op, int64_t b) {
  TVM_FFI_THROW(IGraphError) << "An affine expression leaves 64 bits: " << a << " " << op << " " << b
                             << ". Addresses and bounds must lie between -2^63 and 2^63 - 1.";
  __builtin_unreachable();
}

/*! \brief a + b; throws IGraphError where 64 bits do not hold it. */
inline int64_t CheckedAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) ThrowOverflow(a, "+", b);
  return sum;
}

/*! \brief a * b; throws IGraphError where 64 bits do not hold it. */
inline int64_t CheckedMul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) ThrowOverflow(a, "*", b);
  return product;
}

/*! \brief floor(a / b) for b > 0: never overflows. */
inline int64_t FloorDivInt(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/*! \brief a - b * floor(a / b) for b > 0. */
inline int64_t FloorModInt(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

/*! \brief |a|, of the least number too. */
inline uint64_t Absolute(int64_t a) {
  return a < 0 ? uint64_t{0} - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
}

}  // namespace uir
