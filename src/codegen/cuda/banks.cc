// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/banks.h"

#include <algorithm>
#include <array>

namespace uir::codegen::cuda {

namespace {

constexpr int kBanks = 32, kBankBytes = 4;

}  // namespace

int64_t BankPasses(const std::vector<int64_t>& addresses, int64_t bytes) {
  const size_t together = static_cast<size_t>(kLanes / std::max<int64_t>(1, bytes / kBankBytes));
  int64_t total = 0;
  for (size_t first = 0; first < addresses.size(); first += together) {
    std::array<std::vector<int64_t>, kBanks> words;
    size_t most = 1;
    for (size_t k = first; k < std::min(first + together, addresses.size()); ++k) {
      for (int64_t word = addresses[k] / kBankBytes; word * kBankBytes < addresses[k] + bytes; ++word) {
        std::vector<int64_t>& bank = words[word % kBanks];
        if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
        most = std::max(most, bank.size());
      }
    }
    total += static_cast<int64_t>(most);
  }
  return total;
}

std::vector<TileAccess> AccessesOf(const Fragment& f, int64_t elements, bool along_rows) {
  const Layout& l = f.layout;
  const int64_t each_r = along_rows ? elements : 1, each_c = along_rows ? 1 : elements;
  // of copies one lane is counted: the others name the same words
  const int64_t vec_r = f.replicated_r() ? 1 : l.vec_r, vec_c = f.replicated_c() ? 1 : l.vec_c;
  std::vector<TileAccess> out;
  for (int64_t rb = 0; rb < f.blocks_r(); ++rb) {
    for (int64_t cb = 0; cb < f.blocks_c(); ++cb) {
      for (int64_t r = 0; r < vec_r; r += each_r) {
        for (int64_t c = 0; c < vec_c; c += each_c) {
          TileAccess one{elements, {}};
          for (int lane = 0; lane < kLanes; ++lane) {
            const int lane_r = l.lanes_col_major ? lane % l.lanes_r : lane / l.lanes_c;
            const int lane_c = l.lanes_col_major ? lane / l.lanes_r : lane % l.lanes_c;
            const int64_t row = f.replicated_r() ? 0 : (rb * l.lanes_r + lane_r) * l.vec_r + r;
            const int64_t col = f.replicated_c() ? 0 : (cb * l.lanes_c + lane_c) * l.vec_c + c;
            if (row < f.rows && col < f.cols) one.at.emplace_back(row, col);
          }
          if (!one.at.empty()) out.push_back(one);
        }
      }
    }
  }
  return out;
}

}  // namespace uir::codegen::cuda
