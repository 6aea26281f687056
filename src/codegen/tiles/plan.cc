// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/plan.h"

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string>

#include "base/attrs.h"
#include "base/rounding.h"
#include "codegen/attributes.h"
#include "codegen/error.h"
#include "codegen/tiles/later_reads.h"

namespace uir::codegen::tiles {

namespace {

std::string KiloText(int64_t bytes) { return std::to_string(bytes) + " bytes"; }

/*! \brief Whether a write leaves no element of its pointer as it was. */
bool WritesAll(const Use& use) {
  return use.write && !use.reads_too && BoxText(use.slice).empty() &&
         use.slice->rows * use.slice->cols == use.slice->pointer->size;
}

/*! \brief A move from global memory. */
bool IsLoad(const Use& use) {
  return use.write && use.iop->op == "move" && use.iop->sources[0]->pointer->level == "dram";
}

/*! \brief How many loops there are around a use, but for those that are for tiles of later rounds. */
size_t Staged(const Use& use) {
  size_t depth = use.loops.size();
  while (depth > 0 && AheadOf(use.loops[depth - 1]) > 0) --depth;
  return depth;
}

/*! \brief Whether the target of a load in a loop of several stages is at the place of a later iteration. */
bool RunsAhead(const Use& use) {
  if (Staged(use) == 0) return false;
  const Loop& loop = use.loops[Staged(use) - 1];
  const auto count = AttrOr<int64_t>(loop->attrs, "stages", 0);
  if (count == 0) return false;
  for (const Term& term : use.slice->offset->terms) {
    if (term->kind != "mod" || term->divisor != count || !term->inner) continue;
    Affine inner = InnerOf(term);
    if (inner->constant % count != count - 1 || inner->terms.size() != 1) continue;
    const Term& variable = inner->terms[0];
    if (variable->kind == "var" && variable->var == loop->var && variable->coeff == 1) return true;
  }
  return false;
}

}  // namespace

Plan::Plan(const IGraph& graph, const CoreMemory& memory)
    : graph_(graph), memory_(memory), uses_(UsesOf(graph)), limit_(graph->hardware->reg_bytes) {
  std::string name(graph->name);
  const std::set<std::string> used = PointersOf(uses_);
  const Attrs addresses = AttrOr(graph->attrs, "addresses", Attrs());
  for (const IPointer& pointer : graph->pointers) {
    if (pointer->level != "dram" && used.count(std::string(pointer->name))) Take(pointer, addresses);
  }
  total_ = peak_;
  auto fits = [&](const std::string& memory, const std::string& owner, int64_t need, int64_t limit) {
    if (need > limit) {
      CapacityError("The " + memory + " of a " + owner + " overflows.", name, {memory, need, limit}, KiloText(need),
                    KiloText(limit));
    }
  };
  fits(std::string(memory_.name), "core", peak_, limit_);
  fits("sram", "group", shared_total_, graph->hardware->sram_bytes);
  FindLives();
  FindSpared();
  FindAhead();
}

void Plan::Take(const IPointer& pointer, const ffi::Map<ffi::String, ffi::Any>& addresses) {
  std::string own(pointer->name), where = std::string(graph_->name) + ": " + own;
  bool shared = pointer->level == "sram";
  std::string memory = shared ? "sram" : memory_.name;
  if (shared && !memory_.shares) {
    CodegenError("A " + std::string(memory_.core) + " shares no memory with others.", where, "sram", "",
                 "keep the slice in reg, or in dram");
  }
  auto at = addresses.find(pointer->name);
  if (at == addresses.end()) {
    CodegenError("A slice has no address in the " + memory + ".", where, "", "",
                 "run the pass allocate before printing");
  }
  Place place;
  place.name = own;
  place.dtype = std::string(pointer->dtype);
  place.begin = (*at).second.cast<int64_t>();
  place.bytes = pointer->size * memory_.bytes_of(place.dtype, where);
  if (place.begin % memory_.block != 0) {
    CodegenError("A slice does not start at a block of the " + memory + ".", where,
                 "an address that is a multiple of " + std::to_string(memory_.block), std::to_string(place.begin),
                 "set the hardware's figure reg_align to " + std::to_string(memory_.block));
  }
  int64_t& end = shared ? shared_total_ : peak_;
  end = std::max(end, RoundUp(place.begin + place.bytes, memory_.block));
  (shared ? shared_ : places_)[own] = place;
}

const Place& Plan::PlaceOf(const std::string& pointer) const {
  auto it = places_.find(pointer);
  if (it != places_.end()) return it->second;
  auto shared = shared_.find(pointer);
  TVM_FFI_CHECK(shared != shared_.end(), InternalError) << "no pointer '" << pointer << "' is in use";
  return shared->second;
}

void Plan::FindLives() {
  // positions from the first to the last iOp of every loop, by the path of the loop
  std::map<std::vector<int>, std::pair<int, int>> spans;
  for (const Use& use : uses_) {
    for (size_t depth = 1; depth < use.path.size(); ++depth) {
      std::vector<int> loop(use.path.begin(), use.path.begin() + depth);
      auto [at, fresh] = spans.emplace(loop, std::make_pair(use.position, use.position));
      if (!fresh) at->second.second = std::max(at->second.second, use.position);
    }
  }
  for (auto& [name, uses] : ByPointer(uses_)) {
    auto at = places_.find(name);
    if (at == places_.end()) continue;
    // the innermost body that holds all uses; it is alive through every loop inside of that one
    size_t common = uses[0]->path.size() - 1;
    for (const Use* use : uses) {
      size_t same = 0;
      while (same < common && same + 1 < use->path.size() && uses[0]->path[same] == use->path[same]) ++same;
      common = std::min(common, same);
    }
    // what is not written whole before anything else comes from an earlier iteration
    if (!WritesAll(*uses[0])) common = 0;
    Place& place = at->second;
    place.first = uses[0]->position;
    place.last = uses[0]->position;
    for (const Use* use : uses) {
      place.first = std::min(place.first, use->position);
      place.last = std::max(place.last, use->position);
      if (use->path.size() <= common + 1) continue;
      auto span = spans.at(std::vector<int>(use->path.begin(), use->path.begin() + common + 1));
      place.first = std::min(place.first, span.first);
      place.last = std::max(place.last, span.second);
    }
  }
}

void Plan::FindSpared() {
  const Scope scope = ScopeOf(graph_);
  for (const auto& [name, uses] : ByPointer(uses_)) {
    spares_[name] = HoldsBesideBoxes(uses) && !LaterReadsKeepInside(uses, scope);
  }
}

/*
 * A loop of several stages loads into places that hold nothing from one iteration to the next, and a load that runs
 * ahead is the first of its iteration to touch its place (`optimize.loads_ahead` proves both; such a pointer is used
 * nowhere else). Its places before the loop are filled by the same loads. Where several loads fill a place (the
 * parts of a concatenation), what one brought stays while the next one lands beside it.
 */
void Plan::FindAhead() {
  std::map<std::string, int> loads;
  for (const Use& use : uses_) loads[use.pointer()] += IsLoad(use) && RunsAhead(use);
  std::map<std::string, std::vector<int>> loops;
  for (const Use& use : uses_) {
    if (IsLoad(use) && RunsAhead(use) && loads.at(use.pointer()) == 1) {
      ahead_.insert(use.slice.get());
      loops[use.pointer()] =
          std::vector<int>(use.path.begin(), use.path.begin() + static_cast<std::ptrdiff_t>(Staged(use)));
    }
  }
  for (const Use& use : uses_) {
    auto loop = loops.find(use.pointer());
    // before the loop, in the same body
    if (loop != loops.end() && IsLoad(use) && use.path.size() >= loop->second.size() && use.path < loop->second &&
        std::equal(loop->second.begin(), loop->second.end() - 1, use.path.begin())) {
      ahead_.insert(use.slice.get());
    }
  }
}

bool Plan::SparesOutside(const ISlice& target) const {
  if (ahead_.count(target.get())) return false;
  auto it = spares_.find(std::string(target->pointer->name));
  return !BoxText(target).empty() && it != spares_.end() && it->second;
}

size_t Plan::Reserved(int position) const {
  auto own = work_.find(position);
  return own == work_.end() ? 0 : own->second.size();
}

void Plan::Release(int position, size_t kept) {
  if (kept < Reserved(position)) work_.at(position).resize(kept);
}

bool Plan::AliveAt(const Place& place, int position) const {
  auto covered = covered_.find(position);
  int first = covered == covered_.end() ? position : covered->second;
  return place.first <= position && first <= place.last;
}

std::vector<std::pair<int64_t, int64_t>> Plan::TakenAt(int position, bool pointers) const {
  std::vector<std::pair<int64_t, int64_t>> taken = kept_;
  auto own = work_.find(position);
  if (own != work_.end()) {
    for (const Place& place : own->second) taken.emplace_back(place.begin, place.begin + place.bytes);
  }
  for (const auto& [name, place] : places_) {
    if (pointers && AliveAt(place, position))
      taken.emplace_back(place.begin, RoundUp(place.begin + place.bytes, memory_.block));
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

int64_t Plan::FreeAt(int position) const {
  auto largest = [&](int64_t from, bool pointers) {
    int64_t most = 0, at = from;
    for (auto [begin, end] : TakenAt(position, pointers)) {
      most = std::max(most, begin - at);
      at = std::max(at, RoundUp(end, memory_.block));
    }
    return std::max(most, limit_ - at);
  };
  return std::max(largest(peak_, false), largest(0, true)) / memory_.block * memory_.block;
}

bool Plan::RowEndsAreFree(const ISlice& slice) const {
  int64_t bytes = memory_.bytes_of(std::string(slice->pointer->dtype), ""), block = memory_.block / bytes;
  int64_t gap = RoundUp(slice->cols * bytes, memory_.block) / bytes - slice->cols;
  if (gap == 0) return true;
  // elements by their number modulo what all offsets and distances of rows are multiples of
  int64_t modulus = 0;
  auto common = [&modulus](int64_t distance) { modulus = std::gcd(modulus, std::abs(distance)); };
  // where a run of elements begins, and its length
  std::vector<std::pair<const ISlice*, int64_t>> others;
  for (const Use& use : uses_) {
    if (use.pointer() != std::string(slice->pointer->name)) continue;
    const ISlice& other = use.slice;
    int64_t rows = other->row_stride == 0 ? 1 : other->rows, cols = other->col_stride == 0 ? 1 : other->cols;
    if (cols > 1 && other->col_stride != 1) return false;
    if (cols == 1 && other->row_stride == 1) std::swap(rows, cols);
    for (const Term& term : other->offset->terms) common(term->coeff);
    if (rows > 1) common(other->row_stride);
    others.emplace_back(&other, cols);
  }
  if (modulus == 0) modulus = RoundUp(slice->pointer->size, block);
  auto place = [modulus](const ISlice& one) {
    int64_t rest = one->offset->constant % modulus;
    return rest < 0 ? rest + modulus : rest;
  };
  int64_t from = place(slice) + slice->cols;
  if (from + gap > modulus) return false;
  for (auto [other, length] : others) {
    int64_t begin = place(*other), end = begin + length;
    if (end > modulus || (begin < from + gap && from < end)) return false;
  }
  return true;
}

int64_t Plan::Keep(int64_t bytes, const std::string& where) {
  int64_t begin = peak_, need = RoundUp(bytes, memory_.block);
  if (begin + need > limit_) {
    CapacityError("The " + std::string(memory_.name) + " has no room for what a kernel makes once.", where,
                  {std::string(memory_.name), begin + need, limit_}, KiloText(need) + " behind " + KiloText(begin),
                  KiloText(limit_));
  }
  kept_.emplace_back(begin, begin + need);
  peak_ = begin + need;
  total_ = std::max(total_, peak_);
  return begin;
}

int64_t Plan::Reserve(int position, int64_t bytes, const std::string& where) {
  int64_t need = RoundUp(bytes, memory_.block);
  auto first_fit = [&](int64_t from, bool pointers) {
    int64_t at = from;
    for (auto [begin, end] : TakenAt(position, pointers)) {
      if (begin < at + need && end > at) at = RoundUp(end, memory_.block);
    }
    return at;
  };
  // behind everything first: what shares no bytes needs no order
  int64_t at = first_fit(peak_, false);
  if (at + need > limit_) at = first_fit(0, true);
  std::vector<Place>& own = work_[position];
  if (at + need > limit_) {
    std::string alive;
    for (const auto& [name, place] : places_) {
      if (AliveAt(place, position)) alive += ", " + name + " " + KiloText(place.bytes);
    }
    for (const Place& place : own) alive += ", work " + KiloText(place.bytes);
    CapacityError("The " + std::string(memory_.name) + " has no room for a work buffer.", where,
                  {std::string(memory_.name), at + need, limit_},
                  KiloText(need) + " beside what is alive there" + (alive.empty() ? "" : ": " + alive.substr(2)),
                  KiloText(limit_) + " on " + std::string(graph_->hardware->name));
  }
  own.push_back({"work", "uint8", at, need, position, position});
  total_ = std::max(total_, at + need);
  return at;
}

}  // namespace uir::codegen::tiles
