// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/tile.h"

#include <algorithm>
#include <utility>

namespace uir::codegen::tiles {

namespace {

/*! \brief The greatest power of two that divides both. */
int64_t CommonAlign(int64_t align, int64_t distance) {
  return distance == 0 ? align : std::min(align, distance & -distance);
}

}  // namespace

Tile Tile::Part(int64_t row, int64_t col, int64_t part_rows, int64_t part_cols) const {
  Tile part = *this;
  int64_t distance = (row_pitch ? 0 : row * row_stride) + (col_pitch ? 0 : col * col_stride);
  part.offset = offset + Affine::Constant(distance);
  part.align = CommonAlign(align, distance * bytes);
  for (const auto& [pitch, steps] : {std::pair(row_pitch, row), std::pair(col_pitch, col)}) {
    if (!pitch || steps == 0) continue;
    part.offset = part.offset + pitch->Scale(steps);
    part.align = 1;
  }
  part.rows = part_rows;
  part.cols = part_cols;
  part.box = Box::Of(part_rows, part_cols);
  return part;
}

Tile Tile::Around(const Box& box) const {
  int64_t top = std::clamp<int64_t>(box.row_begin.range.low, 0, rows), left = box.col_begin.range.low;
  left = std::clamp<int64_t>(left, 0, cols);
  int64_t bottom = std::clamp<int64_t>(box.row_end.range.high, top, rows);
  int64_t right = std::clamp<int64_t>(box.col_end.range.high, left, cols);
  return Part(top, left, bottom - top, right - left);
}

Tile Tile::Turned() const {
  Tile turned = *this;
  std::swap(turned.rows, turned.cols);
  std::swap(turned.row_stride, turned.col_stride);
  std::swap(turned.row_pitch, turned.col_pitch);
  turned.full_rows = false;
  turned.box = {box.col_begin, box.col_end, box.row_begin, box.row_end};
  return turned;
}

Tile Tile::Flat() const {
  Tile flat = *this;
  flat.rows = 1;
  flat.cols = Span();
  flat.row_stride = flat.cols;
  flat.col_stride = 1;
  flat.box = Box::Of(1, flat.cols);
  return flat;
}

pipes::Region Tile::Region(bool write) const {
  pipes::Region region;
  region.memory = memory;
  region.begin = offset.Scale(bytes) + Affine::Constant(base);
  region.write = write;
  region.bytes = bytes;
  region.anywhere = (row_stride == kOpenStride && rows > 1) || (col_stride == kOpenStride && cols > 1);
  if (region.anywhere) return region;
  if ((row_pitch && row_stride != kOpenStride) || (col_pitch && col_stride != kOpenStride)) {
    // on chip, where rows may lie anywhere up to their greatest distance
    region.bytes = Span() * bytes;
    return region;
  }
  int64_t run = 1;
  if (RowsDense()) {
    run = cols;
  } else {
    region.dims.emplace_back(cols, col_stride * bytes);
  }
  if (rows > 1 && RowsDense() && row_stride == cols) {
    run *= rows;
  } else if (rows > 1) {
    region.dims.insert(region.dims.begin(), {rows, row_stride * bytes});
  }
  region.bytes = run * bytes;
  return region;
}

}  // namespace uir::codegen::tiles
