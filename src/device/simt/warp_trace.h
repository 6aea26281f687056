// SPDX-License-Identifier: Apache-2.0
// Accesses of the lanes of one warp, put together by instruction: bank conflicts and sectors.
//
// Lanes run one after the other, so the n-th access of each lane at one instruction since the warp last met is
// taken as one access of the warp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/simt/counters.h"

namespace uir::simt {

/*! \brief Accesses of the running warp since it last met. */
class WarpTrace {
 public:
  /*! \brief Accesses of one lane at one instruction that are kept while others have fewer. */
  static constexpr uint32_t kAhead = 512;

  /*! \brief Begin with a library whose code has so many bytes. */
  void Reset(size_t code_bytes);

  /*! \brief Note an access; false when the lane is so far ahead that others should run first. */
  bool Note(uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes, bool shared);

  /*! \brief Count everything noted, and begin anew. */
  void Flush(Counters* counters);

 private:
  struct Access {
    uint32_t lanes{0};
    uint32_t last{0};       // the last lane noted
    bool contiguous{true};  // lanes came in order, each at the bytes after those of the one before
    uint64_t address[32];
  };
  struct Site {
    uint32_t bytes{0};
    bool shared{false};
    bool touched{false};
    uint32_t count[32]{};
    std::vector<Access> accesses;
  };

  std::vector<uint32_t> index_;  // by address in the code, 0: none
  std::vector<Site> sites_;
  std::vector<uint32_t> touched_;
};

/*! \brief Passes that shared memory needs for one access of a warp, and the passes without any conflict. */
struct BankPasses {
  int passes;
  int ideal;
};
BankPasses CountBankPasses(uint32_t lanes, const uint64_t* address, uint32_t bytes);

/*! \brief Sectors of 32 bytes that one access of a warp touches, and those that its distinct bytes would fill. */
struct Sectors {
  int touched;
  int ideal;
};
Sectors CountSectors(uint32_t lanes, const uint64_t* address, uint32_t bytes);

}  // namespace uir::simt
