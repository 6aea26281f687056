// SPDX-License-Identifier: Apache-2.0
// Where the parts of a packed weight of few bits lie, and what its products read and write.
#pragma once

#include <cstdint>

#include "base/rounding.h"
#include "library/attrs.h"

#define UIR_INLINE inline __attribute__((always_inline))

namespace uir::library {

/*! Outputs of a block. */
constexpr int kBlock = 16;
/*! Bytes of a weight so far ahead are fetched. */
constexpr int kAheadBytes = 4096;

/*! Where the parts of a packed weight lie. */
struct Panels {
  const MatmulAttrs& attrs;
  int64_t groups, words;  // of a row, of an output's group
  int64_t code_bytes, scale_bytes, group_bytes, block_bytes;
  bool half, offsets, shifted;
  float zero;
  const char* packed;

  Panels(const MatmulAttrs& given, const char* data)
      : attrs(given),
        groups(given.weight.bits == 16 ? 0 : given.k / given.weight.group),
        words(given.weight.group * given.weight.bits / 32),
        code_bytes(words * kBlock * 4),
        scale_bytes(kBlock * (given.weight.half ? 2 : 4)),
        group_bytes(code_bytes + scale_bytes * (given.weight.offsets ? 2 : 1)),
        block_bytes(given.weight.bits == 16 ? given.k * kBlock * 2 : group_bytes * groups),
        half(given.weight.half),
        offsets(given.weight.offsets),
        shifted(given.weight.offsets || given.weight.zero != 0),
        zero(static_cast<float>(given.weight.zero)),
        packed(data) {}

  int64_t blocks() const { return CeilDiv(attrs.n, kBlock); }
  /*! Which of a table of functions is for its codes: of 4 bits, of 8, or for numbers of float16 or bfloat16. */
  int kind() const { return attrs.weight.bits == 4 ? 0 : attrs.weight.bits == 8 ? 1 : half ? 2 : kBFloats; }
  static constexpr int kKinds = 4, kBFloats = 3;
};

/*! Rows of x in the order in which they are read, and what becomes of their products. */
struct Operands {
  const float *x, *totals;  // [k, rows of a tile]; of one row the sums of its groups
  const float *bias, *residual;
  float* out;
  int64_t out_row, out_column;
};

/*! A row of x in bytes: [k], and of each group what its bytes are times, and the sum of its numbers; of the groups that
 * are `fine` a second digit, what their bytes leave. */
struct ByteRow {
  int8_t *bytes, *rest;
  float *factors, *totals;
  uint8_t* fine;
};

/*! A row of x as digits: [k] of each of three places, and of each group the power of two and the sum. */
struct Digits {
  int8_t* places[3];
  float *powers, *totals;
};

/*! Which k of a word's is its code number `at`: the halves of bytes are runs of four. */
template <int kBits>
constexpr int Place(int at) {
  return kBits == 8 ? at : at % 2 * 4 + at / 2;
}

/*! Which code of a word is of its k number `k`. */
template <int kBits>
constexpr int CodeOf(int k) {
  return kBits == 8 ? k : k % 4 * 2 + k / 4;
}

}  // namespace uir::library
