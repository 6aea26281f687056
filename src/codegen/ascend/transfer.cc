// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/transfer.h"

#include <algorithm>

#include "codegen/ascend/api.h"

namespace uir::codegen::ascend {

namespace {

/*! \brief Limits of DataCopyParams and DataCopyExtParams. */
constexpr int64_t kMostRows = 4095, kMostBlocks = 65535, kMostGapBytes = UINT32_MAX;

/*! \brief What one call copies. */
struct Piece {
  Bound rows, cols;
  /*! \brief Elements of the first block before the first column. */
  Bound phase;
  /*! \brief Elements from the tiles' first ones. */
  Bound ub_at, gm_at;
};

class Copier {
 public:
  Copier(Emitter* e, const Tile& ub, const Tile& gm, bool load, const std::string& pad)
      : e_(*e), ub_(ub), gm_(gm), load_(load), pad_(pad), block_(kBlockBytes / ub.bytes) {
    type_ = TypeOf(ub.dtype).stored;
  }

  /*! \brief The call for a piece, without a semicolon. */
  std::string Text(const Piece& piece, const std::string& ub_more = "", const std::string& gm_more = "") const {
    std::string ub = e_.At(ub_, piece.ub_at, ub_more), gm = e_.At(gm_, piece.gm_at, gm_more);
    std::string form = load_ ? "load" : "store";
    std::vector<std::string> operands = load_ ? std::vector<std::string>{ub, gm} : std::vector<std::string>{gm, ub};
    auto call = [&](const std::string& name, const std::string& which, const std::vector<std::string>& more) {
      std::vector<std::string> args = operands;
      args.insert(args.end(), more.begin(), more.end());
      return e_.Call(name, which, {type_}, args);
    };
    if (RowOfBlocks(piece)) {
      return call("DataCopy", form + ".rows",
                  {Params("DataCopyParams", {"1", FloorDiv(piece.cols, block_).text, "0", "0"})});
    }
    if (Blocks(piece)) {
      if (Single(piece)) {
        Bound count = piece.rows * piece.cols.range.low;
        if (count.Constant()) return call("DataCopy", form, {count.text});
        return call("DataCopy", form + ".rows",
                    {Params("DataCopyParams", {"1", (piece.rows * (piece.cols.range.low / block_)).text, "0", "0"})});
      }
      int64_t length = piece.cols.range.low / block_;
      std::string ub_gap = std::to_string(ub_.row_stride / block_ - length),
                  gm_gap = std::to_string(gm_.row_stride / block_ - length);
      return call("DataCopy", form + ".rows",
                  {Params("DataCopyParams", {piece.rows.text, std::to_string(length), load_ ? gm_gap : ub_gap,
                                             load_ ? ub_gap : gm_gap})});
    }
    Bound bytes = piece.cols * ub_.bytes;
    Bound gm_gap = PitchBytes() - bytes;
    Bound ub_gap = Bound::Of(ub_.row_stride / block_) - CeilDiv(piece.phase + piece.cols, block_);
    if (piece.rows.range.high <= 1) gm_gap = ub_gap = Bound::Of(0);
    std::vector<std::string> more = {
        Params("DataCopyExtParams",
               {piece.rows.text, bytes.text, (load_ ? gm_gap : ub_gap).text, (load_ ? ub_gap : gm_gap).text, "0"})};
    if (load_) {
      bool padded = !pad_.empty();
      Bound right = CeilDiv(piece.phase + piece.cols, block_) * block_ - piece.phase - piece.cols;
      more.push_back(e_.Call("DataCopyPadExtParams", "struct", {type_},
                             {padded ? "true" : "false", piece.phase.text, padded ? right.text : "0",
                              padded ? pad_ : IntLiteralOfZero()}));
    }
    return call("DataCopyPad", form, more);
  }

  /*! \brief Whether rows must be copied one by one. */
  bool RowByRow(const Piece& piece) const {
    if (piece.rows.range.high <= 1) return false;
    // where sizes decide the pitch, rows lie within a dimension and do not overlap
    if (gm_.row_pitch) return PitchBytes().range.high > kMostGapBytes;
    int64_t least = (gm_.row_stride - piece.cols.range.high) * gm_.bytes;
    return least < 0 || gm_.row_stride * gm_.bytes > kMostGapBytes;
  }

 private:
  /*! \brief Bytes from row to row in global memory. */
  Bound PitchBytes() const { return e_.RowsOf(gm_, Bound::Of(1)) * gm_.bytes; }

  std::string Params(const std::string& name, const std::vector<std::string>& args) const {
    return e_.Call(name, "struct", {}, args);
  }

  std::string IntLiteralOfZero() const { return e_.Literal(ub_.dtype, ffi::Any(int64_t{0})); }

  /*! \brief Whether one row, or rows without gaps on both sides. */
  bool Single(const Piece& piece) const {
    if (piece.rows.range.high <= 1) return true;
    if (gm_.row_pitch) return false;
    int64_t cols = piece.cols.range.low;
    return ub_.row_stride == cols && gm_.row_stride == cols;
  }

  /*! \brief Whether one row whose length only the run knows, and which is whole blocks. */
  bool RowOfBlocks(const Piece& piece) const {
    return piece.rows.range.high <= 1 && !piece.cols.Constant() && piece.cols.IsMultiple(block_) &&
           piece.phase.Constant() && piece.phase.range.low == 0 && piece.cols.range.high / block_ <= kMostBlocks;
  }

  /*! \brief Whether rows and gaps are whole blocks within the limits of DataCopy. */
  bool Blocks(const Piece& piece) const {
    if (!piece.cols.Constant() || !piece.phase.Constant() || piece.phase.range.low != 0) return false;
    int64_t cols = piece.cols.range.low;
    if (cols % block_ != 0 || cols == 0 || (piece.rows.Constant() && piece.rows.range.low == 0)) return false;
    if (Single(piece)) return piece.rows.range.high * cols / block_ <= kMostBlocks;
    if (gm_.row_pitch) return false;
    int64_t length = cols / block_, gap = gm_.row_stride / block_ - length;
    return gm_.row_stride % block_ == 0 && 0 <= gap && gap <= kMostBlocks && length <= kMostBlocks &&
           ub_.row_stride / block_ - length <= kMostBlocks;
  }

  Emitter& e_;
  const Tile& ub_;
  const Tile& gm_;
  bool load_;
  std::string pad_;
  int64_t block_;
  std::string type_;
};

}  // namespace

void Transfer(Emitter& e, const Tile& ub, const Tile& gm, const Box& box, bool load, const std::string& pad) {
  Copier copier(&e, ub, gm, load, pad);
  Piece piece;
  piece.rows = AtLeastZero(e, box.row_end - box.row_begin, "row_count");
  piece.cols = AtLeastZero(e, box.col_end - box.col_begin, "col_count");
  piece.phase = Mod(box.col_begin, kBlockBytes / ub.bytes);
  piece.ub_at = box.row_begin * ub.row_stride + box.col_begin - piece.phase;
  piece.gm_at = e.RowsOf(gm, box.row_begin) + box.col_begin;
  if (piece.rows.range.high == 0 || piece.cols.range.high == 0) return;
  TVM_FFI_CHECK(load || (piece.phase.Constant() && piece.phase.range.low == 0), InternalError)
      << "a store starts within a block";
  std::vector<std::string> lines;
  if (copier.RowByRow(piece)) {
    std::string row = e.Fresh("row");
    Piece one = piece;
    one.rows = Bound::Of(1);
    std::string gm_more = gm.row_stride == 0 ? "" : row + " * " + e.RowsOf(gm, Bound::Of(1)).text;
    lines = {ForText(row, "0", piece.rows.text),
             "  " + copier.Text(one, row + " * " + std::to_string(ub.row_stride), gm_more) + ";"};
    lines = WhereSome(lines, {piece.cols});
  } else if (piece.rows.range.high <= kMostRows) {
    lines = WhereSome({copier.Text(piece) + ";"}, {piece.rows, piece.cols});
  } else {
    for (int64_t first = 0; first < piece.rows.range.high; first += kMostRows) {
      Piece some = piece;
      int64_t most = std::min(kMostRows, piece.rows.range.high - first);
      some.rows =
          piece.rows.Constant()
              ? Bound::Of(most)
              : AtLeastZero(e, Smaller(e, piece.rows - Bound::Of(first), Bound::Of(most), "row_count"), "row_count");
      some.ub_at = piece.ub_at + Bound::Of(first * ub.row_stride);
      some.gm_at = piece.gm_at + e.RowsOf(gm, Bound::Of(first));
      for (const std::string& line : WhereSome({copier.Text(some) + ";"}, {some.rows, some.cols}))
        lines.push_back(line);
    }
  }
  Tile there = gm.Around(box), here = ub.Around(box);
  e.Do(load ? "MTE2" : "MTE3", lines, {there.Region(!load), load ? BlocksOf(here, true) : here.Region(false)});
}

}  // namespace uir::codegen::ascend
