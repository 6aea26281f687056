// SPDX-License-Identifier: Apache-2.0
// move: between global memory and the UB, and within either.
#include <algorithm>

#include "base/rounding.h"
#include "codegen/ascend/ops.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/ascend/transfer.h"
#include "codegen/attributes.h"

namespace uir::codegen::ascend {

namespace {

bool InGlobal(const ISlice& slice) { return slice->pointer->level == "dram"; }

/*! \brief Within the UB. */
void Copy(Emitter& e, const Tile& to, const Tile& from, const std::optional<ffi::Any>& pad) {
  Box box = Both(e, to.box, from.box);
  bool padded = pad && !from.box.Whole(from.rows, from.cols);
  // the source may have lent its bytes to the target
  if (!padded && SameBytes(to, from)) return;
  if (!padded && !ShareBytes(to, from)) {
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
  int64_t row_bytes = RoundUp(to.cols * to.bytes, kBlockBytes);
  int64_t some = std::min(to.rows, std::max<int64_t>(e.FreeBytes() / 2 / row_bytes, 1));
  Tile work = e.Work(to.dtype, some, to.cols);
  tiles::InParts(e, to, from, some, [&](const Tile& target, const Tile& source) {
    Tile piece = work.Part(0, 0, target.rows, to.cols);
    piece.box = pad ? target.box : Both(e, target.box, source.box);
    Load(e, piece, source, pad, {});
    Store(e, target, piece);
  });
}

}  // namespace

void EmitMove(Emitter& e, const IOp& iop) {
  const ISlice& target = iop->targets[0];
  const ISlice& source = iop->sources[0];
  const std::optional<ffi::Any> pad = PadOf(iop);
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

}  // namespace uir::codegen::ascend
