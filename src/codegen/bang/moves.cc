// SPDX-License-Identifier: Apache-2.0
// move: between any two memories, with pads and valid boxes.
#include <algorithm>
#include <optional>

#include "codegen/attributes.h"
#include "codegen/bang/memory_core.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

namespace {

/*! \brief Whether a tile lies the other way round: its columns step by more than one element, its rows by one. */
bool LiesTurned(const Tile& tile) {
  return tile.rows > 1 && tile.cols > 1 && tile.row_stride == 1 && tile.col_stride > 1;
}

//! \brief The same for a tile whose rows lie packed (packed.h): what turns it takes rows of the length that there is.
//! \return Whether it was done.
bool CopyTurnedPacked(Emitter& e, const Tile& to, const Tile& from, const Box& box) {
  const bool load = to.memory == kNram;
  const Tile& far = load ? from : to;
  const Tile& near = load ? to : from;
  if (!LiesTurned(far) || to.bytes == 8 || e.FreeBytes() < to.rows * to.cols * to.bytes) return false;
  Tile work = e.Work(to.dtype, to.cols, to.rows);
  work.box = tiles::Turned(box);
  const std::string length = box.col_end.Text(Precedence::kProduct), rows = std::to_string(to.rows);
  const auto turn = [&](const Tile& target, const Tile& source) {
    TurnRows(e, target, source, load ? length : rows, load ? rows : length,
             box.col_end.range.low > 0 ? "" : length + " > 0");
  };
  if (load) {
    Copy(e, work, from.Turned(), work.box);
    turn(near, work);
  } else {
    turn(work, near);
    Copy(e, to.Turned(), work, work.box);
  }
  return true;
}

//! \brief A copy between NRAM and another memory in which that one's side lies the other way round: its rows are copied
//! whole, and turned in NRAM.
//! \param spares Whether what the target holds outside of the box stays.
//! \return Whether it was done.
bool CopyTurned(Emitter& e, const Tile& to, const Tile& from, const Box& box, bool spares) {
  bool load = to.memory == kNram;
  const Tile& far = load ? from : to;
  const Tile& near = load ? to : from;
  if (near.row_pitch) return CopyTurnedPacked(e, to, from, box);
  int64_t need = 3 * to.rows * to.cols * to.bytes;
  if (!LiesTurned(far) || !near.RowsDense() || to.bytes == 8 || e.FreeBytes() < need) return false;
  Tile work = e.Work(to.dtype, to.cols, to.rows);
  work.box = tiles::Turned(box);
  Tile rows = work;
  rows.box = Box::Of(work.rows, work.cols);
  auto whole = [&](const Tile& tile) { return tile.Dense() && (box.Whole(tile.rows, tile.cols) || !(load && spares)); };
  // only whole tiles are turned at once, with what nobody reads: others by way of one
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
  if (!CopyTurned(e, to, from, box, true)) Copy(e, to, from, box);
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
  tiles::InParts(e, to, from, some, [&](const Tile& target, const Tile& source) {
    Tile piece = work.Part(0, 0, target.rows, to.cols);
    Box box = Both(e, target.box, source.box);
    piece.box = pad ? target.box : box;
    if (pad) {
      Padded(e, piece, source, box, *pad);
    } else {
      Copy(e, piece, source, box);
    }
    Copy(e, target, piece, piece.box);
  });
}

}  // namespace

void EmitMove(Emitter& e, const IOp& iop) {
  const ISlice &target = iop->targets[0], &source = iop->sources[0];
  if (IsMemoryCoreMove(iop)) return EmitMemoryCoreMove(e, iop);
  const std::optional<ffi::Any> pad = PadOf(iop);
  Tile to = e.TileOf(target), from = e.TileOf(source);
  Box box = tiles::SameBox(to.box, from.box) ? to.box : Both(e, to.box, from.box);
  // what the target holds outside of the source's box, and the target's, becomes pad
  bool padded = pad && !from.box.Whole(from.rows, from.cols) && !tiles::SameBox(to.box, from.box);
  bool in_nram = to.memory == kNram, from_nram = from.memory == kNram;
  // the source may have lent its bytes to the target
  if (!padded && tiles::SameBytes(to, from)) return;
  if (!padded && in_nram != from_nram && CopyTurned(e, to, from, box, e.SparesOutside(target))) return;
  if (!padded && (in_nram || from_nram) && !tiles::ShareBytes(to, from)) return Copy(e, to, from, box);
  if (padded && in_nram && !tiles::ShareBytes(to, from)) return Padded(e, to, from, box, *pad);
  if (!padded && !in_nram && !from_nram && to.memory != kSram && from.memory != kSram) return Copy(e, to, from, box);
  Through(e, to, from, padded ? pad : std::nullopt);
}

}  // namespace uir::codegen::bang
