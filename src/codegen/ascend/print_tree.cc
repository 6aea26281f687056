// SPDX-License-Identifier: Apache-2.0
#include "print_tree.h"

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
  using Kind = pipes::Node::Kind;
  for (const pipes::Node& node : body) {
    switch (node.kind) {
      case Kind::kPlain:
        for (const std::string& line : node.lines) out->Line(line);
        break;
      case Kind::kGroup:
        out->Blank();
        out->Comment(node.text);
        PrintTree(node.body, scope, out);
        break;
      case Kind::kLoop:
        out->Blank();
        out->Open(node.text);
        PrintTree(node.body, scope, out);
        out->Close();
        break;
      case Kind::kInstruction:
        for (const std::string& line : node.instruction.lines) out->Line(line);
        break;
      case Kind::kSync:
        out->Line(SyncLine(node.sync, scope));
        break;
    }
  }
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
