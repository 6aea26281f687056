// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/ascend/transfer.h"
#include "codegen/ascend/transpose.h"

namespace uir::codegen::ascend {

namespace {

/*! \brief Elements up to this far apart (in bytes) come with what lies between them: a block each costs as much. */
constexpr int64_t kCloseBytes = 32;

class Loader {
 public:
  Loader(Emitter* e, const std::optional<ffi::Any>& pad, bool spares) : e_(*e), pad_(pad), spares_(spares) {}

  /*! \brief Rows of `to` start at blocks, and whatever `to` holds may be spoilt. */
  void Rows(const Tile& to, const Tile& from, const Box& box) {
    bool filled = pad_ && !box.Whole(to.rows, to.cols);
    if (filled) FillTile(e_, to, *pad_, OutsideText(to, box));
    Transfer(e_, to, from, box, true, filled ? PadText(to, box) : "");
  }

  /*! \brief Loads beside and moves the target's box to its place. */
  void Beside(const Tile& to, const Tile& from, const Box& box) {
    int64_t phase = PhaseOf(e_, to).value_or(0);
    Tile work = e_.Work(to.dtype, to.rows, phase + to.cols);
    Tile shifted = from;
    shifted.offset = from.offset - Affine::Constant(phase);
    shifted.cols += phase;
    Box moved = box;
    moved.col_begin = box.col_begin + Bound::Of(phase);
    moved.col_end = box.col_end + Bound::Of(phase);
    Rows(work, shifted, moved);
    Relayout(e_, to, work.Part(0, phase, to.rows, to.cols), to.box);
  }

  /*! \brief `from` steps by one element along its rows. */
  void ByColumns(const Tile& to, const Tile& from, const Box& box) {
    // as many columns of `to` at a time as the UB has room for
    int64_t row_bytes = RoundUp(to.rows * to.bytes, kBlockBytes),
            most = std::max<int64_t>(e_.FreeBytes() / 2 / row_bytes, 1);
    int64_t some = std::min(to.cols, most < kSquare ? most : most / kSquare * kSquare);
    Tile work = e_.Work(to.dtype, some, to.rows);
    for (int64_t first = 0; first < to.cols; first += some) {
      int64_t cols = std::min(some, to.cols - first);
      Tile part = work.Part(0, 0, cols, to.rows);
      Rows(part, from.Part(0, first, to.rows, cols).Turned(), Turned(Clipped(box, first, cols)));
      Turn(e_, to.Part(0, first, to.rows, cols), part.Turned(), Clipped(to.box, first, cols), !spares_);
    }
  }

  /*! \brief Rows of the elements from the first to the last one wanted. */
  void Span(const Tile& to, const Tile& from, const Box& box) {
    int64_t step = from.col_stride, span = (to.cols - 1) * step + 1;
    Tile source = from;
    source.cols = span;
    source.col_stride = 1;
    Box wide = box;
    wide.col_begin = box.col_begin * step;
    wide.col_end = (box.col_end - Bound::Of(1)) * step + Bound::Of(1);
    Tile work = e_.Work(to.dtype, to.rows, span);
    Rows(work, source, wide);
    Tile picked = work;
    picked.cols = to.cols;
    picked.col_stride = step;
    Relayout(e_, to, picked, to.box);
  }

  /*! \brief A block for each element, row after row. */
  void Scattered(const Tile& to, const Tile& from, const Box& box) {
    int64_t block = kBlockBytes / to.bytes;
    int64_t some = std::min(to.cols, std::max<int64_t>(e_.FreeBytes() / 2 / kBlockBytes, 1));
    Tile work = e_.Work(to.dtype, some, 1);
    e_.Note("loads " + std::to_string(to.rows * to.cols) + " elements into a block each");
    for (int64_t row = 0; row < to.rows; ++row) {
      for (int64_t first = 0; first < to.cols; first += some) {
        int64_t cols = std::min(some, to.cols - first);
        Tile part = work.Part(0, 0, cols, 1), column = from.Part(row, first, 1, cols).Turned();
        Box clipped = Clipped(box, first, cols);
        clipped.col_end = EndInRow(clipped, row);
        clipped.row_begin = Bound::Of(0);
        clipped.row_end = Bound::Of(1);
        Rows(part, column, Turned(clipped));
        Tile picked = part.Turned();
        picked.col_stride = block;
        Tile target = to.Part(row, first, 1, cols);
        // without a pad there is nothing outside of the box
        Relayout(e_, target, picked, pad_ ? Box::Of(target.rows, target.cols) : clipped);
      }
    }
  }

 private:
  std::string PadText(const Tile& to, const Box& box) {
    bool whole_rows = box.AllCols(to.cols) && to.cols * to.bytes % kBlockBytes == 0;
    if (whole_rows) return "";
    return e_.Literal(to.dtype, *pad_);
  }

  /*! \brief The part of a box in columns [first, first + cols), counted from there. */
  Box Clipped(const Box& box, int64_t first, int64_t cols) {
    if (first == 0 && box.col_end.range.high <= cols) return box;
    Box frame = box;
    frame.col_begin = Bound::Of(0);
    frame.col_end = Bound::Of(cols);
    Box moved = box;
    moved.col_begin = box.col_begin - Bound::Of(first);
    moved.col_end = box.col_end - Bound::Of(first);
    return Both(e_, moved, frame);
  }

  Emitter& e_;
  const std::optional<ffi::Any>& pad_;
  bool spares_;
};

}  // namespace

void Load(Emitter& e, Tile to, Tile from, const std::optional<ffi::Any>& pad, const Landing& landing) {
  if (to.cols == 1 && to.rows > 1) {
    to = to.Turned();
    from = from.Turned();
  }
  if (to.cols == 1) {
    from.col_stride = 1;
    from.col_pitch.reset();
  }
  Box box = SameBox(to.box, from.box) ? to.box : Both(e, to.box, from.box);
  Loader loader(&e, pad, landing.spares);
  bool repeated = (from.col_stride == 0 && to.cols > 1 && box.AllCols(to.cols)) ||
                  (from.row_stride == 0 && to.rows > 1 && box.AllRows(to.rows));
  if (repeated) {
    // one of what repeats, then a view that stays on it
    Tile one = from.Part(0, 0, from.row_stride == 0 ? 1 : to.rows, from.col_stride == 0 ? 1 : to.cols);
    if (from.row_stride != 0) one.box.row_begin = box.row_begin, one.box.row_end = box.row_end;
    if (from.col_stride != 0) one.box.col_begin = box.col_begin, one.box.col_end = box.col_end;
    Tile work = e.Work(to.dtype, one.rows, one.cols);
    Load(e, work, one, pad, {});
    Tile view = work;
    if (one.rows < to.rows) view.row_stride = 0;
    if (one.cols < to.cols) view.col_stride = 0;
    view.rows = to.rows;
    view.cols = to.cols;
    Relayout(e, to, view, to.box);
    return;
  }
  bool padded = pad && !box.Whole(to.rows, to.cols);
  if (padded && to.bytes == 8 && e.Literal(to.dtype, *pad) != e.Literal(to.dtype, ffi::Any(int64_t{0}))) {
    // DataCopyPad pads elements of 8 bytes with 0 alone
    Tile loaded = e.Work(to.dtype, to.rows, to.cols), all = e.Work(to.dtype, to.rows, to.cols);
    from.box = box;
    loaded.box = box;
    Load(e, loaded, from, std::nullopt, {});
    FillTile(e, all, *pad);
    Relayout(e, all, loaded, box);
    Relayout(e, to, all, to.box);
    return;
  }
  if (from.RowsDense()) {
    int64_t block = kBlockBytes / to.bytes;
    auto at_block = [&](const Bound& bound) { return bound.Constant() && bound.range.low % block == 0; };
    bool exact = at_block(box.col_begin) && (at_block(box.col_end) || box.AllCols(to.cols)) &&
                 (!pad || box.Whole(to.rows, to.cols));
    bool direct = to.RowsDense() && RowsAligned(to) && landing.row_ends_free && (exact || !landing.spares);
    if (direct) {
      loader.Rows(to, from, box);
    } else {
      loader.Beside(to, from, box);
    }
  } else if (from.row_stride == 1) {
    loader.ByColumns(to, from, box);
  } else if (from.col_stride > 0 && from.col_stride * to.bytes <= kCloseBytes) {
    loader.Span(to, from, box);
  } else {
    loader.Scattered(to, from, box);
  }
}

}  // namespace uir::codegen::ascend
