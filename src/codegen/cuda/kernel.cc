// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/kernel.h"

#include <tvm/ffi/any.h>

#include <algorithm>
#include <utility>

#include "base/attrs.h"
#include "base/rounding.h"
#include "codegen/cuda/async.h"
#include "codegen/cuda/functions.h"
#include "codegen/cuda/helpers.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/reshape.h"
#include "codegen/error.h"
#include "codegen/words.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Words of C++, functions of its library, names of the prelude's and of the loops that emitters print. */
const char* const kReserved =
    "abs blockDim blockIdx cb col exp far first found from gamma gridDim index isfinite isinf isnan j0 j1 jn k "
    "key lane last linux load_vec load_vec_stream log m max min n near other1 part pid r rb reg rivals row "
    "same_bits scratch_at shared_at signbit smem source store_vec store_vec_stream sum temporary_at threadIdx "
    "tile to unit unix v vc vec vr word y0 y1 yn";

/*! \brief The body, printed in order; knows where register arrays are declared. */
class Walk {
 public:
  Walk(Emitter* e, const std::vector<Use>& uses) : e_(*e), async_(e->plan, uses) {
    PlaceDeclarations(uses);
    for (const std::string& name : async_.buffers()) e_.Untrack(name);
    OpenRings(e_, &async_.rings());
  }

  const std::vector<std::string>& notes() const { return async_.notes(); }

  void Body(const ffi::Array<ffi::ObjectRef>& body, std::vector<int> path) {
    path.push_back(0);
    for (const ffi::ObjectRef& node : body) {
      auto declared = declarations_.find(path);
      if (declared != declarations_.end()) {
        e_.out.Blank();
        for (const std::string& name : declared->second) e_.Declare(name);
      }
      const AsyncStep* step = async_.At(path);
      if (step != nullptr) EmitBefore(e_, async_, *step);
      if (auto loop = node.as<Loop>()) {
        One(*loop, path);
      } else {
        One(node.as_or_throw<IOp>(), step);
      }
      if (step != nullptr) EmitAfter(e_, async_, *step);
      ++path.back();
    }
  }

 private:
  /*! \brief Before the first iOp of the innermost body that holds all uses. */
  void PlaceDeclarations(const std::vector<Use>& uses) {
    std::map<std::string, std::vector<int>> common;
    std::map<std::string, const Use*> first;
    std::vector<std::string> order;
    for (const Use& use : uses) {
      if (!e_.plan.HomeOf(use.slice).registers()) continue;
      std::string name = use.pointer();
      auto [at, fresh] = common.emplace(name, use.path);
      if (fresh) {
        first[name] = &use;
        order.push_back(name);
        continue;
      }
      std::vector<int>& path = at->second;
      size_t same = 0;
      while (same + 1 < path.size() && same + 1 < use.path.size() && path[same] == use.path[same]) ++same;
      path.resize(same + 1);
    }
    for (const std::string& name : order) {
      const Use& use = *first[name];
      std::vector<int> path = common[name];
      // what is not written whole first may come from an earlier iteration: it outlives all loops
      bool carried = !use.write || use.reads_too || !BoxText(use.slice).empty();
      if (carried) path.resize(1);
      declarations_[path].push_back(name);
    }
  }

  void One(const Loop& loop, const std::vector<int>& path) {
    std::string name(loop->var), text = e_.names.Fresh(name);
    e_.out.Blank();
    if (auto factor = AttrOf(loop->attrs, "unroll").as<int64_t>()) {
      e_.out.Line("#pragma unroll " + std::to_string(*factor));
    }
    e_.out.Open("for (int " + text + " = 0; " + text + " < " + std::to_string(loop->extent) + "; ++" + text + ")");
    e_.scope.Bind(name, text, {0, std::max<int64_t>(loop->extent - 1, 0)});
    e_.Enter(loop);
    Body(loop->body, path);
    e_.Leave(loop);
    e_.out.Close();
  }

  void One(const IOp& iop, const AsyncStep* step) {
    std::string text = Describe(iop);
    e_.where = std::string(e_.plan.graph()->name) + ": " + text;
    e_.out.Blank();
    e_.out.Comment(text);
    if (step != nullptr && step->ring) {
      EmitBulkCopy(e_, iop, async_.rings()[*step->ring]);
    } else if (step != nullptr && step->copy) {
      EmitCopy(e_, iop);
    } else {
      OpRowOf(iop).emit(e_, iop);
    }
  }

  Emitter& e_;
  AsyncPlan async_;
  std::map<std::vector<int>, std::vector<std::string>> declarations_;
};

std::string Signature(const Kernel& kernel, const IGraph& graph, const Emitter& e, Needs* needs) {
  std::vector<std::string> params;
  std::map<std::string, bool> written;
  for (const Use& use : e.uses()) written[use.pointer()] = written[use.pointer()] || use.write;
  for (const IPointer& pointer : ParametersOf(graph, e.uses())) {
    std::string name(pointer->name), dtype(pointer->dtype);
    needs->Dtype(dtype);
    // what may be bound to the same memory as another parameter must not be said to be apart
    bool apart = pointer->role == "in" || pointer->role == "out";
    params.push_back(std::string(written[name] ? "" : "const ") + TypeOf(dtype).stored + "*" +
                     (apart ? " __restrict__ " : " ") + e.TextOf(name));
  }
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
  const std::set<std::string> used = PointersOf(uses);
  for (const IPointer& pointer : ParametersOf(graph, uses)) kernel.params.emplace_back(pointer->name);
  Names names{Reserved()};
  Printer body{1};
  Emitter e(plan, uses, body, names, *needs);
  Walk walk(&e, uses);
  walk.Body(graph->body, {});
  e.Settle();

  int64_t sram = plan.sram_bytes() + e.extra_shared_bytes();
  int64_t scratch = RoundUp(plan.scratch_bytes() + e.temporary_scratch_bytes(), 128);
  sram = scratch == 0 ? sram : RoundUp(sram, 128);
  kernel.shared_bytes = sram + scratch * graph->num_units;
  CheckShared(kernel, graph, plan);

  Printer out;
  out.Open(Signature(kernel, graph, e, needs));
  if (kernel.shared_bytes > 0) out.Line("extern __shared__ __align__(1024) unsigned char smem[];");
  std::vector<std::string> definitions = {"const int lane = threadIdx.x % 32;"};
  if (graph->num_units == 1) {
    definitions.emplace_back("const int pid = blockIdx.x;");
  } else {
    definitions.emplace_back(
        "const int unit = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);  // the same in all lanes");
    definitions.push_back("const int pid = int(blockIdx.x) * " + std::to_string(graph->num_units) + " + unit;");
  }
  if (scratch > 0) {
    std::string own = graph->num_units == 1 ? "" : " + unit * " + std::to_string(scratch);
    definitions.push_back("const int scratch_at = " + std::to_string(sram) + own +
                          ";  // this warp's own part of smem");
  }
  definitions.insert(definitions.end(), e.prologue().begin(), e.prologue().end());
  for (const std::string& line : Used(definitions, body.Text())) out.Line(line);
  out.Append(body);
  out.Close();
  kernel.text = out.Text();
  kernel.notes = walk.notes();
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
    if (pointer->level != "reg" || !used.count(pointer_name)) continue;
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
