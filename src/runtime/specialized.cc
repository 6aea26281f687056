// SPDX-License-Identifier: Apache-2.0
// Kernels that are compiled for the sizes of a call: found by name and sizes, made where they are not there yet.

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace uir::runtime {
namespace {

namespace ffi = tvm::ffi;

/*! What makes a kernel: (name, sizes) -> function of inputs and outputs. Python registers it. */
constexpr const char* kMaker = "uir.runtime.specialize";
/*! Sizes for which the kernels of one name are kept; beyond, all are made again as they are needed. */
constexpr size_t kMost = 1024;

/*! The kernels made so far, by name, then by the bytes of the sizes; many threads may ask at once. */
class Kernels {
 public:
  ffi::Function Find(const ffi::String& name, const ffi::Shape& sizes) {
    const std::string key(name.data(), name.size());
    const std::string bytes(reinterpret_cast<const char*>(sizes.data()), sizes.size() * sizeof(int64_t));
    {
      std::shared_lock<std::shared_mutex> lock(mutex_);
      auto of_name = made_.find(key);
      if (of_name != made_.end()) {
        auto found = of_name->second.find(bytes);
        if (found != of_name->second.end()) return found->second;
      }
    }
    // Outside of the lock: compiling takes long. Of two made at once the first to arrive stays.
    ffi::Function made = ffi::Function::GetGlobalRequired(kMaker)(name, sizes).cast<ffi::Function>();
    std::unique_lock<std::shared_mutex> lock(mutex_);
    auto& of_name = made_[key];
    if (of_name.size() >= kMost) of_name.clear();
    return of_name.emplace(bytes, std::move(made)).first->second;
  }

  /*! Drops the kernels of a name: nobody asks for them any more. */
  void Forget(const ffi::String& name) {
    std::unordered_map<std::string, ffi::Function> dropped;  // destroyed outside of the lock
    std::unique_lock<std::shared_mutex> lock(mutex_);
    auto found = made_.find(std::string(name.data(), name.size()));
    if (found == made_.end()) return;
    dropped.swap(found->second);
    made_.erase(found);
    lock.unlock();
  }

  int64_t Count(const ffi::String& name) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    auto found = made_.find(std::string(name.data(), name.size()));
    return found == made_.end() ? 0 : static_cast<int64_t>(found->second.size());
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::unordered_map<std::string, ffi::Function>> made_;
};

Kernels& AllKernels() {
  static auto* kernels = new Kernels();
  return *kernels;
}

/*! Where the name stands among (inputs, name, sizes, outputs). */
int NamePlace(ffi::PackedArgs args) {
  int at = 0;
  while (at < args.size() && !args[at].as<ffi::String>()) ++at;
  if (at + 1 >= args.size()) {
    TVM_FFI_THROW(ValueError) << "A kernel that is compiled for sizes got " << args.size()
                              << " arguments.\n  need:   inputs, a name, sizes, outputs";
  }
  return at;
}

/*! The same: the kernel of this name and these sizes, which takes inputs and outputs alone. */
void PreparedKernel(ffi::PackedArgs args, ffi::Any* kernel) {
  const int at = NamePlace(args);
  *kernel = AllKernels().Find(args[at].cast<ffi::String>(), args[at + 1].cast<ffi::Shape>());
}

/*! The same: the kernel of this name and these sizes on inputs and outputs. */
void Specialized(ffi::PackedArgs args, ffi::Any*) {
  const int at = NamePlace(args);
  const ffi::Function kernel = AllKernels().Find(args[at].cast<ffi::String>(), args[at + 1].cast<ffi::Shape>());
  std::vector<ffi::AnyView> given;
  given.reserve(args.size() - 2);
  for (int i = 0; i < args.size(); ++i) {
    if (i != at && i != at + 1) given.push_back(args[i]);
  }
  ffi::Any result;
  kernel.CallPacked(given.data(), static_cast<int32_t>(given.size()), &result);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("uir.runtime.specialized", Specialized)
      .def_packed("uir.runtime.specialized.prepared", PreparedKernel)
      .def("uir.runtime.specialized.forget", [](ffi::String name) { AllKernels().Forget(name); })
      .def("uir.runtime.specialized.count", [](ffi::String name) { return AllKernels().Count(name); });
}

}  // namespace
}  // namespace uir::runtime
