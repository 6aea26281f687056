// SPDX-License-Identifier: Apache-2.0
#include "library/ascend/aclnn_api.h"

#include <dlfcn.h>
#include <tvm/ffi/error.h>

#include <initializer_list>
#include <type_traits>

#include "runtime/acl_api.h"

namespace uir::library::ascend::aclnn {
namespace {

[[noreturn]] void Throw(const std::string& what, const std::string& need, const std::string& remedy) {
  throw tvm::ffi::Error("LibraryError", what + "\n  need:   " + need + "\n  remedy: " + remedy, "");
}

/*! The first of the files that loads; never closed, as its threads outlive us. */
void* Open(std::initializer_list<const char*> names) {
  std::string why;
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
    if (const char* error = dlerror()) why = error;
  }
  Throw("The operator library aclnn cannot be loaded: " + why, std::string(*names.begin()) + " of the CANN toolkit",
        "source the toolkit's set_env.sh before Python starts");
}

template <typename Slot>
void Find(void* library, const char* name, Slot* slot) {
  void* symbol = dlsym(library, name);
  if (!symbol) Throw(std::string("aclnn has no function ") + name + ".", name, "install CANN 7.0 or later");
  *slot = reinterpret_cast<Slot>(symbol);
}

Api Load() {
  // Tensors and executors; then the operators, which newer releases keep in several files.
  void* base = Open({"libnnopbase.so"});
  void* operators = Open({"libopapi_nn.so", "libopapi.so"});
  Api api;
  Find(base, "aclCreateTensor", &api.CreateTensor);
  Find(base, "aclDestroyTensor", &api.DestroyTensor);
  Find(base, "aclCreateScalar", &api.CreateScalar);
  Find(base, "aclDestroyScalar", &api.DestroyScalar);
  Find(base, "aclCreateIntArray", &api.CreateIntArray);
  Find(base, "aclDestroyIntArray", &api.DestroyIntArray);
#define UIR_ACLNN_FIND(name)                                                      \
  Find(operators, "aclnn" #name "GetWorkspaceSize", &api.name##GetWorkspaceSize); \
  Find(operators, "aclnn" #name, &api.name)
  UIR_ACLNN_FIND(Matmul);
  UIR_ACLNN_FIND(Addmm);
  UIR_ACLNN_FIND(Baddbmm);
  UIR_ACLNN_FIND(Convolution);
#undef UIR_ACLNN_FIND
  return api;
}

}  // namespace

const Api& Get() {
  static const Api* api = new Api(Load());
  return *api;
}

void Check(Status status, const char* call) {
  if (status == 0) return;
  const char* words = runtime::acl::Require().GetRecentErrMsg();
  Throw(std::string(call) + " failed with " + std::to_string(status) +
            (words && *words ? std::string(": ") + words : "."),
        "a problem that this release supports on this device",
        "install another release of CANN, or compute it in a kernel of its own");
}

}  // namespace uir::library::ascend::aclnn
