// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/products.h"

#include <tvm/ffi/any.h>

#include <algorithm>

#include "codegen/attributes.h"
#include "codegen/error.h"

namespace uir::codegen::ascend {

namespace {

bool HasVariable(const Affine& expr, const ffi::String& variable) {
  const ffi::Array<ffi::String> names = expr.Variables();
  return std::find(names.begin(), names.end(), variable) != names.end();
}

bool WholeBox(const ISlice& slice) {
  return !slice->row_begin && !slice->row_end && !slice->col_begin && !slice->col_end;
}

void Check(const IGraph& graph, const IOp& iop) {
  std::string where = std::string(graph->name) + ": " + Describe(iop);
  const ISlice &target = iop->targets[0], &left = iop->sources[0], &right = iop->sources[1];
  bool in_dram = target->pointer->level == "dram" && left->pointer->level == "dram" && right->pointer->level == "dram";
  if (!in_dram || !WholeBox(target) || !WholeBox(left) || !WholeBox(right)) {
    CodegenError("The cube core cannot compute this product.", where,
                 "factors of one dtype, fp32, fp16 or bf16 for sums of fp32, int8 for sums of int32", "",
                 "cast the factors, let the pass matrix_unit run, or compute the product on another target");
  }
}

/*! \brief Whether a loop says that the product's result was cleared before it, and is added up in it. */
bool Carries(const Loop& loop, const IOp& product) {
  const std::string names = " " + AttrOr(loop->attrs, "carries", std::string()) + " ";
  return names.find(" " + std::string(product->targets[0]->pointer->name) + " ") != std::string::npos;
}

/*! \brief Sums in L0C begin as zero: the loop that carries them must say that the result was cleared before it. */
void CheckCleared(const IGraph& graph, const Product& product) {
  if (product.carrying.empty() || !Carries(product.carrying.front(), product.iop)) {
    CodegenError("The cube core cannot add to what lies in global memory.",
                 std::string(graph->name) + ": " + Describe(product.iop), "a result that was cleared before its loop",
                 "", "let the pass matrix_unit bring products to the cube core");
  }
}

}  // namespace

Products::Products(const IGraph& graph) {
  std::vector<Loop> loops;
  int position = 0;
  Walk(graph->body, graph, &loops, &position);
  std::set<std::string> read;
  std::vector<Use> uses = UsesOf(graph);
  for (const Use& use : uses) {
    if (use.write && !use.reads_too) continue;
    bool clears = use.iop->op == "move" && carried_.count(std::string(use.iop->targets[0]->pointer->name)) > 0;
    (clears ? zeros_ : read).insert(use.pointer());
  }
  for (const std::string& name : read) zeros_.erase(name);
  for (auto& [at, product] : by_position_) product.guarded = Guarded(at, product, uses);
}

bool Products::Guarded(int position, const Product& product, const std::vector<Use>& uses) const {
  if (product.carrying.empty() || product.staged) return false;
  std::vector<Loop> around;
  for (const Use& use : uses) {
    if (use.position == position) around = use.loops;
  }
  around.resize(around.size() - product.carrying.size());
  std::string result(product.iop->targets[0]->pointer->name);
  for (const Use& use : uses) {
    if (use.pointer() != result || use.iop->op == "contract" || Silent(use.iop)) continue;
    if (use.position < position) return true;
    for (size_t i = 0; i < std::min(around.size(), use.loops.size()); ++i) {
      if (around[i].same_as(use.loops[i]) && around[i]->extent > 1) return true;
    }
  }
  return false;
}

void Products::Walk(const ffi::Array<ffi::ObjectRef>& body, const IGraph& graph, std::vector<Loop>* loops,
                    int* position) {
  for (const ffi::ObjectRef& node : body) {
    if (auto loop = node.as<Loop>()) {
      loops->push_back(*loop);
      Walk((*loop)->body, graph, loops, position);
      loops->pop_back();
      continue;
    }
    IOp iop = node.as_or_throw<IOp>();
    int at = (*position)++;
    if (iop->op != "contract") continue;
    Check(graph, iop);
    Product product{iop, {}, false};
    for (const ISlice& factor : iop->sources) product.staged |= factor->pointer->role != "in";
    if (Accumulates(iop)) {
      for (auto loop = loops->rbegin(); loop != loops->rend(); ++loop) {
        if (HasVariable(iop->targets[0]->offset, (*loop)->var)) break;
        product.carrying.insert(product.carrying.begin(), *loop);
        if (Carries(*loop, iop)) break;  // the next loop around clears the result, and begins again
      }
      CheckCleared(graph, product);
      carried_.insert(std::string(iop->targets[0]->pointer->name));
    }
    by_position_.emplace(at, std::move(product));
  }
}

const Product* Products::At(int position) const {
  auto found = by_position_.find(position);
  return found == by_position_.end() ? nullptr : &found->second;
}

std::vector<const Product*> Products::CarriedBy(const Loop& loop) const {
  std::vector<const Product*> found;
  for (const auto& [position, product] : by_position_) {
    if (!product.carrying.empty() && product.carrying.front().same_as(loop)) found.push_back(&product);
  }
  return found;
}

bool Products::Silent(const IOp& iop) const {
  if (iop->targets.empty()) return false;
  std::string target(iop->targets[0]->pointer->name);
  if (iop->op == "fill" && zeros_.count(target)) return true;
  if (!carried_.count(target)) return false;
  if (iop->op == "move") return true;
  for (const auto& [position, product] : by_position_) {
    if (product.iop.same_as(iop)) return !product.staged;
  }
  return false;
}

}  // namespace uir::codegen::ascend
