// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/sync_text.h"

#include <map>

#include "codegen/ascend/api.h"

namespace uir::codegen::ascend {

namespace {

std::string SyncLine(const pipes::Sync& sync, const Scope& scope) {
  using Kind = pipes::Sync::Kind;
  if (sync.kind == Kind::kBarrier) {
    return Call("", "PipeBarrier", "plain", {}, {sync.from.empty() ? "ALL" : sync.from}) + ";";
  }
  std::string name = sync.kind == Kind::kSet ? "SetFlag" : "WaitFlag";
  return Call("", name, "plain", {}, {sync.from + "_" + sync.to, scope.Text(sync.id)}) + ";";
}

}  // namespace

std::vector<std::string> PrintTree(const pipes::Plan& plan, const Scope& scope, int64_t first, Printer* out) {
  std::map<int, std::vector<std::string>> lines;
  auto line_of = [&](const pipes::Sync& sync) {
    lines[sync.number].push_back(std::to_string(first + out->size()));
    return SyncLine(sync, scope);
  };
  tiles::PrintTree(plan.body, line_of, out);
  std::vector<std::string> notes;
  for (const pipes::SyncReport& sync : plan.report) {
    notes.push_back("sync " + std::to_string(sync.number) + ", " + sync.what + ", line " +
                    Join(lines[sync.number], " ") + ": " + Join(sync.serves, "; "));
  }
  return notes;
}

}  // namespace uir::codegen::ascend
