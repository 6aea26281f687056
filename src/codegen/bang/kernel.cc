// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/kernel.h"

#include <algorithm>

#include "codegen/bang/api.h"
#include "codegen/bang/chain.h"
#include "codegen/bang/emitter.h"
#include "codegen/bang/guards.h"
#include "codegen/bang/memory_core.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/reciprocals.h"
#include "codegen/pipes/plan.h"
#include "codegen/printer.h"
#include "codegen/sizes.h"
#include "codegen/tiles/dealt.h"
#include "codegen/tiles/print_tree.h"
#include "codegen/words.h"

namespace uir::codegen::bang {

namespace {

/*! \brief Functions take operands of NRAM: what lies in SRAM is moved there first. */
void RefuseShared(const Emitter& e, const IOp& iop) {
  if (iop->op == "move" || iop->op == "sync") return;
  for (const auto& slices : {iop->targets, iop->sources}) {
    for (const ISlice& slice : slices) {
      if (slice->pointer->level != "sram") continue;
      e.Refuse("'" + std::string(iop->op) + "' works on '" + std::string(slice->pointer->name) + "' in SRAM.",
               "operands in NRAM (reg), which is all that vector functions take", "",
               "move the slice from or to a reg pointer by an iOp of its own");
    }
  }
}

/*! \brief Words of C++ and of the text around what emitters print. */
const char* const kReserved =
    "and_eq bfloat16_t not_eq or_eq xor_eq nram wram sram queue dim taskId taskIdX taskIdY taskIdZ taskDim "
    "taskDimX taskDimY taskDimZ coreId coreDim clusterId clusterDim INFINITY NAN GDRAM LDRAM NRAM WRAM SRAM";

/*! \brief The iOps in order, each by its emitter. */
class Walker {
 public:
  explicit Walker(Emitter* e) : e_(*e) {}

  void Walk(const ffi::Array<ffi::ObjectRef>& body) {
    for (size_t k = 0; k < body.size(); ++k) {
      if (auto loop = body[k].as<Loop>()) {
        e_.Enter(*loop);
        Walk((*loop)->body);
        e_.Leave(*loop);
        continue;
      }
      if (std::vector<IOp> chain = tiles::ChainAt(kChains, e_, body, k, position_); !chain.empty()) {
        WalkChain(chain);
        k += chain.size() - 1;
        continue;
      }
      IOp iop = body[k].as_or_throw<IOp>();
      memory_core_ = memory_core_ || IsMemoryCoreMove(iop);
      e_.Begin(iop, position_++);
      RefuseShared(e_, iop);
      {
        auto there = e_.WhenThere(iop);
        OpRowOf(iop, e_.where()).emit(e_, iop);
      }
      e_.End();
    }
  }
  /*! \brief Whether the memory core has work. */
  bool memory_core() const { return memory_core_; }

 private:
  /*! \brief The comments of all, then the one program. */
  void WalkChain(const std::vector<IOp>& chain) {
    int first = position_;
    for (const IOp& iop : chain) {
      e_.Begin(iop, position_++);
      if (&iop == &chain.back()) {
        e_.Cover(first);
        const bool reads_numbers =
            std::any_of(chain.begin(), chain.end(), [](const IOp& each) { return each->op == "broadcast"; });
        auto there = e_.WhenThere(iop, reads_numbers);
        EmitChain(e_, chain);
      }
      e_.End();
    }
  }

  Emitter& e_;
  bool memory_core_ = false;
  int position_ = 0;
};

/*! \brief Groups that run at once: clusters, or the cores of all. */
int64_t PlacesOf(const IGraph& graph) {
  const int64_t clusters = graph->hardware->num_groups;
  return graph->num_units > 1 ? clusters : clusters * graph->hardware->num_units;
}

std::string SyncLine(const pipes::Sync& sync, const Platform& platform) {
  std::string name = sync.from.empty()     ? "__sync"
                     : sync.from == "IO"   ? "__sync_io"
                     : sync.from == "MOVE" ? "__sync_move"
                                           : "__sync_compute";
  return Wait(name, platform);
}

bool IsDrain(const pipes::Node& node) {
  return node.kind == pipes::Node::Kind::kSync && node.sync.kind == pipes::Sync::Kind::kBarrier;
}

/*! \brief Waits for several pipes that stand together become one for all. */
std::vector<pipes::Node> JoinDrains(std::vector<pipes::Node> body) {
  std::vector<pipes::Node> joined;
  for (pipes::Node& node : body) {
    node.body = JoinDrains(std::move(node.body));
    if (IsDrain(node) && !joined.empty() && IsDrain(joined.back())) {
      joined.back().sync.from.clear();
    } else {
      joined.push_back(std::move(node));
    }
  }
  return joined;
}

std::string Declaration(const Pointer& pointer) {
  std::string start =
      pointer.begin == 0 ? pointer.memory : "(" + pointer.memory + " + " + std::to_string(pointer.begin) + ")";
  return pointer.type + " *const " + pointer.name + " = (" + pointer.type + " *)" + start + ";";
}

void Notes(const Emitter& e, const pipes::Plan& plan, Kernel* kernel) {
  auto line = [kernel](const std::string& memory, int64_t bytes, int64_t limit) {
    if (bytes > 0) {
      kernel->notes.push_back(memory + ": " + std::to_string(bytes) + " of " + std::to_string(limit) + " bytes");
    }
  };
  line("NRAM", kernel->nram, e.plan().limit());
  line("WRAM", kernel->wram, e.Figure("wram_bytes"));
  line("SRAM", kernel->sram, e.plan().graph()->hardware->sram_bytes);
  std::vector<Pointer> pointers = e.pointers();
  std::sort(pointers.begin(), pointers.end(), [](const Pointer& a, const Pointer& b) {
    return std::make_pair(a.memory, a.begin) < std::make_pair(b.memory, b.begin);
  });
  for (const Pointer& pointer : pointers) {
    kernel->notes.push_back(pointer.name + ": " + std::to_string(pointer.bytes) + " bytes of " + pointer.memory +
                            " at byte " + std::to_string(pointer.begin));
  }
  kernel->notes.insert(kernel->notes.end(), e.notes().begin(), e.notes().end());
  for (const pipes::SyncReport& sync : plan.report) {
    kernel->notes.push_back("sync " + std::to_string(sync.number) + ", " + sync.what + ": " + Join(sync.serves, "; "));
  }
}

void CheckUnits(const IGraph& graph) {
  int64_t cluster = graph->hardware->num_units;
  if (graph->num_units == 1 || graph->num_units == cluster) return;
  CodegenError("Groups of " + std::to_string(graph->num_units) + " units are no cores and no clusters.",
               std::string(graph->name), "1 unit (a core), or " + std::to_string(cluster) + " (a cluster)", "",
               "schedule it with map_to_units(..., num_units=1) or num_units=" + std::to_string(cluster));
}

/*! \brief The number of the unit; of a memory core that of the first unit of its cluster. */
std::string UnitLine(const Emitter& e, int64_t units, const std::string& own, bool memory_core) {
  const std::string first = "__is_mpu() ? " + e.cluster() + " * " + std::to_string(units) + " : ";
  const std::string type = e.scope().Wide(Affine::Var("pid")) ? "int64_t" : "int32_t";
  return "const " + type + " " + e.Text(Affine::Var("pid")) + " = " + (memory_core ? first : "") + own + ";";
}

/*! \brief A core, or a cluster, takes every so many-th group; what a cluster shares is free again when all have met. */
tiles::Dealing DealingOf(const Emitter& e, const DealtGroups& groups, int64_t units, bool shares, bool memory_core) {
  tiles::Dealing dealing{groups, e.Text(Affine::Var("pid")), "taskId", "taskDim", {}, !shares, {}};
  if (units > 1) {
    dealing.variable = e.cluster();
    dealing.begin = "taskIdY";
    dealing.step = "taskDimY";
    const std::string own = e.cluster() + " * " + std::to_string(units) + " + taskIdX";
    dealing.opening = {UnitLine(e, units, own, memory_core)};
  }
  dealing.drain =
      shares ? pipes::Node::Of(Meeting("the next group")) : pipes::Node::Plain({Wait("__sync", e.platform())});
  return dealing;
}

}  // namespace

std::set<std::string> Reserved() {
  std::set<std::string> reserved = WordsOf(kReserved);
  reserved.merge(Table().Words());
  return reserved;
}

Kernel PrintKernel(const IGraph& given, const std::string& name) {
  CheckUnits(given);
  const IGraph graph = WithReciprocals(given);
  Kernel kernel;
  kernel.name = name;
  kernel.units = graph->num_units;
  bool cluster = kernel.units > 1;
  if (cluster) kernel.launch = "union1";
  std::string where(graph->name);
  Plan plan(graph, kCoreMemory);
  Names names(Reserved());
  Emitter e(&plan, &names);
  const DealtGroups groups(graph, PlacesOf(graph), e.groups(), e.scope());
  kernel.groups = groups.MostBlocks(graph);
  if (groups.dealt && cluster) e.DealClusters();
  Walker walker(&e);
  walker.Walk(graph->body);
  std::vector<pipes::Node> body = e.Take();
  bool shares = e.meets_cluster() || walker.memory_core();
  if (!cluster && (shares || plan.shared_total() > 0)) {
    CodegenError("A Block launch has no SRAM, and its cores do not meet.", where, "a group of a cluster's cores", "",
                 "schedule it with map_to_units(..., num_units=" + std::to_string(graph->hardware->num_units) + ")");
  }
  // the graph's own meetings order units; its memory core may want more
  if (walker.memory_core()) body = WithMeetings(body, where);
  pipes::Plan planned = tiles::PlanGroups(e, body, pipes::VocabularyOf("bang"), where,
                                          DealingOf(e, groups, kernel.units, shares, walker.memory_core()));
  planned.body = JoinDrains(std::move(planned.body));
  std::set<std::string> written;
  for (const Use& use : plan.uses()) {
    if (use.write) written.insert(use.pointer());
  }
  for (const IPointer& pointer : ParametersOf(graph, plan.uses())) {
    std::string own(pointer->name);
    kernel.params.push_back(own);
    kernel.passed.push_back(e.ParameterOf(own));
    std::string type = TypeOf(std::string(pointer->dtype)).stored;
    kernel.declared.push_back((written.count(own) ? "" : "const ") + type + " *" + kernel.passed.back());
  }
  kernel.declared.insert(kernel.declared.end(), e.sizes().declared.begin(), e.sizes().declared.end());
  kernel.passed.insert(kernel.passed.end(), e.sizes().passed.begin(), e.sizes().passed.end());
  if (graph->groups) {
    kernel.definitions = e.sizes().definitions;
    kernel.definitions.push_back(groups.definition);
    kernel.counted = groups.name;
  }
  kernel.nram = plan.total();
  kernel.wram = e.weights_total();
  kernel.sram = plan.shared_total();
  auto sync_line = [&e](const pipes::Sync& sync) { return SyncLine(sync, e.platform()); };
  Printer out, inner(1);
  if (shares) {
    PrintGuarded(planned.body, sync_line, &inner);
  } else {
    tiles::PrintTree(planned.body, sync_line, &inner);
  }
  const std::string text = inner.Text();
  out.Open("__mlu_entry__ void " + name + "(" + Join(kernel.declared) + ")");
  if (cluster && !shares) out.Line("if (__is_mpu()) return;");
  for (const std::string& line : e.sizes().definitions) out.Line(line);
  const bool numbered = Mentions(text, e.Text(Affine::Var("pid")));
  if (numbered && !groups.dealt) out.Line(UnitLine(e, kernel.units, "taskId", walker.memory_core()));
  for (const Pointer& pointer : e.pointers()) {
    if (Mentions(text, pointer.name)) out.Line(Declaration(pointer));
  }
  if (groups.counted) out.Line(groups.definition);
  out.Blank();
  out.Append(inner);
  out.Close();
  kernel.text = out.Text();
  Notes(e, planned, &kernel);
  return kernel;
}

std::string PrintLauncher(const Kernel& kernel) {
  Printer out;
  std::vector<std::string> params = kernel.declared;
  params.insert(params.begin(), "cnrtQueue_t queue");
  out.Open("extern \"C\" void " + kernel.name + "_launch(" + Join(params) + ")");
  std::string units = std::to_string(kernel.units), groups = std::to_string(kernel.groups);
  for (const std::string& line : kernel.definitions) out.Line(line);
  if (!kernel.counted.empty()) {
    const std::string& all = kernel.counted;
    out.Line("if (" + all + " < 1) return;");
    groups = "static_cast<uint32_t>(" + all + " < " + groups + " ? " + all + " : " + groups + ")";
  }
  bool cluster = kernel.units > 1;
  out.Line("cnrtDim3_t dim = {" + (cluster ? units + ", " + groups : groups + ", 1") + ", 1};");
  out.Line(kernel.name + "<<<dim, " +
           Table().EnumValue("cnrtFunctionType_t", cluster ? "cnrtFuncTypeUnion1" : "cnrtFuncTypeBlock", false) +
           ", queue>>>(" + Join(kernel.passed) + ");");
  out.Close();
  return out.Text();
}

}  // namespace uir::codegen::bang
