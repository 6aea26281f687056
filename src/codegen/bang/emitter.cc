// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/emitter.h"

#include <tvm/ffi/any.h>

#include <algorithm>
#include <cstdlib>

#include "base/rounding.h"
#include "codegen/bang/api.h"
#include "codegen/bang/packed.h"
#include "codegen/pipes/vocabulary.h"
#include "codegen/printer.h"

namespace uir::codegen::bang {

const tiles::CoreMemory kCoreMemory = {
    "NRAM", "core", kBlockBytes,
    [](const std::string& dtype, const std::string& where) { return int64_t{TypeOf(dtype, where).bytes}; }, true};

Emitter::Emitter(Plan* plan, Names* names) : tiles::Emitter(plan, names) {
  const IGraph& graph = plan->graph();
  platform_ = Table().PlatformOf(graph);
  packed_ = PackedPitches(*plan);
  const std::set<std::string> used = PointersOf(plan->uses());
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

int64_t Emitter::StepOfEnd(const ffi::Optional<Affine>& begin, const ffi::Optional<Affine>& end, int64_t length) const {
  if (begin || !end) return 0;
  const Range range = scope_.Of(end.value());
  if (range.low > 0 || range.high <= 0) return 0;
  const uint64_t step = scope_.space().ClassOf(end.value()).Divisor();
  return step > 1 && step <= INT32_MAX && step % static_cast<uint64_t>(length) == 0 ? static_cast<int64_t>(step) : 0;
}

Emitter::Condition Emitter::WhenThere(const IOp& iop, bool reads_numbers) {
  std::vector<std::string> texts;
  std::vector<Affine> ends;
  // units of a group meet, and a sync is for all
  const bool alone = plan_->graph()->num_units == 1 && iop->op != "sync" && iop->targets.size() == 1;
  auto look = [&](const ffi::Optional<Affine>& begin, const ffi::Optional<Affine>& end, int64_t length) {
    const int64_t step = StepOfEnd(begin, end, length);
    if (step == 0) return;
    const std::string text = scope_.Text(end.value().FloorDiv(step), Precedence::kSum) + " > 0";
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) return;
    texts.push_back(text);
    ends.push_back(end.value());
  };
  if (alone) {
    const ISlice& target = iop->targets[0];
    look(target->row_begin, target->row_end, target->rows);
    look(target->col_begin, target->col_end, target->cols);
  }
  given_ = ends;
  if (reads_numbers && texts.empty() && !iop->targets.empty()) {
    // a whole tile is computed whatever it holds, but a number that nothing wrote is not to be read
    const ISlice& target = iop->targets[0];
    if (!target->col_begin && target->col_end && scope_.Of(target->col_end.value()).low <= 0) {
      texts.push_back(scope_.Text(target->col_end.value(), Precedence::kSum) + " > 0");
    }
  }
  return Condition(this, Join(texts, " && "));
}

ISlice Emitter::WithoutGiven(const ISlice& slice) const {
  if (given_.empty()) return slice;
  auto whole = [&](const ffi::Optional<Affine>& begin, const ffi::Optional<Affine>& end, int64_t length) {
    if (begin || !end) return false;
    return std::any_of(given_.begin(), given_.end(), [&](const Affine& given) {
      // what is more than zero is its divisor at least
      const Affine more = end.value() - given;
      const int64_t least = static_cast<int64_t>(scope_.space().ClassOf(given).Divisor());
      return more->terms.empty() && more->constant + least >= length;
    });
  };
  auto node = ffi::make_object<ISliceNode>(*slice.get());
  if (whole(slice->row_begin, slice->row_end, slice->rows)) node->row_end = std::nullopt;
  if (whole(slice->col_begin, slice->col_end, slice->cols)) node->col_end = std::nullopt;
  return ISlice(node);
}

Tile Emitter::TileOf(const ISlice& given) {
  const ISlice slice = WithoutGiven(given);
  const std::string pointer(slice->pointer->name);
  if (slice->pointer->level == "dram") {
    Tile tile = TileIn(slice, pointer, 0);
    tile.tensor = parameters_.at(pointer);
    return tile;
  }
  Tile tile = TileIn(slice, slice->pointer->level == "sram" ? kSram : kNram, plan_->PlaceOf(pointer).begin);
  tile.tensor = locals_.at(pointer);
  if (auto pitch = packed_.find(pointer); pitch != packed_.end()) {
    tile.row_pitch = pitch->second;
    tile.full_rows = true;
  }
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
  const int64_t stride = row_stride > 0 ? row_stride : cols;
  Tile tile = Buffer(kNram, dtype, rows, cols, stride, (rows - 1) * stride + std::max(cols, stride));
  PlaceAt(&tile, plan_->Reserve(position_, tile.size * tile.bytes, where()));
  tile.tensor = Declare({"work", TypeOf(dtype).stored, kNram, tile.base, tile.size * tile.bytes}).name;
  return tile;
}

Tile Emitter::Weights(const std::string& dtype, int64_t rows, int64_t cols) {
  if (position_ != weights_position_) weights_ = 0;
  weights_position_ = position_;
  Tile tile = Buffer(kWram, dtype, rows, cols, cols, rows * cols);
  // an address of WRAM stands for the same place in each of its ranges
  PlaceAt(&tile, weights_ / kWramRanges);
  weights_ = RoundUp(weights_ + tile.size * tile.bytes, 8 * kWramRanges);
  weights_total_ = std::max(weights_total_, weights_);
  int64_t limit = Figure("wram_bytes");
  if (weights_ > limit) {
    LacksRoom("WRAM has no room for an operand.", {"WRAM", weights_, limit}, std::to_string(weights_) + " bytes",
              std::to_string(limit) + " bytes");
  }
  tile.tensor = Declare({"weights", TypeOf(dtype).stored, kWram, tile.base, tile.size * tile.bytes}).name;
  return tile;
}

Tile Emitter::As(const Tile& tile, const std::string& dtype, const std::string& type) {
  if (dtype == tile.dtype && type.empty()) return tile;
  Tile other = Seen(tile, dtype);
  const std::string spelled = type.empty() ? TypeOf(dtype, where()).stored : type;
  const std::string hint = tile.tensor + "_" + (type.empty() ? dtype : type);
  other.tensor = Declare({hint, spelled, tile.memory, tile.base, tile.size * tile.bytes}).name;
  return other;
}

std::string Emitter::At(const Tile& tile, const std::string& more) const {
  const std::string offset = OffsetText(tile, more);
  return offset.empty() ? tile.tensor : tile.tensor + " + " + offset;
}

std::string Emitter::Element(const Tile& tile, const std::string& row, const std::string& col) const {
  std::string index = scope_.Text(tile.offset);
  if (index == "0") index.clear();
  auto add = [&](const std::string& number, int64_t stride, const std::string& product) {
    if (number == "0" || stride == 0) return;
    index += (index.empty() ? "" : " + ") + product;
  };
  if (tile.rows > 1) add(row, tile.row_stride, RowText(tile, row));
  if (tile.cols > 1) add(col, tile.col_stride, TimesText(col, tile.col_stride));
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

std::vector<std::string> Emitter::Conditional(const std::vector<std::string>& lines) const {
  return Under(condition_.empty() ? "" : "if (" + condition_ + ")", lines);
}

void Emitter::NoteInterval(const ISlice& target, const Interval& interval) {
  bool boxed = !BoxText(target).empty() && SparesOutside(target);
  written_.insert_or_assign(std::string(target->pointer->name),
                            Written{target, interval, position_, boxed, condition_});
}

Interval Emitter::IntervalOf(const ISlice& source, const ISlice& target) const {
  auto found = written_.find(std::string(source->pointer->name));
  if (found == written_.end() || source->pointer->level != "reg") return {};
  const Written& written = found->second;
  bool here = SamePlace(written.place, source) && (!written.boxed || SparesOutside(target)) &&
              (written.condition.empty() || written.condition == condition_);
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
  return {"COMPUTE", {"__sync_cluster();"}, {}, comment, false, true, {}};
}

void Emitter::MeetCluster() {
  meets_cluster_ = true;
  Add(Meeting(brief_));
}

const std::string& Emitter::DealClusters() {
  cluster_ = names_->Fresh("group");
  return cluster_;
}

int64_t Emitter::Figure(const std::string& name) const {
  const auto& figures = plan_->graph()->hardware->figures;
  auto found = figures.find(name);
  if (found == figures.end()) return 0;
  if (auto number = (*found).second.as<int64_t>()) return *number;
  if (auto text = (*found).second.as<ffi::String>()) return std::atoll(text->c_str());
  return static_cast<int64_t>((*found).second.cast<double>());
}

}  // namespace uir::codegen::bang
