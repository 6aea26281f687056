// SPDX-License-Identifier: Apache-2.0
#include "emitter.h"

#include <tvm/ffi/any.h>

#include <algorithm>
#include <utility>

#include "api.h"
#include "index_row.h"

namespace uir {
namespace codegen {
namespace ascend {

namespace {

/*! \brief Alignment beyond this one helps nothing. */
constexpr int64_t kMostAlign = 512;

/*! \brief The planner's name of the UB. */
const char* const kUbMemory = "ub";

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

const tiles::CoreMemory kUnifiedBuffer = {
    "unified buffer", "vector core", kBlockBytes,
    [](const std::string& dtype, const std::string& where) { return int64_t{TypeOf(dtype, where).bytes}; }};

Emitter::Emitter(Plan* plan, Names* names) : tiles::Emitter(plan, names) {
  const IGraph& graph = plan->graph();
  platform_ = Table().PlatformOf(graph);
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
    tile.memory = kUbMemory;
    tile.base = plan_->PlaceOf(pointer).begin;
  }
  tile.align = scope_.PowerOfTwo(tile.offset.Scale(tile.bytes) + Affine::Constant(tile.base), kMostAlign);
  tile.box = BoxOf(slice);
  return tile;
}

Tile Emitter::Work(const std::string& dtype, int64_t rows, int64_t cols, int64_t row_stride) {
  Tile tile;
  tile.memory = kUbMemory;
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

const Tile* Emitter::KeptIndex(int64_t count) {
  index_most_ = std::max(index_most_, count);
  index_asked_ += InLoop() ? 2 : 1;
  return index_ && index_->cols >= count ? &*index_ : nullptr;
}

void Emitter::KeepIndex(int64_t count) {
  Begin("index row 0 .. " + std::to_string(count - 1));
  Tile row;
  row.memory = kUbMemory;
  row.dtype = "int32";
  row.bytes = 4;
  row.rows = 1;
  row.cols = row.row_stride = row.size = count;
  row.base = plan_->Keep(count * row.bytes, where());
  row.align = scope_.PowerOfTwo(Affine::Constant(row.base), kMostAlign);
  row.box = Box::Of(1, count);
  row.tensor = names_->Fresh("index");
  tensors_.push_back({row.tensor, row.dtype, row.base, row.size, true});
  IndexRow(*this, row, count);
  index_ = row;
  End();
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
  other.tensor = Call("LocalTensor.ReinterpretCast", "member", {type.stored}, {tile.tensor});
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
    double number = RoundFloat(dtype, whole ? static_cast<double>(*whole) : value.cast<double>());
    if (dtype == "bf16") return Call("ToBfloat16", "plain", {}, {ascend::Literal(number, "float")});
    return ascend::Literal(number, type.stored);
  }
  bool exact = whole && type.kind != Kind::kBool;
  uint64_t bits = exact ? static_cast<uint64_t>(*whole) : WholeBits(type.kind, type.bytes, value.cast<double>());
  return IntLiteral(static_cast<int64_t>(bits), type.stored);
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
