// SPDX-License-Identifier: Apache-2.0
/*!
 * \file moves.cc
 * \brief move: between global memory and the UB, and within either.
 */
#include <algorithm>

#include "fill.h"
#include "load.h"
#include "ops.h"
#include "relayout.h"
#include "store.h"
#include "transfer.h"

namespace uir {
namespace codegen {
namespace ascend {

namespace {

bool InGlobal(const ISlice& slice) { return slice->pointer->level == "dram"; }

/*! \brief Whether the pointers of two tiles of the UB share bytes. */
bool Share(const Tile& a, const Tile& b) {
  return a.base < b.base + b.size * b.bytes && b.base < a.base + a.size * a.bytes;
}

/*! \brief Whether element (i, j) of both has the same address. */
bool SameBytes(const Tile& a, const Tile& b) {
  bool rows = a.rows == 1 || a.row_stride == b.row_stride, cols = a.cols == 1 || a.col_stride == b.col_stride;
  return a.base == b.base && (a.offset - b.offset)->terms.empty() && a.offset->constant == b.offset->constant && rows &&
         cols;
}

/*! \brief Within the UB. */
void Copy(Emitter& e, const Tile& to, const Tile& from, const std::optional<ffi::Any>& pad) {
  Box box = Both(e, to.box, from.box);
  bool padded = pad && !from.box.Whole(from.rows, from.cols);
  // the source may have lent its bytes to the target
  if (!padded && SameBytes(to, from)) return;
  if (!padded && !Share(to, from)) {
    Relayout(e, to, from, box);
    return;
  }
  Tile work = e.Work(to.dtype, to.rows, to.cols);
  if (padded) FillTile(e, work, *pad);
  Relayout(e, work, from, box);
  Relayout(e, to, work, to.box);
}

/*! \brief Within global memory: by way of the UB, as many rows at a time as it has room for. */
void Through(Emitter& e, Tile to, Tile from, const std::optional<ffi::Any>& pad) {
  if (to.cols == 1) {
    to = to.Turned();
    from = from.Turned();
  }
  int64_t row_bytes = (to.cols * to.bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  int64_t some = std::min(to.rows, std::max<int64_t>(e.FreeBytes() / 2 / row_bytes, 1));
  Tile work = e.Work(to.dtype, some, to.cols);
  for (int64_t first = 0; first < to.rows; first += some) {
    int64_t rows = std::min(some, to.rows - first);
    auto part = [&](const Tile& tile) {
      Tile piece = tile.Part(first, 0, rows, to.cols);
      Box moved = tile.box;
      moved.row_begin = tile.box.row_begin - Bound::Of(first);
      moved.row_end = tile.box.row_end - Bound::Of(first);
      piece.box = rows == to.rows ? tile.box
                                  : Both(e, moved, {Bound::Of(0), Bound::Of(rows), Bound::Of(0), Bound::Of(to.cols)});
      return piece;
    };
    Tile piece = work.Part(0, 0, rows, to.cols), source = part(from), target = part(to);
    piece.box = pad ? target.box : Both(e, target.box, source.box);
    Load(e, piece, source, pad, {});
    Store(e, target, piece);
  }
}

}  // namespace

void EmitMove(Emitter& e, const IOp& iop) {
  const ISlice& target = iop->targets[0];
  const ISlice& source = iop->sources[0];
  std::optional<ffi::Any> pad;
  auto given = iop->attrs.find("pad");
  if (given != iop->attrs.end() && (*given).second != nullptr) pad = (*given).second;
  Tile to = e.TileOf(target), from = e.TileOf(source);
  if (InGlobal(target)) {
    if (InGlobal(source)) {
      Through(e, to, from, pad);
    } else if (pad && !from.box.Whole(from.rows, from.cols)) {
      Tile work = e.Work(to.dtype, to.rows, to.cols);
      Copy(e, work, from, pad);
      Store(e, to, work);
    } else {
      Store(e, to, from);
    }
  } else if (InGlobal(source)) {
    Load(e, to, from, pad, {e.SparesOutside(target), e.plan().RowEndsAreFree(target)});
  } else {
    Copy(e, to, from, pad);
  }
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
