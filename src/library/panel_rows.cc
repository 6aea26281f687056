// SPDX-License-Identifier: Apache-2.0
#include "library/panel_rows.h"

#include <limits>

#include "library/conv2d_tile_kernels.h"

namespace uir::library {
namespace {

/*! Products of a piece, at least where there are as many, and at most. */
constexpr int64_t kLeastPiece = 256, kMostPiece = 1024;
/*! Rows of a block, at most, and numbers of them in a piece: a second cache holds these beside a panel. */
constexpr int64_t kBlockRows = 208, kPieceNumbers = 104 << 10;
/*! Bytes of the rows of a block, at most. */
constexpr int64_t kBlockBytes = 16 << 20;

}  // namespace

PanelRows::PanelRows(const Epilogue& epilogue, int64_t rows, int64_t depth, const PanelKernels& kernels)
    : epilogue_(epilogue), kernels_(kernels), finish_(kernels.finish(epilogue.activation)), depth_(depth) {
  const int64_t pieces = CeilDiv(depth, std::clamp(kPieceNumbers / HighOf(rows), kLeastPiece, kMostPiece));
  length_ = RoundUp<int64_t>(CeilDiv(depth, pieces), kernels.steps);
  pieces_ = CeilDiv(depth, length_);
}

int64_t PanelRows::HighOf(int64_t rows) const {
  const int64_t bytes = depth_ * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::clamp<int64_t>(kBlockBytes / bytes, kernels_.most_rows, kBlockRows);
  return CeilDiv(rows, std::max<int64_t>(1, CeilDiv(rows, most)));
}

void PanelRows::Pack(const PlainRows& from, const RowBlock& block, const Range& tiles, float* to) const {
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    const int64_t length = Length(piece), before = block.Before(tiles.begin);
    const float* x = from.first + (block.rows.begin + before) * from.row + Begin(piece) * from.step;
    float* here = to + Begin(piece) * block.rows.size + before * length;
    for (int64_t at = tiles.begin; at < tiles.begin + tiles.size; ++at) {
      const int count = block.Rows(at);
      if (from.step == 1) {
        kernels_.pack(count)(x, from.row, length, here);
      } else {
        for (int64_t k = 0; k < length; ++k) {
          for (int r = 0; r < count; ++r) here[k * count + r] = x[r * from.row + k * from.step];
        }
      }
      x += count * from.row, here += count * length;
    }
  }
}

void PanelRows::Run(const PanelEnd& end, const RowBlock& block, const PanelPiece& panel, int64_t piece,
                    float* sums) const {
  PanelTile tile;
  tile.x = block.x + Begin(piece) * block.rows.size;
  tile.width = panel.width;
  tile.depth = Length(piece);
  tile.first = piece == 0;
  const int64_t lines = CeilDiv<int64_t>(tile.depth * tile.width * static_cast<int64_t>(sizeof(float)), kLine);
  const int64_t fetches = panel.ahead ? CeilDiv(lines, block.tiles) : 0;
  tile.lines = CeilDiv(fetches, std::max<int64_t>(1, tile.depth / kernels_.steps));
  const bool last = piece + 1 == pieces_;
  tile.ends = last && EndsTiles() && panel.size == tile.width;
  Bound(&tile);
  const int vectors = static_cast<int>(tile.width / kernels_.lanes);
  tile.out_row = end.at.out_row;
  int64_t row = block.rows.begin;
  for (int64_t at = 0; at < block.tiles; ++at) {
    const int count = block.Rows(at);
    tile.ahead = reinterpret_cast<const char*>(panel.ahead) + at * fetches * kLine;
    tile.fetches = fetches;
    for (int first = 0; first < vectors; first += kernels_.most_vectors, tile.fetches = 0) {
      const int64_t lane = first * kernels_.lanes, column = panel.begin + lane;
      tile.weight = panel.weight + lane;
      if (last) tile.out = end.at.out + row * tile.out_row + column;
      tile.bias = end.at.bias ? end.at.bias + column : nullptr;
      tile.residual = end.at.residual ? end.at.residual + row * tile.out_row + column : nullptr;
      kernels_.sums(std::min(kernels_.most_vectors, vectors - first), count)(tile, sums + lane);
    }
    if (last && !tile.ends) finish_(end, sums, tile.width, count, row, panel.begin);
    tile.x += count * tile.depth, sums += count * tile.width, row += count;
  }
}

bool PanelRows::EndsTiles() const {
  if (epilogue_.activation == Activation::kNone) return true;
  const bool bounds = epilogue_.activation == Activation::kRelu || epilogue_.activation == Activation::kClip;
  return bounds && epilogue_.residual != Residual::kAfterActivation;
}

void PanelRows::Bound(PanelTile* tile) const {
  const bool clips = epilogue_.activation == Activation::kClip;
  tile->alpha = static_cast<float>(epilogue_.alpha);
  tile->bounded = epilogue_.activation != Activation::kNone;
  tile->low = clips ? epilogue_.parameters[0] : 0.0f;
  tile->high = clips ? epilogue_.parameters[1] : std::numeric_limits<float>::infinity();
}

}  // namespace uir::library
