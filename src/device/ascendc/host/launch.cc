// SPDX-License-Identifier: Apache-2.0
#include "uir_acl/launch.h"

#include <vector>

#include "device/ascendc/ascendc.h"
#include "device/ascendc/host/state.h"

using namespace uir_acl;

namespace {

/*! Arguments that are addresses. */
int32_t Tensors(const UirAclKernel& kernel) { return kernel.num_args - kernel.num_sizes; }

int Run(const UirAclKernel& kernel, uint32_t blocks, const std::vector<void*>& values, double* seconds) {
  std::vector<UirSimtArg> args(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    args[i] = {values[i], i < static_cast<size_t>(Tensors(kernel)) ? 0 : -1, kernel.names[i]};
  }
  UirAscendcLaunch launch{};
  launch.library = kernel.library;
  launch.kernel = kernel.kernel;
  launch.args = args.data();
  launch.num_args = static_cast<int32_t>(args.size());
  launch.blocks = static_cast<int32_t>(blocks);
  launch.core = kernel.core;
  launch.device = kernel.device;
  char* text = nullptr;
  const int found = uir_ascendc_launch(&launch, &text);
  const std::string result = text == nullptr ? "" : text;
  uir_simt_free_text(text);
  *seconds += uir_host::ModelledSeconds(result.c_str());
  return found == 0 ? 0 : Fail(kRtAicoreException, std::string(kernel.kernel) + ": the host model found " + result);
}

}  // namespace

uint32_t uir_acl_launch(const UirAclKernel* kernel, uint32_t blocks, aclrtStream stream, void* const* args) {
  if (const int code = NeedDevice("a launch")) return code;
  Stream* queue = StreamOf(stream, "a launch");
  if (queue == nullptr) return kRtParamInvalid;
  if (blocks == 0) return Fail(kRtParamInvalid, std::string(kernel->kernel) + ": a launch of no blocks.");
  const std::vector<void*> values(args, args + kernel->num_args);
  for (int32_t i = 0; i < Tensors(*kernel); ++i) {
    if (!OnDevice(values[i], 1)) {
      return Fail(kRtParamInvalid,
                  std::string(kernel->kernel) + ": argument " + kernel->names[i] + " is no device memory.");
    }
  }
  queue->tasks.push_back(
      [kernel = *kernel, blocks, values](double* seconds) { return Run(kernel, blocks, values, seconds); });
  return 0;
}
