// SPDX-License-Identifier: Apache-2.0
#include "emitter.h"

#include <tvm/ffi/any.h>

#include <algorithm>
#include <cstdlib>

#include "../pipes/vocabulary.h"
#include "api.h"

namespace uir {
namespace codegen {
namespace bang {

namespace {

/*! \brief Alignment beyond this one helps nothing. */
constexpr int64_t kMostAlign = 512;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

const tiles::CoreMemory kCoreMemory = {
    "NRAM", "core", kBlockBytes,
    [](const std::string& dtype, const std::string& where) { return int64_t{TypeOf(dtype, where).bytes}; }, true};

Emitter::Emitter(Plan* plan, Names* names) : tiles::Emitter(plan, names) {
  const IGraph& graph = plan->graph();
  platform_ = Table().PlatformOf(graph);
  std::set<std::string> used;
  for (const Use& use : plan->uses()) used.insert(use.pointer());
  for (const IPointer& pointer : graph->pointers) {
    std::string name(pointer->name), text;
    if (!used.count(name)) continue;
    const ScalarType& type = TypeOf(std::string(pointer->dtype), std::string(graph->name) + ": " + name);
    text = names->Fresh(name);
    if (pointer->level == "dram") {
      parameters_[name] = text;
    } else {
      const Place& place = plan->PlaceOf(name);
      locals_[name] = text;
      pointers_.push_back({text, type.stored, pointer->level == "sram" ? kSram : kNram, place.begin, place.bytes});
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
    tile.tensor = parameters_.at(pointer);
    tile.memory = pointer;
  } else {
    tile.tensor = locals_.at(pointer);
    tile.memory = slice->pointer->level == "sram" ? kSram : kNram;
    tile.base = plan_->PlaceOf(pointer).begin;
  }
  tile.align = scope_.PowerOfTwo(tile.offset.Scale(tile.bytes) + Affine::Constant(tile.base), kMostAlign);
  tile.box = BoxOf(slice);
  return tile;
}

const Pointer& Emitter::Declare(const Pointer& pointer) {
  for (Pointer& known : pointers_) {
    if (known.memory != pointer.memory || known.begin != pointer.begin || known.type != pointer.type) continue;
    known.bytes = std::max(known.bytes, pointer.bytes);
    return known;
  }
  pointers_.push_back(pointer);
  pointers_.back().name = names_->Fresh(pointer.name);
  return pointers_.back();
}

Tile Emitter::Work(const std::string& dtype, int64_t rows, int64_t cols, int64_t row_stride) {
  Tile tile;
  const ScalarType& type = TypeOf(dtype, where());
  tile.memory = kNram;
  tile.dtype = dtype;
  tile.bytes = type.bytes;
  tile.rows = rows;
  tile.cols = cols;
  tile.row_stride = row_stride > 0 ? row_stride : cols;
  tile.size = (rows - 1) * tile.row_stride + std::max(cols, tile.row_stride);
  tile.base = plan_->Reserve(position_, tile.size * tile.bytes, where());
  tile.align = scope_.PowerOfTwo(Affine::Constant(tile.base), kMostAlign);
  tile.box = Box::Of(rows, cols);
  tile.tensor = Declare({"work", type.stored, kNram, tile.base, tile.size * tile.bytes}).name;
  return tile;
}

Tile Emitter::Weights(const std::string& dtype, int64_t rows, int64_t cols) {
  Tile tile;
  const ScalarType& type = TypeOf(dtype, where());
  if (position_ != weights_position_) weights_ = 0;
  weights_position_ = position_;
  tile.memory = kWram;
  tile.dtype = dtype;
  tile.bytes = type.bytes;
  tile.rows = rows;
  tile.cols = cols;
  tile.row_stride = cols;
  tile.size = rows * cols;
  // an address of WRAM stands for the same place in each of its ranges
  tile.base = weights_ / kWramRanges;
  tile.align = scope_.PowerOfTwo(Affine::Constant(tile.base), kMostAlign);
  tile.box = Box::Of(rows, cols);
  weights_ = RoundUp(weights_ + tile.size * tile.bytes, 8 * kWramRanges);
  weights_total_ = std::max(weights_total_, weights_);
  int64_t limit = Figure("wram_bytes");
  if (weights_ > limit) {
    LacksRoom("WRAM has no room for an operand.", std::to_string(weights_) + " bytes",
              std::to_string(limit) + " bytes");
  }
  tile.tensor = Declare({"weights", type.stored, kWram, tile.base, tile.size * tile.bytes}).name;
  return tile;
}

Tile Emitter::As(const Tile& tile, const std::string& dtype, const std::string& type) {
  const ScalarType& row = TypeOf(dtype, where());
  std::string spelled = type.empty() ? row.stored : type;
  if (dtype == tile.dtype && type.empty()) return tile;
  Tile other = tile;
  auto scaled = [&](int64_t elements, bool counts) {
    int64_t size = elements * tile.bytes;
    TVM_FFI_CHECK(!counts || size % row.bytes == 0, InternalError)
        << "a tile of " << tile.dtype << " is no tile of " << dtype;
    return size / row.bytes;
  };
  TVM_FFI_CHECK(tile.RowsDense() || row.bytes == tile.bytes, InternalError) << "elements lie apart";
  other.dtype = dtype;
  other.bytes = row.bytes;
  other.cols = scaled(tile.cols, true);
  other.row_stride = scaled(tile.row_stride, tile.rows > 1);
  other.size = tile.size * tile.bytes / row.bytes;
  if (row.bytes > tile.bytes) {
    other.offset = tile.offset.FloorDiv(row.bytes / tile.bytes);
    TVM_FFI_CHECK(tile.align >= row.bytes, InternalError) << "a tile of " << dtype << " may start within an element";
  } else {
    other.offset = tile.offset.Scale(tile.bytes / row.bytes);
  }
  other.box = Box::Of(other.rows, other.cols);
  std::string hint = tile.tensor + "_" + (type.empty() ? dtype : type);
  other.tensor = Declare({hint, spelled, tile.memory, tile.base, tile.size * tile.bytes}).name;
  return other;
}

std::string Emitter::At(const Tile& tile, const std::string& more) const {
  std::string offset = scope_.Text(tile.offset);
  if (offset == "0") offset.clear();
  if (!more.empty() && more != "0") offset += (offset.empty() ? "" : " + ") + more;
  return offset.empty() ? tile.tensor : tile.tensor + " + " + offset;
}

std::string Emitter::At(const Tile& tile, const Bound& from, const std::string& more) const {
  if (!from.Constant()) return At(tile, more.empty() ? from.text : from.text + " + " + more);
  Tile there = tile;
  there.offset = tile.offset + Affine::Constant(from.range.low);
  return At(there, more);
}

std::string Emitter::Element(const Tile& tile, const std::string& row, const std::string& col) const {
  std::string index = scope_.Text(tile.offset);
  if (index == "0") index.clear();
  auto add = [&](const std::string& number, int64_t stride) {
    if (number == "0" || stride == 0) return;
    index += (index.empty() ? "" : " + ") + number + (stride == 1 ? "" : " * " + std::to_string(stride));
  };
  if (tile.rows > 1) add(row, tile.row_stride);
  if (tile.cols > 1) add(col, tile.col_stride);
  return tile.tensor + "[" + (index.empty() ? "0" : index) + "]";
}

std::string Emitter::Literal(const std::string& dtype, const ffi::Any& value) const {
  return LiteralOf(TypeOf(dtype, where()), value);
}

void Emitter::Do(const std::string& pipe, const std::vector<std::string>& lines,
                 const std::vector<pipes::Region>& regions) {
  // the core issues nothing before its own code is done
  tiles::Emitter::Do(pipe, Conditional(lines), regions, pipe == "S");
}

void Emitter::DoBlocking(const std::vector<std::string>& lines, const std::vector<pipes::Region>& regions) {
  const std::vector<std::string> text = Conditional(lines);
  // what may be skipped orders nothing
  if (text.size() > 1) return tiles::Emitter::Do("MOVE", text, regions);
  tiles::Emitter::Do("MOVE", text, regions, true, pipes::VocabularyOf("bang").drains);
}

std::vector<std::string> Emitter::Conditional(std::vector<std::string> lines) const {
  if (condition_.empty()) return lines;
  for (std::string& line : lines) line = "  " + line;
  lines.insert(lines.begin(), "if (" + condition_ + ") {");
  lines.push_back("}");
  return lines;
}

bool SamePlace(const ISlice& a, const ISlice& b) {
  Affine apart = a->offset - b->offset;
  return a->rows == b->rows && a->cols == b->cols && a->row_stride == b->row_stride && a->col_stride == b->col_stride &&
         apart->terms.empty() && apart->constant == 0 && BoxText(a) == BoxText(b);
}

void Emitter::NoteInterval(const ISlice& target, const Interval& interval) {
  bool boxed = !BoxText(target).empty() && SparesOutside(target);
  written_.insert_or_assign(std::string(target->pointer->name), Written{target, interval, position_, boxed});
}

Interval Emitter::IntervalOf(const ISlice& source, const ISlice& target) const {
  auto found = written_.find(std::string(source->pointer->name));
  if (found == written_.end() || source->pointer->level != "reg") return {};
  const Written& written = found->second;
  bool here = SamePlace(written.place, source) && (!written.boxed || SparesOutside(target));
  return here && Stands(written) ? written.interval : Interval{};
}

bool Emitter::Stands(const Written& written) const {
  const auto& uses = plan_->uses();
  auto path_at = [&](int position) {
    auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& one) { return one.position == position; });
    return use->path;
  };
  const std::vector<int> from = path_at(written.position), to = path_at(position_);
  // the same body, or a loop behind it
  auto inside = [](const std::vector<int>& path, const std::vector<int>& body, size_t depth) {
    return path.size() > depth && std::equal(body.begin(), body.begin() + static_cast<int64_t>(depth), path.begin());
  };
  if (!inside(to, from, from.size() - 1)) return false;
  return std::none_of(uses.begin(), uses.end(), [&](const Use& use) {
    if (!use.write || use.pointer() != written.place->pointer->name || use.position == written.position) return false;
    bool between = written.position < use.position && use.position < position_;
    // the next iteration of a loop that the write is not in
    bool again = to.size() > from.size() && inside(use.path, to, from.size());
    return between || again;
  });
}

pipes::Instruction Meeting(const std::string& comment) {
  pipes::Instruction instruction{"COMPUTE", {"__sync_cluster();"}, {}, comment};
  instruction.meets = true;
  return instruction;
}

void Emitter::MeetCluster() {
  meets_cluster_ = true;
  Add(Meeting(brief_));
}

int64_t Emitter::Figure(const std::string& name) const {
  const auto& figures = plan_->graph()->hardware->figures;
  auto found = figures.find(name);
  if (found == figures.end()) return 0;
  if (auto number = (*found).second.as<int64_t>()) return *number;
  if (auto text = (*found).second.as<ffi::String>()) return std::atoll(text->c_str());
  return static_cast<int64_t>((*found).second.cast<double>());
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
