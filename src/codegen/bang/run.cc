// SPDX-License-Identifier: Apache-2.0
// Printing elementwise programs: how tiles lie, chunks, the text of a step.
#include "codegen/bang/run.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/rounding.h"
#include "codegen/bang/api.h"
#include "codegen/bang/placed.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {
namespace {

using tiles::PlusText;
using tiles::TimesText;

/*! \brief Work buffers of one iOp take at most this much where more is free: longer chunks gain little. */
constexpr int64_t kMostChunkWork = 192 * 1024;
/*! \brief What a chunk is a multiple of, in elements: a vector instruction works on 128 bytes. */
constexpr int64_t kChunkUnit = 128;
/*! \brief Bytes per element of every work buffer. */
constexpr int64_t kSlotBytes = 4;
/*! \brief Rows of a tile that columns go with. */
constexpr int64_t kMostRows = 4096;

/*! \brief Where lines are printed for: what is added to the start of each tile, how many elements, which rows. */
struct Span {
  std::vector<std::string> from;
  std::string count;
  /*! \brief With columns: the row, or the first of `rows` whole rows of `cols` elements. */
  std::string row = "0";
  std::string rows = {};
  int64_t cols = 0;
  /*! \brief What is added within work buffers. */
  std::string inside = {};
};

/*! \brief Prints the steps at places given as text. */
class Runner {
 public:
  Runner(Emitter& e, const Placed& placed, const std::vector<Tile>& tiles, const Tile* work, int64_t chunk,
         const Tile* columns, const Tile* segments)
      : e_(e), placed_(placed), tiles_(tiles), work_(work), chunk_(chunk), columns_(columns), segments_(segments) {}

  /*! \brief Constants, and what has one element for a row. */
  std::vector<std::string> Constants(const std::string& count) const {
    std::vector<std::string> lines;
    for (size_t k = 0; k < placed_.steps().size(); ++k) {
      int id = static_cast<int>(k);
      if (IsConstant(id)) lines.push_back(Line(id, {{}, placed_.IsShort(id) ? std::to_string(kSegment) : count}));
      if (!IsColumn(id)) continue;
      Span whole{std::vector<std::string>(tiles_.size()), std::to_string(columns_->cols)};
      lines.push_back(Line(id, whole));
    }
    return lines;
  }

  /*! \brief All other steps. */
  std::vector<std::string> Steps(const Span& span) const {
    std::vector<std::string> lines;
    for (size_t k = 0; k < placed_.steps().size(); ++k) {
      int id = static_cast<int>(k);
      const Step& step = placed_.steps()[k];
      if (!placed_.used(id) || !Computes(step) || IsConstant(id) || step.column) continue;
      bool by_row = !span.rows.empty() &&
                    std::any_of(step.args.begin(), step.args.end(), [&](int a) { return placed_.steps()[a].column; });
      if (!by_row) {
        lines.push_back(Line(id, span));
        continue;
      }
      // a number for each row
      std::string row = e_.Fresh("r");
      Span one{span.from, std::to_string(span.cols), PlusText(span.row, row)};
      for (std::string& start : one.from) start = PlusText(start, TimesText(row, span.cols));
      one.inside = TimesText(row, span.cols);
      for (std::string& line : Looped(row, "0", span.rows, {Line(id, one)})) lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  bool IsConstant(int id) const {
    return placed_.used(id) && placed_.steps()[id].form == Step::Form::kFill && placed_.slot(id) >= 0;
  }
  bool IsColumn(int id) const {
    return placed_.used(id) && placed_.steps()[id].column && Computes(placed_.steps()[id]);
  }

  /*! \brief A step's result as a pointer to a type. */
  std::string Place(int id, const Span& span, const std::string& type) const {
    int root = placed_.Root(id);
    const Step& origin = placed_.steps()[root];
    if (origin.column) {
      if (origin.form == Step::Form::kInput) {
        const Tile& tile = tiles_[static_cast<size_t>(origin.operand) + 1];
        return Typed(e_.At(tile), ElementType(tile.dtype), type);
      }
      return Typed(e_.At(*columns_, std::to_string(placed_.slot(root) * columns_->row_stride)), "float", type);
    }
    if (placed_.IsShort(root)) {
      return Typed(e_.At(*segments_, std::to_string(placed_.slot(root) * kSegment)), "float", type);
    }
    size_t tile = origin.form == Step::Form::kInput ? static_cast<size_t>(origin.operand) + 1 : 0;
    if (origin.form == Step::Form::kInput || placed_.slot(root) < 0) {
      return Typed(e_.At(tiles_[tile], span.from[tile]), ElementType(tiles_[tile].dtype), type);
    }
    std::string at = PlusText(std::to_string(placed_.slot(root) * chunk_), span.inside);
    return Typed(e_.At(*work_, at), "float", type);
  }

  /*! \brief The element of a column that belongs to a row. */
  std::string OfRow(int id, const std::string& row) const {
    const Step& step = placed_.steps()[id];
    if (step.form == Step::Form::kInput) return e_.Element(tiles_[static_cast<size_t>(step.operand) + 1], row, "0");
    return e_.Element(columns_->Part(placed_.slot(id), 0, 1, columns_->cols), "0", row);
  }

  std::string Line(int id, const Span& span) const {
    const Step& step = placed_.steps()[id];
    std::string name = "__bang_" + step.api;
    const Platform& platform = e_.platform();
    std::string number = step.per == 1 ? span.count : span.count + " * " + std::to_string(step.per);
    if (step.pack > 1) number = HalfOf(span.count, step.pack);
    std::string type = ElementType(step.dtype);
    if (step.form == Step::Form::kFill) {
      std::string to = Place(id, span, type);
      return Table().Call(e_.where(), "__bang_write_value", "count", {type}, {to, number, step.literal}, platform) +
             ";";
    }
    // operands: an address, or a number
    std::vector<std::string> operands;
    std::vector<bool> numbers;
    size_t next = 0;
    for (size_t k = 0; k < std::max(step.args.size(), step.numbers.size()); ++k) {
      bool number_given = k < step.numbers.size() && !step.numbers[k].empty();
      int arg = number_given ? -1 : step.args[next++];
      bool column = arg >= 0 && placed_.steps()[arg].column && !step.column;
      numbers.push_back(number_given || column);
      operands.push_back(number_given ? step.numbers[k]
                         : column     ? OfRow(arg, span.row)
                                      : Place(arg, span, ElementType(placed_.steps()[arg].dtype)));
    }
    std::vector<std::string> args = {Place(id, span, type)};
    args.insert(args.end(), operands.begin(), operands.end());
    if (step.api == "fusion") {
      args.insert(args.begin(), Table().EnumValue("mluFusionOpCode", step.mode, false));
      std::string form = std::string(numbers[1] ? "n" : "v") + (numbers[2] ? "n" : "v");
      args.push_back(number);
      if (form != "nn") args.push_back(number);
      return Table().Call(e_.where(), name, form, {type}, args, platform) + ";";
    }
    if (numbers.size() == 2 && numbers[1]) name += "_scalar";
    if (step.args.size() == 2 && !numbers[1] && placed_.IsShort(step.args[1])) {
      args.insert(args.end(), {number, std::to_string(kSegment)});
      return Table().Call(e_.where(), "__bang_cycle_" + step.api, "count", {type}, args, platform) + ";";
    }
    if (step.form == Step::Form::kScalar) args.push_back(step.literal);
    args.push_back(number);
    if (step.form == Step::Form::kCast) {
      // conversions of integers take the position of their point
      if (Table().Find(name, "count").params.find("fix_position") != std::string::npos) args.push_back("0");
      return Table().Call(e_.where(), name, "count", {}, args, platform) + ";";
    }
    return Table().Call(e_.where(), name, "count", {type}, args, platform) + ";";
  }

  /*! \brief A count that is a multiple of `pack`, by that. */
  static std::string HalfOf(const std::string& count, int64_t pack) {
    bool constant = count.find_first_not_of("0123456789") == std::string::npos;
    if (constant) return std::to_string(std::stoll(count) / pack);
    bool atom = count.find(' ') == std::string::npos;
    return (atom ? count : "(" + count + ")") + " / " + std::to_string(pack);
  }

  Emitter& e_;
  const Placed& placed_;
  const std::vector<Tile>& tiles_;
  const Tile* work_;
  int64_t chunk_;
  const Tile* columns_;
  const Tile* segments_;
};

}  // namespace

std::string Typed(const std::string& address, const std::string& own, const std::string& wanted) {
  if (own == wanted) return address;
  bool atom = address.find(' ') == std::string::npos;
  return "(" + wanted + " *)" + (atom ? address : "(" + address + ")");
}

namespace {

/*! \brief A bound, as the number that it is where it is the whole of a side. */
Bound Clamped(const Bound& end, int64_t length) { return end.range.low >= length ? Bound::Of(length) : end; }

/*! \brief Whether two tiles may share bytes of a memory; identical ones do not count if `same`. */
bool MayShare(const Tile& a, const Tile& b, bool same) {
  bool alike = a.base == b.base && a.bytes == b.bytes && a.row_stride == b.row_stride && a.rows == b.rows &&
               a.cols == b.cols && (a.offset - b.offset)->terms.empty() && (a.offset - b.offset)->constant == 0;
  return !(same && alike) && tiles::ShareBytes(a, b);
}

/*! \brief A program as it is placed, and the elements of a chunk. */
struct Layout {
  Placed placed;
  int64_t chunk;
  bool chunked;
};

Layout LayoutOf(Emitter& e, const Program& program, Value result, int64_t most, bool cycles) {
  Placed placed(program, result, cycles);
  int64_t chunk = RoundUp(most, kChunkUnit);
  if (placed.slots() > 0) {
    int64_t free = e.FreeBytes() - RoundUp(placed.columns() * kMostRows * kSlotBytes, kChunkUnit) -
                   placed.segments() * kSegment * kSlotBytes;
    int64_t room = std::min(kMostChunkWork, free) / (placed.slots() * kSlotBytes) / kChunkUnit * kChunkUnit;
    chunk = std::min(chunk, std::max(room, kChunkUnit));
  }
  return {placed, chunk, placed.slots() > 0 && most > chunk};
}

/*! \brief A loop over [0, end) by steps, which knows how much of a step is left. */
std::vector<std::string> Stepped(const std::string& var, const std::string& left, const std::string& end, int64_t step,
                                 const std::vector<std::string>& lines) {
  std::string most = std::to_string(step);
  std::vector<std::string> inner = lines;
  if (!left.empty()) {
    inner.insert(inner.begin(), "const int32_t " + left + " = " + end + " - " + var + " < " + most + " ? " + end +
                                    " - " + var + " : " + most + ";");
  }
  return Under("for (int32_t " + var + " = 0; " + var + " < " + end + "; " + var + " += " + most + ")", inner);
}

//! \brief Whole dense tiles with columns: rows together as far as work buffers hold them, or parts of rows.
//! \param rows Those of which columns have a number: the first ones.
std::vector<std::string> RunByRows(Emitter& e, const Runner& runner, const Layout& layout,
                                   const std::vector<Tile>& tiles, const Bound& rows) {
  int64_t cols = tiles[0].cols;
  auto at = [&](const std::string& start) { return std::vector<std::string>(tiles.size(), start); };
  if (!layout.chunked) {
    return runner.Steps({at("0"), (rows * cols).text, "0", rows.text, cols});
  }
  std::string row = e.Fresh("r"), part = e.Fresh("k"), rest = e.Fresh("m");
  int64_t together = layout.chunk / cols;
  if (together > 0) {
    bool even = rows.Constant() && rows.range.low % together == 0;
    std::string number = even ? std::to_string(together) : rest;
    std::string count = even ? std::to_string(together * cols) : TimesText(rest, cols);
    return Stepped(row, even ? "" : rest, rows.text, together,
                   runner.Steps({at(TimesText(row, cols)), count, row, number, cols}));
  }
  std::vector<std::string> lines = Stepped(part, rest, std::to_string(cols), layout.chunk,
                                           runner.Steps({at(PlusText(TimesText(row, cols), part)), rest, row}));
  return Looped(row, "0", rows.text, lines);
}

}  // namespace

void RunOnTiles(Emitter& e, const Program& program, Value result, std::vector<Tile> tiles, const Box& given,
                bool spares) {
  Program made = program;
  Box box = given;
  const bool open = !e.plan().graph()->sizes.empty();
  if (!spares) {
    box = Box::Of(tiles[0].rows, tiles[0].cols);
    // rows that sizes leave out cost nothing
    const bool first = given.row_begin.Constant() && given.row_begin.range.low == 0;
    if (first && open) box.row_end = Clamped(given.row_end, tiles[0].rows);
  }
  std::vector<bool> is_column(tiles.size(), false);
  for (const Step& step : made.steps()) {
    if (step.form == Step::Form::kInput && step.column) is_column[static_cast<size_t>(step.operand) + 1] = true;
  }
  bool columns = std::find(is_column.begin(), is_column.end(), true) != is_column.end();
  // elements that lie apart come together first
  Tile apart = tiles[0];
  for (size_t k = 0; k < tiles.size(); ++k) {
    if (is_column[k] || tiles[k].RowsDense() || tiles[k].cols == 1) continue;
    Tile dense = e.Work(tiles[k].dtype, tiles[k].rows, tiles[k].cols);
    if (k > 0) Copy(e, dense, tiles[k], given);
    tiles[k] = dense;
  }
  int64_t cols = tiles[0].cols;
  bool dense = true;
  for (size_t k = 0; k < tiles.size(); ++k) dense = dense && (is_column[k] || tiles[k].Dense());
  bool one_row = tiles[0].rows == 1 && box.AllRows(1);
  bool flat = one_row || (dense && box.AllCols(cols));
  Bound begin = box.col_begin, count = box.col_end - box.col_begin;
  if (flat && !one_row) {
    begin = box.row_begin * cols;
    count = (box.row_end - box.row_begin) * cols;
  }
  if (count.range.high <= 0) return;
  // fused functions take two elements at least, and no other operand than the first in the target's place
  Program plain = made;
  Value plain_result = result;
  std::set<int> shared;
  for (size_t k = 1; k < tiles.size(); ++k) {
    if (MayShare(tiles[0], tiles[k], false)) shared.insert(static_cast<int>(k) - 1);
  }
  if (std::optional<int> operand = Placed(made, result).Operand()) {
    // what lies there already
    const Tile& from = tiles[static_cast<size_t>(*operand) + 1];
    if (tiles[0].memory == from.memory && !MayShare(tiles[0], from, true) && MayShare(tiles[0], from, false)) return;
  }
  result = made.Settle(made.Fuse(result, shared), shared);
  // of rows that sizes leave out whole ones are missing
  const bool known = count.Constant() || open;
  bool cycles = known && (columns ? cols % kSegment == 0 : count.IsMultiple(kSegment));
  Layout layout = LayoutOf(e, made, result, count.range.high, cycles);
  const bool even = open && !count.Constant() && count.IsMultiple(2);
  int64_t last = count.Constant() ? (columns ? cols : count.range.low) % layout.chunk : even ? 0 : 1;
  bool whole = layout.chunked ? last != 1 : count.range.low > 1 || even;
  if (!whole || (columns && cols == 1)) {
    made = plain;
    result = made.Settle(plain_result, shared);
    layout = LayoutOf(e, made, result, count.range.high, cycles);
  }
  const Placed& placed = layout.placed;
  Tile work, column_work, segments;
  if (placed.segments() > 0) segments = e.Work("fp32", placed.segments(), kSegment);
  if (placed.slots() > 0) work = e.Work("fp32", placed.slots(), layout.chunk);
  if (columns) {
    column_work.cols = tiles[0].rows;
    if (placed.columns() > 0) column_work = e.Work("fp32", placed.columns(), tiles[0].rows);
  }
  Runner runner(e, placed, tiles, &work, layout.chunk, &column_work, &segments);
  std::vector<std::string> constants = runner.Constants(std::to_string(std::min(layout.chunk, count.range.high)));
  std::string number = count.text;
  std::vector<std::string> lines, inner;
  if (columns) {
    TVM_FFI_CHECK(flat && box.AllCols(cols), InternalError) << "columns beside tiles with gaps";
    lines = constants;
    inner = RunByRows(e, runner, layout, tiles, box.row_end);
    if (box.row_end.range.low <= 0) inner = Under("if (" + box.row_end.text + " > 0)", inner);
  } else {
    std::string row = e.Fresh("r"), part = e.Fresh("k"), rest = e.Fresh("m");
    std::vector<std::string> from;
    for (const Tile& tile : tiles) {
      std::string start = flat ? "0" : TimesText(row, tile.row_stride);
      start = PlusText(start, begin.text);
      from.push_back(layout.chunked ? PlusText(start, part) : start);
    }
    if (!count.Constant() && count.text.find(' ') != std::string::npos) {
      number = e.Fresh("n");
      lines.push_back("const int32_t " + number + " = " + count.text + ";");
    }
    if (layout.chunked) {
      inner = Stepped(part, rest, number, layout.chunk, runner.Steps({from, rest}));
    } else {
      inner = runner.Steps({from, number});
      if (count.range.low <= 0) inner = Under("if (" + number + " > 0)", inner);
    }
    lines.insert(lines.end(), constants.begin(), constants.end());
    if (!flat) inner = OverRows(row, box, inner);
  }
  lines.insert(lines.end(), inner.begin(), inner.end());
  std::vector<pipes::Region> regions = {Writes(tiles[0])};
  for (size_t k = 1; k < tiles.size(); ++k) regions.push_back(Reads(tiles[k]));
  const std::pair<Tile, int> buffers[] = {
      {work, placed.slots()}, {column_work, placed.columns()}, {segments, placed.segments()}};
  for (const auto& [buffer, used] : buffers) {
    if (used == 0) continue;
    regions.push_back(Writes(buffer));
    regions.push_back(Reads(buffer));
  }
  e.Do("COMPUTE", lines, regions);
  if (tiles[0].tensor != apart.tensor) Copy(e, apart, tiles[0], given);
}

void RunProgram(Emitter& e, const Program& program, Value result, const ISlice& target,
                const std::vector<ISlice>& sources) {
  std::vector<Tile> tiles = tiles::AsRows(e.TilesOf(target, sources));
  e.NoteInterval(target, program.IntervalOf(result));
  RunOnTiles(e, program, result, tiles, tiles[0].box, e.SparesOutside(target));
}

}  // namespace uir::codegen::bang
