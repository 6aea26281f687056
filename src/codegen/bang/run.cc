// SPDX-License-Identifier: Apache-2.0
/*!
 * \file run.cc
 * \brief Printing elementwise programs: how tiles lie, chunks, places of what steps make.
 */
#include "run.h"

#include <algorithm>
#include <set>

#include "api.h"
#include "copy.h"

namespace uir {
namespace codegen {
namespace bang {
namespace {

/*! \brief Work buffers of one iOp take at most this much where more is free: longer chunks gain little. */
constexpr int64_t kMostWork = 64 * 1024;
/*! \brief What a chunk is a multiple of, in elements: a vector instruction works on 128 bytes. */
constexpr int64_t kChunkUnit = 128;
/*! \brief Bytes per element of every work buffer. */
constexpr int64_t kSlotBytes = 4;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

bool Computes(const Step& step) { return step.form != Step::Form::kInput && step.form != Step::Form::kView; }

/*! \brief A program's steps that are needed, and the slot of each: a part of the work buffer, -1 for the target. */
class Placed {
 public:
  Placed(const tiles::Program& program, Value result) : steps_(program.steps()), result_(Root(result.id)) {
    int count = static_cast<int>(steps_.size());
    std::vector<int> last(count, -1);
    used_.assign(count, false);
    used_[result_] = true;
    for (int k = count; k-- > 0;) {
      if (!used_[k]) continue;
      for (int arg : steps_[k].args) used_[arg] = used_[Root(arg)] = true;
    }
    for (int k = 0; k < count; ++k) {
      if (!used_[k] || !Computes(steps_[k])) continue;
      for (int arg : steps_[k].args) last[Root(arg)] = k;
    }
    slot_.assign(count, -1);
    std::vector<int> free;
    auto own = [&] {
      if (free.empty()) return slots_++;
      int taken = free.back();
      free.pop_back();
      return taken;
    };
    // constants are filled once and keep their slots
    for (int k = 0; k < count; ++k) {
      if (used_[k] && steps_[k].form == Step::Form::kFill && k != result_) slot_[k] = own();
    }
    for (int k = 0; k < count; ++k) {
      const Step& step = steps_[k];
      if (!used_[k] || !Computes(step) || step.form == Step::Form::kFill) continue;
      std::set<int> dying;
      for (int arg : step.args) {
        int root = Root(arg);
        if (last[root] == k && slot_[root] >= 0 && steps_[root].form != Step::Form::kFill) dying.insert(slot_[root]);
      }
      // a conversion may change the width: it gets a slot of its own
      bool in_place = step.form != Step::Form::kCast;
      if (in_place) free.insert(free.end(), dying.begin(), dying.end());
      if (k != result_) slot_[k] = own();
      if (!in_place) free.insert(free.end(), dying.begin(), dying.end());
    }
  }

  const std::vector<Step>& steps() const { return steps_; }
  bool used(int id) const { return used_[id]; }
  int slot(int id) const { return slot_[id]; }
  int slots() const { return slots_; }
  /*! \brief Whether the result is an operand itself. */
  bool Operand() const { return steps_[result_].form == Step::Form::kInput; }
  int Root(int id) const {
    while (steps_[id].form == Step::Form::kView) id = steps_[id].args[0];
    return id;
  }

 private:
  std::vector<Step> steps_;
  int result_;
  std::vector<bool> used_;
  std::vector<int> slot_;
  int slots_ = 0;
};

/*! \brief Prints the steps at places given as text. */
class Runner {
 public:
  Runner(Emitter& e, const Placed& placed, const std::vector<Tile>& tiles, const Tile* work, int64_t chunk)
      : e_(e), placed_(placed), tiles_(tiles), work_(work), chunk_(chunk) {}

  std::vector<std::string> Constants(const std::string& count) const {
    std::vector<std::string> lines;
    for (size_t k = 0; k < placed_.steps().size(); ++k) {
      if (IsConstant(static_cast<int>(k))) lines.push_back(Line(static_cast<int>(k), {}, count));
    }
    return lines;
  }

  /*! \brief All other steps; `from[k]` is what is added to the start of tile k. */
  std::vector<std::string> Steps(const std::vector<std::string>& from, const std::string& count) const {
    std::vector<std::string> lines;
    for (size_t k = 0; k < placed_.steps().size(); ++k) {
      int id = static_cast<int>(k);
      if (placed_.used(id) && Computes(placed_.steps()[k]) && !IsConstant(id)) lines.push_back(Line(id, from, count));
    }
    return lines;
  }

 private:
  bool IsConstant(int id) const {
    return placed_.used(id) && placed_.steps()[id].form == Step::Form::kFill && placed_.slot(id) >= 0;
  }

  /*! \brief A step's result as a pointer to a type. */
  std::string Place(int id, const std::vector<std::string>& from, const std::string& type) const {
    int root = placed_.Root(id);
    const Step& origin = placed_.steps()[root];
    size_t tile = origin.form == Step::Form::kInput ? static_cast<size_t>(origin.operand) + 1 : 0;
    if (origin.form == Step::Form::kInput || placed_.slot(root) < 0) {
      return Typed(e_.At(tiles_[tile], from[tile]), ElementType(tiles_[tile].dtype), type);
    }
    int64_t at = placed_.slot(root) * chunk_;
    return Typed(e_.At(*work_, std::to_string(at)), "float", type);
  }

  std::string Line(int id, const std::vector<std::string>& from, const std::string& count) const {
    const Step& step = placed_.steps()[id];
    const std::string name = "__bang_" + step.api, arch = std::to_string(e_.arch());
    std::string number = step.per == 1 ? count : count + " * " + std::to_string(step.per);
    std::string type = ElementType(step.dtype);
    if (step.form == Step::Form::kFill) {
      std::string to = Place(id, from, type);
      return Table().Call(e_.where(), "__bang_write_value", "count", {type}, {to, number, step.literal}, arch) + ";";
    }
    std::vector<std::string> args = {Place(id, from, type)};
    for (int arg : step.args) args.push_back(Place(arg, from, ElementType(placed_.steps()[arg].dtype)));
    if (step.form == Step::Form::kScalar) args.push_back(step.literal);
    args.push_back(number);
    if (step.form == Step::Form::kCast) {
      // conversions of integers take the position of their point
      if (Table().Find(name, "count").params.find("fix_position") != std::string::npos) args.push_back("0");
      return Table().Call(e_.where(), name, "count", {}, args, arch) + ";";
    }
    return Table().Call(e_.where(), name, "count", {type}, args, arch) + ";";
  }

  Emitter& e_;
  const Placed& placed_;
  const std::vector<Tile>& tiles_;
  const Tile* work_;
  int64_t chunk_;
};

std::string Sum(const std::string& a, const std::string& b) {
  if (a.empty() || a == "0") return b;
  if (b.empty() || b == "0") return a;
  return a + " + " + b;
}

std::string Times(const std::string& text, int64_t factor) {
  if (factor == 0 || text == "0") return "0";
  if (factor == 1) return text;
  bool atom = text.find_first_of(" ?") == std::string::npos;
  return (atom ? text : "(" + text + ")") + " * " + std::to_string(factor);
}

/*! \brief `end - begin`. */
Bound Length(const Bound& begin, const Bound& end) {
  if (begin.Constant() && end.Constant()) return Bound::Of(end.range.low - begin.range.low);
  if (begin.Constant() && begin.range.low == 0) return end;
  Bound out = end;
  out.text = end.text + " - " + (begin.text.find(' ') == std::string::npos ? begin.text : "(" + begin.text + ")");
  out.range.low = end.range.low - begin.range.high;
  out.range.high = end.range.high - begin.range.low;
  return out;
}

}  // namespace

std::string Typed(const std::string& address, const std::string& own, const std::string& wanted) {
  if (own == wanted) return address;
  bool atom = address.find(' ') == std::string::npos;
  return "(" + wanted + " *)" + (atom ? address : "(" + address + ")");
}

std::vector<std::string> Looped(const std::string& var, const std::string& from, const std::string& to,
                                const std::vector<std::string>& lines) {
  std::vector<std::string> out = {"for (int32_t " + var + " = " + from + "; " + var + " < " + to + "; ++" + var +
                                  ") {"};
  for (const std::string& line : lines) out.push_back("  " + line);
  out.emplace_back("}");
  return out;
}

void RunOnTiles(Emitter& e, const Program& program, Value result, std::vector<Tile> tiles, const Box& given,
                bool spares) {
  Program made = program;
  if (Placed(made, result).Operand()) result = made.Copy(result);
  Box box = given;
  if (!spares) box = Box::Of(tiles[0].rows, tiles[0].cols);
  // elements that lie apart come together first
  Tile apart = tiles[0];
  for (size_t k = 0; k < tiles.size(); ++k) {
    if (tiles[k].RowsDense() || tiles[k].cols == 1) continue;
    Tile dense = e.Work(tiles[k].dtype, tiles[k].rows, tiles[k].cols);
    if (k > 0) Copy(e, dense, tiles[k], given);
    tiles[k] = dense;
  }
  Placed placed(made, result);
  int64_t cols = tiles[0].cols;
  bool dense = std::all_of(tiles.begin(), tiles.end(), [](const Tile& tile) { return tile.Dense(); });
  bool flat = tiles[0].rows == 1 || (dense && box.AllCols(cols));
  Bound begin = box.col_begin, count = Length(box.col_begin, box.col_end);
  if (flat && tiles[0].rows > 1) {
    begin = box.row_begin;
    count = Length(box.row_begin, box.row_end);
    if (cols > 1) {
      begin.text = Times(begin.text, cols);
      count.text = count.Constant() ? std::to_string(count.range.low * cols) : Times(count.text, cols);
      count.range.low *= cols;
      count.range.high *= cols;
      if (begin.Constant()) begin.text = std::to_string(begin.range.low * cols);
    }
  }
  if (count.range.high <= 0) return;
  int64_t chunk = RoundUp(count.range.high, kChunkUnit);
  Tile work;
  if (placed.slots() > 0) {
    int64_t room = std::min(kMostWork, e.FreeBytes()) / (placed.slots() * kSlotBytes) / kChunkUnit * kChunkUnit;
    chunk = std::min(chunk, std::max(room, kChunkUnit));
    work = e.Work("fp32", placed.slots(), chunk);
  }
  bool chunked = placed.slots() > 0 && count.range.high > chunk;
  Runner runner(e, placed, tiles, &work, chunk);
  std::string row = e.Fresh("r"), part = e.Fresh("k"), rest = e.Fresh("m"), number = count.text;
  std::vector<std::string> from, lines;
  for (const Tile& tile : tiles) {
    std::string start = flat ? "0" : Times(row, tile.row_stride);
    start = Sum(start, begin.text);
    from.push_back(chunked ? Sum(start, part) : start);
  }
  if (!count.Constant() && count.text.find(' ') != std::string::npos) {
    number = e.Fresh("n");
    lines.push_back("const int32_t " + number + " = " + count.text + ";");
  }
  std::vector<std::string> inner;
  if (chunked) {
    std::string most = std::to_string(chunk);
    std::vector<std::string> body = {"const int32_t " + rest + " = " + number + " - " + part + " < " + most + " ? " +
                                     number + " - " + part + " : " + most + ";"};
    for (std::string& line : runner.Steps(from, rest)) body.push_back(std::move(line));
    inner.push_back("for (int32_t " + part + " = 0; " + part + " < " + number + "; " + part + " += " + most + ") {");
    for (const std::string& line : body) inner.push_back("  " + line);
    inner.emplace_back("}");
  } else {
    inner = runner.Steps(from, number);
    if (count.range.low <= 0) {
      for (std::string& line : inner) line = "  " + line;
      inner.insert(inner.begin(), "if (" + number + " > 0) {");
      inner.emplace_back("}");
    }
  }
  std::vector<std::string> constants = runner.Constants(std::to_string(std::min(chunk, count.range.high)));
  lines.insert(lines.end(), constants.begin(), constants.end());
  if (!flat) inner = Looped(row, box.row_begin.text, box.row_end.text, inner);
  lines.insert(lines.end(), inner.begin(), inner.end());
  std::vector<pipes::Region> regions = {Writes(tiles[0])};
  for (size_t k = 1; k < tiles.size(); ++k) regions.push_back(Reads(tiles[k]));
  if (placed.slots() > 0) {
    regions.push_back(Writes(work));
    regions.push_back(Reads(work));
  }
  e.Do("COMPUTE", lines, regions);
  if (tiles[0].tensor != apart.tensor) Copy(e, apart, tiles[0], given);
}

void RunProgram(Emitter& e, const Program& program, Value result, const ISlice& target,
                const std::vector<ISlice>& sources) {
  std::vector<Tile> tiles = {AsRow(e.TileOf(target))};
  for (const ISlice& source : sources) tiles.push_back(AsRow(e.TileOf(source)));
  // a column is a row in all of them or in none
  bool alike = std::all_of(tiles.begin(), tiles.end(),
                           [&](const Tile& tile) { return tile.rows == tiles[0].rows && tile.cols == tiles[0].cols; });
  if (!alike) {
    tiles = {e.TileOf(target)};
    for (const ISlice& source : sources) tiles.push_back(e.TileOf(source));
  }
  RunOnTiles(e, program, result, tiles, tiles[0].box, e.SparesOutside(target));
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
