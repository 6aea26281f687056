// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/emitter.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "codegen/attributes.h"
#include "codegen/tiles/lines.h"

namespace uir::codegen::tiles {

namespace {

/*! \brief Alignment beyond this one helps nothing. */
constexpr int64_t kMostAlign = 512;

std::string ClampText(const std::string& text, Range range, int64_t length) {
  std::string limit = std::to_string(length);
  std::string below = range.low < 0 ? text + " < 0 ? 0 : " : "";
  std::string above = range.high > length ? text + " > " + limit + " ? " + limit + " : " : "";
  return below + above + text;
}

/*! \brief An iOp in a few words: "load t", "exp t", "store y". */
std::string BriefOf(const IOp& iop) {
  std::string target(iop->targets[0]->pointer->name), what(iop->name.empty() ? iop->op : iop->name);
  if (iop->op == "move") {
    bool store = iop->targets[0]->pointer->level == "dram", load = iop->sources[0]->pointer->level == "dram";
    what = store ? "store" : load ? "load" : "copy";
  } else if (iop->op != "unary" && iop->op != "binary" && !iop->name.empty()) {
    what = std::string(iop->op) + " " + what;
  }
  return what + " " + target;
}

}  // namespace

Emitter::Emitter(Plan* plan, Names* names) : plan_(plan), names_(names) {
  const IGraph& graph = plan->graph();
  BindUnits(graph, names->Fresh("pid"), &scope_);
  sizes_ = SizeArguments(graph, "int32_t", names, &scope_);
  every_scope_ = scope_;
  if (graph->groups) {
    groups_ = names->Fresh("groups");
    turn_ = names->Fresh("turn");
    every_scope_.Bind(kTurn, turn_, {0, std::max<int64_t>(std::min<int64_t>(graph->num_groups, INT32_MAX) - 1, 0)});
  }
}

Bound Emitter::BoundOf(const ffi::Optional<Affine>& bound, int64_t length, bool end, const std::string& hint) {
  if (!bound) return Bound::Of(end ? length : 0);
  Range range = scope_.Of(bound.value());
  Range clamped{std::clamp<int64_t>(range.low, 0, length), std::clamp<int64_t>(range.high, 0, length)};
  if (clamped.Constant()) return Bound::Of(clamped.low);
  std::string expression = scope_.Text(bound.value());
  // what it is cut to is one of the values too
  uint64_t divisor = scope_.space().ClassOf(bound.value()).Divisor();
  if (range.high > length) divisor = std::gcd(divisor, static_cast<uint64_t>(length));
  const int64_t multiple_of = divisor > INT32_MAX ? 1 : static_cast<int64_t>(divisor);
  if (range.low < 0 || range.high > length) expression = ClampText(expression, range, length);
  // a name serves until the loop that it stands in ends
  for (const auto& names : bounds_) {
    auto known = names.find(expression);
    if (known != names.end()) return {known->second, clamped, Precedence::kAtom, multiple_of};
  }
  std::string name = names_->Fresh(hint);
  Plain("const " + std::string(clamped.high > INT32_MAX ? "int64_t " : "int32_t ") + name + " = " + expression + ";");
  bounds_.back()[expression] = name;
  return {name, clamped, Precedence::kAtom, multiple_of};
}

Box Emitter::BoxOf(const ISlice& slice) {
  return {BoundOf(slice->row_begin, slice->rows, false, "row_begin"),
          BoundOf(slice->row_end, slice->rows, true, slice->row_begin ? "row_end" : "rows"),
          BoundOf(slice->col_begin, slice->cols, false, "col_begin"),
          BoundOf(slice->col_end, slice->cols, true, slice->col_begin ? "col_end" : "cols")};
}

std::vector<Tile> Emitter::TilesOf(const ISlice& target, const std::vector<ISlice>& sources) {
  std::vector<Tile> tiles = {TileOf(target)};
  for (const ISlice& source : sources) tiles.push_back(TileOf(source));
  return tiles;
}

Tile Emitter::TileIn(const ISlice& slice, const std::string& memory, int64_t base) {
  Tile tile;
  tile.dtype = std::string(slice->pointer->dtype);
  tile.memory = memory;
  tile.base = base;
  tile.bytes = BytesOf(tile.dtype);
  tile.size = slice->pointer->size;
  tile.offset = slice->offset;
  tile.rows = slice->rows;
  tile.cols = slice->cols;
  tile.row_stride = slice->row_stride;
  tile.col_stride = slice->col_stride;
  if (slice->row_pitch) tile.row_pitch = slice->row_pitch.value();
  if (slice->col_pitch) tile.col_pitch = slice->col_pitch.value();
  tile.align = scope_.PowerOfTwo(tile.offset.Scale(tile.bytes) + Affine::Constant(base), kMostAlign);
  tile.box = BoxOf(slice);
  if (tile.row_pitch && !slice->col_begin && slice->col_end && tile.box.col_end.range.high <= tile.cols) {
    const Affine rest = *tile.row_pitch - slice->col_end.value();
    const Range range = scope_.Of(slice->col_end.value());
    tile.full_rows = rest->terms.empty() && rest->constant == 0 && range.low >= 0 && range.high <= tile.cols;
  }
  return tile;
}

Tile Emitter::Buffer(const std::string& memory, const std::string& dtype, int64_t rows, int64_t cols,
                     int64_t row_stride, int64_t size) const {
  Tile tile;
  tile.dtype = dtype;
  tile.memory = memory;
  tile.bytes = BytesOf(dtype);
  tile.rows = rows;
  tile.cols = cols;
  tile.row_stride = row_stride;
  tile.size = size;
  tile.box = Box::Of(rows, cols);
  return tile;
}

void Emitter::PlaceAt(Tile* tile, int64_t base) const {
  tile->base = base;
  tile->align = scope_.PowerOfTwo(Affine::Constant(base), kMostAlign);
}

Tile Emitter::Seen(const Tile& tile, const std::string& dtype) const {
  Tile other = tile;
  other.dtype = dtype;
  other.bytes = BytesOf(dtype);
  auto scaled = [&](int64_t elements, bool counts) {
    int64_t size = elements * tile.bytes;
    TVM_FFI_CHECK(!counts || size % other.bytes == 0, InternalError)
        << "a tile of " << tile.dtype << " is no tile of " << dtype;
    return size / other.bytes;
  };
  TVM_FFI_CHECK(tile.RowsDense() || other.bytes == tile.bytes, InternalError) << "elements lie apart";
  other.cols = scaled(tile.cols, true);
  other.row_stride = scaled(tile.row_stride, tile.rows > 1);
  other.size = tile.size * tile.bytes / other.bytes;
  if (other.bytes > tile.bytes) {
    other.offset = tile.offset.FloorDiv(other.bytes / tile.bytes);
    TVM_FFI_CHECK(tile.align >= other.bytes, InternalError) << "a tile of " << dtype << " may start within an element";
  } else {
    other.offset = tile.offset.Scale(tile.bytes / other.bytes);
  }
  other.box = Box::Of(other.rows, other.cols);
  return other;
}

std::string Emitter::OffsetText(const Tile& tile, const std::string& more) const {
  std::string offset = scope_.Text(tile.offset);
  if (offset == "0") offset.clear();
  if (!more.empty() && more != "0") offset += (offset.empty() ? "" : " + ") + more;
  return offset;
}

Bound Emitter::Along(const Bound& count, int64_t stride, const std::optional<Affine>& pitch) const {
  if (!pitch) return count * stride;
  if (count.Constant() && count.range.low == 0) return count;
  const Range range = count.range * scope_.Of(*pitch);
  const std::string text = scope_.Text(*pitch, Precedence::kAtom);
  const bool one = count.Constant() && count.range.low == 1, wide = !range.FitsInt() && !scope_.Wide(*pitch);
  return {(one ? "" : count.Text(Precedence::kProduct) + " * ") + (wide ? "int64_t(" + text + ")" : text), range,
          Precedence::kProduct};
}

std::string Emitter::RowText(const Tile& tile, const std::string& number) const {
  if (!tile.row_pitch || number == "0") return TimesText(number, tile.row_stride);
  return number + " * " + scope_.Text(*tile.row_pitch, Precedence::kAtom);
}

std::string Emitter::At(const Tile& tile, const Bound& from, const std::string& more) const {
  if (!from.Constant()) return At(tile, more.empty() ? from.text : from.text + " + " + more);
  Tile there = tile;
  there.offset = tile.offset + Affine::Constant(from.range.low);
  return At(there, more);
}

void Emitter::Do(const std::string& pipe, const std::vector<std::string>& lines,
                 const std::vector<pipes::Region>& regions, bool blocks, const std::set<std::string>& awaits) {
  Add({pipe, lines, regions, brief_, blocks, false, awaits});
}

void Emitter::Add(pipes::Instruction instruction) { bodies_.back().push_back(pipes::Node::Of(std::move(instruction))); }

std::vector<std::string> Emitter::Apart(const std::function<void()>& emit) {
  std::vector<std::map<std::string, std::string>> around(1);
  std::swap(bounds_, around);
  bodies_.emplace_back();
  emit();
  std::swap(bounds_, around);
  std::vector<std::string> lines;
  for (const pipes::Node& node : bodies_.back()) {
    TVM_FFI_CHECK(node.kind == pipes::Node::Kind::kPlain, InternalError) << "an instruction where lines are collected";
    lines.insert(lines.end(), node.lines.begin(), node.lines.end());
  }
  bodies_.pop_back();
  return lines;
}

void Emitter::Plain(const std::string& line) { bodies_.back().push_back(pipes::Node::Plain({line})); }

void Emitter::Begin(const IOp& iop, int position) {
  where_iop_ = Describe(iop);
  brief_ = BriefOf(iop);
  position_ = position;
  bodies_.emplace_back();
}

void Emitter::Begin(const std::string& title) {
  where_iop_ = brief_ = title;
  bodies_.emplace_back();
}

void Emitter::End() {
  std::vector<pipes::Node> body = std::move(bodies_.back());
  bodies_.pop_back();
  bodies_.back().push_back(pipes::Node::Group(where_iop_, std::move(body)));
}

std::string Emitter::HeadOf(const Loop& loop, const std::string& text) {
  const int64_t ahead = AheadOf(loop);
  if (!IsDealt(loop) && ahead == 0) {
    const std::optional<Affine> rounds = RoundsOf(loop);
    std::string end = rounds ? scope_.Text(*rounds) : std::to_string(loop->extent);
    if (rounds && scope_.Of(*rounds).high > loop->extent) {
      end = std::to_string(loop->extent) + " && " + text + " < " + end;
    }
    return ForText(text, "0", end);
  }
  const int64_t units = plan_->graph()->num_groups * plan_->graph()->num_units;
  Affine tile = Affine::Var("pid") + Affine::Constant(ahead * units);
  if (!tiles_.empty()) tile = tile + Affine::Var(tiles_).Scale(units);
  if (ahead > 0) {
    facts_.back() = tile;
    return "if (" + scope_.Text(tile) + " < " + groups_ + ")";
  }
  tiles_ = std::string(loop->var);
  tile = tile + Affine::Var(tiles_).Scale(units);
  facts_.back() = tile;
  // the last comparison is with a tile beyond the last one
  scope_.Bind(tiles_, text, {0, loop->extent});
  return "for (" + std::string(scope_.Wide(tile) ? "int64_t " : "int32_t ") + text + " = 0; " + scope_.Text(tile) +
         " < " + groups_ + "; ++" + text + ")";
}

void Emitter::Enter(const Loop& loop) {
  std::string name(loop->var), text = names_->Fresh(name);
  facts_.emplace_back(std::nullopt);
  headers_.push_back(HeadOf(loop, text));
  Range range{0, std::max<int64_t>(loop->extent - 1, 0)};
  scope_.Bind(name, text, range);
  if (const std::optional<Affine>& tile = facts_.back()) {
    scope_.BindMost(*tile, plan_->graph()->groups.value() - Affine::Constant(1));
  }
  every_scope_.Bind(name, text, range);
  bodies_.emplace_back();
  bounds_.emplace_back();
}

void Emitter::Leave(const Loop& loop) {
  std::vector<pipes::Node> body = std::move(bodies_.back());
  bodies_.pop_back();
  bounds_.pop_back();
  bodies_.back().push_back(pipes::Node::Loop(std::string(loop->var), headers_.back(), loop->extent, std::move(body)));
  bodies_.back().back().fewer = IsDealt(loop);
  bodies_.back().back().ends = RoundsOf(loop).has_value();
  bodies_.back().back().optional = AheadOf(loop) > 0;
  headers_.pop_back();
  if (facts_.back()) scope_.Unbind();
  facts_.pop_back();
  if (IsDealt(loop)) tiles_.clear();
  scope_.Unbind(std::string(loop->var));
}

}  // namespace uir::codegen::tiles
