// SPDX-License-Identifier: Apache-2.0
#include "library/ascend/aclnn_api.h"

#include "base/vendor_library.h"
#include "runtime/acl_api.h"

namespace uir::library::ascend::aclnn {
namespace {

constexpr const char* kInstall = "source the toolkit's set_env.sh before Python starts";
constexpr const char* kUpgrade = "install CANN 7.0 or later";

/*! The library of tensors and executors; then that of the operators, which newer releases keep in several files. */
VendorLibrary& Base() {
  static auto* library = new VendorLibrary({"The base of aclnn", {"libnnopbase.so"}, kInstall, kUpgrade, true});
  return *library;
}
VendorLibrary& Operators() {
  static auto* library =
      new VendorLibrary({"The operator library aclnn", {"libopapi_nn.so", "libopapi.so"}, kInstall, kUpgrade, true});
  return *library;
}

Api Load() {
  Api api;
  Base().Require({{"aclCreateTensor", &api.CreateTensor},
                  {"aclDestroyTensor", &api.DestroyTensor},
                  {"aclCreateScalar", &api.CreateScalar},
                  {"aclDestroyScalar", &api.DestroyScalar},
                  {"aclCreateIntArray", &api.CreateIntArray},
                  {"aclDestroyIntArray", &api.DestroyIntArray}});
  Operators().Require({{"aclnnMatmulGetWorkspaceSize", &api.MatmulGetWorkspaceSize},
                       {"aclnnMatmul", &api.Matmul},
                       {"aclnnAddmmGetWorkspaceSize", &api.AddmmGetWorkspaceSize},
                       {"aclnnAddmm", &api.Addmm},
                       {"aclnnBaddbmmGetWorkspaceSize", &api.BaddbmmGetWorkspaceSize},
                       {"aclnnBaddbmm", &api.Baddbmm},
                       {"aclnnConvolutionGetWorkspaceSize", &api.ConvolutionGetWorkspaceSize},
                       {"aclnnConvolution", &api.Convolution}});
  return api;
}

}  // namespace

const Api& Get() {
  static const Api* api = new Api(Load());
  return *api;
}

const QuantApi& GetQuant() {
  static const QuantApi* api = [] {
    auto* made = new QuantApi();
    Operators().Require({{"aclnnQuantMatmulV4GetWorkspaceSize", &made->QuantMatmulV4GetWorkspaceSize},
                         {"aclnnQuantMatmulV4", &made->QuantMatmulV4}});
    return made;
  }();
  return *api;
}

void Check(Status status, const char* call) {
  if (status == 0) return;
  const char* words = runtime::acl::Require().GetRecentErrMsg();
  Operators().ThrowFailed(call, "error " + std::to_string(status) + (words && *words ? std::string(": ") + words : ""));
}

}  // namespace uir::library::ascend::aclnn
