// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <map>
#include <tuple>
#include <vector>

#include "runtime/error.h"

namespace uir::runtime {

namespace {

/*! \brief Rows by kind and place, devices before their models. */
using Order = std::tuple<std::string, bool, std::string>;
using ExecutorRows = std::map<Order, ExecutorRow>;

ExecutorRows& Executors() {
  static ExecutorRows* rows = new ExecutorRows();
  return *rows;
}

/*! \brief The rows of a kind, or of those without. */
std::vector<ExecutorRow> RowsOf(const std::string& kind) {
  std::vector<ExecutorRow> out;
  for (const auto& [key, row] : Executors()) {
    if (row.kind == kind) out.push_back(row);
  }
  return out.empty() && !kind.empty() ? RowsOf("") : out;
}

}  // namespace

void RegisterExecutor(const ExecutorRow& row) {
  Executors().emplace(Order(row.kind, row.place == "model", row.place), row);
}

std::unique_ptr<Executor> MakeExecutor(const KernelSpec& spec, Binaries& binaries, const std::string& place) {
  std::string places;
  for (const ExecutorRow& row : RowsOf(spec.kind)) {
    if (place == row.place) return row.make(spec, binaries);
    places += (places.empty() ? "" : " or ") + row.place;
  }
  DeviceError({"A kernel was given tensors of another device.", spec.entry,
               "tensors on a " + places + ", where kernels of uir-" + spec.kind + " run", "these lie on: " + place,
               "copy them there first (`uir doctor` shows the devices)"});
}

}  // namespace uir::runtime
