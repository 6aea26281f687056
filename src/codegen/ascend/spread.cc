// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/spread.h"

#include <algorithm>
#include <utility>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/spans.h"
#include "codegen/ascend/tile_ops.h"
#include "codegen/ascend/vector.h"

namespace uir::codegen::ascend {
namespace {

/*! \brief Elements that a repeat of Brcb reads, one block each. */
constexpr int64_t kBrcbElements = 8;

/*! \brief The target, the operand with a value for every element, and the blocks with one for every row. */
struct Operands {
  Tile target;
  Tile whole;
  Tile blocks;
  /*! \brief Whether the blocks are the first source. */
  bool blocks_first;
};

/*! \brief A slice of such a function: where all are one column, which has one value in all rows, as one row. */
Tile AlongRows(Emitter& e, const ISlice& slice) {
  Tile tile = e.TileOf(slice);
  return slice->cols == 1 && slice->rows > 1 ? tile.Turned() : tile;
}

/*! \brief One call over `repeats` repeats of `mask` elements; `steps`: blocks from a repeat to the next. */
std::string RepeatedSpread(Emitter& e, const std::string& api, const Operands& o, const std::vector<std::string>& at,
                           int64_t mask, const std::string& repeats, const std::vector<int64_t>& steps) {
  std::vector<std::string> tensors = at, strides = {"1", "1", "0"}, apart;
  for (int64_t step : steps) apart.push_back(std::to_string(step));
  if (o.blocks_first) {
    std::swap(tensors[1], tensors[2]);
    std::swap(strides[1], strides[2]);
    std::swap(apart[1], apart[2]);
  }
  strides.insert(strides.end(), apart.begin(), apart.end());
  std::vector<std::string> args = tensors;
  args.insert(args.end(), {std::to_string(mask), repeats});
  args.push_back(e.Call("BinaryRepeatParams", "struct", {}, strides));
  return e.Call(api, "repeat", {ElementType(o.target.dtype)}, args) + ";";
}

/*! \brief By columns where rows are many (a repeat for each row), else row by row. */
void OverRows(Emitter& e, const std::string& api, const Operands& o, const Bound& rows) {
  int64_t each = kRepeatBytes / o.target.bytes, cols = o.target.cols, per = kBlockBytes / o.target.bytes;
  int64_t by_cols = CeilDiv(cols, each) * CeilDiv(rows.most(), kMostRepeats);
  bool reached = std::max(RowBlocks(o.target), RowBlocks(o.whole)) <= kMostRepeats;
  std::vector<std::string> lines;
  if (rows.most() > 1 && by_cols <= rows.most() && reached) {
    for (int64_t row = 0; row < rows.most(); row += kMostRepeats) {
      for (int64_t col = 0; col < cols; col += each) {
        lines.push_back(RepeatedSpread(e, api, o,
                                       {e.At(o.target.Part(row, col, 1, 1)), e.At(o.whole.Part(row, col, 1, 1)),
                                        e.At(o.blocks.Part(0, row * per, 1, 1))},
                                       std::min(each, cols - col), RestText(rows, row, kMostRepeats),
                                       {RowBlocks(o.target), RowBlocks(o.whole), 1}));
      }
    }
  } else {
    bool one = rows.Constant() && rows.most() == 1;
    std::string row = one ? "0" : e.Fresh("r"), indent = one ? "" : "  ";
    if (!one) lines.push_back(ForText(row, "0", rows.text) + " {");
    auto at = [&](const Tile& tile, int64_t col, int64_t step) {
      return one ? e.At(tile.Part(0, col, 1, 1)) : e.At(tile.Part(0, col, 1, 1), TimesText(row, step));
    };
    for (int64_t col = 0; col < cols;) {
      int64_t repeats = std::min(kMostRepeats, (cols - col) / each), mask = each;
      if (repeats == 0) {
        repeats = 1;
        mask = cols - col;
      }
      lines.push_back(indent + RepeatedSpread(e, api, o,
                                              {at(o.target, col, o.target.row_stride),
                                               at(o.whole, col, o.whole.row_stride), at(o.blocks, 0, per)},
                                              mask, std::to_string(repeats), {8, 8, 0}));
      col += repeats * mask;
    }
    if (!one) lines.emplace_back("}");
  }
  auto counted = [&](Tile tile) {
    tile.rows = rows.most();
    return tile;
  };
  Tile read = o.blocks;
  read.cols = rows.most() * per;
  e.Do("V", lines, {Reads(counted(o.whole)), Reads(read), Writes(counted(o.target))});
}

}  // namespace

void EachBlocks(Emitter& e, const Tile& source, const Bound& rows,
                const std::function<void(int64_t, int64_t, const Tile&, const Bound&)>& use) {
  Tile column = AsRow(source);
  if (column.rows > 1 || column.align < kBlockBytes) {
    Tile dense = e.Work(source.dtype, 1, source.rows);
    Relayout(e, dense, source.Turned(), {Bound::Of(0), Bound::Of(1), source.box.row_begin, source.box.row_end});
    column = dense;
  }
  int64_t per = kBlockBytes / source.bytes;
  // a chunk reads whole repeats of Brcb, and starts at a block
  int64_t unit = std::max(kBrcbElements, per);
  int64_t chunk = std::min(RoundUp(rows.most(), unit), std::max(unit, WorkBytes(e) / kBlockBytes / unit * unit));
  chunk = std::min(chunk, kMostRepeats / unit * unit * kBrcbElements);
  Tile blocks = e.Work(source.dtype, 1, chunk * per);
  std::string type = ElementType(source.dtype);
  for (int64_t row = 0; row < rows.most(); row += chunk) {
    int64_t most = std::min(chunk, rows.most() - row);
    Tile from = column.Part(0, row, 1, most), made = blocks;
    made.cols = RoundUp(most, kBrcbElements) * per;
    from.cols = RoundUp(most, kBrcbElements);
    std::vector<std::string> args = {e.At(made), e.At(from),
                                     std::to_string(RoundUp(most, kBrcbElements) / kBrcbElements),
                                     e.Call("BrcbRepeatParams", "struct", {}, {"1", "8"})};
    e.Do("V", e.Call("Brcb", "repeat", {type}, args) + ";", {Reads(from), Writes(made)});
    Bound n = rows.Constant()       ? Bound::Of(most)
              : rows.most() == most ? rows
                                    : PartOf(e, rows, std::to_string(row), most);
    use(row, most, blocks, n);
  }
}

bool IsSpread(const ISlice& slice) {
  if (slice->pointer->level == "dram") return false;
  return slice->cols > 1 ? slice->col_stride == 0 : slice->rows > 1 && slice->row_stride == 0;
}

bool SpreadReaches(Emitter& e, const IOp& iop) {
  Tile target = AlongRows(e, iop->targets[0]), whole = AlongRows(e, iop->sources[IsSpread(iop->sources[0]) ? 1 : 0]);
  const Box& box = target.box;
  bool from_start = box.row_begin.Constant() && box.row_begin.range.low == 0;
  if (e.SparesOutside(iop->targets[0]) && !(from_start && box.AllCols(target.cols))) return false;
  return target.RowsDense() && RowsAligned(target) && whole.RowsDense() && RowsAligned(whole);
}

void EmitSpread(Emitter& e, const std::string& api, const IOp& iop) {
  bool first = IsSpread(iop->sources[0]);
  Operands o;
  o.blocks_first = first;
  o.target = AlongRows(e, iop->targets[0]);
  o.whole = AlongRows(e, iop->sources[first ? 1 : 0]);
  Tile column = AlongRows(e, iop->sources[first ? 0 : 1]);
  column.cols = 1;
  column.col_stride = 1;
  column.box.col_begin = Bound::Of(0);
  column.box.col_end = Bound::Of(1);
  const Box& box = o.target.box;
  EachBlocks(e, column, box.row_end, [&](int64_t row, int64_t most, const Tile& blocks, const Bound& n) {
    Operands part = o;
    part.target = o.target.Part(row, 0, most, o.target.cols);
    part.whole = o.whole.Part(row, 0, most, o.whole.cols);
    part.blocks = blocks;
    OverRows(e, api, part, n);
  });
}

}  // namespace uir::codegen::ascend
