// SPDX-License-Identifier: Apache-2.0
#include "device/simt/unwritten.h"

#include <cstring>

#include "device/engine/memory.h"
#include "device/simt/include/uir_simt/unwritten.h"

namespace uir::simt {

void Unwritten::Begin(const std::vector<uint64_t>& arguments) {
  End();
  std::set<const engine::Allocation*> kept;
  for (uint64_t argument : arguments) {
    engine::Allocation* found = engine::Memory::Global().Find(reinterpret_cast<const void*>(argument));
    if (found == nullptr || !found->live || !kept.insert(found).second) continue;
    before_.emplace_back(found->data, std::vector<uint8_t>(found->data, found->data + found->bytes));
  }
}

bool Unwritten::Proved(uint64_t site, const uint8_t* at, uint32_t bytes) {
  const uint32_t nan = this->nan(), half = uir_simt::unwritten_half(nan), narrow = uir_simt::unwritten_bfloat16(nan);
  const auto high = static_cast<uint32_t>(uir_simt::unwritten_double(nan) >> 32);
  bool proved = false;
  for (uint32_t i = 0; i + 4 <= bytes; i += 4) {
    uint32_t word;
    std::memcpy(&word, at + i, 4);
    const uint32_t magnitude = word & 0x7fffffff;
    // also seen from fp16 and bf16, and in pairs of those
    if (magnitude != nan && magnitude != uir_simt::unwritten_tf32(nan) && magnitude != narrow << 16 &&
        word != uir_simt::unwritten_bytes(nan) && word != (half << 16 | half) && word != (narrow << 16 | narrow) &&
        (magnitude != high || i % 8 != 4)) {
      continue;
    }
    if (again_) {
      proved = proved || suspects_.count({site, at + i}) != 0;
    } else if (suspects_.size() < kRemembered) {
      suspects_.emplace(site, at + i);
    }
  }
  return proved;
}

void Unwritten::Again() {
  for (const auto& [data, bytes] : before_) std::memcpy(data, bytes.data(), bytes.size());
  again_ = true;
}

void Unwritten::End() {
  again_ = false;
  suspects_.clear();
  before_.clear();
}

}  // namespace uir::simt
