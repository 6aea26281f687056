// SPDX-License-Identifier: Apache-2.0
// Reductions over the columns of a tile, one result per row.
//
// Order of a sum: rows longer than a repeat shrink eightfold by BlockReduce (a tree over 8 neighbours) where they lie
// densely, or have a length that only the run knows; else halves are added onto each other.  WholeReduce (a tree over
// up to 64) ends it.  Integers and products, which these functions lack, are folded down to one block; its lanes are
// gathered and combined pairwise.
#include <algorithm>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/functions.h"
#include "codegen/ascend/index_row.h"
#include "codegen/ascend/reduce.h"
#include "codegen/ascend/spans.h"
#include "codegen/ascend/vector.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief One chunk of rows on its way from (rows, cols) to (rows, 1). */
class RowReduction {
 public:
  RowReduction(Emitter& e, const Folding& folding, const Bound& rows) : e_(e), f_(folding), rows_(rows) {
    bytes_ = BytesOf(folding.dtype);
    lanes_ = (folding.across.empty() ? kBlockBytes : kRepeatBytes) / bytes_;
  }

  //! \param source Of the dtype of the computation; rows start at blocks.
  //! \param cols How many columns count, from the first on.
  //! \param result (rows, 1), at any row stride.
  void Run(Tile source, const Bound& cols, const Tile& result) {
    current_ = source;
    width_ = cols;
    bool wide = width_.most() > lanes_ || (f_.across.empty() && !cols.Constant());
    if (wide && !Shrinks() && !EndsAnywhere()) Gather(lanes_);
    while (width_.most() > lanes_) {
      if (Shrinks()) {
        Shrink();
      } else if (EndsAnywhere()) {
        ShrinkMasked();
      } else {
        Halve();
      }
    }
    if (f_.across.empty()) {
      Lanes(result);
    } else {
      Whole(result);
    }
  }

 private:
  /*! \brief Whether there is a BlockReduce that computes as a fold does. */
  bool HasBlocks() const { return bytes_ == 4 && !f_.across.empty(); }
  /*! \brief Whether BlockReduce can shrink all rows as one run. */
  bool Shrinks() const {
    return HasBlocks() && width_.Constant() && width_.most() % lanes_ == 0 &&
           (current_.row_stride == width_.most() || rows_.most() == 1);
  }
  /*! \brief Whether BlockReduce can shrink rows of which only the run knows the length. */
  bool EndsAnywhere() const { return HasBlocks() && !width_.Constant(); }

  void Shrink() {
    int64_t width = width_.most() / 8;
    Tile made = e_.Work(f_.dtype, rows_.most(), width, width);
    int64_t repeats = rows_.most() * width_.most() / lanes_;
    std::vector<std::string> lines;
    for (int64_t done = 0; done < repeats; done += kMostRepeats) {
      int64_t n = std::min(kMostRepeats, repeats - done);
      std::string count = std::to_string(n);
      if (!rows_.Constant()) {
        std::string rest = (rows_ * (width_.most() / lanes_) - Bound::Of(done)).text;
        count = done == 0 ? MinText(rest, count) : "(" + rest + " < 0 ? 0 : " + MinText("(" + rest + ")", count) + ")";
      }
      lines.push_back(ShrinkText(e_.At(made, std::to_string(done * 8)), e_.At(current_, std::to_string(done * lanes_)),
                                 count, std::to_string(lanes_), 1, 8));
    }
    Tile from = current_;
    from.cols = width_.most();
    e_.Do("V", lines, {Reads(from), Writes(made)});
    current_ = made;
    width_ = Bound::Of(width);
  }

  //! \brief Eight neighbours to one in rows that end anywhere, the last repeat under a mask: blocks behind a row's end
  //! get no result, and nobody reads it.
  void ShrinkMasked() {
    width_ = NotNegative(width_);
    const int64_t repeats = CeilDiv(width_.most(), lanes_), width = 8 * repeats;
    Tile made = e_.Work(f_.dtype, rows_.most(), width, width);
    std::vector<std::string> lines;
    if (2 * rows_.most() <= repeats) {
      for (int64_t row = 0; row < rows_.most(); ++row) {
        std::vector<std::string> one = ShrinkRow(made, row);
        if (rows_.least() <= row) one = tiles::Under("if (" + rows_.text + " > " + std::to_string(row) + ")", one);
        lines.insert(lines.end(), one.begin(), one.end());
      }
    } else {
      const int64_t blocks = RowBlocks(current_);
      for (int64_t row = 0; row < rows_.most(); row += kMostRepeats) {
        for (int64_t k = 0; k < repeats; ++k) {
          Tile to = made.Part(row, 8 * k, 1, 1), from = current_.Part(row, lanes_ * k, 1, 1);
          // what is left of the row, and is more than nothing under the condition
          Bound rest = width_ - Bound::Of(lanes_ * k);
          rest.range.low = std::max<int64_t>(rest.range.low, 0);
          std::string count = RestText(rows_, row, kMostRepeats), mask = RestText(rest, 0, lanes_);
          WhereMore(&lines, width_, lanes_ * k, ShrinkText(e_.At(to), e_.At(from), count, mask, repeats, blocks));
        }
      }
    }
    Tile from = current_;
    from.cols = width_.most();
    e_.Do("V", lines, {Reads(from), Writes(made)});
    current_ = made;
    width_ = CeilDiv(width_, 8);
  }

  /*! \brief Of one row: its full repeats follow each other. */
  std::vector<std::string> ShrinkRow(const Tile& made, int64_t row) {
    std::vector<std::string> lines;
    Tile to = made.Part(row, 0, 1, 1), from = current_.Part(row, 0, 1, 1);
    const Bound full = FloorDiv(width_, lanes_), rest = Mod(width_, lanes_);
    for (int64_t done = 0; done < full.most(); done += kMostRepeats) {
      std::string first = e_.At(to, std::to_string(8 * done)), second = e_.At(from, std::to_string(lanes_ * done));
      std::string count = RestText(full, done, kMostRepeats);
      WhereMore(&lines, full, done, ShrinkText(first, second, count, std::to_string(lanes_), 1, 8));
    }
    if (rest.most() > 0) {
      std::string first = e_.At(to, (full * 8).text), second = e_.At(from, (full * lanes_).text);
      WhereMore(&lines, rest, 0, ShrinkText(first, second, "1", rest.text, 1, 8));
    }
    return lines;
  }

  std::string ShrinkText(const std::string& to, const std::string& from, const std::string& count,
                         const std::string& mask, int64_t results, int64_t blocks) const {
    return e_.Call("BlockReduce" + f_.across, "repeat", {ElementType(f_.dtype)},
                   {to, from, count, mask, std::to_string(results), "1", std::to_string(blocks)}) +
           ";";
  }

  /*! \brief A line, under a condition where a number may be no more than `least`. */
  static void WhereMore(std::vector<std::string>* lines, const Bound& number, int64_t least, const std::string& line) {
    std::vector<std::string> one = {line};
    if (number.least() <= least) one = tiles::Under("if (" + number.text + " > " + std::to_string(least) + ")", one);
    lines->insert(lines->end(), one.begin(), one.end());
  }

  /*! \brief The upper half onto the lower one, in a work buffer. */
  void Halve() {
    int64_t half = RoundUp((width_.most() + 1) / 2, 8 * (bytes_ == 2 ? 2 : 1)), rest = width_.most() - half;
    Fold(e_, f_, current_, current_, current_.Part(0, half, rows_.most(), rest), rows_, Bound::Of(rest));
    width_ = Bound::Of(half);
  }

  /*! \brief Columns onto each other, into a work buffer of a power of two times `unit` columns. */
  void Gather(int64_t unit) {
    int64_t cols = width_.most(), held = unit;
    int64_t room = std::max<int64_t>(unit, WorkBytes(e_) / (rows_.most() * bytes_));
    while (held * 4 <= cols && held * 2 <= room) held *= 2;
    Tile work = e_.Work(f_.dtype, rows_.most(), held, held);
    int64_t next = 0;
    if (!width_.Constant()) {
      FillIdentity(e_, f_, work, rows_, Bound::Of(held));
    } else if (2 * held <= cols) {
      Fold(e_, f_, work, current_.Part(0, 0, rows_.most(), held), current_.Part(0, held, rows_.most(), held), rows_,
           Bound::Of(held));
      next = 2 * held;
    } else {
      Convert(e_, work, current_.Part(0, 0, rows_.most(), held), rows_, Bound::Of(held));
      next = held;
    }
    for (; next < cols; next += held) {
      int64_t most = std::min(held, cols - next);
      Bound n = width_.Constant() ? Bound::Of(most) : PartOf(e_, width_, std::to_string(next), most);
      Fold(e_, f_, work, work, current_.Part(0, next, rows_.most(), most), rows_, n);
    }
    current_ = work;
    width_ = Bound::Of(held);
  }

  /*! \brief A repeat per row. */
  void Whole(const Tile& result) {
    if (width_.least() < 1)
      CallRows(e_, {"Duplicate", {ElementType(f_.dtype)}, {AsRow(result)}, {f_.identity}}, Bound::Of(1), rows_);
    std::vector<std::string> lines;
    std::string stride = std::to_string(rows_.most() == 1 ? 8 : RowBlocks(current_));
    for (int64_t row = 0; row < rows_.most(); row += kMostRepeats) {
      int64_t most = std::min(kMostRepeats, rows_.most() - row);
      std::string count = std::to_string(most);
      if (!rows_.Constant()) {
        std::string rest = row == 0 ? rows_.text : "(" + rows_.text + " - " + std::to_string(row) + ")";
        count = rows_.most() - row > most ? MinText(rest, count) : rest;
        if (row > 0) count = "(" + rest + " < 0 ? 0 : " + count + ")";
      }
      std::vector<std::string> args = {e_.At(result.Part(row, 0, 1, 1)),
                                       e_.At(current_.Part(row, 0, 1, 1)),
                                       width_.text,
                                       count,
                                       std::to_string(rows_.most() == 1 ? 1 : result.row_stride),
                                       "1",
                                       stride};
      if (f_.across != "Sum") args.push_back(EnumValue("ReduceOrder", "ORDER_ONLY_VALUE"));
      lines.push_back(e_.Call("WholeReduce" + f_.across, "repeat", {ElementType(f_.dtype)}, args) + ";");
    }
    Tile from = current_;
    from.cols = width_.most();
    e_.Do("V", lines, {Reads(from), Writes(result)});
  }

  /*! \brief The columns of one block as vectors over the rows, combined pairwise. */
  void Lanes(const Tile& result) {
    int64_t count = width_.most();
    if (count == 1 && rows_.most() == 1) {
      Convert(e_, result, current_.Part(0, 0, 1, 1), Bound::Of(1), Bound::Of(1));
      return;
    }
    Tile offsets = Offsets(e_, rows_.most(), current_.row_stride * bytes_);
    std::vector<Tile> lanes;
    for (int64_t lane = 0; lane < count; ++lane) {
      lanes.push_back(e_.Work(f_.dtype, 1, rows_.most()));
      GatherStrided(e_, lanes.back(), current_, offsets, lane * bytes_, rows_);
    }
    Tile row = AsRow(result);
    for (int64_t apart = 1; apart < count; apart *= 2) {
      for (int64_t lane = 0; lane + apart < count; lane += 2 * apart) {
        bool last = 2 * apart >= count;
        Fold(e_, f_, last ? row : lanes[lane], lanes[lane], lanes[lane + apart], Bound::Of(1), rows_);
      }
    }
    if (count == 1) Convert(e_, row, lanes[0], Bound::Of(1), rows_);
  }

  Emitter& e_;
  const Folding& f_;
  Bound rows_;
  Tile current_;
  Bound width_;
  int64_t bytes_ = 4;
  int64_t lanes_ = 64;
};

/*! \brief Bytes of work buffers that a row takes, at most. */
int64_t BytesPerRow(const Folding& folding, int64_t cols, bool copies) {
  int64_t bytes = BytesOf(folding.dtype), taken = copies ? RoundUp(cols * bytes, kBlockBytes) : 0;
  if (folding.across.empty()) return taken + 2 * kBlockBytes + 4 + (kBlockBytes / bytes) * bytes;
  return taken + RoundUp(std::max<int64_t>(cols, 1), 64) * bytes / 6;
}

}  // namespace

Tile Offsets(Emitter& e, int64_t count, int64_t step) {
  Tile index = e.Work("int32", 1, count);
  IndexRow(e, index, count, "0", step);
  return e.As(index, "uint32");
}

void GatherStrided(Emitter& e, const Tile& target, const Tile& source, const Tile& offsets, int64_t base,
                   const Bound& count) {
  std::string type = ElementType(target.dtype);
  Tile to = target;
  to.cols = count.most();
  e.Do("V",
       e.Call("Gather", "count", {type}, {e.At(to), e.At(source), e.At(offsets), std::to_string(base), count.text}) +
           ";",
       {Writes(to), Reads(source), Reads(offsets)});
}

void ReduceRow(Emitter& e, const Folding& folding, const Tile& t, const Tile& s) {
  TVM_FFI_CHECK(RowsAligned(s) && s.RowsDense(), InternalError) << "rows that do not start at blocks";
  bool converts = folding.dtype != folding.stored;
  const Bound &row_begin = s.box.row_begin, &begin = s.box.col_begin;
  Bound rows = s.box.row_end, cols = s.box.col_end;
  if (row_begin.text != "0") {
    const std::string count = s.box.row_end.text + " - " + row_begin.text;
    const bool ordered = s.box.row_end.least() >= row_begin.most();
    rows = {ordered ? "(" + count + ")" : "(" + count + " < 0 ? 0 : " + count + ")", {0, s.rows}};
    if (s.box.row_end.Constant() && row_begin.Constant()) rows = s.box.row_end - row_begin;
  }
  // rows of the target without a source
  if (t.box.row_end.text != s.box.row_end.text || t.box.row_begin.text != row_begin.text || cols.most() == 0) {
    Tile all = t;
    if (!converts) {
      CallRows(e, {"Duplicate", {ElementType(folding.dtype)}, {AsRow(all)}, {folding.identity}}, Bound::Of(1),
               Bound::Of(t.rows));
    } else {
      Tile held = e.Work(folding.dtype, 1, t.rows);
      FillIdentity(e, folding, held, Bound::Of(1), Bound::Of(t.rows));
      Convert(e, AsRow(all), held, Bound::Of(1), Bound::Of(t.rows));
    }
  }
  if (rows.most() <= 0 || cols.most() == 0) return;
  bool shifted = begin.range.high > 0, copies = converts || shifted;
  int64_t per_row = BytesPerRow(folding, s.cols, copies);
  int64_t chunk = std::clamp<int64_t>(WorkBytes(e) / per_row, 1, rows.most());
  // results of a chunk start at a block
  if (chunk < rows.most() && chunk > 16) chunk = chunk / 16 * 16;
  bool direct = !converts && (t.row_stride == 1 || t.rows == 1 || !folding.across.empty());
  bool unaligned = chunk < rows.most() && chunk % 16 != 0;
  if (!converts && folding.across.empty() && t.rows > 1 && t.row_stride != 1) {
    e.Refuse("The results of a reduction of " + folding.stored + " lie apart.", "a row stride of 1",
             std::to_string(t.row_stride));
  }
  if (unaligned && !(direct && !folding.across.empty())) {
    e.LacksRoom("The unified buffer has no room for the work of a reduction.",
                {"unified buffer", 16 * per_row, WorkBytes(e)}, std::to_string(16 * per_row) + " bytes",
                std::to_string(WorkBytes(e)) + " bytes");
  }
  Tile from = FromRow(s, row_begin), to = FromRow(t, row_begin);
  Tile copy = copies ? e.Work(folding.dtype, chunk, s.cols) : s;
  Tile result = converts ? e.Work(folding.dtype, 1, chunk) : t;
  auto one = [&](const Tile& part, const Tile& out, const Bound& n) {
    Tile current = part;
    if (copies) {
      current = copy;
      current.rows = n.most();
      Convert(e, current, part, n, cols);
    }
    if (shifted) FillIdentity(e, folding, current, n, begin);
    Tile own = converts ? result : out;
    if (converts) {
      own.rows = n.most();
      own.cols = 1;
      own.row_stride = 1;
    }
    RowReduction(e, folding, n).Run(current, cols, own);
    if (converts) Convert(e, AsRow(out), AsRow(own), Bound::Of(1), n);
  };
  if (chunk >= rows.most()) {
    one(from.Part(0, 0, rows.most(), s.cols), to.Part(0, 0, rows.most(), 1), rows);
    return;
  }
  for (int64_t row = 0; row < rows.most(); row += chunk) {
    int64_t most = std::min(chunk, rows.most() - row);
    Bound n = rows.Constant() ? Bound::Of(most) : PartOf(e, rows, std::to_string(row), most);
    one(from.Part(row, 0, most, s.cols), to.Part(row, 0, most, 1), n);
  }
}

}  // namespace uir::codegen::ascend
