// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/chain.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "codegen/attributes.h"
#include "codegen/uses.h"

namespace uir::codegen::tiles {
namespace {

bool InRegisters(const IOp& iop) {
  auto inside = [](const ISlice& slice) { return slice->pointer->level == "reg"; };
  return std::all_of(iop->targets.begin(), iop->targets.end(), inside) &&
         std::all_of(iop->sources.begin(), iop->sources.end(), inside);
}

bool Dense(const ISlice& slice) {
  return (slice->col_stride == 1 || slice->cols == 1) && (slice->rows == 1 || slice->row_stride == slice->cols);
}

bool IsColumn(const ISlice& slice) {
  return slice->cols == 1 && !slice->OpenStrides() && (slice->rows == 1 || slice->row_stride == 1);
}

/*! \brief Whether all operands are single columns without gaps, or numbers. */
bool OfColumns(const IOp& iop) {
  return std::all_of(iop->targets.begin(), iop->targets.end(), IsColumn) &&
         std::all_of(iop->sources.begin(), iop->sources.end(), IsColumn);
}

/*! \brief A column without gaps as a row. */
ISlice RowOf(const ISlice& slice) {
  auto row = ffi::make_object<ISliceNode>(*slice.get());
  row->rows = 1;
  row->cols = slice->rows;
  row->row_stride = slice->rows;
  row->col_stride = 1;
  row->row_begin = slice->col_begin;
  row->row_end = slice->col_end;
  row->col_begin = slice->row_begin;
  row->col_end = slice->row_end;
  return ISlice(row);
}

/*! \brief The same iOp over rows: a broadcast of a number along a column is one along a row then. */
IOp WithRows(const IOp& iop) {
  auto made = ffi::make_object<IOpNode>(*iop.get());
  made->targets = iop->targets.Map(RowOf);
  made->sources = iop->sources.Map(RowOf);
  if (iop->op == "broadcast") made->attrs.Set("axis", ffi::String(IsByRow(iop) ? "col" : "row"));
  return IOp(made);
}

/*! \brief One attempt to print some iOps as one program. */
class Attempt {
 public:
  Attempt(const ChainRules& rules, const Emitter& e, const std::vector<IOp>& chain, int position)
      : rules_(rules), e_(e), chain_(chain), first_(position), last_(position + static_cast<int>(chain.size()) - 1) {}

  bool Holds() {
    auto printable = [&](const IOp& iop) { return rules_.repeats(iop) || rules_.has_value(iop); };
    if (!std::all_of(chain_.begin(), chain_.end(), printable)) return false;
    const ISlice& target = chain_.back()->targets[0];
    bool columns = std::any_of(chain_.begin(), chain_.end(), rules_.repeats);
    // where sizes bound a tile, all of it is computed if nobody minds
    free_ = !e_.plan().graph()->sizes.empty() && !target->row_begin && !e_.SparesOutside(target);
    if (rules_.repeats(chain_.back())) return false;
    for (const IOp& iop : chain_) {
      for (const ISlice& source : iop->sources) {
        if (!rules_.repeats(iop) && !Fits(source, target, columns)) return false;
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
  bool Fits(const ISlice& slice, const ISlice& target, bool columns) const {
    if (slice->rows != target->rows || slice->cols != target->cols || BoxText(slice) != BoxText(target)) return false;
    if (slice->col_stride != 1 && slice->cols > 1) return false;
    if (slice->row_stride == 0 && slice->rows > 1) return false;
    return !columns || (Dense(slice) && (free_ || BoxText(slice).empty()) && slice->rows <= rules_.most_rows);
  }

  bool Reads(const IOp& iop, const ISlice& source, const ISlice& target) {
    auto maker = made_.find(std::string(source->pointer->name));
    if (maker == made_.end()) {
      outside_.insert(std::string(source->pointer->name));
      sources_.push_back({source, rules_.repeats(iop)});
      return !rules_.repeats(iop) ||
             (source->rows == target->rows && source->cols == 1 && (free_ || BoxText(source).empty()) &&
              (source->row_stride == 1 || source->rows == 1));
    }
    const IOp& before = *maker->second;
    read_.insert(maker->first);
    if (rules_.repeats(iop) || !SamePlace(before->targets[0], source)) return false;
    if (!rules_.repeats(before)) return true;
    // a column beside what is none
    bool second = iop->sources.size() > 1 && iop->sources[1]->pointer->name == source->pointer->name;
    if (iop->sources.size() < 2 || !rules_.takes_column(iop, second)) return false;
    const ISlice& other = iop->sources[second ? 0 : 1];
    auto beside = made_.find(std::string(other->pointer->name));
    return other->pointer->name != source->pointer->name && (beside == made_.end() || !rules_.repeats(*beside->second));
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

  /*! \brief [begin, end) in the core's memory: of the slice where its offset is constant, else of all its pointer. */
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
  const ChainRules& rules_;
  const Emitter& e_;
  const std::vector<IOp>& chain_;
  int first_, last_;
  /*! \brief Whether what lies outside of the boxes may be anything. */
  bool free_ = false;
  /*! \brief Pointers and the iOps that write them, those that are read of these, and those of others. */
  std::map<std::string, const IOp*> made_;
  std::set<std::string> read_, outside_;
  std::vector<Source> sources_;
};

}  // namespace

std::vector<IOp> ChainAt(const ChainRules& rules, const Emitter& e, const ffi::Array<ffi::ObjectRef>& body, size_t at,
                         int position) {
  std::vector<IOp> chain;
  for (size_t k = at; k < body.size(); ++k) {
    if (body[k].as<IOpNode>() == nullptr) break;
    IOp iop = body[k].as_or_throw<IOp>();
    const bool printable =
        rules.repeats(iop) || rules.has_value(iop) || (OfColumns(iop) && rules.repeats(WithRows(iop)));
    if (!printable || !InRegisters(iop)) break;
    chain.push_back(iop);
  }
  for (; chain.size() > 1; chain.pop_back()) {
    if (!rules.is_of_use(chain)) continue;
    if (Attempt(rules, e, chain, position).Holds()) return chain;
    // a number that is repeated along columns is one for each row of these as rows
    if (!std::all_of(chain.begin(), chain.end(), OfColumns)) continue;
    std::vector<IOp> rows(chain.size());
    std::transform(chain.begin(), chain.end(), rows.begin(), WithRows);
    if (Attempt(rules, e, rows, position).Holds()) return rows;
  }
  return {};
}

Value ValueOfChain(const ChainRules& rules, const std::vector<IOp>& chain,
                   const std::function<Value(const ISlice& slice, bool column)>& input,
                   const std::function<Value(size_t at, const std::vector<Value>& sources)>& value) {
  struct Outside {
    ISlice slice;
    bool column;
    Value value;
  };
  std::map<std::string, Value> values;
  std::vector<Outside> outside;
  Value made;
  for (size_t k = 0; k < chain.size(); ++k) {
    const bool column = rules.repeats(chain[k]);
    std::vector<Value> sources;
    for (const ISlice& source : chain[k]->sources) {
      auto known = values.find(std::string(source->pointer->name));
      if (known != values.end()) {
        sources.push_back(known->second);
        continue;
      }
      auto again = std::find_if(outside.begin(), outside.end(), [&](const Outside& one) {
        return one.column == column && one.slice->pointer->name == source->pointer->name &&
               SamePlace(one.slice, source);
      });
      if (again == outside.end()) again = outside.insert(again, {source, column, input(source, column)});
      sources.push_back(again->value);
    }
    made = column ? sources[0] : value(k, sources);
    values[std::string(chain[k]->targets[0]->pointer->name)] = made;
  }
  return made;
}

}  // namespace uir::codegen::tiles
