// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/dealt.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/rounding.h"

namespace uir::codegen::tiles {

namespace {

using Node = pipes::Node;

bool HasVariable(const Affine& expr, const std::string& variable) {
  const auto names = expr.Variables();
  return std::any_of(names.begin(), names.end(), [&](const ffi::String& name) { return name == variable; });
}

std::set<std::string> DramOf(const IGraph& graph) {
  std::set<std::string> names;
  for (const IPointer& pointer : graph->pointers) {
    if (pointer->level == "dram") names.insert(std::string(pointer->name));
  }
  return names;
}

/*! \brief Whether places on chip are the same for every group. */
bool KeepsPlaces(const std::vector<Node>& body, const std::set<std::string>& dram) {
  return std::all_of(body.begin(), body.end(), [&](const Node& node) {
    const auto& regions = node.instruction.regions;
    return KeepsPlaces(node.body, dram) && std::none_of(regions.begin(), regions.end(), [&](const pipes::Region& one) {
             return dram.count(one.memory) == 0 && HasVariable(one.begin, "pid");
           });
  });
}

/*! \brief The body with turns for groups: what is in dram moves with them, as it does with groups. */
std::vector<Node> ByTurn(std::vector<Node> body) {
  for (Node& node : body) {
    node.body = ByTurn(std::move(node.body));
    for (pipes::Region& region : node.instruction.regions) {
      region.begin = Substitute(region.begin, {{"pid", Affine::Var(kTurn)}});
    }
  }
  return body;
}

/*! \brief Whether ids of flags alternate with turns. */
bool CountsTurns(const std::vector<Node>& body) {
  return std::any_of(body.begin(), body.end(), [](const Node& node) {
    return (node.kind == Node::Kind::kSync && HasVariable(node.sync.id, kTurn)) || CountsTurns(node.body);
  });
}

/*! \brief Loops of which syncs behind them ask how many rounds they had get their variable before them. */
void DeclareCounters(std::vector<Node>* body) {
  for (size_t k = 0; k < body->size(); ++k) {
    const Node& loop = (*body)[k];
    if (loop.kind != Node::Kind::kLoop || !loop.fewer) continue;
    const std::string variable = loop.var;
    const bool behind = std::any_of(
        body->begin() + static_cast<std::ptrdiff_t>(k) + 1, body->end(),
        [&](const Node& node) { return node.kind == Node::Kind::kSync && HasVariable(node.sync.id, variable); });
    if (!behind) continue;
    // "for (int32_t tile = 0; ..." -> "int32_t tile = 0;", "for (; ..."
    const size_t open = loop.text.find('('), end = loop.text.find(';');
    const std::string declaration = loop.text.substr(open + 1, end - open);
    (*body)[k].text = loop.text.substr(0, open + 1) + loop.text.substr(end);
    body->insert(body->begin() + static_cast<std::ptrdiff_t>(k), Node::Plain({declaration}));
    ++k;
  }
}

}  // namespace

pipes::Plan PlanGroups(const Emitter& e, std::vector<Node> body, const pipes::Vocabulary& vocabulary,
                       const std::string& where, const Dealing& dealing) {
  if (!dealing.groups.dealt) {
    pipes::Plan plan = PlanSyncs(body, vocabulary, where);
    DeclareCounters(&plan.body);
    return plan;
  }
  const IGraph& graph = e.plan().graph();
  const int64_t turns = CeilDiv(graph->num_groups, dealing.groups.blocks);
  const bool overlaps = dealing.overlaps && KeepsPlaces(body, DramOf(graph));
  if (overlaps) body = ByTurn(std::move(body));
  if (!dealing.opening.empty()) body.insert(body.begin(), Node::Plain(dealing.opening));
  pipes::Plan plan;
  if (overlaps) {
    Node all = Node::Loop(kTurn, "", turns, std::move(body));
    all.fewer = true;
    plan = PlanSyncs({all}, vocabulary, where);
  } else {
    plan = PlanSyncs(body, vocabulary, where);
    plan.body.push_back(dealing.drain);
    plan.body = {Node::Loop(kTurn, "", turns, std::move(plan.body))};
  }
  const std::string counter = CountsTurns(plan.body) ? e.turn() : "";
  const bool behind = std::any_of(plan.body.begin(), plan.body.end(), [](const Node& node) {
    return node.kind == Node::Kind::kSync && HasVariable(node.sync.id, kTurn);
  });
  for (Node& node : plan.body) {
    if (node.kind != Node::Kind::kLoop) continue;
    node.text = dealing.groups.Head(dealing.variable, dealing.begin, dealing.step, counter, behind);
  }
  if (behind) plan.body.insert(plan.body.begin(), Node::Plain({dealing.groups.type + " " + counter + " = 0;"}));
  return plan;
}

}  // namespace uir::codegen::tiles
