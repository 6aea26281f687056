// SPDX-License-Identifier: Apache-2.0
// The packed functions uir.library.bang.*: CNNL computes on a device, the CPU's library on the host model of one.

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>

#include "base/vendor_library.h"
#include "library/bang/cnnl_glue.h"
#include "library/device_operators.h"
#include "library/integer_matmul.h"
#include "library/product_views.h"
#include "runtime/cnrt_api.h"

namespace uir::library::bang {
namespace {

/*! The global function that compiles the glue, where it was not, and gives its path. */
constexpr const char* kGlue = "uir.library.cnnl.glue";

struct Glue {
  GlueProduct product = nullptr;
  GlueConvolution convolution = nullptr;
  GlueIntegerProduct integer_product = nullptr;
};

Glue LoadGlue() {
  const auto make = ffi::Function::GetGlobal(kGlue);
  if (!make) {
    ThrowLibraryError("CNNL cannot be called: nothing here compiles against its headers.", "the Python package uir_tvm",
                      "import uir_tvm before the model is loaded");
  }
  VendorLibrary library({"CNNL",
                         {std::string((*make)().cast<ffi::String>())},
                         "add the toolkit's lib64 to LD_LIBRARY_PATH before Python starts",
                         "delete the file: another release of this package made it"});
  Glue glue;
  library.Require({{"uir_cnnl_product", &glue.product},
                   {"uir_cnnl_convolution", &glue.convolution},
                   {"uir_cnnl_integer_product", &glue.integer_product}});
  return glue;
}

const Glue& TheGlue() {
  static const Glue* glue = new Glue(LoadGlue());
  return *glue;
}

[[noreturn]] void Refuse(const char* op, const char* what) {
  TVM_FFI_THROW(ValueError) << "Library operator " << op << " on an MLU: " << what << ".\n"
                            << "  limit:  a product with a factor, one of bytes, a convolution, nothing else\n"
                            << "  remedy: compile the model for this target";
  TVM_FFI_UNREACHABLE();
}

void CheckEpilogue(const Epilogue& epilogue, bool packed, const char* op) {
  if (packed) Refuse(op, "a weight that was packed for the CPU");
  if (epilogue.activation != Activation::kNone) Refuse(op, "an activation");
  if (epilogue.bias || epilogue.residual != Residual::kNone) Refuse(op, "a term to add");
}

int IsHalf(const DLTensor* tensor, const char* op) {
  switch (DTypeOf(tensor->dtype, op, "out")) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    default:
      Refuse(op, "operands of other types than float32 and float16");
  }
}

/*! The operands of a product: a, b, out. */
std::vector<Operand> OperandsOf(const MatmulAttrs& attrs) {
  CheckEpilogue(attrs.epilogue, attrs.packed, "matmul");
  const std::vector<BatchAxis> axes = BatchOf(attrs);
  std::vector<Operand> operands;
  for (Role role : {Role::kA, Role::kB, Role::kOut}) operands.push_back(OperandOf(attrs, role, axes, {}));
  return operands;
}

GlueView ViewOf(const DLTensor* tensor, const Operand& operand) {
  return {const_cast<char*>(Data(tensor)), static_cast<int32_t>(operand.shape.size()), operand.shape.data(),
          operand.strides.data(), operand.offset};
}

void* QueueOf(const DLTensor* tensor) {
  runtime::cnrt::UseDevice(tensor->device.device_id);
  return TVMFFIEnvGetStream(tensor->device.device_type, tensor->device.device_id);
}

void CheckCall(int status, const char* message, const char* op) {
  if (status == 0) return;
  ThrowLibraryError(std::string(op) + ": " + message, "a problem that this release of CNNL supports on this device",
                    "compute it in a kernel of its own, or install another release");
}

void RunMatmul(const MatmulAttrs& attrs, const Arguments& in) {
  const std::vector<Operand> operands = OperandsOf(attrs);
  const GlueView a = ViewOf(in.first, operands[0]), b = ViewOf(in.second, operands[1]),
                 out = ViewOf(in.out, operands[2]);
  char message[512] = "";
  const int status = TheGlue().product(QueueOf(in.out), IsHalf(in.out, "matmul"),
                                       static_cast<float>(attrs.epilogue.alpha), &a, &b, &out, message, sizeof message);
  CheckCall(status, message, "matmul");
}

void RunConv2d(const Conv2dAttrs& attrs, const Arguments& in) {
  CheckEpilogue(attrs.epilogue, attrs.packed, "conv2d");
  if (attrs.epilogue.alpha != 1.0) Refuse("conv2d", "a factor");
  if (attrs.padding[0] != attrs.padding[2] || attrs.padding[1] != attrs.padding[3]) {
    Refuse("conv2d", "opposite sides padded differently");
  }
  const int64_t shapes[] = {attrs.n,  attrs.c,  attrs.h, attrs.w, attrs.o,  attrs.i,
                            attrs.kh, attrs.kw, attrs.n, attrs.o, attrs.oh, attrs.ow};
  const int64_t window[] = {attrs.stride[0],   attrs.stride[1],   attrs.padding[0], attrs.padding[1],
                            attrs.dilation[0], attrs.dilation[1], attrs.groups};
  void* data[3];
  const DLTensor* const tensors[] = {in.first, in.second, in.out};
  for (int i = 0; i < 3; ++i) data[i] = const_cast<char*>(Data(tensors[i]));
  char message[512] = "";
  const int status = TheGlue().convolution(QueueOf(in.out), IsHalf(in.out, "conv2d"), data[0], data[1], data[2], shapes,
                                           window, message, sizeof message);
  CheckCall(status, message, "conv2d");
}

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
  const IntegerMatmulOperands in = ReadIntegerMatmul(args, *attrs, /*scaled=*/false, /*floats=*/true, kDLExtDev);
  if (attrs->empty()) return;
  const int64_t sizes[] = {attrs->parts, attrs->m, attrs->n, attrs->k};
  char message[512] = "";
  const int status =
      TheGlue().integer_product(QueueOf(out), const_cast<char*>(Data(in.a)), const_cast<char*>(Data(in.b)),
                                const_cast<char*>(Data(in.out)), sizes, message, sizeof message);
  CheckCall(status, message, kOp);
}

/*! [{"role", "shape", "strides", "offset"}] of a, b and out, of the attributes of a product. */
ffi::Array<ffi::Any> DescribeProduct(ffi::String text) {
  ffi::Array<ffi::Any> operands;
  for (const Operand& operand : OperandsOf(MatmulAttrs::Parse(text))) operands.push_back(Describe(operand));
  return operands;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("uir.library.bang.matmul", Matmul)
      .def_packed("uir.library.bang.conv2d", Conv2d)
      .def_packed("uir.library.bang.integer_matmul", IntegerMatmul)
      .def("uir.library.bang.product", DescribeProduct);
}

}  // namespace
}  // namespace uir::library::bang
