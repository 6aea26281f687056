// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/kernel.h"

#include <tvm/ffi/any.h>

#include <algorithm>
#include <utility>

#include "base/attrs.h"
#include "base/rounding.h"
#include "codegen/attributes.h"
#include "codegen/cuda/body_plan.h"
#include "codegen/cuda/functions.h"
#include "codegen/cuda/helpers.h"
#include "codegen/cuda/reshape.h"
#include "codegen/error.h"
#include "codegen/sizes.h"
#include "codegen/words.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Words of C++, functions of its library, names of the prelude's and of the loops that emitters print. */
const char* const kReserved =
    "abs blockDim blockIdx cb col exp far first found from gamma gridDim index isfinite isinf isnan j0 j1 jn k "
    "key lane last linux load_vec load_vec_stream log m max min n near other1 part pid r rb reg rivals row "
    "same_bits scratch_at shared_at signbit smem source store_vec store_vec_stream sum temporary_at threadIdx "
    "tile to unit unix v vc vec vr word y0 y1 yn";

void PrintLoop(Emitter& e, const Node& node);

void PrintNodes(Emitter& e, const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    if (!node.declared.empty()) e.out.Blank();
    for (const std::string& name : node.declared) e.Declare(name);
    if (node.around != nullptr) EmitBefore(e, *node.around);
    e.out.Blank();
    if (node.loop) {
      PrintLoop(e, node);
    } else {
      e.out.Comment(Describe(node.step->iop));
      node.step->Print(e);
    }
    if (node.around != nullptr) EmitAfter(e, *node.around);
  }
}

void PrintLoop(Emitter& e, const Node& node) {
  const Loop& loop = *node.loop;
  std::string name(loop->var), text = e.names.Fresh(name);
  if (auto factor = AttrOf(loop->attrs, "unroll").as<int64_t>()) {
    e.out.Line("#pragma unroll " + std::to_string(*factor));
  }
  std::string end = text + " < " + std::to_string(loop->extent);
  if (const std::optional<Affine> rounds = RoundsOf(loop)) {
    const std::string some = text + " < " + e.scope.Text(*rounds);
    end = e.scope.Of(*rounds).high <= loop->extent ? some : end + " && " + some;
  }
  e.out.Open("for (int " + text + " = 0; " + end + "; ++" + text + ")");
  e.scope.Bind(name, text, {0, std::max<int64_t>(loop->extent - 1, 0)});
  e.Enter();
  PrintNodes(e, node.body);
  e.Leave();
  e.out.Close();
}

std::string Signature(const Kernel& kernel, const IGraph& graph, const Emitter& e, const SizeArguments& sizes,
                      Needs* needs) {
  std::vector<std::string> params;
  std::map<std::string, bool> written;
  for (const Use& use : e.body.uses()) written[use.pointer()] = written[use.pointer()] || use.write;
  for (const IPointer& pointer : ParametersOf(graph, e.body.uses())) {
    std::string name(pointer->name), dtype(pointer->dtype);
    needs->Dtype(dtype);
    // what may be bound to the same memory as another parameter must not be said to be apart
    bool apart = pointer->role == "in" || pointer->role == "out";
    params.push_back(std::string(written[name] ? "" : "const ") + TypeOf(dtype).stored + "*" +
                     (apart ? " __restrict__ " : " ") + e.TextOf(name));
  }
  params.insert(params.end(), sizes.declared.begin(), sizes.declared.end());
  return "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(kernel.block) + ")\n    " + kernel.name +
         "(" + Join(params, ", ") + ")";
}

/*! \brief The definitions whose names the body, or a definition that is kept, speaks of. */
std::vector<std::string> Used(const std::vector<std::string>& definitions, std::string text) {
  std::vector<std::string> kept;
  for (auto line = definitions.rbegin(); line != definitions.rend(); ++line) {
    size_t equals = line->find(" = ");
    if (equals != std::string::npos) {
      size_t start = line->rfind(' ', equals - 1) + 1;
      if (!Mentions(text, line->substr(start, equals - start))) continue;
    }
    kept.insert(kept.begin(), *line);
    text += *line;
  }
  return kept;
}

void CheckShared(const Kernel& kernel, const IGraph& graph, const Plan& plan) {
  int64_t limit = graph->hardware->sram_bytes;
  if (kernel.shared_bytes <= limit) return;
  CapacityError(
      "A kernel needs more shared memory than a block may have.", std::string(graph->name),
      {"shared memory", kernel.shared_bytes, limit},
      std::to_string(kernel.shared_bytes) + " bytes: " + std::to_string(plan.sram_bytes()) +
          " of sram pointers, the rest for reg pointers that cannot be in registers, exchanges and barrier objects",
      std::to_string(limit) + " bytes on " + std::string(graph->hardware->name),
      "smaller tiles, or fewer units in a group");
}

}  // namespace

std::set<std::string> Reserved() {
  std::set<std::string> reserved = WordsOf(kReserved);
  reserved.merge(HelperNames());
  reserved.merge(FunctionNames());
  return reserved;
}

Kernel PrintKernel(const IGraph& given, const std::string& name, Needs* needs) {
  IGraph graph = ReshapeMoves(given);
  Kernel kernel;
  kernel.name = name;
  kernel.grid = graph->num_groups;
  kernel.block = graph->num_units * kLanes;
  kernel.cooperative = AttrOr(graph->attrs, "cooperative", false);
  Plan plan(graph);
  std::vector<Use> uses = UsesOf(graph);
  const BodyPlan planned(plan, uses);
  kernel.shared_bytes = planned.shared_bytes() + planned.scratch_bytes() * graph->num_units;
  CheckShared(kernel, graph, plan);
  for (const IPointer& pointer : ParametersOf(graph, uses)) kernel.params.emplace_back(pointer->name);
  Names names{Reserved()};
  Printer body{1};
  Emitter e(plan, planned, body, names, *needs);
  const SizeArguments sizes(graph, "int", &names, &e.scope);
  OpenRings(e);
  PrintNodes(e, planned.nodes());

  Printer out;
  out.Open(Signature(kernel, graph, e, sizes, needs));
  if (kernel.shared_bytes > 0) out.Line("extern __shared__ __align__(1024) unsigned char smem[];");
  std::vector<std::string> definitions = sizes.definitions;
  definitions.emplace_back("const int lane = threadIdx.x % 32;");
  const std::string type = e.scope.Type(Affine::Var("pid"));
  if (graph->num_units == 1) {
    definitions.push_back("const " + type + " pid = blockIdx.x;");
  } else {
    definitions.emplace_back(
        "const int unit = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);  // the same in all lanes");
    definitions.push_back("const " + type + " pid = " + type + "(blockIdx.x) * " + std::to_string(graph->num_units) +
                          " + unit;");
  }
  if (planned.scratch_bytes() > 0) {
    std::string own = graph->num_units == 1 ? "" : " + unit * " + std::to_string(planned.scratch_bytes());
    definitions.push_back("const int scratch_at = " + std::to_string(planned.shared_bytes()) + own +
                          ";  // this warp's own part of smem");
  }
  definitions.insert(definitions.end(), e.prologue().begin(), e.prologue().end());
  for (const std::string& line : Used(definitions, body.Text())) out.Line(line);
  out.Append(body);
  out.Close();
  kernel.text = out.Text();
  kernel.notes = planned.async().notes();
  for (const Use& use : uses) {
    const WgmmaChoice* choice = use.write && use.operand == 0 ? plan.WgmmaOf(use.iop) : nullptr;
    if (choice == nullptr) continue;
    std::string note = "product " + use.pointer() + ": " + (choice->row != nullptr ? "wgmma" : "mma.sync") +
                       ", since " + choice->reason;
    if (std::find(kernel.notes.begin(), kernel.notes.end(), note) == kernel.notes.end()) kernel.notes.push_back(note);
  }
  for (const IPointer& pointer : graph->pointers) {
    std::string pointer_name(pointer->name);
    const Home& home = plan.HomeOf(pointer_name);
    if (pointer->level != "reg" || !planned.used().count(pointer_name)) continue;
    if (home.registers()) {
      kernel.notes.push_back(pointer_name + ": " + std::to_string(home.fragment.size()) + " registers a lane, " +
                             home.fragment.layout.ToString());
    } else {
      kernel.notes.push_back(pointer_name + ": scratch, since " + home.reason);
    }
  }
  return kernel;
}

}  // namespace uir::codegen::cuda
