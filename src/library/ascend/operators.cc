// SPDX-License-Identifier: Apache-2.0
// The packed functions uir.library.ascend.*: aclnn computes on a device, the CPU's library on the host model of one.

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>

#include "library/arguments.h"
#include "library/ascend/aclnn.h"
#include "library/ascend/products.h"
#include "library/host_model.h"
#include "library/plan_cache.h"
#include "runtime/device_memory.h"

namespace uir::library::ascend {
namespace {

/*! Parsed once: a model calls each operator with the same text again and again. */
template <typename Attrs>
std::shared_ptr<const Attrs> Parsed(const ffi::String& text) {
  static auto* cache = new PlanCache<Attrs>();
  return cache->Get(std::string(text), [&] { return std::make_shared<Attrs>(Attrs::Parse(text)); });
}

void CheckMatmul(const MatmulAttrs& attrs, const Arguments& in, const char* op) {
  const int64_t out_elements = Extent(attrs.out, attrs.batch, attrs.m, attrs.n);
  CheckElements(in.first, Extent(attrs.a, attrs.batch, attrs.m, attrs.k), false, op, "1");
  CheckElements(in.second, Extent(attrs.b, attrs.batch, attrs.k, attrs.n), false, op, "2");
  CheckElements(in.out, out_elements, false, op, "out");
  if (in.bias) CheckElements(in.bias, attrs.n, true, op, "bias");
  if (in.residual) CheckElements(in.residual, out_elements, false, op, "residual");
}

void CheckConv2d(const Conv2dAttrs& attrs, const Arguments& in, const char* op) {
  CheckElements(in.first, attrs.n * attrs.c * attrs.h * attrs.w, true, op, "1");
  CheckElements(in.second, attrs.o * attrs.i * attrs.kh * attrs.kw, true, op, "2");
  CheckElements(in.out, attrs.n * attrs.o * attrs.oh * attrs.ow, true, op, "out");
  if (in.bias) CheckElements(in.bias, attrs.o, true, op, "bias");
}

/*! An operator where its tensors are: on a device, or on the host model, whose library is the CPU's. */
template <typename Attrs, void (*CheckSizes)(const Attrs&, const Arguments&, const char*),
          void (*Run)(const Attrs&, const Arguments&)>
void Dispatch(const char* op, const char* cpu_function, const ffi::PackedArgs& args) {
  const ffi::String text = AttrsText(args, op);
  const DLTensor* out = args[args.size() - 1].cast<DLTensor*>();
  CheckTensor(out, op, "out", kDLExtDev);
  if (runtime::PlaceOf(out->device) == "model") return OnHostModel(cpu_function, args);
  const std::shared_ptr<const Attrs> attrs = Parsed<Attrs>(text);
  const Arguments in = ReadArguments(args, attrs->epilogue, op, kDLExtDev);
  CheckSizes(*attrs, in, op);
  Run(*attrs, in);
}

void Matmul(ffi::PackedArgs args, ffi::Any*) {
  Dispatch<MatmulAttrs, CheckMatmul, RunMatmul>("matmul", "uir.library.cpu.matmul", args);
}

void Conv2d(ffi::PackedArgs args, ffi::Any*) {
  Dispatch<Conv2dAttrs, CheckConv2d, RunConv2d>("conv2d", "uir.library.cpu.conv2d", args);
}

ffi::Array<int64_t> Plain(const std::vector<int64_t>& values) { return {values.begin(), values.end()}; }

/*! [{"function", "operands": [{"role", "shape", "strides", "offset"}]}] of the attributes of a product. */
ffi::Array<ffi::Map<ffi::String, ffi::Any>> DescribeProducts(ffi::String text) {
  constexpr const char* kFunctions[] = {"Matmul", "Addmm", "Baddbmm"};
  constexpr const char* kRoles[] = {"a", "b", "bias", "residual", "out"};
  ffi::Array<ffi::Map<ffi::String, ffi::Any>> calls;
  for (const Product& product : Products(MatmulAttrs::Parse(text))) {
    ffi::Array<ffi::Any> operands;
    for (const Operand& operand : product.operands) {
      ffi::Map<ffi::String, ffi::Any> row;
      row.Set("role", ffi::String(kRoles[static_cast<int>(operand.role)]));
      row.Set("shape", Plain(operand.shape));
      row.Set("strides", Plain(operand.strides));
      row.Set("offset", operand.offset);
      operands.push_back(row);
    }
    ffi::Map<ffi::String, ffi::Any> call;
    call.Set("function", ffi::String(kFunctions[static_cast<int>(product.function)]));
    call.Set("operands", operands);
    calls.push_back(call);
  }
  return calls;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("uir.library.ascend.matmul", Matmul)
      .def_packed("uir.library.ascend.conv2d", Conv2d)
      .def("uir.library.ascend.products", DescribeProducts);
}

}  // namespace
}  // namespace uir::library::ascend
