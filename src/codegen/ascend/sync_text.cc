// SPDX-License-Identifier: Apache-2.0
#include "sync_text.h"

#include "api.h"

namespace uir {
namespace codegen {
namespace ascend {

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

void PrintTree(const std::vector<pipes::Node>& body, const Scope& scope, Printer* out) {
  tiles::PrintTree(body, [&scope](const pipes::Sync& sync) { return SyncLine(sync, scope); }, out);
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
