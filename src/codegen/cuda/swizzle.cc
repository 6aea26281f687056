// SPDX-License-Identifier: Apache-2.0
/*!
 * \file swizzle.cc
 * \brief Which tiles in shared memory are swizzled: those that tensor cores read column by column of 16 bytes.
 *
 * A fragment load names the same 16 bytes of eight rows that follow each other.  Where rows have a multiple of 128
 * bytes all of them lie in the same banks; so the 16-byte chunks of a row change places with the row's number, and
 * the eight chunks lie in eight different groups of banks.  Shorter rows need fewer places: several share 128 bytes.
 */
#include <algorithm>

#include "contract.h"
#include "planner.h"

namespace uir {
namespace codegen {
namespace cuda {

namespace {

constexpr int64_t kChunk = 16, kBanks = 128;

/*! \brief Bytes from one row in memory to the next of an operand, or 0 where neither side is contiguous. */
int64_t PitchOf(const ISlice& slice) {
  const int64_t bytes = TypeOf(std::string(slice->pointer->dtype)).bytes;
  if (slice->col_stride == 1) return slice->row_stride * bytes;
  return slice->row_stride == 1 ? slice->col_stride * bytes : 0;
}

bool Suits(int64_t pitch) {
  const bool power = pitch > 0 && (pitch & (pitch - 1)) == 0;
  return pitch >= 2 * kChunk && (power || pitch % kBanks == 0);
}

}  // namespace

void Planner::ChooseSwizzles() {
  for (auto& [name, home] : plan_->homes_) {
    if (home.kind != Home::Kind::kSram && home.kind != Home::Kind::kScratch) continue;
    int64_t pitch = -1;
    for (const Use* use : by_pointer_[name]) {
      if (use->iop->op != "contract" || use->write) continue;
      const bool cores = MmaOf(use->iop, plan_->graph_, plan_->arch_) != nullptr;
      const int64_t own = cores ? PitchOf(use->slice) : 0;
      pitch = pitch == -1 || pitch == own ? own : 0;
    }
    if (pitch <= 0 || !Suits(pitch)) continue;
    const int64_t bytes = by_pointer_[name].front()->slice->pointer->size *
                          TypeOf(std::string(by_pointer_[name].front()->slice->pointer->dtype)).bytes;
    // chunks change places within so many bytes, all of which must belong to the pointer
    if (bytes % std::min(pitch, kBanks) != 0) continue;
    home.swizzle_bytes = static_cast<int>(std::min(pitch, kBanks));
    home.pitch_bytes = pitch;
  }
}

}  // namespace cuda
}  // namespace codegen
}  // namespace uir
