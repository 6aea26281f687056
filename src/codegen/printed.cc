// SPDX-License-Identifier: Apache-2.0
#include "codegen/printed.h"

#include <algorithm>
#include <utility>

namespace uir::codegen {

ffi::Array<ffi::String> Strings(const std::vector<std::string>& texts) {
  ffi::Array<ffi::String> out;
  for (const std::string& text : texts) out.push_back(text);
  return out;
}

void Printed::Add(const IGraph& graph, const std::string& name, const std::vector<std::string>& params, Record launch,
                  const std::vector<std::string>& notes, int64_t (*bytes_of)(const std::string& dtype)) {
  launch.Set("name", ffi::String(name));
  launch.Set("params", Strings(params));
  if (graph->groups) launch.Set("groups", graph->groups.value());
  kernels_.push_back(std::move(launch));
  report_.Set(name, Strings(notes));
  for (const IPointer& pointer : graph->pointers) {
    bool owned = pointer->level == "dram" && pointer->role == "tmp";
    bool used = std::find(params.begin(), params.end(), std::string(pointer->name)) != params.end();
    if (!owned || !used || workspaces_.count(pointer->name)) continue;
    int64_t bytes = pointer->size * bytes_of(std::string(pointer->dtype));
    workspaces_.Set(pointer->name, bytes);
    workspace_.push_back(Record{{"name", pointer->name}, {"bytes", bytes}});
  }
}

Record Printed::Take(const std::string& source) const {
  return {{"source", ffi::String(source)}, {"kernels", kernels_}, {"workspace", workspace_}, {"report", report_}};
}

}  // namespace uir::codegen
