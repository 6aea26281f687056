// SPDX-License-Identifier: Apache-2.0
#include "emitter.h"

#include <tvm/ffi/any.h>

#include <algorithm>
#include <utility>

#include "api.h"

namespace uir {
namespace codegen {
namespace ascend {

namespace {

/*! \brief Alignment beyond this one helps nothing. */
constexpr int64_t kMostAlign = 512;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

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
  scope_.Bind("pid", names->Fresh("pid"), {0, graph->num_groups * graph->num_units - 1});
  every_scope_ = scope_;
  std::set<std::string> used;
  for (const Use& use : plan->uses()) used.insert(use.pointer());
  for (const IPointer& pointer : graph->pointers) {
    std::string name(pointer->name);
    if (!used.count(name)) continue;
    if (pointer->level == "dram") {
      TypeOf(std::string(pointer->dtype), std::string(graph->name) + ": " + name);
      parameters_[name] = names->Fresh(name);
      globals_[name] = names->Fresh(name + "_gm");
    } else {
      const Place& place = plan->PlaceOf(name);
      locals_[name] = names->Fresh(name);
      tensors_.push_back({locals_[name], place.dtype, place.begin, pointer->size});
    }
  }
}

Tile Emitter::TileOf(const ISlice& slice) {
  Tile tile;
  std::string pointer(slice->pointer->name);
  tile.dtype = std::string(slice->pointer->dtype);
  tile.bytes = TypeOf(tile.dtype, where()).bytes;
  tile.size = slice->pointer->size;
  tile.offset = slice->offset;
  tile.rows = slice->rows;
  tile.cols = slice->cols;
  tile.row_stride = slice->row_stride;
  tile.col_stride = slice->col_stride;
  if (slice->pointer->level == "dram") {
    tile.tensor = globals_.at(pointer);
    tile.memory = pointer;
  } else {
    tile.tensor = locals_.at(pointer);
    tile.base = plan_->PlaceOf(pointer).begin;
  }
  tile.align = scope_.PowerOfTwo(tile.offset.Scale(tile.bytes) + Affine::Constant(tile.base), kMostAlign);
  tile.box = BoxOf(slice);
  return tile;
}

Tile Emitter::Work(const std::string& dtype, int64_t rows, int64_t cols, int64_t row_stride) {
  Tile tile;
  tile.dtype = dtype;
  tile.bytes = TypeOf(dtype, where()).bytes;
  tile.rows = rows;
  tile.cols = cols;
  tile.row_stride = row_stride > 0 ? row_stride : RoundUp(cols * tile.bytes, kBlockBytes) / tile.bytes;
  tile.size = rows * tile.row_stride;
  tile.base = plan_->Reserve(position_, tile.size * tile.bytes, where());
  tile.align = scope_.PowerOfTwo(Affine::Constant(tile.base), kMostAlign);
  tile.box = {Bound::Of(0), Bound::Of(rows), Bound::Of(0), Bound::Of(cols)};
  for (Tensor& tensor : tensors_) {
    if (!tensor.work || tensor.begin != tile.base || tensor.dtype != dtype) continue;
    tensor.size = std::max(tensor.size, tile.size);
    tile.tensor = tensor.name;
    return tile;
  }
  tile.tensor = names_->Fresh("work");
  tensors_.push_back({tile.tensor, dtype, tile.base, tile.size, true});
  return tile;
}

Tile Emitter::As(const Tile& tile, const std::string& dtype) {
  const ScalarType& type = TypeOf(dtype, where());
  if (dtype == tile.dtype) return tile;
  Tile other = tile;
  auto scaled = [&](int64_t elements, bool counts = true) {
    int64_t size = elements * tile.bytes;
    if (!counts) return size / type.bytes;
    TVM_FFI_CHECK(size % type.bytes == 0, InternalError) << "a tile of " << tile.dtype << " is no tile of " << dtype;
    return size / type.bytes;
  };
  TVM_FFI_CHECK(tile.RowsDense() || type.bytes == tile.bytes, InternalError) << "elements lie apart";
  other.dtype = dtype;
  other.bytes = type.bytes;
  other.cols = scaled(tile.cols);
  other.row_stride = scaled(tile.row_stride, tile.rows > 1);
  other.size = tile.size * tile.bytes / type.bytes;
  if (type.bytes > tile.bytes) {
    int64_t ratio = type.bytes / tile.bytes;
    other.offset = tile.offset.FloorDiv(ratio);
    TVM_FFI_CHECK(tile.align >= type.bytes, InternalError) << "a tile of " << dtype << " may start within an element";
  } else {
    other.offset = tile.offset.Scale(tile.bytes / type.bytes);
  }
  other.box = {Bound::Of(0), Bound::Of(other.rows), Bound::Of(0), Bound::Of(other.cols)};
  other.tensor = Call(where(), "LocalTensor.ReinterpretCast", "member", {type.stored}, {tile.tensor});
  return other;
}

std::string Emitter::At(const Tile& tile, const std::string& more) const {
  std::string offset = scope_.Text(tile.offset);
  if (offset == "0") offset.clear();
  if (!more.empty() && more != "0") offset += (offset.empty() ? "" : " + ") + more;
  return offset.empty() ? tile.tensor : tile.tensor + "[" + offset + "]";
}

std::string Emitter::At(const Tile& tile, const Bound& from, const std::string& more) const {
  if (!from.Constant()) return At(tile, more.empty() ? from.text : from.text + " + " + more);
  Tile there = tile;
  there.offset = tile.offset + Affine::Constant(from.range.low);
  return At(there, more);
}

std::string Emitter::Literal(const std::string& dtype, const ffi::Any& value) const {
  const ScalarType& type = TypeOf(dtype, where());
  auto whole = value.as<int64_t>();
  if (type.kind == Kind::kFloat) {
    return ascend::Literal(RoundFloat(dtype, whole ? static_cast<double>(*whole) : value.cast<double>()), type.stored);
  }
  bool exact = whole && type.kind != Kind::kBool;
  uint64_t bits = exact ? static_cast<uint64_t>(*whole) : WholeBits(type.kind, type.bytes, value.cast<double>());
  return IntLiteral(static_cast<int64_t>(bits), type.stored);
}

Bound Emitter::BoundOf(const ffi::Optional<Affine>& bound, int64_t length, bool end, const std::string& hint) {
  if (!bound) return Bound::Of(end ? length : 0);
  Range range = scope_.Of(bound.value());
  Range clamped{std::clamp<int64_t>(range.low, 0, length), std::clamp<int64_t>(range.high, 0, length)};
  if (clamped.Constant()) return Bound::Of(clamped.low);
  std::string expression = scope_.Text(bound.value());
  if (range.low < 0 || range.high > length) expression = ClampText(expression, range, length);
  // a name serves until the loop that it stands in ends
  for (const auto& names : bounds_) {
    auto known = names.find(expression);
    if (known != names.end()) return {known->second, clamped};
  }
  std::string name = names_->Fresh(hint);
  Plain("const int32_t " + name + " = " + expression + ";");
  bounds_.back()[expression] = name;
  return {name, clamped};
}

Box Emitter::BoxOf(const ISlice& slice) {
  return {BoundOf(slice->row_begin, slice->rows, false, "row_begin"),
          BoundOf(slice->row_end, slice->rows, true, slice->row_begin ? "row_end" : "rows"),
          BoundOf(slice->col_begin, slice->cols, false, "col_begin"),
          BoundOf(slice->col_end, slice->cols, true, slice->col_begin ? "col_end" : "cols")};
}

void Emitter::Do(const std::string& pipe, const std::vector<std::string>& lines,
                 const std::vector<pipes::Region>& regions, bool blocks) {
  pipes::Instruction instruction{pipe, lines, regions, brief_};
  instruction.blocks = blocks;
  bodies_.back().push_back(pipes::Node::Of(std::move(instruction)));
}

void Emitter::Plain(const std::string& line) { bodies_.back().push_back(pipes::Node::Plain({line})); }

void Emitter::Begin(const IOp& iop, int position) {
  where_iop_ = Describe(iop);
  brief_ = BriefOf(iop);
  position_ = position;
  bodies_.emplace_back();
}

void Emitter::End() {
  std::vector<pipes::Node> body = std::move(bodies_.back());
  bodies_.pop_back();
  bodies_.back().push_back(pipes::Node::Group(where_iop_, std::move(body)));
}

void Emitter::Enter(const Loop& loop) {
  std::string name(loop->var), text = names_->Fresh(name);
  headers_.push_back("for (int32_t " + text + " = 0; " + text + " < " + std::to_string(loop->extent) + "; ++" + text +
                     ")");
  Range range{0, std::max<int64_t>(loop->extent - 1, 0)};
  scope_.Bind(name, text, range);
  every_scope_.Bind(name, text, range);
  bodies_.emplace_back();
  bounds_.emplace_back();
}

void Emitter::Leave(const Loop& loop) {
  std::vector<pipes::Node> body = std::move(bodies_.back());
  bodies_.pop_back();
  bounds_.pop_back();
  bodies_.back().push_back(pipes::Node::Loop(std::string(loop->var), headers_.back(), loop->extent, std::move(body)));
  headers_.pop_back();
  scope_.Unbind(std::string(loop->var));
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
