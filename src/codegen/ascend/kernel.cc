// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/kernel.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/attrs.h"
#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/cube_part.h"
#include "codegen/ascend/emitter.h"
#include "codegen/ascend/far_turns.h"
#include "codegen/ascend/handshake.h"
#include "codegen/ascend/ops.h"
#include "codegen/ascend/products.h"
#include "codegen/ascend/sync_text.h"
#include "codegen/pipes/plan.h"
#include "codegen/printer.h"
#include "codegen/sizes.h"
#include "codegen/tiles/count.h"
#include "codegen/tiles/dealt.h"
#include "codegen/words.h"

namespace uir::codegen::ascend {

namespace {

/*! \brief Of an element of an index row. */
constexpr int64_t kIndexBytes = 4;

/*! \brief Words of C++ and of the text around what emitters print. */
const char* const kReserved = "and_eq bfloat16_t not_eq or_eq pipe ub xor_eq AscendC";

/*! \brief The iOps in order; gives every one its number. */
void Walk(const ffi::Array<ffi::ObjectRef>& body, const Products& products, Emitter* e, int* position) {
  for (const ffi::ObjectRef& node : body) {
    if (auto loop = node.as<Loop>()) {
      std::vector<const Product*> carried = products.CarriedBy(*loop);
      for (const Product* product : carried) OpenProduct(*e, *product, *position);
      if (tiles::CountIOps((*loop)->body, [&](const IOp& iop) { return !products.Silent(iop); }) == 0) {
        *position += tiles::CountIOps((*loop)->body, [](const IOp&) { return true; });
      } else {
        e->Enter(*loop);
        Walk((*loop)->body, products, e, position);
        e->Leave(*loop);
      }
      for (const Product* product : carried) CloseProduct(*e, *product, *position);
      continue;
    }
    IOp iop = node.as_or_throw<IOp>();
    const Product* product = products.At(*position);
    if (products.Silent(iop)) {
      ++*position;
      continue;
    }
    e->Begin(iop, (*position)++);
    if (product != nullptr) {
      HandOver(*e, *product);
    } else {
      OpRowOf(iop, e->where()).emit(*e, iop);
    }
    e->End();
  }
}

/*! \brief The vector core's part as a tree, and what it was made with. */
struct Built {
  /*! \param index Elements of an index row that is made once; 0: rows are made where they are asked for. */
  Built(const IGraph& graph, const Products& products, int64_t index)
      : plan(graph, kUnifiedBuffer), names(Reserved()), e(&plan, &names) {
    if (index > 0) e.KeepIndex(index);
    int position = 0;
    Walk(graph->body, products, &e, &position);
  }

  Plan plan;
  Names names;
  Emitter e;
};

/*! \brief Builds the vector core's part; again with an index row at its head where several are asked for. */
std::unique_ptr<Built> Build(const IGraph& graph, const Products& products) {
  auto built = std::make_unique<Built>(graph, products, 0);
  int64_t index = built->e.RepeatedIndex();
  if (index == 0 || built->plan.total() + index * kIndexBytes > built->plan.limit()) return built;
  try {
    return std::make_unique<Built>(graph, products, index);
  } catch (const ffi::Error& error) {
    // work buffers that found a hole before may find none beside the row
    if (std::string(error.kind()) != "CodegenCapacityError") throw;
    return built;
  }
}

std::string Declaration(const Emitter::Tensor& tensor) {
  std::string type = TypeOf(tensor.dtype).stored;
  // whole blocks, so that the last one may be worked on as a whole
  int64_t block = kBlockBytes / TypeOf(tensor.dtype).bytes, size = RoundUp(tensor.size, block);
  return TypeName("LocalTensor", {type}) + " " + tensor.name + " = " +
         Call("", "TBuf.GetWithOffset", "member", {type}, {"ub", std::to_string(size), std::to_string(tensor.begin)}) +
         ";";
}

/*! \brief The kinds of cores that run a kernel, as the toolkit names them. */
const std::map<std::string, std::string> kTaskTypes = {{"aiv", "KERNEL_TYPE_AIV_ONLY"},
                                                       {"mix_1_1", "KERNEL_TYPE_MIX_AIC_1_1"}};

/*! \brief Blocks that the device runs at once. */
int64_t CoresOf(const IGraph& graph, const Products& products) {
  const int64_t cores = graph->hardware->num_groups;
  return products.empty() ? cores : std::min(cores, AttrOr(graph->hardware->figures, "aic_cores", cores));
}

/*! \brief A block takes every so many-th group; the two cores of one meet where a product is, and end a group together.
 */
tiles::Dealing DealingOf(const Emitter& e, const DealtGroups& groups, const Products& products) {
  return {groups,
          e.Text(Affine::Var("pid")),
          Call("", "GetBlockIdx", "plain", {}, {}),
          Call("", "GetBlockNum", "plain", {}, {}),
          {},
          products.empty(),
          pipes::Node::Plain({Call("", "PipeBarrier", "plain", {}, {"ALL"}) + ";"})};
}

/*! \brief The sizes, GlobalTensors over the parameters, and pid or how many of them there are. */
void Prologue(const Emitter& e, const Kernel& kernel, const DealtGroups& groups, Printer* out) {
  out->Line(Call("", "KERNEL_TASK_TYPE_DEFAULT", "macro", {}, {kTaskTypes.at(kernel.core)}) + ";");
  for (const std::string& line : e.sizes().definitions) out->Line(line);
  for (const IPointer& pointer : ParametersOf(e.plan().graph(), e.plan().uses())) {
    std::string name(pointer->name), type = TypeOf(std::string(pointer->dtype)).stored, tensor = e.GlobalOf(name);
    out->Line(TypeName("GlobalTensor", {type}) + " " + tensor + ";");
    out->Line(Call("", "GlobalTensor.SetGlobalBuffer", "member", {type},
                   {tensor, "(__gm__ " + type + "*)" + e.ParameterOf(name), ElementsText(pointer, e.scope())}) +
              ";");
  }
  if (groups.counted) out->Line(groups.definition);
  if (!groups.dealt) {
    out->Line("const int32_t " + e.Text(Affine::Var("pid")) + " = " + Call("", "GetBlockIdx", "plain", {}, {}) + ";");
  }
}

/*! \brief The UB, its tensors, and what a vector core does; notes on its syncs. */
std::vector<std::string> VectorPart(const Emitter& e, const pipes::Plan& planned, int64_t first, Printer* out) {
  if (!e.tensors().empty()) {
    out->Line(TypeName("TPipe") + " pipe;");
    out->Line(TypeName("TBuf", {"VECCALC"}) + " ub;");
    out->Line(Call("", "TPipe.InitBuffer", "member", {}, {"pipe", "ub", std::to_string(e.plan().total())}) + ";");
    for (const Emitter::Tensor& tensor : e.tensors()) out->Line(Declaration(tensor));
  }
  return PrintTree(planned, e.every_scope(), first, out);
}

void Notes(const Emitter& e, const std::vector<std::string>& syncs, Kernel* kernel) {
  std::vector<Emitter::Tensor> tensors = e.tensors();
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  kernel->notes.push_back("UB: " + std::to_string(e.plan().total()) + " of " + std::to_string(e.plan().limit()) +
                          " bytes");
  for (const Emitter::Tensor& tensor : tensors) {
    kernel->notes.push_back(tensor.name + ": " + std::to_string(tensor.size) + " x " + tensor.dtype + " at byte " +
                            std::to_string(tensor.begin));
  }
  kernel->notes.insert(kernel->notes.end(), e.notes().begin(), e.notes().end());
  kernel->notes.insert(kernel->notes.end(), syncs.begin(), syncs.end());
}

}  // namespace

std::set<std::string> Reserved() {
  std::set<std::string> reserved = WordsOf(kReserved);
  // the text is in the vendor's namespace: a local name must not hide what it calls
  reserved.merge(Table().Words());
  reserved.insert(kRestOfTurns);
  return reserved;
}

Kernel PrintKernel(const IGraph& graph, const std::string& name, int64_t first) {
  Kernel kernel;
  kernel.name = name;
  Products products(graph);
  std::unique_ptr<Built> built = Build(graph, products);
  Plan& plan = built->plan;
  Emitter& e = built->e;
  const DealtGroups groups(graph, CoresOf(graph, products), e.groups(), e.scope());
  kernel.blocks = groups.MostBlocks(graph) * graph->num_units;
  for (const IPointer& pointer : ParametersOf(graph, plan.uses())) kernel.params.emplace_back(pointer->name);
  const tiles::Dealing dealing = DealingOf(e, groups, products);
  pipes::Plan planned =
      tiles::PlanGroups(e, e.Take(), pipes::VocabularyOf("ascend"), std::string(graph->name), dealing);

  Printer out;
  std::vector<std::string> params;
  for (const std::string& pointer : kernel.params) params.push_back("GM_ADDR " + e.ParameterOf(pointer));
  params.insert(params.end(), e.sizes().declared.begin(), e.sizes().declared.end());
  out.Open("extern \"C\" __global__ __aicore__ void " + name + "(" + Join(params) + ")");
  if (!products.empty()) kernel.core = "mix_1_1";
  Prologue(e, kernel, groups, &out);
  std::vector<std::string> syncs;
  if (products.empty()) {
    syncs = VectorPart(e, planned, first, &out);
  } else {
    out.Open("if " + Macro("ASCEND_IS_AIV"));
    syncs = VectorPart(e, planned, first, &out);
    out.Close();
    out.Open("if " + Macro("ASCEND_IS_AIC"));
    for (const std::string& note : PrintCubePart(&plan, products, dealing, first, &out)) {
      syncs.push_back("cube core, " + note);
    }
    out.Close();
  }
  out.Close();
  kernel.text = out.Text();
  Notes(e, syncs, &kernel);
  return kernel;
}

}  // namespace uir::codegen::ascend
