// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/conversion.h"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "codegen/cuda/banks.h"
#include "codegen/cuda/choose.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Shuffles for one register up to which they are cheaper than scratch. */
constexpr size_t kShuffles = 2;

/*! \brief Position of a lane in the grid of lanes. */
std::pair<int, int> PositionOf(const Layout& l, int lane) {
  return l.lanes_col_major ? std::make_pair(lane % l.lanes_r, lane / l.lanes_r)
                           : std::make_pair(lane / l.lanes_c, lane % l.lanes_c);
}

/*! \brief Elements that one access moves: a block's neighbours, as far as rows of the tile keep them aligned. */
int64_t ScratchWidth(const Fragment& f, const ScratchTile& tile, int bytes) {
  int64_t vec = tile.turned ? f.layout.vec_r : f.layout.vec_c;
  int64_t length = tile.turned ? f.rows : f.cols;
  int64_t width = std::min<int64_t>(vec, kWidestBytes / bytes);
  while (width > 1 && (tile.pitch % width != 0 || length % width != 0)) width /= 2;
  return width;
}

/*! \brief Cost of moving a fragment to or from the tile, in wavefronts. */
int64_t ScratchCost(const Fragment& f, const ScratchTile& tile, int64_t width, int bytes) {
  std::vector<int64_t> addresses;
  for (int lane = 0; lane < kLanes; ++lane) {
    auto [i, j] = FirstOf(f, lane);
    if (i >= f.rows || j >= f.cols) continue;
    addresses.push_back((tile.turned ? j * tile.pitch + i : i * tile.pitch + j) * bytes);
  }
  return BankPasses(addresses, width * bytes) * (f.size() / width);
}

/*! \brief The padding and the order with the fewest bank conflicts both ways. */
ScratchTile ChooseTile(const Fragment& to, const Fragment& from, int bytes) {
  ScratchTile best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (bool turned : {false, true}) {
    int64_t length = turned ? to.rows : to.cols;
    for (int64_t pad : {0, 1, 2, 4, 8, 16}) {
      ScratchTile tile{length + pad, turned};
      tile.width_in = ScratchWidth(from, tile, bytes);
      tile.width_out = ScratchWidth(to, tile, bytes);
      int64_t cost = ScratchCost(from, tile, tile.width_in, bytes) + ScratchCost(to, tile, tile.width_out, bytes);
      if (cost < least) {
        least = cost;
        best = tile;
      }
    }
  }
  return best;
}

/*! \brief How far on, in `from`, the lanes of `to` find the elements that one register of theirs holds. */
std::vector<RegisterOffset> OffsetsOf(const Fragment& to, const Fragment& from) {
  std::set<RegisterOffset> offsets;
  for (int lane = 0; lane < kLanes; ++lane) {
    auto [i, j] = FirstOf(to, lane);
    if (i < to.rows && j < to.cols) offsets.insert(OffsetOf(from, i, j));
  }
  return {offsets.begin(), offsets.end()};
}

}  // namespace

RegisterOffset OffsetOf(const Fragment& f, int64_t i, int64_t j) {
  const Layout& l = f.layout;
  RegisterOffset at{0, 0, 0, 0};
  if (!f.replicated_r()) at[0] = i / l.step_r(), at[1] = i % l.vec_r;
  if (!f.replicated_c()) at[2] = j / l.step_c(), at[3] = j % l.vec_c;
  return at;
}

std::pair<int64_t, int64_t> FirstOf(const Fragment& f, int lane) {
  auto [r, c] = PositionOf(f.layout, lane);
  return {f.replicated_r() ? 0 : int64_t{r} * f.layout.vec_r, f.replicated_c() ? 0 : int64_t{c} * f.layout.vec_c};
}

Conversion ConversionOf(const Fragment& to, const Fragment& from, int bytes) {
  Conversion out;
  if (SameHolding(to, from)) return out;
  out.offsets = OffsetsOf(to, from);
  if (out.offsets.size() <= kShuffles) {
    out.way = Conversion::Way::kShuffle;
    return out;
  }
  out.way = Conversion::Way::kScratch;
  out.tile = ChooseTile(to, from, bytes);
  out.elements = (out.tile.turned ? to.cols : to.rows) * out.tile.pitch;
  return out;
}

}  // namespace uir::codegen::cuda
