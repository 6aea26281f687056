// SPDX-License-Identifier: Apache-2.0
// The packed function of attention: operands checked, attributes parsed once.

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <memory>

#include "library/arguments.h"
#include "library/attention.h"
#include "library/panel_attention.h"
#include "library/parallel.h"
#include "library/plan_cache.h"
#include "library/vector_choice.h"

namespace uir::library {
namespace {

constexpr const char* kOp = "attention";

/*! (queries, keys, values, [mask], attributes, out): float32, float16 or bfloat16 */
void Attention(ffi::PackedArgs args, ffi::Any*) {
  static auto* cache = new PlanCache<AttentionAttrs>();
  const ffi::String text = AttrsText(args, kOp);
  const std::shared_ptr<const AttentionAttrs> attrs =
      cache->Get(text, [&] { return std::make_shared<AttentionAttrs>(AttentionAttrs::Parse(text)); });
  if (args.size() != 5 + attrs->masked) {
    TVM_FFI_THROW(ValueError) << "Library operator attention got " << args.size()
                              << " arguments.\n  need:   " << 5 + attrs->masked << ": queries, keys, values"
                              << (attrs->masked ? ", mask" : "") << ", attributes, output";
  }
  auto typed = [&](int place, const char* operand, const OperandView& view, int64_t rows, int64_t columns) {
    const DLTensor* tensor = args[place].cast<DLTensor*>();
    CheckTensor(tensor, kOp, operand, kDLCPU);
    const DType type = DTypeOf(tensor->dtype, kOp, operand);
    if (type == DType::kF64) CheckType(type, DType::kF32, kOp, operand);
    CheckElements(tensor, Extent(view, attrs->batch, rows, columns), false, kOp, operand);
    return Typed<const char>{Data(tensor), type};
  };
  AttentionData data;
  data.query = typed(0, "1", attrs->query, attrs->m, attrs->d);
  data.key = typed(1, "2", attrs->key, attrs->n, attrs->d);
  data.value = typed(2, "3", attrs->value, attrs->n, attrs->e);
  CheckType(data.value.type, data.key.type, kOp, "3");
  if (attrs->masked) data.mask = typed(3, "mask", attrs->mask, attrs->m, attrs->n);
  const Typed<const char> out = typed(4 + attrs->masked, "out", attrs->out, attrs->m, attrs->e);
  data.out = {const_cast<char*>(out.data), out.type};
  if (!attrs->empty()) RunAttention(*attrs, data, PoolThreads());
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def_packed("uir.library.cpu.attention", Attention);
  DefineVectorChoice("attention", AttentionVectors, SetAttentionVectors);
}

}  // namespace
}  // namespace uir::library
