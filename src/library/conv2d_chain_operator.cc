// SPDX-License-Identifier: Apache-2.0
// The packed function of a chain of convolutions: operands checked, attributes and weights found once.

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "library/arguments.h"
#include "library/conv2d_chain.h"
#include "library/conv2d_tile_kernels.h"
#include "library/parallel.h"
#include "library/plan_cache.h"

namespace uir::library {
namespace {

constexpr const char* kOp = "conv2d_chain";

struct Entry {
  Conv2dChainAttrs attrs;
  std::unique_ptr<Conv2dChainPlan> plan;                    // null: there is nothing to compute
  std::vector<std::pair<uint64_t, uint64_t>> fingerprints;  // of weights' formats
};

/*! The plan for its attributes, for the threads and vectors of now. */
std::shared_ptr<const Entry> Find(const ffi::String& text) {
  static auto* cache = new PlanCache<Entry>();
  const int threads = PoolThreads();
  const TileKernels* tiles = TileKernelsHere();
  const std::string key =
      std::string(text) + "|" + std::to_string(threads) + (tiles ? tiles->name : "") + (dnn::Get() ? "L" : "-");
  return cache->Get(key, [&] {
    auto entry = std::make_shared<Entry>();
    entry->attrs = Conv2dChainAttrs::Parse(text);
    if (entry->attrs.empty()) return entry;
    entry->plan = MakeConv2dChain(entry->attrs, threads);
    for (size_t number = 0; number < entry->attrs.parts.size(); ++number) {
      const WeightFormat* format = entry->plan->weight_format(static_cast<int>(number));
      entry->fingerprints.push_back(format ? format->Fingerprint() : std::pair<uint64_t, uint64_t>());
    }
    return entry;
  });
}

/*! A tensor of float32 with so many elements. */
const char* Floats(const DLTensor* tensor, int64_t elements, const char* operand) {
  CheckTensor(tensor, kOp, operand, kDLCPU);
  CheckType(DTypeOf(tensor->dtype, kOp, operand), DType::kF32, kOp, operand);
  CheckElements(tensor, elements, true, kOp, operand);
  return Data(tensor);
}
const float* Numbers(const DLTensor* tensor, int64_t elements, const char* operand) {
  return reinterpret_cast<const float*>(Floats(tensor, elements, operand));
}

/*! How many tensors there are, the result among them. */
int Tensors(const Conv2dChainAttrs& attrs) {
  int count = 2;
  for (const Conv2dAttrs& part : attrs.parts) count += 1 + part.epilogue.bias;
  return count + (attrs.parts.back().epilogue.residual != Residual::kNone);
}

/*! Operands, the result the last of them; what is converted of weights is in `kept` then. */
Conv2dChainData Read(const Entry& entry, const std::vector<const DLTensor*>& tensors,
                     std::vector<ResolvedWeight>* kept) {
  const auto& [attrs, plan, fingerprints] = entry;
  const Conv2dAttrs &first = attrs.parts.front(), &last = attrs.parts.back();
  size_t at = 0;
  Conv2dChainData data;
  data.x = Numbers(tensors[at++], Count({first.n, first.h, first.w, first.c}), "1");
  for (size_t number = 0; number < attrs.parts.size(); ++number) {
    const Conv2dAttrs& part = attrs.parts[number];
    const std::string name = "weight " + std::to_string(number), bias = "bias " + std::to_string(number);
    const DLTensor* weight = tensors[at++];
    ChainPart made;
    if (const WeightFormat* format = plan->weight_format(static_cast<int>(number))) {
      CheckTensor(weight, kOp, name.c_str(), kDLCPU);
      kept->push_back(ResolveWeight(weight, *format, fingerprints[number]));
      made.weight = kept->back().body;
    } else {
      made.weight = Floats(weight, Count({part.kh, part.kw, part.c}), name.c_str());
    }
    if (part.epilogue.bias) made.bias = Numbers(tensors[at++], part.o, bias.c_str());
    data.parts.push_back(made);
  }
  const int64_t results = Count({last.n, last.oh, last.ow, last.o});
  if (last.epilogue.residual != Residual::kNone) data.residual = Numbers(tensors[at++], results, "residual");
  data.out = const_cast<float*>(Numbers(tensors[at], results, "out"));
  return data;
}

/*! The tensors of a call, checked for their number. */
std::vector<const DLTensor*> TensorsOf(const ffi::PackedArgs& args, const Conv2dChainAttrs& attrs) {
  const int count = Tensors(attrs);
  if (args.size() != count + 1) {
    TVM_FFI_THROW(ValueError) << "Library operator conv2d_chain got " << args.size()
                              << " arguments.\n  need:   " << count + 1
                              << ": images, of each convolution its weight and bias, residual, attributes, output";
  }
  std::vector<const DLTensor*> tensors;
  for (int at = 0; at < args.size(); ++at) {
    if (at != count - 1) tensors.push_back(args[at].cast<DLTensor*>());
  }
  return tensors;
}

/*! (images, weight, [bias], weight, [bias], ..., [residual], attributes, out) */
void Chain(ffi::PackedArgs args, ffi::Any*) {
  const std::shared_ptr<const Entry> entry = Find(AttrsText(args, kOp));
  const std::vector<const DLTensor*> tensors = TensorsOf(args, entry->attrs);
  if (!entry->plan) return;
  std::vector<ResolvedWeight> kept;
  entry->plan->Run(Read(*entry, tensors, &kept));
}

ffi::String Describe(const ffi::String& text) {
  const std::shared_ptr<const Entry> entry = Find(text);
  return ffi::String(entry->plan ? entry->plan->Describe() : "{\"plan\": \"none\"}");
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def_packed("uir.library.cpu.conv2d_chain", Chain)
      .def("uir.library.cpu.describe_chain", Describe);
}

}  // namespace
}  // namespace uir::library
