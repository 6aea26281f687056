// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/memory_core.h"

#include <optional>

#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/tile_ops.h"
#include "codegen/pipes/plan.h"

namespace uir::codegen::bang {

namespace {

/*! \brief Whether an expression may differ between the units of a cluster of `units`. */
bool OfUnit(const Affine& expr, int64_t units) {
  for (const Term& term : expr->terms) {
    if (!term->inner) {
      if (term->var == "pid") return true;
      continue;
    }
    Affine inner = InnerOf(term);
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

/*! \brief By how much an offset grows from one unit of a cluster to the next, where that is the same for all. */
std::optional<int64_t> PerUnit(const Affine& offset, int64_t units) {
  int64_t step = 0;
  for (const Term& term : offset->terms) {
    if (!term->inner) {
      if (term->var == "pid") step += term->coeff;
      continue;
    }
    Affine inner = InnerOf(term);
    bool own = inner->constant == 0 && inner->terms.size() == 1 && !inner->terms[0]->inner &&
               inner->terms[0]->var == "pid" && inner->terms[0]->coeff == 1;
    if (own && term->kind == "mod" && term->divisor == units) {
      step += term->coeff;
    } else if (!(own && term->kind == "floordiv" && term->divisor % units == 0) && OfUnit(inner, units)) {
      return std::nullopt;
    }
  }
  return step;
}

/*! \brief The runs of all units as the rows of one tile; false where a unit's elements are no run, or not all valid. */
bool Joined(Tile* tile, int64_t units) {
  std::optional<int64_t> step = PerUnit(tile->offset, units);
  if (!step || !tile->Dense() || !tile->box.Whole(tile->rows, tile->cols)) return false;
  tile->cols *= tile->rows;
  tile->rows = units;
  tile->row_stride = *step;
  tile->col_stride = 1;
  tile->box = Box::Of(tile->rows, tile->cols);
  return true;
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

/*! \brief The two cores, which only wait for each other by meeting. */
pipes::Vocabulary Meetings() {
  pipes::Vocabulary v;
  v.name = "a core and its memory core";
  v.pipes = {"COMPUTE", kMemoryCore};
  v.serial = {"COMPUTE", kMemoryCore};
  v.drain_all = true;
  return v;
}

/*! \brief The nodes with the meetings of `planned`, which is the same tree with syncs in it. */
std::vector<pipes::Node> Merged(const std::vector<pipes::Node>& planned, const std::vector<pipes::Node>& nodes) {
  std::vector<pipes::Node> out;
  size_t at = 0;
  for (const pipes::Node& one : planned) {
    if (one.kind == pipes::Node::Kind::kSync) {
      out.push_back(pipes::Node::Of(Meeting(one.sync.comment)));
      continue;
    }
    pipes::Node node = nodes[at++];
    node.body = Merged(one.body, node.body);
    if (node.kind == pipes::Node::Kind::kGroup && one.body.size() > 0 &&
        one.body.front().kind == pipes::Node::Kind::kSync) {
      // it is no part of the paragraph
      out.push_back(std::move(node.body.front()));
      node.body.erase(node.body.begin());
    }
    out.push_back(std::move(node));
  }
  return out;
}

}  // namespace

bool IsMemoryCoreMove(const IOp& iop) {
  if (iop->op != "move") return false;
  // the memory core fills nothing
  if (PadOf(iop) && !BoxText(iop->sources[0]).empty()) return false;
  auto to = iop->targets[0]->pointer->level, from = iop->sources[0]->pointer->level;
  return (to == "sram" && from == "dram") || (to == "dram" && from == "sram");
}

void EmitMemoryCoreMove(Emitter& e, const IOp& iop) {
  const ISlice &target = iop->targets[0], &source = iop->sources[0];
  int64_t units = e.plan().graph()->num_units;
  bool each = OfUnit(target, units) || OfUnit(source, units);
  std::vector<pipes::Region> regions;
  std::vector<std::string> lines = e.Apart([&] {
    Tile to = e.TileOf(target), from = e.TileOf(source), all_to = to, all_from = from;
    Box box = Both(e, to.box, from.box);
    regions = {from.Around(box).Region(false), to.Around(box).Region(true)};
    if (each && Joined(&all_to, units) && Joined(&all_from, units)) {
      each = false;
      to = all_to;
      from = all_from;
      box = to.box;
    }
    for (const std::string& line : CopyLines(e, to, from, box, "__memcpy")) e.Plain(line);
  });
  if (each) {
    std::string pid = e.Text(Affine::Var("pid")), core = e.Fresh("core");
    for (std::string& line : lines) line = "  " + line;
    lines.insert(lines.begin(),
                 {"for (int32_t " + core + " = 0; " + core + " < " + std::to_string(units) + "; ++" + core + ") {",
                  "  const int32_t " + pid + " = taskIdY * " + std::to_string(units) + " + " + core + ";"});
    lines.push_back("}");
  }
  e.Do(kMemoryCore, lines, regions);
}

std::vector<pipes::Node> WithMeetings(const std::vector<pipes::Node>& body, const std::string& where) {
  return Merged(pipes::PlanSyncs(TwoCores(body), Meetings(), where).body, body);
}

}  // namespace uir::codegen::bang
