// SPDX-License-Identifier: Apache-2.0
#include "emitter.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <utility>

namespace uir {
namespace codegen {
namespace tiles {

namespace {

std::string ClampText(const std::string& text, Range range, int64_t length) {
  std::string limit = std::to_string(length);
  std::string below = range.low < 0 ? text + " < 0 ? 0 : " : "";
  std::string above = range.high > length ? text + " > " + limit + " ? " + limit + " : " : "";
  return below + above + text;
}

/*! \brief An iOp in a few words: "load t", "exp t", "store y". */
std::string BriefOf(const IOp& iop) {
  std::string target(iop->targets[0]->pointer->name), what(iop->name.empty() ? iop->op : iop->name);
  if (iop->op == "move") {
    bool store = iop->targets[0]->pointer->level == "dram", load = iop->sources[0]->pointer->level == "dram";
    what = store ? "store" : load ? "load" : "copy";
  } else if (iop->op != "unary" && iop->op != "binary" && !iop->name.empty()) {
    what = std::string(iop->op) + " " + what;
  }
  return what + " " + target;
}

}  // namespace

Emitter::Emitter(Plan* plan, Names* names) : plan_(plan), names_(names) {
  const IGraph& graph = plan->graph();
  scope_.Bind("pid", names->Fresh("pid"), {0, graph->num_groups * graph->num_units - 1});
  every_scope_ = scope_;
}

Bound Emitter::BoundOf(const ffi::Optional<Affine>& bound, int64_t length, bool end, const std::string& hint) {
  if (!bound) return Bound::Of(end ? length : 0);
  Range range = scope_.Of(bound.value());
  Range clamped{std::clamp<int64_t>(range.low, 0, length), std::clamp<int64_t>(range.high, 0, length)};
  if (clamped.Constant()) return Bound::Of(clamped.low);
  std::string expression = scope_.Text(bound.value());
  if (range.low < 0 || range.high > length) expression = ClampText(expression, range, length);
  // a name serves until the loop that it stands in ends
  for (const auto& names : bounds_) {
    auto known = names.find(expression);
    if (known != names.end()) return {known->second, clamped};
  }
  std::string name = names_->Fresh(hint);
  Plain("const int32_t " + name + " = " + expression + ";");
  bounds_.back()[expression] = name;
  return {name, clamped};
}

Box Emitter::BoxOf(const ISlice& slice) {
  return {BoundOf(slice->row_begin, slice->rows, false, "row_begin"),
          BoundOf(slice->row_end, slice->rows, true, slice->row_begin ? "row_end" : "rows"),
          BoundOf(slice->col_begin, slice->cols, false, "col_begin"),
          BoundOf(slice->col_end, slice->cols, true, slice->col_begin ? "col_end" : "cols")};
}

void Emitter::Do(const std::string& pipe, const std::vector<std::string>& lines,
                 const std::vector<pipes::Region>& regions, bool blocks, const std::set<std::string>& awaits) {
  pipes::Instruction instruction{pipe, lines, regions, brief_};
  instruction.blocks = blocks;
  instruction.awaits = awaits;
  Add(std::move(instruction));
}

void Emitter::Add(pipes::Instruction instruction) { bodies_.back().push_back(pipes::Node::Of(std::move(instruction))); }

std::vector<std::string> Emitter::Apart(const std::function<void()>& emit) {
  std::vector<std::map<std::string, std::string>> around(1);
  std::swap(bounds_, around);
  bodies_.emplace_back();
  emit();
  std::swap(bounds_, around);
  std::vector<std::string> lines;
  for (const pipes::Node& node : bodies_.back()) {
    TVM_FFI_CHECK(node.kind == pipes::Node::Kind::kPlain, InternalError) << "an instruction where lines are collected";
    lines.insert(lines.end(), node.lines.begin(), node.lines.end());
  }
  bodies_.pop_back();
  return lines;
}

void Emitter::Plain(const std::string& line) { bodies_.back().push_back(pipes::Node::Plain({line})); }

void Emitter::Begin(const IOp& iop, int position) {
  where_iop_ = Describe(iop);
  brief_ = BriefOf(iop);
  position_ = position;
  bodies_.emplace_back();
}

void Emitter::Begin(const std::string& title) {
  where_iop_ = brief_ = title;
  bodies_.emplace_back();
}

void Emitter::End() {
  std::vector<pipes::Node> body = std::move(bodies_.back());
  bodies_.pop_back();
  bodies_.back().push_back(pipes::Node::Group(where_iop_, std::move(body)));
}

void Emitter::Enter(const Loop& loop) {
  std::string name(loop->var), text = names_->Fresh(name);
  headers_.push_back("for (int32_t " + text + " = 0; " + text + " < " + std::to_string(loop->extent) + "; ++" + text +
                     ")");
  Range range{0, std::max<int64_t>(loop->extent - 1, 0)};
  scope_.Bind(name, text, range);
  every_scope_.Bind(name, text, range);
  bodies_.emplace_back();
  bounds_.emplace_back();
}

void Emitter::Leave(const Loop& loop) {
  std::vector<pipes::Node> body = std::move(bodies_.back());
  bodies_.pop_back();
  bounds_.pop_back();
  bodies_.back().push_back(pipes::Node::Loop(std::string(loop->var), headers_.back(), loop->extent, std::move(body)));
  headers_.pop_back();
  scope_.Unbind(std::string(loop->var));
}

}  // namespace tiles
}  // namespace codegen
}  // namespace uir
