// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/print_tree.h"

namespace uir::codegen::tiles {

void PrintTree(const std::vector<pipes::Node>& body, const SyncLine& sync_line, Printer* out) {
  using Kind = pipes::Node::Kind;
  for (const pipes::Node& node : body) {
    switch (node.kind) {
      case Kind::kPlain:
        for (const std::string& line : node.lines) out->Line(line);
        break;
      case Kind::kGroup:
        out->Blank();
        out->Comment(node.text);
        PrintTree(node.body, sync_line, out);
        break;
      case Kind::kLoop:
        out->Blank();
        out->Open(node.text);
        PrintTree(node.body, sync_line, out);
        out->Close();
        break;
      case Kind::kInstruction:
        for (const std::string& line : node.instruction.lines) out->Line(line);
        break;
      case Kind::kSync:
        out->Line(sync_line(node.sync));
        break;
    }
  }
}

}  // namespace uir::codegen::tiles
