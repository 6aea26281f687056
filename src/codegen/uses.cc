// SPDX-License-Identifier: Apache-2.0
#include "codegen/uses.h"

#include <tvm/ffi/any.h>

#include <algorithm>

#include "codegen/attributes.h"
#include "codegen/sizes.h"

namespace uir::codegen {

namespace {

bool ReadsItsTarget(const IOp& iop) { return iop->op == "scatter" || Accumulates(iop); }

struct Walk {
  std::vector<Use> uses;
  std::vector<Loop> loops;
  std::vector<int> path;
  int position = 0;

  void Body(const ffi::Array<ffi::ObjectRef>& body) {
    path.push_back(0);
    for (const ffi::ObjectRef& node : body) {
      if (auto loop = node.as<Loop>()) {
        loops.push_back(*loop);
        Body((*loop)->body);
        loops.pop_back();
      } else {
        One(node.as_or_throw<IOp>());
      }
      ++path.back();
    }
    path.pop_back();
  }

  void One(const IOp& iop) {
    auto add = [&](const ISlice& slice, int operand, bool write) {
      uses.push_back({iop, slice, operand, write, write && ReadsItsTarget(iop), position, loops, path});
    };
    int number = 0;
    for (const ISlice& slice : iop->sources) add(slice, ++number, false);
    if (ffi::Any buffer = AttrOf(iop->attrs, "buffer"); buffer != nullptr) {
      add(buffer.cast<ISlice>(), kBufferOperand, true);
    }
    for (const ISlice& slice : iop->targets) add(slice, 0, iop->op != "sync" && iop->op != "identity");
    ++position;
  }
};

void BindLoops(const ffi::Array<ffi::ObjectRef>& body, Scope* scope) {
  for (const ffi::ObjectRef& node : body) {
    const auto* loop = node.as<LoopNode>();
    if (loop == nullptr) continue;
    std::string name(loop->var);
    scope->Bind(name, name, {0, std::max<int64_t>(loop->extent - 1, 0)});
    BindLoops(loop->body, scope);
  }
}

std::string AnyText(const ffi::Any& value) {
  if (auto number = value.as<double>()) {
    std::string text = std::to_string(*number);
    while (text.find('.') != std::string::npos && (text.back() == '0')) text.pop_back();
    return text.back() == '.' ? text + "0" : text;
  }
  if (auto number = value.as<int64_t>()) return std::to_string(*number);
  if (auto text = value.as<ffi::String>()) return std::string(*text);
  return "?";
}

std::string SliceText(const ISlice& slice) {
  std::string shape = "(" + std::to_string(slice->rows) + "," + std::to_string(slice->cols) + ")";
  std::string box = BoxText(slice);
  return std::string(slice->pointer->name) + shape + (box.empty() ? "" : "[" + box + "]");
}

}  // namespace

double Use::times() const {
  double count = 1;
  for (const Loop& loop : loops) count *= static_cast<double>(loop->extent);
  return count;
}

std::map<std::string, std::vector<const Use*>> ByPointer(const std::vector<Use>& uses) {
  std::map<std::string, std::vector<const Use*>> by_pointer;
  for (const Use& use : uses) by_pointer[use.pointer()].push_back(&use);
  return by_pointer;
}

std::set<std::string> PointersOf(const std::vector<Use>& uses) {
  std::set<std::string> used;
  for (const Use& use : uses) used.insert(use.pointer());
  return used;
}

std::vector<IPointer> ParametersOf(const IGraph& graph, const std::vector<Use>& uses) {
  const std::set<std::string> used = PointersOf(uses);
  std::vector<IPointer> parameters;
  for (const IPointer& pointer : graph->pointers) {
    if (pointer->level == "dram" && used.count(std::string(pointer->name))) parameters.push_back(pointer);
  }
  return parameters;
}

std::vector<Use> UsesOf(const IGraph& graph) {
  Walk walk;
  walk.Body(graph->body);
  return walk.uses;
}

bool HoldsBesideBoxes(const std::vector<const Use*>& uses) {
  std::set<std::string> written, read;
  bool in_loop = false;
  for (const Use* use : uses) {
    if (use->write) written.insert(BoxText(use->slice));
    if (!use->write || use->reads_too) read.insert(BoxText(use->slice));
    in_loop = in_loop || !use->loops.empty();
  }
  // one box for all writes: what lies outside was never written; over loops the box may change with the
  // iteration, so there the reads must keep to it as well
  bool one_box = written.size() <= 1 && (!in_loop || read.empty() || read == written);
  return !one_box && !StretchesAreApart(uses);
}

namespace {

/*! \brief Whether both sides have the same stride. */
bool SameStrides(const ISlice& a, const ISlice& b) {
  if (a->row_stride != b->row_stride || a->col_stride != b->col_stride) return false;
  return !a->OpenStrides() || (a->RowStride().ToString() == b->RowStride().ToString() &&
                               a->ColStride().ToString() == b->ColStride().ToString());
}

bool SameOrNone(const ffi::Optional<Affine>& bound, const ffi::Optional<Affine>& other) {
  return !other || (bound && bound.value().ToString() == other.value().ToString());
}

/*! \brief Whether a read sees what a write left, in the same iteration of its loops, and nothing outside of its box. */
bool KeepsTo(const Use& read, const Use& write) {
  if (read.position <= write.position || read.loops.size() < write.loops.size()) return false;
  for (size_t k = 0; k < write.loops.size(); ++k) {
    if (!read.loops[k].same_as(write.loops[k])) return false;
  }
  const ISlice &a = read.slice, &b = write.slice;
  return a->offset.ToString() == b->offset.ToString() && a->rows == b->rows && a->cols == b->cols &&
         SameStrides(a, b) && SameOrNone(a->row_begin, b->row_begin) && SameOrNone(a->row_end, b->row_end) &&
         SameOrNone(a->col_begin, b->col_begin) && SameOrNone(a->col_end, b->col_end);
}

}  // namespace

std::set<std::string> BoxesOfAllReads(const std::vector<const Use*>& uses) {
  std::set<std::string> free, spared;
  for (const Use* write : uses) {
    if (!write->write) continue;
    bool all = !write->reads_too && std::all_of(uses.begin(), uses.end(), [&](const Use* use) {
      return (use->write && !use->reads_too) || KeepsTo(*use, *write);
    });
    (all ? free : spared).insert(BoxText(write->slice));
  }
  for (const std::string& box : spared) free.erase(box);
  return free;
}

Scope ScopeOf(const IGraph& graph) {
  Scope scope;
  BindSizes(graph, &scope);
  BindUnits(graph, "pid", &scope);
  BindLoops(graph->body, &scope);
  return scope;
}

std::string BoxText(const ISlice& slice) {
  auto side = [](const char* name, const ffi::Optional<Affine>& begin, const ffi::Optional<Affine>& end) {
    if (!begin && !end) return std::string();
    return std::string(name) + (begin ? " " + begin.value().ToString() : "") + " :" +
           (end ? end.value().ToString() : "");
  };
  std::string rows = side("rows", slice->row_begin, slice->row_end);
  std::string cols = side("cols", slice->col_begin, slice->col_end);
  return rows + (rows.empty() || cols.empty() ? "" : ", ") + cols;
}

bool SamePlace(const ISlice& a, const ISlice& b) {
  Affine apart = a->offset - b->offset;
  return a->rows == b->rows && a->cols == b->cols && SameStrides(a, b) && apart->terms.empty() &&
         apart->constant == 0 && BoxText(a) == BoxText(b);
}

std::string Describe(const IOp& iop) {
  std::string text(iop->op);
  auto part = [&text](const std::string& more) {
    if (!more.empty()) text += "." + more;
  };
  auto attr = [&iop](const char* name) {
    auto it = iop->attrs.find(name);
    return it == iop->attrs.end() ? std::string() : AnyText((*it).second);
  };
  if (iop->op == "move") {
    part(std::string(iop->sources[0]->pointer->level));
    part(std::string(iop->targets[0]->pointer->level));
  }
  part(std::string(iop->name));
  part(attr("axis"));
  part(attr("scope"));
  if (iop->op != "sync" && iop->op != "identity") part(std::string(iop->dtype));
  std::vector<ISlice> slices(iop->targets.begin(), iop->targets.end());
  slices.insert(slices.end(), iop->sources.begin(), iop->sources.end());
  for (size_t i = 0; i < slices.size(); ++i) text += (i ? ", " : " ") + SliceText(slices[i]);
  std::string extra;
  for (const ffi::Any& value : AttrOr(iop->attrs, "params", ffi::Array<ffi::Any>())) {
    extra += (extra.empty() ? "" : ", ") + AnyText(value);
  }
  for (const char* name : {"value", "pad", "round", "group_size"}) {
    std::string value = attr(name);
    if (!value.empty()) extra += (extra.empty() ? "" : ", ") + std::string(name) + "=" + value;
  }
  return text + (extra.empty() ? "" : "  [" + extra + "]");
}

bool StretchesAreApart(const std::vector<const Use*>& uses) {
  int stretch = -2;
  std::string box;
  for (const Use* use : uses) {
    int now = use->loops.empty() ? -1 : use->path[0];
    std::string own = BoxText(use->slice);
    if (now != stretch) {
      if (!use->write || use->reads_too) return false;
      stretch = now;
      box = own;
    }
    if (own != box) return false;
  }
  return true;
}

}  // namespace uir::codegen
