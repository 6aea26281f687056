// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/layout.h"

#include <algorithm>

#include "base/rounding.h"

namespace uir::codegen::cuda {

namespace {

int64_t Blocks(int64_t length, int step) { return length == 1 ? 1 : CeilDiv(length, step); }

}  // namespace

bool Layout::operator==(const Layout& other) const {
  return lanes_r == other.lanes_r && lanes_c == other.lanes_c && vec_r == other.vec_r && vec_c == other.vec_c &&
         lanes_col_major == other.lanes_col_major;
}

std::string Layout::ToString() const {
  auto pair = [](int a, int b) { return "(" + std::to_string(a) + ", " + std::to_string(b) + ")"; };
  return "lanes " + pair(lanes_r, lanes_c) + (lanes_col_major ? " by columns" : "") + ", vec " + pair(vec_r, vec_c);
}

Fragment::Fragment(Layout wanted, int64_t rows, int64_t cols) : layout(wanted), rows(rows), cols(cols) {
  if (rows == 1) layout.vec_r = 1;
  if (cols == 1) layout.vec_c = 1;
  // numbering the lanes is the same either way where there is one row or column of them
  if (layout.lanes_r == 1 || layout.lanes_c == 1) layout.lanes_col_major = false;
}

bool Fragment::operator==(const Fragment& other) const {
  return layout == other.layout && rows == other.rows && cols == other.cols;
}

int64_t Fragment::blocks_r() const { return Blocks(rows, layout.step_r()); }

int64_t Fragment::blocks_c() const { return Blocks(cols, layout.step_c()); }

std::vector<std::pair<int, int64_t>> Fragment::Owners(int64_t i, int64_t j) const {
  std::vector<std::pair<int, int64_t>> owners;
  int64_t block_r = i / layout.step_r(), block_c = j / layout.step_c();
  int64_t r = i % layout.vec_r, c = j % layout.vec_c;
  int64_t number = ((block_r * blocks_c() + block_c) * layout.vec_r + r) * layout.vec_c + c;
  for (int lane_r = 0; lane_r < layout.lanes_r; ++lane_r) {
    if (!replicated_r() && lane_r != i / layout.vec_r % layout.lanes_r) continue;
    for (int lane_c = 0; lane_c < layout.lanes_c; ++lane_c) {
      if (!replicated_c() && lane_c != j / layout.vec_c % layout.lanes_c) continue;
      int lane = layout.lanes_col_major ? lane_c * layout.lanes_r + lane_r : lane_r * layout.lanes_c + lane_c;
      owners.emplace_back(lane, number);
    }
  }
  std::sort(owners.begin(), owners.end());
  return owners;
}

bool SameHolding(const Fragment& a, const Fragment& b) {
  if (a.rows != b.rows || a.cols != b.cols) return false;
  const Layout &x = a.layout, &y = b.layout;
  bool rows = a.rows == 1 || (x.lanes_r == y.lanes_r && x.vec_r == y.vec_r);
  bool cols = a.cols == 1 || (x.lanes_c == y.lanes_c && x.vec_c == y.vec_c);
  bool scalar = a.rows == 1 && a.cols == 1;
  return scalar || (rows && cols && x.lanes_col_major == y.lanes_col_major);
}

}  // namespace uir::codegen::cuda
