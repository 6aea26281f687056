// SPDX-License-Identifier: Apache-2.0
// What is known of products of four warps (wgmma) while they run: of a lane's registers, of shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uir::simt {

/*! \brief Registers of a lane that a product writes, and what they will hold. */
struct Sums {
  uint32_t* low;                 // of rows 0 to 7 of the warp's 16
  uint32_t* high;                // of rows 8 to 15
  std::vector<uint32_t> values;  // low, then high
  int products{0};               // in flight that add to them
};

/*! \brief A product in flight, as one lane sees it. */
struct Product {
  uint32_t* low;
  const uint32_t* a;           // null: from memory
  std::vector<size_t> chunks;  // of shared memory that the lane's warp reads; noted by its first lane
  uint64_t site;
};

/*! \brief A stretch of a lane's own memory. */
struct Stretch {
  uintptr_t begin, end;
};

/*! \brief The products of one lane. */
struct Products {
  bool fenced{false};             // there was a wgmma_fence
  std::vector<Stretch> accesses;  // to registers since then
  std::vector<Stretch> operands;  // of that fence, and of a wait right before it
  std::vector<Stretch> loose;     // sums of products that have ended, which were no operands of a wait since
  std::vector<Product> running;   // oldest first
  std::vector<size_t> groups;     // of committed products: how many each has, oldest first
  size_t open{0};                 // not committed
  std::vector<Sums> sums;
};

/*! \brief What is known of 16 bytes of shared memory. */
struct ChunkState {
  // Who wrote them last as plain stores do, plus one, and how many fences that thread had executed by then.
  uint32_t writer{0};
  uint32_t fences{0};
  uint32_t readers{0};  // warps whose products still read them
};

}  // namespace uir::simt
