// SPDX-License-Identifier: Apache-2.0
#include "library/ascend/aclnn.h"

#include <tvm/ffi/extra/c_env_api.h>

#include <map>
#include <utility>

#include "library/ascend/aclnn_api.h"
#include "library/ascend/products.h"
#include "runtime/acl_api.h"
#include "runtime/device_memory.h"

namespace uir::library::ascend {
namespace {

void* CurrentStream(DLDevice device) { return TVMFFIEnvGetStream(device.device_type, device.device_id); }

//! At least `bytes` of the thread's memory on a stream, where operators run one after the other and share it. It grows,
//! and is kept to the end of the process: the runtime may be gone by the time that static objects are.
void* Workspace(DLDevice device, void* stream, uint64_t bytes) {
  if (bytes == 0) return nullptr;
  struct Buffer {
    void* data = nullptr;
    uint64_t bytes = 0;
  };
  static thread_local auto* buffers = new std::map<std::pair<int, void*>, Buffer>();
  Buffer& buffer = (*buffers)[{device.device_id, stream}];
  if (buffer.bytes < bytes) {
    runtime::DeviceMemory& memory = runtime::ExtDevMemory();
    if (buffer.data) {
      memory.Synchronize(device.device_id, stream);
      memory.Free(device.device_id, buffer.data);
      buffer = {};
    }
    buffer.data = memory.Allocate(device.device_id, bytes, 64);
    buffer.bytes = bytes;
  }
  return buffer.data;
}

int TypeOf(const DLTensor* tensor) {
  if (tensor->dtype.code == kDLInt && tensor->dtype.lanes == 1) {
    if (tensor->dtype.bits == 8) return aclnn::kInt8;
    if (tensor->dtype.bits == 32) return aclnn::kInt32;
  }
  switch (DTypeOf(tensor->dtype, "matmul or conv2d", "out")) {
    case DType::kF32:
      return aclnn::kFloat;
    case DType::kF16:
      return aclnn::kFloat16;
    case DType::kBF16:
      return aclnn::kBf16;
    default:
      TVM_FFI_THROW(ValueError) << "Library operators on Ascend: float64.\n  limit:  float32, float16, bfloat16";
      TVM_FFI_UNREACHABLE();
  }
}

/*! A handle of aclnn, destroyed with this object; the device's work needs it no longer once it is queued. */
class Handle {
 public:
  Handle(void* handle, aclnn::Status (*destroy)(void*), const char* call) : handle_(handle), destroy_(destroy) {
    if (!handle) aclnn::Check(-1, call);
  }
  ~Handle() {
    if (handle_) destroy_(handle_);
  }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), destroy_(other.destroy_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle& operator=(Handle&&) = delete;

  void* get() const { return handle_; }

 private:
  void* handle_;
  aclnn::Status (*destroy_)(void*);
};

Handle View(const DLTensor* tensor, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
            int64_t offset, int format) {
  const aclnn::Api& api = aclnn::Get();
  const int64_t elements = Elements(tensor);
  void* made = api.CreateTensor(shape.data(), shape.size(), TypeOf(tensor), strides.data(), offset, format, &elements,
                                1, const_cast<char*>(Data(tensor)));
  return {made, api.DestroyTensor, "aclCreateTensor"};
}

Handle Contiguous(const DLTensor* tensor, const std::vector<int64_t>& shape, int format) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return View(tensor, shape, strides, 0, format);
}

Handle Numbers(const std::vector<int64_t>& values) {
  return {aclnn::Get().CreateIntArray(values.data(), values.size()), aclnn::Get().DestroyIntArray, "aclCreateIntArray"};
}

const DLTensor* TensorOf(Role role, const Arguments& in) {
  switch (role) {
    case Role::kA:
      return in.first;
    case Role::kB:
      return in.second;
    case Role::kBias:
      return in.bias;
    case Role::kResidual:
      return in.residual;
    default:
      return in.out;
  }
}

void Queue(aclnn::Run run, const char* call, uint64_t bytes, aclnn::Executor executor, DLDevice device) {
  void* stream = CurrentStream(device);
  aclnn::Check(run(Workspace(device, stream, bytes), bytes, executor, stream), call);
}

void RunProduct(const Product& product, const Arguments& in) {
  const aclnn::Api& api = aclnn::Get();
  std::vector<Handle> views;
  for (const Operand& operand : product.operands) {
    views.push_back(View(TensorOf(operand.role, in), operand.shape, operand.strides, operand.offset, aclnn::kNd));
  }
  uint64_t bytes = 0;
  aclnn::Executor executor = nullptr;
  if (product.function == Function::kMatmul) {
    aclnn::Check(api.MatmulGetWorkspaceSize(views[0].get(), views[1].get(), views[2].get(), aclnn::kKeepDtype, &bytes,
                                            &executor),
                 "aclnnMatmulGetWorkspaceSize");
    return Queue(api.Matmul, "aclnnMatmul", bytes, executor, in.out->device);
  }
  const bool batch = product.function == Function::kBaddbmm;
  float value = 1.0F;
  const Handle one(api.CreateScalar(&value, aclnn::kFloat), api.DestroyScalar, "aclCreateScalar");
  const aclnn::AddSize size = batch ? api.BaddbmmGetWorkspaceSize : api.AddmmGetWorkspaceSize;
  aclnn::Check(size(views[0].get(), views[1].get(), views[2].get(), one.get(), one.get(), views[3].get(),
                    aclnn::kKeepDtype, &bytes, &executor),
               batch ? "aclnnBaddbmmGetWorkspaceSize" : "aclnnAddmmGetWorkspaceSize");
  Queue(batch ? api.Baddbmm : api.Addmm, batch ? "aclnnBaddbmm" : "aclnnAddmm", bytes, executor, in.out->device);
}

}  // namespace

void RunMatmul(const MatmulAttrs& attrs, const Arguments& in) {
  runtime::acl::UseDevice(in.out->device.device_id);
  for (const Product& product : Products(attrs)) RunProduct(product, in);
}

void RunIntegerMatmul(const IntegerMatmulAttrs& attrs, const IntegerMatmulOperands& in) {
  runtime::acl::UseDevice(in.out->device.device_id);
  const Handle a = Contiguous(in.a, {attrs.m, attrs.k}, aclnn::kNd);
  const Handle b = Contiguous(in.b, {attrs.n, attrs.k}, aclnn::kNd);
  const Handle scale = Contiguous(in.scale, {1}, aclnn::kNd);
  const Handle out = Contiguous(in.out, {attrs.m, attrs.n}, aclnn::kNd);
  uint64_t bytes = 0;
  aclnn::Executor executor = nullptr;
  const aclnn::QuantApi& api = aclnn::GetQuant();
  aclnn::Check(api.QuantMatmulV4GetWorkspaceSize(a.get(), b.get(), scale.get(), /*offset=*/nullptr,
                                                 /*per_token_scale=*/nullptr, /*bias=*/nullptr, /*transpose_x1=*/false,
                                                 /*transpose_x2=*/true, out.get(), &bytes, &executor),
               "aclnnQuantMatmulV4GetWorkspaceSize");
  Queue(api.QuantMatmulV4, "aclnnQuantMatmulV4", bytes, executor, in.out->device);
}

void RunConv2d(const Conv2dAttrs& attrs, const Arguments& in) {
  CheckConvolution(attrs);
  runtime::acl::UseDevice(in.out->device.device_id);
  const Handle x = Contiguous(in.first, {attrs.n, attrs.c, attrs.h, attrs.w}, aclnn::kNchw);
  const Handle weight = Contiguous(in.second, {attrs.o, attrs.i, attrs.kh, attrs.kw}, aclnn::kNchw);
  const Handle out = Contiguous(in.out, {attrs.n, attrs.o, attrs.oh, attrs.ow}, aclnn::kNchw);
  std::vector<Handle> bias;
  if (in.bias) bias.push_back(Contiguous(in.bias, {attrs.o}, aclnn::kNd));
  const Handle stride = Numbers({attrs.stride[0], attrs.stride[1]});
  const Handle padding = Numbers({attrs.padding[0], attrs.padding[1]});
  const Handle dilation = Numbers({attrs.dilation[0], attrs.dilation[1]});
  const Handle output_padding = Numbers({0, 0});
  uint64_t bytes = 0;
  aclnn::Executor executor = nullptr;
  const aclnn::Api& api = aclnn::Get();
  aclnn::Check(
      api.ConvolutionGetWorkspaceSize(x.get(), weight.get(), bias.empty() ? nullptr : bias[0].get(), stride.get(),
                                      padding.get(), dilation.get(), /*transposed=*/false, output_padding.get(),
                                      attrs.groups, out.get(), aclnn::kKeepDtype, &bytes, &executor),
      "aclnnConvolutionGetWorkspaceSize");
  Queue(api.Convolution, "aclnnConvolution", bytes, executor, in.out->device);
}

}  // namespace uir::library::ascend
