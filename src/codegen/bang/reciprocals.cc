// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/reciprocals.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/bang/group.h"
#include "codegen/uses.h"

namespace uir::codegen::bang {

namespace {

using UsesByPointer = std::map<std::string, std::vector<const Use*>>;

/*! \brief The operand number of a divisor (`Use::operand`). */
constexpr int kDivisor = 2;

bool IsDivisor(const Use& use) { return use.iop->op == "binary" && use.iop->name == "div" && use.operand == kDivisor; }

/*! \brief Whether a pointer holds copies of a number, and nobody reads them but to divide by them. */
bool HoldsCopies(const std::string& number, const std::vector<const Use*>& uses) {
  return std::all_of(uses.begin(), uses.end(), [&](const Use* use) {
    if (!use->write) return IsDivisor(*use);
    return use->iop->op == "broadcast" && use->iop->sources[0]->pointer->name == number;
  });
}

/*! \brief Whether a pointer is one float, of a cast, that nobody reads but to divide by it. */
bool OnlyDivides(const std::string& name, const std::vector<const Use*>& uses, const UsesByPointer& all) {
  const IPointer& pointer = uses[0]->slice->pointer;
  if (pointer->level != "reg" || pointer->dtype != "fp32" || pointer->size != 1) return false;
  if (std::all_of(uses.begin(), uses.end(), [](const Use* use) { return use->write; })) return false;
  return std::all_of(uses.begin(), uses.end(), [&](const Use* use) {
    if (use->write) return use->iop->op == "cast";
    if (use->iop->op != "broadcast") return IsDivisor(*use);
    const ISlice& copies = use->iop->targets[0];
    return !IsGroupForm(use->iop) && copies->pointer->level == "reg" &&
           HoldsCopies(name, all.at(std::string(copies->pointer->name)));
  });
}

/*! \brief The pointers that hold reciprocals in the place of such numbers: theirs, and those of their copies. */
std::set<std::string> Reciprocals(const IGraph& graph, std::set<std::string>* numbers) {
  const std::vector<Use> uses = UsesOf(graph);
  const UsesByPointer all = ByPointer(uses);
  std::set<std::string> found;
  for (const auto& [name, own] : all) {
    if (OnlyDivides(name, own, all)) numbers->insert(name);
  }
  found = *numbers;
  for (const Use& use : uses) {
    if (use.write && use.iop->op == "broadcast" && numbers->count(std::string(use.iop->sources[0]->pointer->name))) {
      found.insert(use.pointer());
    }
  }
  return found;
}

IOp Made(const char* op, const char* name, const ISlice& target, const std::vector<ISlice>& sources) {
  auto node = ffi::make_object<IOpNode>();
  node->op = op;
  node->name = name;
  node->dtype = "fp32";
  node->targets = {target};
  node->sources = ffi::Array<ISlice>(sources.begin(), sources.end());
  return IOp(node);
}

ffi::Array<ffi::ObjectRef> Rewritten(const ffi::Array<ffi::ObjectRef>& body, const std::set<std::string>& numbers,
                                     const std::set<std::string>& reciprocals) {
  ffi::Array<ffi::ObjectRef> made;
  for (const ffi::ObjectRef& node : body) {
    if (auto loop = node.as<Loop>()) {
      auto inner = ffi::make_object<LoopNode>(*loop->get());
      inner->body = Rewritten((*loop)->body, numbers, reciprocals);
      made.push_back(Loop(inner));
      continue;
    }
    const IOp iop = node.as_or_throw<IOp>();
    const bool divides = iop->op == "binary" && iop->name == "div";
    if (divides && reciprocals.count(std::string(iop->sources[1]->pointer->name)) > 0) {
      made.push_back(Made("binary", "mul", iop->targets[0], {iop->sources[0], iop->sources[1]}));
      continue;
    }
    made.push_back(iop);
    if (iop->op == "cast" && numbers.count(std::string(iop->targets[0]->pointer->name)) > 0) {
      made.push_back(Made("unary", "recip", iop->targets[0], {iop->targets[0]}));
    }
  }
  return made;
}

}  // namespace

IGraph WithReciprocals(const IGraph& graph) {
  std::set<std::string> numbers;
  const std::set<std::string> reciprocals = Reciprocals(graph, &numbers);
  if (numbers.empty()) return graph;
  auto made = ffi::make_object<IGraphNode>(*graph.get());
  made->body = Rewritten(graph->body, numbers, reciprocals);
  return IGraph(made);
}

}  // namespace uir::codegen::bang
