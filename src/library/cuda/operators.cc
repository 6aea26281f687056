// SPDX-License-Identifier: Apache-2.0
// The packed functions uir.library.cuda.*: on a GPU the vendor's libraries compute, on the host model of one the CPU's.

#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <array>
#include <atomic>

#include "library/arguments.h"
#include "library/cuda/conv2d.h"
#include "library/cuda/device.h"
#include "library/cuda/integer_matmul.h"
#include "library/cuda/matmul.h"
#include "library/device_operators.h"
#include "library/integer_matmul.h"

namespace uir::library::cuda {
namespace {

std::atomic<bool> tf32{false};

std::string Key(const ffi::String& text, std::array<DType, 3> types, int device_id, int64_t alignment, int generation) {
  std::string key(text.data(), text.size());
  key += '|';
  for (DType type : types) key += static_cast<char>('0' + static_cast<int>(type));
  key += tf32 ? 'T' : '-';
  key += std::to_string(device_id) + '/' + std::to_string(alignment) + '/' + std::to_string(generation);
  return key;
}

/*! The power of two, at most 256, that all these addresses are multiples of. */
int64_t Alignment(std::initializer_list<const void*> addresses) {
  uintptr_t bits = 256;
  for (const void* address : addresses) bits |= reinterpret_cast<uintptr_t>(address);
  return static_cast<int64_t>(bits & (~bits + 1));
}

void RefusePacked(bool packed, const char* op) {
  if (packed) {
    TVM_FFI_THROW(ValueError) << "Library operator " << op << " on CUDA: a weight that was packed for the CPU.\n"
                              << "  remedy: compile the model for this target";
  }
}

void MatmulOnGpu(const ffi::PackedArgs& args) {
  constexpr const char* kOp = "matmul";
  const ffi::String text = AttrsText(args, kOp);
  const std::shared_ptr<const MatmulAttrs> parsed = Parsed<MatmulAttrs>(text);
  const MatmulAttrs& attrs = *parsed;
  RefusePacked(attrs.packed, kOp);
  const Arguments in = ReadArguments(args, attrs.epilogue, kOp, kDLCUDA);
  const MatmulTypes types{DTypeOf(in.first->dtype, kOp, "1"), DTypeOf(in.second->dtype, kOp, "2"),
                          DTypeOf(in.out->dtype, kOp, "out")};
  CheckAround(in, attrs, kOp);
  CheckElements(in.second, Extent(attrs.b, attrs.batch, attrs.k, attrs.n), false, kOp, "2");
  if (NothingOnDevice(attrs)) return;
  const auto data = PointersOf<MatmulData>(in, Data(in.second));
  const DLDevice device = in.out->device;
  UseDevice(device);
  const int64_t alignment =
      Alignment({data.a + attrs.a.offset * static_cast<int64_t>(SizeOf(types.a)),
                 data.b + attrs.b.offset * static_cast<int64_t>(SizeOf(types.b)), data.bias,
                 data.residual ? data.residual + attrs.out.offset * static_cast<int64_t>(SizeOf(types.out)) : nullptr,
                 data.out + attrs.out.offset * static_cast<int64_t>(SizeOf(types.out))});
  static auto* cache = new PlanCache<LtMatmul>();
  const std::string key =
      Key(text, {types.a, types.b, types.out}, device.device_id, alignment, lt::Shared().generation());
  cache
      ->Get(
          key,
          [&] { return std::make_shared<LtMatmul>(attrs, types, device.device_id, alignment, data.bias, tf32.load()); })
      ->Run(data, device);
}

void Conv2dOnGpu(const ffi::PackedArgs& args) {
  constexpr const char* kOp = "conv2d";
  const ffi::String text = AttrsText(args, kOp);
  const std::shared_ptr<const Conv2dAttrs> parsed = Parsed<Conv2dAttrs>(text);
  const Conv2dAttrs& attrs = *parsed;
  RefusePacked(attrs.packed, kOp);
  const Arguments in = ReadArguments(args, attrs.epilogue, kOp, kDLCUDA);
  const Conv2dTypes types{DTypeOf(in.first->dtype, kOp, "1"), DTypeOf(in.second->dtype, kOp, "2"),
                          DTypeOf(in.out->dtype, kOp, "out")};
  CheckAround(in, attrs, kOp);
  CheckElements(in.second, attrs.o * attrs.i * attrs.kh * attrs.kw, true, kOp, "2");
  if (NothingOnDevice(attrs)) return;
  const DLDevice device = in.out->device;
  UseDevice(device);
  static auto* cache = new PlanCache<DnnConv2d>();
  const std::string key = Key(text, {types.x, types.w, types.out}, device.device_id, 0, dnn::Shared().generation());
  cache->Get(key, [&] { return std::make_shared<DnnConv2d>(attrs, types, device.device_id, tf32.load()); })
      ->Run(PointersOf<Conv2dData>(in, Data(in.second)), device);
}

void IntegerMatmulOnGpu(const ffi::PackedArgs& args) {
  constexpr const char* kOp = "integer_matmul";
  const ffi::String text = AttrsText(args, kOp);
  const std::shared_ptr<const IntegerMatmulAttrs> attrs = Parsed<IntegerMatmulAttrs>(text);
  const IntegerMatmulOperands in = ReadIntegerMatmul(args, *attrs, /*scaled=*/false, /*floats=*/false, kDLCUDA);
  if (attrs->empty()) return;
  const DLDevice device = in.out->device;
  UseDevice(device);
  const int64_t alignment = Alignment({Data(in.a), Data(in.b), Data(in.out)});
  static auto* cache = new PlanCache<LtIntegerMatmul>();
  const std::string key = std::string(text) + '|' + std::to_string(device.device_id) + '/' + std::to_string(alignment) +
                          '/' + std::to_string(lt::Shared().generation());
  cache->Get(key, [&] { return std::make_shared<LtIntegerMatmul>(*attrs, device.device_id, alignment); })->Run(in);
}

template <void (*OnGpu)(const ffi::PackedArgs&)>
void Dispatch(const char* op, const char* cpu_function, const ffi::PackedArgs& args) {
  AttrsText(args, op);
  const int device = args[args.size() - 1].cast<DLTensor*>()->device.device_type;
  if (device == kDLExtDev) return OnHostModel(cpu_function, args);
  OnGpu(args);
}

void Matmul(ffi::PackedArgs args, ffi::Any*) { Dispatch<MatmulOnGpu>("matmul", "uir.library.cpu.matmul", args); }

void IntegerMatmul(ffi::PackedArgs args, ffi::Any*) {
  Dispatch<IntegerMatmulOnGpu>("integer_matmul", "uir.library.cpu.integer_matmul", args);
}

void Conv2d(ffi::PackedArgs args, ffi::Any*) { Dispatch<Conv2dOnGpu>("conv2d", "uir.library.cpu.conv2d", args); }

VendorLibrary& LibraryOf(const ffi::String& name) {
  if (name == "cublasLt") return lt::Shared();
  if (name == "cudnn") return dnn::Shared();
  TVM_FFI_THROW(ValueError) << "No library " << std::string(name) << ".\n  limit:  cublasLt, cudnn";
  TVM_FFI_UNREACHABLE();
}

/*! Path, version and error of a library; loads it. */
ffi::Map<ffi::String, ffi::Any> Info(ffi::String name) {
  std::string error, path = LibraryOf(name).Path(&error);
  int64_t version = 0;
  if (!path.empty()) {
    version = static_cast<int64_t>(name == "cudnn" ? dnn::Get().GetVersion() : lt::Get().GetVersion());
  }
  ffi::Map<ffi::String, ffi::Any> info;
  info.Set("path", ffi::String(path));
  info.Set("version", version);
  info.Set("error", ffi::String(error));
  return info;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("uir.library.cuda.matmul", Matmul)
      .def_packed("uir.library.cuda.conv2d", Conv2d)
      .def_packed("uir.library.cuda.integer_matmul", IntegerMatmul)
      .def("uir.library.cuda.info", Info)
      .def("uir.library.cuda.set_path",
           [](ffi::String name, ffi::String path) { LibraryOf(name).SetPath(std::string(path)); })
      .def("uir.library.cuda.set_tf32", [](bool allowed) { tf32 = allowed; });
}

}  // namespace
}  // namespace uir::library::cuda
