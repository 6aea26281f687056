// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/body_plan.h"

#include <map>
#include <utility>

#include "base/rounding.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

using Declarations = std::map<Path, std::vector<std::string>>;

/*! \brief Where register arrays are declared: before the first iOp of the innermost body that holds all uses. */
Declarations DeclarationsOf(const Plan& plan, const std::vector<Use>& uses) {
  std::map<std::string, Path> common;
  std::map<std::string, const Use*> first;
  std::vector<std::string> order;
  for (const Use& use : uses) {
    if (!plan.HomeOf(use.slice).registers()) continue;
    std::string name = use.pointer();
    auto [at, fresh] = common.emplace(name, use.path);
    if (fresh) {
      first[name] = &use;
      order.push_back(name);
      continue;
    }
    Path& path = at->second;
    size_t same = 0;
    while (same + 1 < path.size() && same + 1 < use.path.size() && path[same] == use.path[same]) ++same;
    path.resize(same + 1);
  }
  Declarations out;
  for (const std::string& name : order) {
    const Use& use = *first[name];
    Path path = common[name];
    // what is not written whole first may come from an earlier iteration: it outlives all loops
    bool carried = !use.write || use.reads_too || !BoxText(use.slice).empty();
    if (carried) path.resize(1);
    out[path].push_back(name);
  }
  return out;
}

/*! \brief Plans the nodes of the tree in the order in which they are printed. */
class TreePlanner {
 public:
  TreePlanner(StepPlanner* p, const AsyncPlan& async)
      : p_(*p), async_(async), declarations_(DeclarationsOf(p->plan, p->uses)) {}

  std::vector<Node> Body(const ffi::Array<ffi::ObjectRef>& body, Path path) {
    std::vector<Node> out;
    path.push_back(0);
    for (const ffi::ObjectRef& object : body) {
      Node node;
      auto declared = declarations_.find(path);
      if (declared != declarations_.end()) node.declared = declared->second;
      node.around = async_.At(path);
      if (node.around != nullptr) PlanBefore(p_, *node.around);
      if (auto loop = object.as<Loop>()) {
        node.loop = *loop;
        p_.Enter(*loop);
        node.body = Body((*loop)->body, path);
        p_.Leave(*loop);
      } else {
        node.step = One(object.as_or_throw<IOp>(), node.around);
      }
      out.push_back(std::move(node));
      ++path.back();
    }
    return out;
  }

 private:
  StepPtr One(const IOp& iop, const AsyncStep* around) {
    p_.where = std::string(p_.plan.graph()->name) + ": " + Describe(iop);
    if (around != nullptr && around->ring) return PlanBulkCopy(p_, iop, *around->ring);
    if (around != nullptr && around->copy) return PlanCopy(p_, iop);
    return OpRowOf(iop).plan(p_, iop);
  }

  StepPlanner& p_;
  const AsyncPlan& async_;
  Declarations declarations_;
};

}  // namespace

BodyPlan::BodyPlan(const Plan& plan, const std::vector<Use>& uses)
    : uses_(uses), used_(PointersOf(uses)), async_(plan, uses) {
  StepPlanner p(plan, uses);
  for (const std::string& name : async_.buffers()) p.Untrack(name);
  PlanRings(p, async_.rings());
  nodes_ = TreePlanner(&p, async_).Body(plan.graph()->body, {});
  meets_ = p.Meets();
  meets_at_start_ = p.MeetsAtStart(meets_);
  scratch_bytes_ = RoundUp(plan.scratch_bytes() + p.temporary_bytes(), kSharedAlign);
  shared_bytes_ = plan.sram_bytes() + async_.ring_bytes();
  if (scratch_bytes_ > 0) shared_bytes_ = RoundUp(shared_bytes_, kSharedAlign);
}

}  // namespace uir::codegen::cuda
