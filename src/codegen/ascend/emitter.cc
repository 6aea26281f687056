// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/emitter.h"

#include <tvm/ffi/any.h>

#include <algorithm>
#include <utility>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/index_row.h"

namespace uir::codegen::ascend {

namespace {

/*! \brief The planner's name of the UB. */
const char* const kUbMemory = "ub";

}  // namespace

const tiles::CoreMemory kUnifiedBuffer = {
    "unified buffer", "vector core", kBlockBytes,
    [](const std::string& dtype, const std::string& where) { return int64_t{TypeOf(dtype, where).bytes}; }};

Emitter::Emitter(Plan* plan, Names* names) : tiles::Emitter(plan, names) {
  const IGraph& graph = plan->graph();
  platform_ = Table().PlatformOf(graph);
  const std::set<std::string> used = PointersOf(plan->uses());
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
  const std::string pointer(slice->pointer->name);
  const bool global = slice->pointer->level == "dram";
  Tile tile = global ? TileIn(slice, pointer, 0) : TileIn(slice, kUbMemory, plan_->PlaceOf(pointer).begin);
  tile.tensor = (global ? globals_ : locals_).at(pointer);
  return tile;
}

Tile Emitter::Work(const std::string& dtype, int64_t rows, int64_t cols, int64_t row_stride) {
  const int64_t bytes = BytesOf(dtype);
  const int64_t stride = row_stride > 0 ? row_stride : RoundUp(cols * bytes, kBlockBytes) / bytes;
  Tile tile = Buffer(kUbMemory, dtype, rows, cols, stride, rows * stride);
  PlaceAt(&tile, plan_->Reserve(position_, tile.size * tile.bytes, where()));
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
  Tile row = Buffer(kUbMemory, "int32", 1, count, count, count);
  PlaceAt(&row, plan_->Keep(count * row.bytes, where()));
  row.tensor = names_->Fresh("index");
  tensors_.push_back({row.tensor, row.dtype, row.base, row.size, true});
  IndexRow(*this, row, count);
  index_ = row;
  End();
}

Tile Emitter::As(const Tile& tile, const std::string& dtype) {
  if (dtype == tile.dtype) return tile;
  Tile other = Seen(tile, dtype);
  other.tensor = Call("LocalTensor.ReinterpretCast", "member", {TypeOf(dtype, where()).stored}, {tile.tensor});
  return other;
}

std::string Emitter::At(const Tile& tile, const std::string& more) const {
  const std::string offset = OffsetText(tile, more);
  return offset.empty() ? tile.tensor : tile.tensor + "[" + offset + "]";
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

}  // namespace uir::codegen::ascend
