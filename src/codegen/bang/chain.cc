// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/chain.h"

#include <algorithm>
#include <string>

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

/*! \brief Functions that take a number for each row as their second operand, or as their first where they commute. */
bool TakesColumn(const IOp& iop, bool second) {
  if (iop->op != "binary" || iop->dtype != "fp32") return false;
  return iop->name == "add" || iop->name == "mul" || (second && (iop->name == "sub" || iop->name == "div"));
}

/*! \brief Every chain is: fused functions take the time of one, and nothing is stored between. */
bool IsOfUse(const std::vector<IOp>&) { return true; }

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

const tiles::ChainRules kChains = {HasValue, Repeats, TakesColumn, IsOfUse, 256};

void EmitChain(Emitter& e, const std::vector<IOp>& chain) {
  const ISlice& target = chain.back()->targets[0];
  Program p = ProgramFor(e, target);
  std::vector<Tile> tiles = {e.TileOf(target)};
  auto input = [&](const ISlice& source, bool column) {
    int operand = static_cast<int>(tiles.size()) - 1;
    std::string dtype(source->pointer->dtype);
    tiles.push_back(e.TileOf(source));
    if (column) return p.Column(operand, dtype);
    Value value = p.Input(operand, dtype);
    p.Know(value, e.IntervalOf(source, target));
    return value;
  };
  auto value = [&](size_t at, const std::vector<Value>& sources) {
    const IOp& iop = chain[at];
    if (sources.size() > 1 && p.IsColumn(sources[0]) && !p.IsColumn(sources[1])) {
      return ValueOf(p, iop, {sources[1], sources[0]});
    }
    bool centred = iop->name == "erf" && iop->dtype == "fp32" && IsCentred(chain, at);
    return centred ? CentredErf(p, sources[0]) : ValueOf(p, iop, sources);
  };
  Value made = tiles::ValueOfChain(kChains, chain, input, value);
  bool columns = std::any_of(chain.begin(), chain.end(), Repeats);
  if (!columns) tiles = tiles::AsRows(tiles);
  e.NoteInterval(target, p.IntervalOf(made));
  RunOnTiles(e, p, made, tiles, tiles[0].box, e.SparesOutside(target));
}

}  // namespace uir::codegen::bang
