// SPDX-License-Identifier: Apache-2.0
// The packed functions of products with a weight of few bits: operands checked, attributes parsed once.

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <memory>

#include "library/arguments.h"
#include "library/parallel.h"
#include "library/plan_cache.h"
#include "library/quantized_matmul.h"

namespace uir::library {
namespace {

constexpr const char* kOp = "quantized_matmul";

std::shared_ptr<const MatmulAttrs> Find(const ffi::String& text) {
  static auto* cache = new PlanCache<MatmulAttrs>();
  return cache->Get(text, [&] {
    auto attrs = std::make_shared<MatmulAttrs>(MatmulAttrs::Parse(text));
    if (attrs->weight.bits == 0) {
      TVM_FFI_THROW(ValueError) << "Library operator quantized_matmul: its weight has no bits.\n  need:   \"bits\", "
                                << "\"group\", \"zero\", \"offsets\" and \"half\" among the attributes";
    }
    return attrs;
  });
}

void CheckBytes(const DLTensor* tensor, int64_t need, const char* operand) {
  CheckTensor(tensor, kOp, operand, kDLCPU);
  if (tensor->dtype.code != kDLUInt || tensor->dtype.bits != 8 || tensor->dtype.lanes != 1) {
    TVM_FFI_THROW(ValueError) << "Library operator " << kOp << ": operand " << operand << " is no uint8.";
  }
  CheckElements(tensor, need, true, kOp, operand);
}

/*! (x, packed weight, [bias], [residual], attributes, out) */
void QuantizedMatmul(ffi::PackedArgs args, ffi::Any*) {
  const std::shared_ptr<const MatmulAttrs> attrs = Find(AttrsText(args, kOp));
  const Arguments in = ReadArguments(args, attrs->epilogue, kOp, kDLCPU);
  CheckAround(in, *attrs, kOp);
  CheckType(DTypeOf(in.first->dtype, kOp, "1"), DType::kF32, kOp, "1");
  CheckType(DTypeOf(in.out->dtype, kOp, "out"), DType::kF32, kOp, "out");
  CheckBytes(in.second, QuantizedBytes(*attrs), "2");
  if (attrs->empty()) return;
  RunQuantized(*attrs, PointersOf<MatmulData>(in, Data(in.second)), attrs->execution.Threads(PoolThreads()));
}

/*! (codes, scales, [offsets], attributes, out) of `QuantizedBytes`. */
void Pack(ffi::PackedArgs args, ffi::Any*) {
  const std::shared_ptr<const MatmulAttrs> attrs = Find(args[args.size() - 2].cast<ffi::String>());
  const Quantization& weight = attrs->weight;
  if (args.size() != 4 + weight.offsets) {
    TVM_FFI_THROW(ValueError) << "pack_quantized got " << args.size()
                              << " arguments.\n  need:   " << 4 + weight.offsets;
  }
  const DLTensor* codes = args[0].cast<DLTensor*>();
  CheckBytes(codes, attrs->n * attrs->k * weight.bits / 8, "codes");
  const char* factors[2] = {nullptr, nullptr};
  for (int i = 0; i < 1 + weight.offsets; ++i) {
    const DLTensor* tensor = args[1 + i].cast<DLTensor*>();
    CheckTensor(tensor, kOp, "scales", kDLCPU);
    CheckType(DTypeOf(tensor->dtype, kOp, "scales"), weight.half ? DType::kF16 : DType::kF32, kOp, "scales");
    CheckElements(tensor, attrs->n * (attrs->k / weight.group), true, kOp, "scales");
    factors[i] = Data(tensor);
  }
  const DLTensor* out = args[args.size() - 1].cast<DLTensor*>();
  CheckBytes(out, QuantizedBytes(*attrs), "out");
  PackQuantized(*attrs, Data(codes), factors[0], factors[1], const_cast<char*>(Data(out)));
}

ffi::Array<ffi::String> Vectors() {
  ffi::Array<ffi::String> names;
  for (const std::string& name : QuantizedVectors()) names.push_back(name);
  return names;
}

void SetVectors(const ffi::String& name) {
  if (!SetQuantizedVectors(name)) {
    TVM_FFI_THROW(ValueError) << "This CPU has no instructions called \"" << std::string(name) << "\".";
  }
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("uir.library.cpu.quantized_matmul", QuantizedMatmul)
      .def_packed("uir.library.cpu.pack_quantized", Pack)
      .def("uir.library.cpu.quantized_bytes", [](ffi::String attrs) { return QuantizedBytes(*Find(attrs)); })
      .def("uir.library.cpu.quantized_vectors", Vectors)
      .def("uir.library.cpu.set_quantized_vectors", SetVectors);
}

}  // namespace
}  // namespace uir::library
