// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "codegen/error.h"

namespace uir::codegen::pipes {

namespace {

/*! \brief Addresses with longer periods count as unknown: a run must show each residue twice. */
constexpr int64_t kLongestPeriod = 16;
/*! \brief Loops up to this extent are run whole where an address in them has no short period. */
constexpr int64_t kShortLoop = 32;

}  // namespace

Program::Program(const std::vector<Node>& nodes, const Vocabulary& vocabulary, const std::string& where)
    : pipes(vocabulary.pipes), bodies(1), where_(where) {
  std::vector<int> around;
  Collect(nodes, 0, &around);
  Compile();
}

int Program::PipeOf(const std::string& name) const {
  auto found = std::find(pipes.begin(), pipes.end(), name);
  if (found == pipes.end()) CodegenError("an instruction runs on pipe " + name + ", which the device lacks", where_);
  return static_cast<int>(found - pipes.begin());
}

void Program::Collect(const std::vector<Node>& nodes, int body, std::vector<int>* around) {
  for (const Node& node : nodes) {
    int position = static_cast<int>(bodies[body].items.size());
    switch (node.kind) {
      case Node::Kind::kPlain:
        break;
      case Node::Kind::kGroup:
        Collect(node.body, body, around);
        break;
      case Node::Kind::kLoop: {
        if (node.ends) {
          AddOp(node.instruction, body, *around);
          break;
        }
        int loop = static_cast<int>(loops.size());
        loops.push_back({node.var, node.extent, around->empty() ? -1 : around->back(), position, 1, false, node.fewer,
                         node.optional});
        bodies[body].items.push_back({true, loop});
        bodies.emplace_back();
        around->push_back(loop);
        Collect(node.body, loop + 1, around);
        around->pop_back();
        break;
      }
      case Node::Kind::kInstruction:
        AddOp(node.instruction, body, *around);
        break;
      case Node::Kind::kSync:
        CodegenError("a kernel that is to get its syncs has some already", where_);
    }
  }
}

void Program::AddOp(const Instruction& instruction, int body, const std::vector<int>& around) {
  Op op;
  op.instruction = &instruction;
  op.pipe = PipeOf(instruction.pipe);
  op.loops = around;
  op.body = body;
  op.position = static_cast<int>(bodies[body].items.size());
  bodies[body].items.push_back({false, static_cast<int>(ops.size())});
  ops.push_back(std::move(op));
}

void Program::Compile() {
  std::map<std::string, int> numbers;
  for (Op& op : ops) {
    auto number_of = [&](const std::string& name) {
      for (size_t i = op.loops.size(); i-- > 0;) {
        if (loops[op.loops[i]].var == name) return op.loops[i];
      }
      auto [at, fresh] = numbers.emplace(name, static_cast<int>(loops.size() + frees.size()));
      if (fresh) frees.push_back({name, 1});
      return at->second;
    };
    for (const Region& region : op.instruction->regions) {
      Bytes bytes;
      bytes.memory = region.memory;
      bytes.whole = region.anywhere;
      if (!bytes.whole) {
        bytes.begin = NumberedAffine(region.begin, number_of);
        bytes.dims.assign(region.dims.begin(), region.dims.end());
      }
      bytes.bytes = region.bytes;
      bytes.write = region.write;
      op.regions.push_back(std::move(bytes));
    }
  }
  for (Op& op : ops) {
    for (Bytes& bytes : op.regions) {
      std::set<int> variables;
      bytes.begin.Variables(&variables);
      for (int v : variables) {
        bool bound = v < static_cast<int>(loops.size());
        int64_t& period = bound ? loops[v].period : frees[v - loops.size()].period;
        std::optional<Period> own = bytes.begin.PeriodIn(v, kLongestPeriod);
        int64_t both = own ? std::lcm(period, own->period) : 0;
        if (own && both <= kLongestPeriod) {
          period = both;
        } else if (bound && loops[v].extent <= kShortLoop) {
          loops[v].whole = true;
        } else {
          bytes.whole = true;
        }
      }
    }
  }
}

std::vector<int> Program::Around(int body) const {
  std::vector<int> result;
  for (int loop = body - 1; loop >= 0; loop = loops[loop].parent) result.push_back(loop);
  std::reverse(result.begin(), result.end());
  return result;
}

int Program::PositionIn(int body, const Op& op) const {
  if (op.body == body) return op.position;
  for (int loop : op.loops) {
    if (loops[loop].parent + 1 == body) return loops[loop].position;
  }
  return -1;
}

bool Program::Uses(const Item& item, int pipe) const {
  if (!item.is_loop) return ops[item.index].pipe == pipe;
  const std::vector<Item>& items = bodies[item.index + 1].items;
  return std::any_of(items.begin(), items.end(), [&](const Item& inner) { return Uses(inner, pipe); });
}

std::vector<int64_t> Program::Shortened(int64_t slack) const {
  std::vector<int64_t> extents;
  for (const LoopOf& loop : loops) {
    int64_t least = 2 * loop.period + 2 + slack;
    bool whole = loop.whole || loop.extent < least + loop.period;
    extents.push_back(whole ? loop.extent : least + (loop.extent - least) % loop.period);
  }
  return extents;
}

int64_t Program::Instances(const std::vector<int64_t>& extents) const {
  int64_t total = 0;
  for (const Op& op : ops) {
    int64_t count = 1;
    for (int loop : op.loops) count *= extents[loop];
    total += count;
  }
  return total;
}

}  // namespace uir::codegen::pipes
