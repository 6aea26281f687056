// SPDX-License-Identifier: Apache-2.0
// A runtime module of kernels in source text, which run where their tensors lie (executor.h).
#include <dlpack/dlpack.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/binaries.h"
#include "runtime/device_memory.h"
#include "runtime/error.h"
#include "runtime/executor.h"
#include "runtime/kernel_spec.h"
#include "runtime/stream.h"
#include "runtime/workspace.h"

namespace uir::runtime {

namespace {

/*! \brief Bytes of all elements. */
int64_t BytesOf(const DLTensor& tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  return count * ((tensor.dtype.bits * tensor.dtype.lanes + 7) / 8);
}

template <typename T>
std::string_view ViewOf(const T& text) {
  return std::string_view(text.data(), text.size());
}

bool IsContiguous(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t step = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != step) return false;
    step *= tensor.shape[i];
  }
  return true;
}

/*! \brief One function of the module. */
class Kernel {
 public:
  Kernel(KernelSpec spec, std::string source, BinaryMap binaries)
      : spec_(std::move(spec)), binaries_(spec_, std::move(source), std::move(binaries)) {}

  const KernelSpec& spec() const { return spec_; }
  Binaries& binaries() { return binaries_; }

  void Call(const ffi::PackedArgs& args) {
    const int tensors = static_cast<int>(spec_.params.size()), numbers = static_cast<int>(spec_.sizes.size());
    if (args.size() != tensors + numbers) {
      TVM_FFI_THROW(TypeError) << spec_.entry << " takes " << tensors << " tensors"
                               << (numbers ? " and " + std::to_string(numbers) + " sizes" : "") << ", " << args.size()
                               << (numbers ? " arguments" : "") << " were given.";
    }
    CallArguments call;
    for (int i = 0; i < numbers; ++i) call.sizes.push_back(args[tensors + i].cast<int64_t>());
    const SizeValues sizes = CheckedSizes(spec_, call.sizes);
    DLDevice device{kDLCPU, 0};
    for (int i = 0; i < tensors; ++i) {
      const DLTensor* tensor = args[i].cast<DLTensor*>();
      if (i == 0) device = tensor->device;
      call.bytes.push_back(spec_.params[i].memory.BytesAt(sizes));
      call.pointers.push_back(Pointer(*tensor, spec_.params[i].name, call.bytes.back(), device));
    }
    for (const LaunchSpec& launch : spec_.launches) call.blocks.push_back(BlocksOf(launch, sizes));
    Executor& executor = ExecutorFor(device);
    CallScope scope(executor);
    for (const WorkspaceSpec& one : spec_.workspace) call.bytes.push_back(one.memory.BytesAt(sizes));
    WorkspaceOfCall workspace(device, spec_.workspace.size(), &call);
    executor.Launch(device.device_id, call);
  }

 private:
  /*! \brief Who runs it for tensors of a device, made for the first of them there. */
  Executor& ExecutorFor(DLDevice device) {
    std::string place = PlaceOf(device);
    std::lock_guard<std::mutex> guard(lock_);
    std::unique_ptr<Executor>& executor = executors_[place];
    if (!executor) executor = MakeExecutor(spec_, binaries_, place);
    return *executor;
  }

  void* Pointer(const DLTensor& tensor, const std::string& name, int64_t needed, DLDevice device) const {
    if (tensor.device.device_type != device.device_type || tensor.device.device_id != device.device_id) {
      DeviceError({"The tensors of a kernel lie on several devices.", spec_.entry + ", " + name,
                   "all on the device of the first", "", "copy them to one device"});
    }
    int64_t bytes = BytesOf(tensor);
    if (bytes != needed || !IsContiguous(tensor)) {
      DeviceError(
          {"A tensor does not fit its kernel.", spec_.entry + ", " + name, std::to_string(needed) + " contiguous bytes",
           std::to_string(bytes) + (IsContiguous(tensor) ? " bytes given" : " bytes given, not contiguous"), ""});
    }
    char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    uintptr_t alignment = spec_.alignment;
    if (reinterpret_cast<uintptr_t>(data) % alignment) {
      DeviceError({"A tensor starts where a kernel's widest accesses cannot.", spec_.entry + ", " + name,
                   "a multiple of " + std::to_string(alignment) + " bytes", "", "copy it to memory of its own"});
    }
    return data;
  }

  KernelSpec spec_;
  Binaries binaries_;
  std::mutex lock_;
  /*! \brief By place; destroyed before what they refer to. */
  std::map<std::string, std::unique_ptr<Executor>> executors_;
};

class DeviceModule : public ffi::ModuleObj {
 public:
  DeviceModule(ffi::String metadata, const ffi::Array<ffi::String>& sources, const ffi::Array<BinaryMap>& binaries)
      : metadata_(std::move(metadata)) {
    std::vector<KernelSpec> specs = ParseKernelSpecs(metadata_);
    if (specs.size() != sources.size() || specs.size() != binaries.size()) {
      TVM_FFI_THROW(ValueError) << specs.size() << " kernels, " << sources.size() << " sources and " << binaries.size()
                                << " sets of binaries do not go together.";
    }
    for (size_t k = 0; k < specs.size(); ++k) {
      kernels_.push_back(std::make_shared<Kernel>(std::move(specs[k]), std::string(sources[k]), binaries[k]));
    }
  }

  const char* kind() const final { return "uir_device"; }

  int GetPropertyMask() const final { return ffi::Module::kBinarySerializable | ffi::Module::kRunnable; }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    for (const std::shared_ptr<Kernel>& kernel : kernels_) {
      if (name == kernel->spec().entry) {
        // the function keeps the kernel, not the module, which may go first
        return ffi::Function::FromPacked([kernel](ffi::PackedArgs args, ffi::Any*) { kernel->Call(args); });
      }
    }
    return std::nullopt;
  }

  ffi::Bytes SaveToBytes() const final {
    Writer out;
    out.Text(ViewOf(metadata_));
    out.Number(kernels_.size());
    for (const std::shared_ptr<Kernel>& kernel : kernels_) {
      kernel->binaries().Complete();
      out.Text(kernel->binaries().source());
      BinaryMap binaries = kernel->binaries().All();
      out.Number(binaries.size());
      for (const auto& [arch, bytes] : binaries) {
        out.Text(ViewOf(arch));
        out.Text(ViewOf(bytes));
      }
    }
    return out.bytes();
  }

  static ffi::Module LoadFromBytes(const ffi::Bytes& bytes) {
    Reader in(bytes);
    ffi::String metadata = in.Text();
    ffi::Array<ffi::String> sources;
    ffi::Array<BinaryMap> binaries;
    for (uint64_t k = in.Number(); k > 0; --k) {
      sources.push_back(in.Text());
      BinaryMap map;
      for (uint64_t n = in.Number(); n > 0; --n) {
        ffi::String arch = in.Text();
        std::string image = in.Text();
        map.Set(arch, ffi::Bytes(std::move(image)));
      }
      binaries.push_back(map);
    }
    return Make(metadata, sources, binaries);
  }

  ffi::String InspectSource(const ffi::String& format) const final {
    if (format == "json") return metadata_;
    std::string all;
    for (const std::shared_ptr<Kernel>& kernel : kernels_) {
      if (!all.empty()) all += "\n";
      all += kernel->binaries().source();
    }
    return all;
  }

  static ffi::Module Make(const ffi::String& metadata, const ffi::Array<ffi::String>& sources,
                          const ffi::Array<BinaryMap>& binaries) {
    return ffi::Module(ffi::make_object<DeviceModule>(metadata, sources, binaries));
  }

 private:
  ffi::String metadata_;
  std::vector<std::shared_ptr<Kernel>> kernels_;
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("uir.runtime.device_module", &DeviceModule::Make)
      .def("uir.runtime.device_module_bytes", [](const ffi::Module& module) { return module->SaveToBytes(); })
      .def("ffi.Module.load_from_bytes.uir_device", &DeviceModule::LoadFromBytes);
}

}  // namespace uir::runtime
