// SPDX-License-Identifier: Apache-2.0
// The packed functions uir.library.ascend.*: aclnn computes on a device, the CPU's library on the host model of one.

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>

#include "library/ascend/aclnn.h"
#include "library/ascend/products.h"
#include "library/device_operators.h"

namespace uir::library::ascend {
namespace {

void Matmul(ffi::PackedArgs args, ffi::Any*) {
  RunWhereTensorsAre<MatmulAttrs, RunMatmul>("matmul", "uir.library.cpu.matmul", args);
}

void Conv2d(ffi::PackedArgs args, ffi::Any*) {
  RunWhereTensorsAre<Conv2dAttrs, RunConv2d>("conv2d", "uir.library.cpu.conv2d", args);
}

void IntegerMatmul(ffi::PackedArgs args, ffi::Any*) {
  constexpr const char* kOp = "integer_matmul";
  const auto attrs = Parsed<IntegerMatmulAttrs>(AttrsText(args, kOp));
  const DLTensor* out = args[args.size() - 1].cast<DLTensor*>();
  CheckTensor(out, kOp, "out", kDLExtDev);
  if (runtime::PlaceOf(out->device) == "model") return OnHostModel("uir.library.cpu.integer_matmul", args);
  const IntegerMatmulOperands in = ReadIntegerMatmul(args, *attrs, /*scaled=*/true, /*floats=*/false, kDLExtDev);
  if (!attrs->empty()) RunIntegerMatmul(*attrs, in);
}

/*! [{"function", "operands": [{"role", "shape", "strides", "offset"}]}] of the attributes of a product. */
ffi::Array<ffi::Map<ffi::String, ffi::Any>> DescribeProducts(ffi::String text) {
  constexpr const char* kFunctions[] = {"Matmul", "Addmm", "Baddbmm"};
  ffi::Array<ffi::Map<ffi::String, ffi::Any>> calls;
  for (const Product& product : Products(MatmulAttrs::Parse(text))) {
    ffi::Array<ffi::Any> operands;
    for (const Operand& operand : product.operands) operands.push_back(Describe(operand));
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
      .def_packed("uir.library.ascend.integer_matmul", IntegerMatmul)
      .def("uir.library.ascend.products", DescribeProducts);
}

}  // namespace
}  // namespace uir::library::ascend
