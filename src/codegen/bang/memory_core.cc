// SPDX-License-Identifier: Apache-2.0
#include "memory_core.h"

#include <tvm/ffi/error.h>

#include "../pipes/plan.h"
#include "api.h"
#include "copy.h"

namespace uir {
namespace codegen {
namespace bang {

namespace {

/*! \brief Whether an expression may differ between the units of a cluster of `units`. */
bool OfUnit(const Affine& expr, int64_t units) {
  for (const Term& term : expr->terms) {
    if (!term->inner) {
      if (term->var == "pid") return true;
      continue;
    }
    Affine inner = term->inner.value().as_or_throw<Affine>();
    bool cluster = term->kind == "floordiv" && term->divisor % units == 0 && inner->constant % units == 0 &&
                   inner->terms.size() == 1 && !inner->terms[0]->inner && inner->terms[0]->var == "pid" &&
                   inner->terms[0]->coeff == 1;
    if (!cluster && OfUnit(inner, units)) return true;
  }
  return false;
}

bool OfUnit(const ISlice& slice, int64_t units) {
  auto bound = [units](const ffi::Optional<Affine>& one) { return one && OfUnit(one.value(), units); };
  return OfUnit(slice->offset, units) || bound(slice->row_begin) || bound(slice->row_end) || bound(slice->col_begin) ||
         bound(slice->col_end);
}

/*! \brief The tree with all work of the unit on one pipe: what is left to order is between it and the memory core. */
std::vector<pipes::Node> TwoCores(std::vector<pipes::Node> body) {
  for (pipes::Node& node : body) {
    node.body = TwoCores(std::move(node.body));
    if (node.kind == pipes::Node::Kind::kInstruction && node.instruction.pipe != kMemoryCore) {
      node.instruction.pipe = "COMPUTE";
      node.instruction.blocks = false;
    }
  }
  return body;
}

/*! \brief The two cores without any sync of their own. */
pipes::Vocabulary WithoutSyncs() {
  pipes::Vocabulary v;
  v.name = "a core and its memory core";
  v.pipes = {"COMPUTE", kMemoryCore};
  v.serial = {"COMPUTE", kMemoryCore};
  return v;
}

}  // namespace

bool IsMemoryCoreMove(const IOp& iop) {
  if (iop->op != "move") return false;
  auto pad = iop->attrs.find("pad");
  // the memory core fills nothing
  if (pad != iop->attrs.end() && (*pad).second != nullptr && !BoxText(iop->sources[0]).empty()) return false;
  auto to = iop->targets[0]->pointer->level, from = iop->sources[0]->pointer->level;
  return (to == "sram" && from == "dram") || (to == "dram" && from == "sram");
}

void EmitMemoryCoreMove(Emitter& e, const IOp& iop) {
  const ISlice &target = iop->targets[0], &source = iop->sources[0];
  int64_t units = e.plan().graph()->num_units;
  bool each = OfUnit(target, units) || OfUnit(source, units);
  std::vector<pipes::Region> regions;
  std::vector<std::string> lines = e.Apart([&] {
    Tile to = e.TileOf(target), from = e.TileOf(source);
    Box box = Both(e, to.box, from.box);
    for (const std::string& line : CopyLines(e, to, from, box, "__memcpy")) e.Plain(line);
    regions = {from.Around(box).Region(false), to.Around(box).Region(true)};
  });
  std::string pid = e.Text(Affine::Var("pid")), first = "taskIdY * " + std::to_string(units);
  std::vector<std::string> text;
  if (each) {
    std::string core = e.Fresh("core");
    text.push_back("for (int32_t " + core + " = 0; " + core + " < " + std::to_string(units) + "; ++" + core + ") {");
    text.push_back("  const int32_t " + pid + " = " + first + " + " + core + ";");
  } else {
    text.push_back("{");
    text.push_back("  const int32_t " + pid + " = " + first + ";");
  }
  for (const std::string& line : lines) text.push_back("  " + line);
  text.push_back("}");
  bool names_pid = false;
  for (const std::string& line : lines) names_pid = names_pid || line.find(pid) != std::string::npos;
  e.Do(kMemoryCore, names_pid ? text : lines, regions);
}

bool MeetingsSuffice(const std::vector<pipes::Node>& body, const std::string& where) {
  try {
    pipes::PlanSyncs(TwoCores(body), WithoutSyncs(), where);
    return true;
  } catch (const tvm::ffi::Error& error) {
    if (error.kind() != "CodegenError") throw;
    return false;
  }
}

}  // namespace bang
}  // namespace codegen
}  // namespace uir
