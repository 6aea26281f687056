// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/memory_core.h"

#include <algorithm>
#include <optional>

#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/tile_ops.h"
#include "codegen/pipes/plan.h"
#include "codegen/sizes.h"
#include "igraph/numbered.h"
#include "igraph/parts.h"

namespace uir::codegen::bang {

namespace {

/*! \brief Names of pid's parts in expressions: no variable of a graph has a space in its name. */
const char* const kCluster = "cluster of pid";
const char* const kUnit = "unit of pid";

/*! \brief An expression over the clusters and the units of a cluster. */
Affine ByUnit(const Emitter& e, const Affine& expr) {
  const IGraph& graph = e.plan().graph();
  Space space = e.every_scope().space();
  space.Bind(kCluster, {{0, LastUnit(graph) / graph->num_units}, 1});
  space.Bind(kUnit, {{0, graph->num_units - 1}, 1});
  Affine pid = Affine::Var(kCluster).Scale(graph->num_units) + Affine::Var(kUnit);
  return Substitute(expr, {{"pid", pid}}, space);
}

/*! \brief Whether a slice may differ between the units of a cluster. */
bool OfUnit(const Emitter& e, const ISlice& slice) {
  auto differs = [&](const ffi::Optional<Affine>& one) {
    if (!one) return false;
    const auto names = ByUnit(e, one.value()).Variables();
    return std::find(names.begin(), names.end(), kUnit) != names.end();
  };
  return differs(slice->offset) || differs(slice->row_begin) || differs(slice->row_end) || differs(slice->col_begin) ||
         differs(slice->col_end);
}

/*! \brief By how much an offset grows from one unit of a cluster to the next, where that is the same for all. */
std::optional<int64_t> PerUnit(const Emitter& e, const Affine& offset) {
  return NumberedAffine(ByUnit(e, offset), [](const std::string& name) { return name == kUnit ? 0 : 1; })
      .GrowthIn(0, 1);
}

/*! \brief The runs of all units as the rows of one tile; false where a unit's elements are no run, or not all valid. */
bool Joined(const Emitter& e, Tile* tile) {
  std::optional<int64_t> step = PerUnit(e, tile->offset);
  if (!step || !tile->Dense() || !tile->box.Whole(tile->rows, tile->cols)) return false;
  tile->cols *= tile->rows;
  tile->rows = e.plan().graph()->num_units;
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
  bool each = OfUnit(e, target) || OfUnit(e, source);
  std::vector<pipes::Region> regions;
  std::vector<std::string> lines = e.Apart([&] {
    Tile to = e.TileOf(target), from = e.TileOf(source), all_to = to, all_from = from;
    Box box = Both(e, to.box, from.box);
    regions = {from.Around(box).Region(false), to.Around(box).Region(true)};
    if (each && Joined(e, &all_to) && Joined(e, &all_from)) {
      each = false;
      to = all_to;
      from = all_from;
      box = to.box;
    }
    for (const std::string& line : CopyLines(e, to, from, box, "__memcpy")) e.Plain(line);
  });
  if (each) {
    std::string pid = e.Text(Affine::Var("pid")), core = e.Fresh("core");
    std::string all = std::to_string(units);
    lines.insert(lines.begin(), "const int32_t " + pid + " = " + e.cluster() + " * " + all + " + " + core + ";");
    lines = Looped(core, "0", all, lines);
  }
  e.Do(kMemoryCore, lines, regions);
}

std::vector<pipes::Node> WithMeetings(const std::vector<pipes::Node>& body, const std::string& where) {
  return Merged(pipes::PlanSyncs(TwoCores(body), Meetings(), where).body, body);
}

}  // namespace uir::codegen::bang
