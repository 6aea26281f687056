// SPDX-License-Identifier: Apache-2.0
#include "codegen/bang/guards.h"

#include <algorithm>
#include <string>
#include <utility>

#include "codegen/bang/memory_core.h"

namespace uir::codegen::bang {

namespace {

using Node = pipes::Node;

bool IsMeeting(const Node& node) { return node.kind == Node::Kind::kInstruction && node.instruction.meets; }

bool IsMemoryCore(const Node& node) {
  return node.kind == Node::Kind::kInstruction && node.instruction.pipe == kMemoryCore;
}

/*! \brief Whether a node has a meeting, or work of the memory core, in it. */
bool Shared(const Node& node) {
  return IsMeeting(node) || IsMemoryCore(node) || std::any_of(node.body.begin(), node.body.end(), Shared);
}

/*! \brief The plain lines of nodes and of the paragraphs in them, which both kinds of cores may use, taken out. */
std::vector<Node> TakePlain(std::vector<Node>* nodes) {
  std::vector<Node> plain, rest;
  for (Node& node : *nodes) {
    if (node.kind == Node::Kind::kPlain) {
      plain.push_back(std::move(node));
      continue;
    }
    if (node.kind == Node::Kind::kGroup) {
      std::vector<Node> inner = TakePlain(&node.body);
      std::move(inner.begin(), inner.end(), std::back_inserter(plain));
    }
    rest.push_back(std::move(node));
  }
  *nodes = std::move(rest);
  return plain;
}

bool Empty(const Node& node) {
  return (node.kind == Node::Kind::kGroup || node.kind == Node::Kind::kLoop) &&
         std::all_of(node.body.begin(), node.body.end(), Empty);
}

class GuardedPrinter {
 public:
  GuardedPrinter(const tiles::SyncLine& sync_line, Printer* out) : sync_line_(sync_line), out_(*out) {}

  void Print(const std::vector<Node>& body) {
    for (const Node& node : body) One(node);
    Flush();
  }

 private:
  void One(const Node& node) {
    if (IsMeeting(node)) {
      Flush();
      if (!headed_) out_.Blank();
      for (const std::string& line : node.instruction.lines) out_.Line(line);
      headed_ = false;
    } else if (IsMemoryCore(node)) {
      Run(true).push_back(node);
    } else if (node.kind == Node::Kind::kLoop && Shared(node)) {
      Flush();
      out_.Blank();
      out_.Open(node.text);
      Print(node.body);
      out_.Close();
    } else if (node.kind == Node::Kind::kGroup && Shared(node)) {
      Flush();
      out_.Blank();
      out_.Comment(node.text);
      headed_ = true;
      for (const Node& inner : node.body) One(inner);
    } else if (node.kind == Node::Kind::kPlain) {
      Flush();
      tiles::PrintTree({node}, sync_line_, &out_);
    } else {
      Run(false).push_back(node);
    }
  }

  std::vector<Node>& Run(bool memory_core) {
    if (memory_core != memory_core_) Flush();
    memory_core_ = memory_core;
    return run_;
  }

  void Flush() {
    std::vector<Node> run = std::move(run_);
    run_.clear();
    tiles::PrintTree(TakePlain(&run), sync_line_, &out_);
    bool empty = std::all_of(run.begin(), run.end(), Empty);
    if (empty) {
      // an iOp that needs no code keeps its comment
      tiles::PrintTree(run, sync_line_, &out_);
      return;
    }
    if (!headed_) out_.Blank();
    headed_ = false;
    out_.Open(memory_core_ ? "if (__is_mpu())" : "if (__is_ipu())");
    tiles::PrintTree(run, sync_line_, &out_);
    out_.Close();
  }

  const tiles::SyncLine& sync_line_;
  Printer& out_;
  std::vector<Node> run_;
  bool memory_core_ = false;
  /*! \brief A paragraph's comment has just been printed. */
  bool headed_ = false;
};

}  // namespace

void PrintGuarded(const std::vector<pipes::Node>& body, const tiles::SyncLine& sync_line, Printer* out) {
  GuardedPrinter(sync_line, out).Print(body);
}

}  // namespace uir::codegen::bang
