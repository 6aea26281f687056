// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/chain.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "codegen/attributes.h"
#include "codegen/bang/elementwise.h"
#include "codegen/bang/group.h"
#include "codegen/bang/run.h"

namespace uir::codegen::bang {
namespace {

/*! \brief Whether an iOp repeats a column of floats along rows. */
bool Repeats(const IOp& iop) {
  return iop->op == "broadcast" && !IsGroupForm(iop) && iop->dtype == "fp32" && IsByRow(iop) &&
         iop->sources[0]->pointer->level == "reg";
}

bool InRegisters(const IOp& iop) {
  auto inside = [](const ISlice& slice) { return slice->pointer->level == "reg"; };
  return std::all_of(iop->targets.begin(), iop->targets.end(), inside) &&
         std::all_of(iop->sources.begin(), iop->sources.end(), inside);
}

bool Dense(const ISlice& slice) {
  return (slice->col_stride == 1 || slice->cols == 1) && (slice->rows == 1 || slice->row_stride == slice->cols);
}

/*! \brief Functions that take a number for each row as their second operand, or as their first where they commute. */
bool TakesColumn(const IOp& iop, bool second) {
  if (iop->op != "binary" || iop->dtype != "fp32") return false;
  return iop->name == "add" || iop->name == "mul" || (second && (iop->name == "sub" || iop->name == "div"));
}

/*! \brief One attempt to print some iOps as one program. */
class Attempt {
 public:
  Attempt(const Emitter& e, const std::vector<IOp>& chain, int position)
      : e_(e), chain_(chain), first_(position), last_(position + static_cast<int>(chain.size()) - 1) {}

  bool Holds() {
    const ISlice& target = chain_.back()->targets[0];
    bool columns = std::any_of(chain_.begin(), chain_.end(), Repeats);
    if (Repeats(chain_.back())) return false;
    for (const IOp& iop : chain_) {
      for (const ISlice& source : iop->sources) {
        if (!Repeats(iop) && !Fits(source, target, columns)) return false;
        if (!Reads(iop, source, target)) return false;
      }
      const ISlice& made = iop->targets[0];
      if (!Fits(made, target, columns)) return false;
      std::string name(made->pointer->name);
      if (!made_.emplace(name, &iop).second || outside_.count(name)) return false;
    }
    return target->cols > 1 || target->rows > 1 ? Private() && Apart() : false;
  }

 private:
  /*! \brief Whether a slice lies as the target's elements do. */
  static bool Fits(const ISlice& slice, const ISlice& target, bool columns) {
    if (slice->rows != target->rows || slice->cols != target->cols || BoxText(slice) != BoxText(target)) return false;
    if (slice->col_stride != 1 && slice->cols > 1) return false;
    return !columns || (Dense(slice) && BoxText(slice).empty() && slice->rows <= 256);
  }

  bool Reads(const IOp& iop, const ISlice& source, const ISlice& target) {
    auto maker = made_.find(std::string(source->pointer->name));
    if (maker == made_.end()) {
      outside_.insert(std::string(source->pointer->name));
      sources_.push_back({source, Repeats(iop)});
      return !Repeats(iop) || (source->rows == target->rows && source->cols == 1 && BoxText(source).empty() &&
                               (source->row_stride == 1 || source->rows == 1));
    }
    const IOp& before = *maker->second;
    read_.insert(maker->first);
    if (Repeats(iop) || !SamePlace(before->targets[0], source)) return false;
    if (!Repeats(before)) return true;
    // a column beside what is none
    bool second = iop->sources.size() > 1 && iop->sources[1]->pointer->name == source->pointer->name;
    if (iop->sources.size() < 2 || !TakesColumn(iop, second)) return false;
    const ISlice& other = iop->sources[second ? 0 : 1];
    auto beside = made_.find(std::string(other->pointer->name));
    return other->pointer->name != source->pointer->name && (beside == made_.end() || !Repeats(*beside->second));
  }

  /*! \brief Whether nobody else uses what the iOps before the last one make. */
  bool Private() const {
    std::string last(chain_.back()->targets[0]->pointer->name);
    for (const auto& [name, maker] : made_) {
      if (name != last && !read_.count(name)) return false;
    }
    for (const Use& use : e_.plan().uses()) {
      bool inside = first_ <= use.position && use.position <= last_;
      if (!inside && use.pointer() != last && made_.count(use.pointer())) return false;
    }
    return true;
  }

  /*! \brief Whether chunks of the result may be written before all is read: where nothing else lies. */
  bool Apart() const {
    const ISlice& target = chain_.back()->targets[0];
    auto [begin, end] = BytesOf(target);
    for (const auto& [source, column] : sources_) {
      auto [from, to] = BytesOf(source);
      if (end <= from || to <= begin) continue;
      bool same_bytes = begin == from && end == to && (target->offset - source->offset)->terms.empty();
      bool alike = same_bytes && source->pointer->dtype == target->pointer->dtype && !column &&
                   target->row_stride == source->row_stride && target->col_stride == source->col_stride &&
                   (target->offset->terms.empty() || SamePlace(source, target));
      if (!alike) return false;
    }
    return true;
  }

  /*! \brief [begin, end) in NRAM: of the slice where its offset is constant, else of all its pointer. */
  std::pair<int64_t, int64_t> BytesOf(const ISlice& slice) const {
    const Place& place = e_.plan().PlaceOf(std::string(slice->pointer->name));
    if (!slice->offset->terms.empty()) return {place.begin, place.begin + place.bytes};
    int64_t size = place.bytes / slice->pointer->size;
    int64_t span = (slice->rows - 1) * slice->row_stride + (slice->cols - 1) * slice->col_stride + 1;
    int64_t begin = place.begin + slice->offset->constant * size;
    return {begin, begin + span * size};
  }

  struct Source {
    ISlice slice;
    bool column;
  };
  const Emitter& e_;
  const std::vector<IOp>& chain_;
  int first_, last_;
  /*! \brief Pointers and the iOps that write them, those that are read of these, and those of others. */
  std::map<std::string, const IOp*> made_;
  std::set<std::string> read_, outside_;
  std::vector<Source> sources_;
};

/*! \brief Whether all that becomes of an error function gets a constant added: then its own small values do not matter.
 */
bool IsCentred(const std::vector<IOp>& chain, size_t at) {
  std::string name(chain[at]->targets[0]->pointer->name);
  for (size_t k = at + 1; k < chain.size(); ++k) {
    if (chain[k]->sources[0]->pointer->name != name) continue;
    if (chain[k]->op != "unary") return false;
    if (chain[k]->name == "adds") return true;
    if (chain[k]->name != "muls") return false;
    name = std::string(chain[k]->targets[0]->pointer->name);
  }
  return false;
}

}  // namespace

std::vector<IOp> ChainAt(const Emitter& e, const ffi::Array<ffi::ObjectRef>& body, size_t at, int position) {
  std::vector<IOp> chain;
  for (size_t k = at; k < body.size(); ++k) {
    if (body[k].as<IOpNode>() == nullptr) break;
    IOp iop = body[k].as_or_throw<IOp>();
    if (!(Repeats(iop) || HasValue(iop)) || !InRegisters(iop)) break;
    chain.push_back(iop);
  }
  for (; chain.size() > 1; chain.pop_back()) {
    if (Attempt(e, chain, position).Holds()) return chain;
  }
  return {};
}

void EmitChain(Emitter& e, const std::vector<IOp>& chain) {
  Program p = ProgramFor(e);
  std::map<std::string, Value> values;
  struct Outside {
    ISlice slice;
    bool column;
    Value value;
  };
  std::vector<Outside> outside;
  const ISlice& target = chain.back()->targets[0];
  std::vector<Tile> tiles = {e.TileOf(target)};
  Value made;
  for (size_t k = 0; k < chain.size(); ++k) {
    const IOp& iop = chain[k];
    std::vector<Value> sources;
    for (const ISlice& source : iop->sources) {
      std::string name(source->pointer->name), dtype(source->pointer->dtype);
      auto known = values.find(name);
      if (known == values.end()) {
        bool column = Repeats(iop);
        auto again = std::find_if(outside.begin(), outside.end(), [&](const Outside& one) {
          return one.column == column && one.slice->pointer->name == name && SamePlace(one.slice, source);
        });
        if (again == outside.end()) {
          int operand = static_cast<int>(tiles.size()) - 1;
          tiles.push_back(e.TileOf(source));
          outside.push_back({source, column, column ? p.Column(operand, dtype) : p.Input(operand, dtype)});
          again = outside.end() - 1;
          if (!column) p.Know(again->value, e.IntervalOf(source, target));
        }
        sources.push_back(again->value);
      } else {
        sources.push_back(known->second);
      }
    }
    if (Repeats(iop)) {
      made = sources[0];
    } else if (sources.size() > 1 && p.IsColumn(sources[0]) && !p.IsColumn(sources[1])) {
      made = ValueOf(p, iop, {sources[1], sources[0]});
    } else if (iop->name == "erf" && iop->dtype == "fp32" && IsCentred(chain, k)) {
      made = CentredErf(p, sources[0]);
    } else {
      made = ValueOf(p, iop, sources);
    }
    values[std::string(iop->targets[0]->pointer->name)] = made;
  }
  bool columns = std::any_of(chain.begin(), chain.end(), Repeats);
  if (!columns) {
    for (Tile& tile : tiles) tile = AsRow(tile);
  }
  e.NoteInterval(target, p.IntervalOf(made));
  RunOnTiles(e, p, made, tiles, tiles[0].box, e.SparesOutside(target));
}

}  // namespace uir::codegen::bang
