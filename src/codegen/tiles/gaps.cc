// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/gaps.h"

#include <algorithm>
#include <utility>

namespace uir::codegen::tiles {

namespace {

/*! \brief Whether every value of an expression is `unit * n + rest` for the same rest. */
bool Congruent(const Affine& expr, int64_t unit, int64_t* rest) {
  Congruence found = ClassOf(expr);
  *rest = FloorModInt(found.remainder, unit);
  return found.modulus % unit == 0;
}

}  // namespace

Tile AsRow(Tile tile) {
  if (tile.rows == 1) return tile;
  if (tile.cols != 1 || tile.row_stride != 1) return tile;
  std::swap(tile.rows, tile.cols);
  tile.row_stride = tile.cols;
  tile.col_stride = 1;
  std::swap(tile.box.row_begin, tile.box.col_begin);
  std::swap(tile.box.row_end, tile.box.col_end);
  return tile;
}

std::vector<Tile> AsRows(std::vector<Tile> tiles) {
  bool columns = std::all_of(tiles.begin(), tiles.end(), [](const Tile& tile) { return AsRow(tile).rows == 1; });
  if (columns) std::transform(tiles.begin(), tiles.end(), tiles.begin(), AsRow);
  return tiles;
}

bool GapsFree(const Emitter& e, const ISlice& slice) {
  if (slice->rows == 1 || slice->row_stride == slice->cols) return true;
  int64_t own = 0;
  if (!Congruent(slice->offset, slice->row_stride, &own)) return false;
  for (const Use& use : e.plan().uses()) {
    if (use.pointer() != std::string(slice->pointer->name)) continue;
    const ISlice& other = use.slice;
    int64_t at = 0;
    bool inside = other->rows == 1 || other->row_stride % slice->row_stride == 0;
    if (!inside || !Congruent(other->offset, slice->row_stride, &at)) return false;
    int64_t last = at + (other->cols - 1) * other->col_stride;
    if (at < own || last >= own + slice->cols) return false;
  }
  return true;
}

}  // namespace uir::codegen::tiles
