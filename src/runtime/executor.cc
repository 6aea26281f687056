// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include "runtime/error.h"

namespace uir::runtime {

namespace {

/*! \brief The place of kernels of kinds without a row. */
constexpr const char* kHost = "cpu";

}  // namespace

const std::vector<ExecutorRow>& Executors() {
  static const std::vector<ExecutorRow> rows = {
      {"cuda", "gpu", &MakeGpuExecutor},   {"cuda", "model", &MakeSimtExecutor},
      {"ascend", "npu", &MakeNpuExecutor}, {"ascend", "model", &MakeAscendModelExecutor},
      {"bang", "mlu", &MakeMluExecutor},   {"bang", "model", &MakeBangModelExecutor},
  };
  return rows;
}

std::unique_ptr<Executor> MakeExecutor(const KernelSpec& spec, Binaries& binaries, const std::string& place) {
  std::string places;
  for (const ExecutorRow& row : Executors()) {
    if (spec.kind != row.kind) continue;
    if (place == row.place) return row.make(spec, binaries);
    places += (places.empty() ? "" : " or ") + std::string(row.place);
  }
  if (places.empty()) {
    if (place == kHost) return MakeHostExecutor(spec, binaries);
    places = kHost;
  }
  DeviceError({"A kernel was given tensors of another device.", spec.entry,
               "tensors on a " + places + ", where kernels of uir-" + spec.kind + " run", "these lie on: " + place,
               "copy them there first (`uir doctor` shows the devices)"});
}

}  // namespace uir::runtime
