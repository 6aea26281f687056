// SPDX-License-Identifier: Apache-2.0
/*!
 * \file moves.cc
 * \brief move: between any two memories, with pads and valid boxes.
 */
#include <algorithm>
#include <optional>

#include "copy.h"
#include "fill.h"
#include "memory_core.h"
#include "ops.h"
#include "transpose.h"

namespace uir {
namespace codegen {
namespace bang {

namespace {

/*! \brief Whether the pointers of two tiles share bytes. */
bool Share(const Tile& a, const Tile& b) {
  return a.memory == b.memory && a.base < b.base + b.size * b.bytes && b.base < a.base + a.size * a.bytes;
}

/*! \brief Whether element (i, j) of both has the same address. */
bool SameBytes(const Tile& a, const Tile& b) {
  bool rows = a.rows == 1 || a.row_stride == b.row_stride, cols = a.cols == 1 || a.col_stride == b.col_stride;
  Affine distance = a.offset.Scale(a.bytes) - b.offset.Scale(b.bytes) + Affine::Constant(a.base - b.base);
  return a.memory == b.memory && a.bytes == b.bytes && distance->terms.empty() && distance->constant == 0 && rows &&
         cols;
}

/*! \brief Whether a tile lies the other way round: its columns step by more than one element, its rows by one. */
bool LiesTurned(const Tile& tile) {
  return tile.rows > 1 && tile.cols > 1 && tile.row_stride == 1 && tile.col_stride > 1;
}

/*!
 * \brief A copy between NRAM and another memory in which that one's side lies the other way round: its rows are copied
 * whole, and turned in NRAM.
 * \return Whether it was done.
 */
bool CopyTurned(Emitter& e, const Tile& to, const Tile& from, const Box& box) {
  bool load = to.memory == kNram;
  const Tile& far = load ? from : to;
  const Tile& near = load ? to : from;
  int64_t need = 3 * to.rows * to.cols * to.bytes;
  if (!LiesTurned(far) || !near.RowsDense() || to.bytes == 8 || e.FreeBytes() < need) return false;
  Tile work = e.Work(to.dtype, to.cols, to.rows);
  work.box = tiles::Turned(box);
  Tile rows = work;
  rows.box = Box::Of(work.rows, work.cols);
  auto whole = [&](const Tile& tile) { return tile.Dense() && box.Whole(tile.rows, tile.cols); };
  // only whole tiles are turned at once: others by way of one
  Tile turned = near;
  if (!whole(near)) turned = e.Work(to.dtype, to.rows, to.cols);
  turned.box = Box::Of(to.rows, to.cols);
  if (load) {
    Copy(e, work, from.Turned(), work.box);
    TransposeTile(e, turned, rows);
    if (!whole(near)) Copy(e, to, turned, box);
  } else {
    if (!whole(near)) Copy(e, turned, from, box);
    TransposeTile(e, rows, turned);
    Copy(e, to.Turned(), work, work.box);
  }
  return true;
}

/*! \brief The tile's elements with its box, those outside of `from`'s box set to the pad. */
void Padded(Emitter& e, const Tile& to, const Tile& from, const Box& box, const ffi::Any& pad) {
  Tile filled = to;
  filled.box = to.box;
  FillTile(e, filled, pad, tiles::OutsideText(to, box));
  if (!CopyTurned(e, to, from, box)) Copy(e, to, from, box);
}

/*! \brief By way of NRAM, as many rows at a time as it has room for. */
void Through(Emitter& e, Tile to, Tile from, const std::optional<ffi::Any>& pad) {
  if (to.cols == 1) {
    to = to.Turned();
    from = from.Turned();
  }
  int64_t row_bytes = std::max<int64_t>(to.cols * to.bytes, 1);
  int64_t some = std::min(to.rows, std::max<int64_t>(e.FreeBytes() / row_bytes, 1));
  Tile work = e.Work(to.dtype, some, to.cols);
  for (int64_t first = 0; first < to.rows; first += some) {
    int64_t rows = std::min(some, to.rows - first);
    auto part = [&](const Tile& tile) {
      Tile piece = tile.Part(first, 0, rows, to.cols);
      Box moved = tile.box;
      moved.row_begin = tile.box.row_begin - Bound::Of(first);
      moved.row_end = tile.box.row_end - Bound::Of(first);
      piece.box = rows == to.rows ? tile.box : Both(e, moved, Box::Of(rows, to.cols));
      return piece;
    };
    Tile piece = work.Part(0, 0, rows, to.cols), source = part(from), target = part(to);
    Box box = Both(e, target.box, source.box);
    piece.box = pad ? target.box : box;
    if (pad) {
      Padded(e, piece, source, box, *pad);
    } else {
      Copy(e, piece, source, box);
    }
    Copy(e, target, piece, piece.box);
  }
}

}  // namespace

void EmitMove(Emitter& e, const IOp& iop) {
  const ISlice &target = iop->targets[0], &source = iop->sources[0];
  if (IsMemoryCoreMove(iop)) return EmitMemoryCoreMove(e, iop);
  std::optional<ffi::Any> pad;
  auto given = iop->attrs.find("pad");
  if (given != iop->attrs.end() && (*given).second != nullptr) pad = (*given).second;
  Tile to = e.TileOf(target), from = e.TileOf(source);
  Box box = tiles::SameBox(to.box, from.box) ? to.box : Both(e, to.box, from.box);
  // what the target holds outside of the source's box, and the target's, becomes pad
  bool padded = pad && !from.box.Whole(from.rows, from.cols) && !tiles::SameBox(to.box, from.box);
  bool in_nram = to.memory == kNram, from_nram = from.memory == kNram;
  // the source may have lent its bytes to the target
  if (!padded && SameBytes(to, from)) return;
  if (!padded && in_nram != from_nram && CopyTurned(e, to, from, box)) return;
  if (!padded && (in_nram || from_nram) && !Share(to, from)) return Copy(e, to, from, box);
  if (padded && in_nram && !Share(to, from)) return Padded(e, to, from, box, *pad);
  if (!padded && !in_nram && !from_nram && to.memory != kSram && from.memory != kSram) return Copy(e, to, from, box);
  Through(e, to, from, padded ? pad : std::nullopt);
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
