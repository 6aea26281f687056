// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/plan.h"

#include <tvm/ffi/error.h>

#include <algorithm>

#include "codegen/pipes/insert.h"
#include "codegen/pipes/place.h"

namespace uir::codegen::pipes {

namespace {

std::string NameOf(const Instruction& instruction) {
  if (!instruction.comment.empty()) return instruction.comment;
  return instruction.lines.empty() ? instruction.pipe : instruction.lines.front();
}

std::string DescribeRace(const Program& program, const Race& race, Placer* placer) {
  const Instance& a = placer->run().instances[race.first];
  const Instance& b = placer->run().instances[race.second];
  const Op& first = program.ops[a.op];
  const Op& second = program.ops[b.op];
  std::string text =
      NameOf(*first.instruction) + " -> " + NameOf(*second.instruction) + " (" + placer->conflicts()->Kinds(a, b);
  for (size_t l = 0; l < first.loops.size() && l < second.loops.size() && first.loops[l] == second.loops[l]; ++l) {
    int64_t distance = b.iterations[l] - a.iterations[l];
    if (distance == 0) continue;
    text += ", " + std::to_string(distance) + " later in " + program.loops[first.loops[l]].var;
    break;
  }
  return text + ")";
}

/*! \brief What would race without the sync; each once. */
SyncReport ReportOf(const Program& program, const Vocabulary& vocabulary, const Actions& actions, Placer* placer,
                    int s) {
  const Placed& placed = placer->syncs()[s];
  const std::string& from = program.pipes[placed.from];
  SyncReport report;
  report.number = s + 1;
  switch (placed.kind) {
    case Placed::Kind::kFlag:
      report.what = from + "_" + program.pipes[placed.to];
      break;
    case Placed::Kind::kBarrier:
      report.what = "barrier " + from;
      break;
    case Placed::Kind::kDrain:
      report.what = "wait for " + from;
      break;
    case Placed::Kind::kDrainAll:
      report.what = "barrier all";
      break;
  }
  for (const Race& race : Check(placer->run(), vocabulary, placer->syncs(), actions, s, false).races) {
    std::string text = DescribeRace(program, race, placer);
    if (std::find(report.serves.begin(), report.serves.end(), text) == report.serves.end()) {
      report.serves.push_back(text);
    }
  }
  if (report.serves.empty()) {
    report.serves.push_back("flags " + program.pipes[placed.to] + "_" + from + " are over before they are set again");
  }
  return report;
}

Plan PlanWhole(const std::vector<Node>& body, const Vocabulary& vocabulary, const std::string& where) {
  Program program(body, vocabulary, where);
  Placer placer(program, vocabulary, where);
  placer.CoverRaces();
  placer.Prune(false);
  placer.Hoist(false);
  placer.LimitSets();
  placer.Hoist(true);
  placer.Prune(true);
  placer.AllocateIds();
  Actions actions = Arrange(program, placer.syncs());
  if (!placer.Ordered(placer.syncs(), actions, -1)) {
    TVM_FFI_THROW(InternalError) << where << ": the planned syncs leave a race";
  }
  Plan plan;
  std::vector<std::string> comments;
  for (int s = 0; s < static_cast<int>(placer.syncs().size()); ++s) {
    plan.report.push_back(ReportOf(program, vocabulary, actions, &placer, s));
    comments.push_back(plan.report.back().serves.front());
  }
  std::vector<Placed> syncs = placer.syncs();
  for (Placed& sync : syncs) sync.first_id += vocabulary.first;
  plan.body = Insert(body, program, syncs, comments);
  return plan;
}

bool HasEnd(const std::vector<Node>& body) {
  return std::any_of(body.begin(), body.end(), [](const Node& node) { return node.ends || HasEnd(node.body); });
}

void Renumber(int by, std::vector<Node>* body) {
  for (Node& node : *body) {
    if (node.kind == Node::Kind::kSync) node.sync.number += by;
    if (!node.ends) Renumber(by, &node.body);
  }
}

/*! \brief The body of a plan; its report goes behind another one. */
std::vector<Node> Joined(Plan plan, std::vector<SyncReport>* report) {
  const int before = static_cast<int>(report->size());
  Renumber(before, &plan.body);
  for (SyncReport& one : plan.report) {
    one.number += before;
    report->push_back(std::move(one));
  }
  return std::move(plan.body);
}

/*! \brief Waits for all pipes before each loop that ends and at the end of each of its iterations. */
std::vector<Node> Apart(std::vector<Node> body, std::vector<SyncReport>* report) {
  std::vector<Node> out;
  for (Node& node : body) {
    node.body = Apart(std::move(node.body), report);
    if (node.ends) {
      Sync all;
      all.number = static_cast<int>(report->size()) + 1;
      all.comment = "any number of rounds of " + node.var;
      report->push_back({all.number, "barrier all", {all.comment}});
      node.body.push_back(Node::Of(all));
      out.push_back(Node::Of(all));
    }
    out.push_back(std::move(node));
  }
  return out;
}

/*! \brief The syncs within each iteration of loops that end, the innermost first: to what is around they meet all. */
class EndedLoops {
 public:
  EndedLoops(const Vocabulary& vocabulary, const std::string& where, std::vector<SyncReport>* report)
      : vocabulary_(vocabulary), where_(where), report_(report) {}

  std::vector<Node> Plan(std::vector<Node> body) const {
    for (Node& node : body) {
      node.body = Plan(std::move(node.body));
      if (!node.ends) continue;
      node.body = Joined(PlanWhole(node.body, vocabulary_, where_), report_);
      node.instruction.pipe = kIssuing;
      node.instruction.comment = "the rounds of " + node.var;
      node.instruction.meets = true;
    }
    return body;
  }

 private:
  /*! \brief The pipe of what the core itself does: every device has it. */
  static constexpr const char* kIssuing = "S";

  const Vocabulary& vocabulary_;
  const std::string& where_;
  std::vector<SyncReport>* report_;
};

}  // namespace

Plan PlanSyncs(const std::vector<Node>& body, const Vocabulary& vocabulary, const std::string& where) {
  if (!HasEnd(body)) return PlanWhole(body, vocabulary, where);
  // a flag may stay up while loops are left out or end early: here pipes wait for each other by barriers alone
  Vocabulary barriers = vocabulary;
  barriers.flags.clear();
  Plan plan;
  std::vector<Node> ended = EndedLoops(barriers, where, &plan.report).Plan(body);
  plan.body = Joined(PlanWhole(ended, barriers, where), &plan.report);
  plan.body = Apart(std::move(plan.body), &plan.report);
  return plan;
}

}  // namespace uir::codegen::pipes
