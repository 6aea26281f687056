// SPDX-License-Identifier: Apache-2.0
// The planner on plain data: `uir.codegen.pipes.plan`.
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include "base/attrs.h"
#include "codegen/pipes/plan.h"

namespace uir::codegen::pipes {

namespace {

using Record = ffi::Map<ffi::String, ffi::Any>;
using List = ffi::Array<ffi::Any>;

Region ReadRegion(const Record& record) {
  Region region;
  region.memory = AttrOr(record, "memory", std::string());
  region.begin = record.at("begin").cast<Affine>();
  region.bytes = record.at("bytes").cast<int64_t>();
  region.write = record.at("write").cast<bool>();
  for (const ffi::Any& dim : record.at("dims").cast<List>()) {
    ffi::Array<int64_t> pair = dim.cast<ffi::Array<int64_t>>();
    region.dims.emplace_back(pair[0], pair[1]);
  }
  return region;
}

std::vector<Node> ReadBody(const List& list) {
  std::vector<Node> nodes;
  for (const ffi::Any& any : list) {
    Record record = any.cast<Record>();
    std::string kind = AttrOr(record, "kind", std::string());
    if (kind == "loop") {
      nodes.push_back(Node::Loop(AttrOr(record, "var", std::string()), AttrOr(record, "text", std::string()),
                                 record.at("extent").cast<int64_t>(), ReadBody(record.at("body").cast<List>())));
      nodes.back().fewer = AttrOr(record, "fewer", false);
      nodes.back().ends = AttrOr(record, "ends", false);
      nodes.back().optional = AttrOr(record, "optional", false);
    } else if (kind == "group") {
      nodes.push_back(Node::Group(AttrOr(record, "text", std::string()), ReadBody(record.at("body").cast<List>())));
    } else if (kind == "instruction") {
      Instruction instruction;
      instruction.pipe = AttrOr(record, "pipe", std::string());
      instruction.comment = AttrOr(record, "comment", std::string());
      instruction.blocks = AttrOr(record, "blocks", false);
      for (const ffi::Any& region : record.at("regions").cast<List>()) {
        instruction.regions.push_back(ReadRegion(region.cast<Record>()));
      }
      instruction.meets = AttrOr(record, "meets", false);
      for (const ffi::Any& pipe : AttrOr(record, "awaits", List())) {
        instruction.awaits.insert(std::string(pipe.cast<ffi::String>()));
      }
      nodes.push_back(Node::Of(std::move(instruction)));
    } else {
      TVM_FFI_THROW(ValueError) << "a node of kind '" << kind << "'; one of loop, group, instruction";
    }
  }
  return nodes;
}

Record Write(const Node& node, int* instructions);

List WriteBody(const std::vector<Node>& nodes, int* instructions) {
  List list;
  for (const Node& node : nodes) list.push_back(Write(node, instructions));
  return list;
}

Record WriteSync(const Sync& sync) {
  const char* kind = sync.kind == Sync::Kind::kSet ? "set" : sync.kind == Sync::Kind::kWait ? "wait" : "barrier";
  return {{"kind", ffi::String(kind)},  {"from", ffi::String(sync.from)},
          {"to", ffi::String(sync.to)}, {"id", sync.id},
          {"number", sync.number},      {"comment", ffi::String(sync.comment)}};
}

Record Write(const Node& node, int* instructions) {
  switch (node.kind) {
    case Node::Kind::kLoop:
      return {{"kind", ffi::String("loop")},
              {"var", ffi::String(node.var)},
              {"extent", node.extent},
              {"body", WriteBody(node.body, instructions)}};
    case Node::Kind::kGroup:
      return {{"kind", ffi::String("group")},
              {"text", ffi::String(node.text)},
              {"body", WriteBody(node.body, instructions)}};
    case Node::Kind::kSync:
      return WriteSync(node.sync);
    default:
      return {{"kind", ffi::String("instruction")}, {"index", (*instructions)++}};
  }
}

//! \brief Plan a kernel given as plain data.
//! \param body Nodes: {"kind": "loop", "var", "extent", "body"}, {"kind": "group", "text", "body"} or {"kind":
//! "instruction", "pipe", "comment", "regions": [{"memory", "begin" (Affine), "dims": [[count, stride]], "bytes",
//! "write"}]}.
//! \param vocabulary Name of the device's syncs.
//! \return {"body": the same nodes, an instruction as {"kind", "index" (in program order)}, and syncs as {"kind":
//! "set",
//!         "wait" or "barrier", "from", "to", "id" (Affine), "number", "comment"}; "report": [{"number", "what",
//! "serves"}]}.
Record PlanPlain(const List& body, const ffi::String& vocabulary) {
  Plan plan = PlanSyncs(ReadBody(body), VocabularyOf(std::string(vocabulary)), "a kernel given as data");
  int instructions = 0;
  List report;
  for (const SyncReport& one : plan.report) {
    ffi::Array<ffi::String> serves;
    for (const std::string& text : one.serves) serves.push_back(text);
    report.push_back(Record{{"number", one.number}, {"what", ffi::String(one.what)}, {"serves", serves}});
  }
  return {{"body", WriteBody(plan.body, &instructions)}, {"report", report}};
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef().def("uir.codegen.pipes.plan", &PlanPlain);
}

}  // namespace uir::codegen::pipes
