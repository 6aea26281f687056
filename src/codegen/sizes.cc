// SPDX-License-Identifier: Apache-2.0
#include "codegen/sizes.h"

#include <algorithm>

#include "codegen/attributes.h"

namespace uir::codegen {

namespace {

/*! \brief Groups of a launch that devices take. */
constexpr int64_t kMostGroups = INT32_MAX;

Range RangeOf(const Size& size) { return {size->low, size->high}; }

}  // namespace

int64_t LastUnit(const IGraph& graph) {
  return std::max<int64_t>(std::min(graph->num_groups, kMostGroups) * graph->num_units - 1, 0);
}

void BindUnits(const IGraph& graph, const std::string& text, Scope* scope) {
  scope->Bind("pid", text, {0, LastUnit(graph)});
  if (graph->groups) scope->BindLast("pid", graph->groups.value().Scale(graph->num_units) - Affine::Constant(1));
}

void BindSizes(const IGraph& graph, Scope* scope) {
  for (const Size& size : graph->sizes) {
    std::string name(size->name);
    scope->Bind(name, name, RangeOf(size), size->multiple_of);
  }
}

SizeArguments::SizeArguments(const IGraph& graph, const std::string& type, Names* names, Scope* scope) {
  for (const Size& size : graph->sizes) {
    std::string name(size->name), given = names->Fresh("size_" + name), text = given;
    declared.push_back("int64_t " + given);
    passed.push_back(given);
    if (RangeOf(size).FitsInt()) {
      text = names->Fresh(name);
      definitions.push_back("const " + type + " " + text + " = " + type + "(" + given + ");");
    }
    scope->Bind(name, text, RangeOf(size), size->multiple_of);
  }
}

DealtGroups::DealtGroups(const IGraph& graph, int64_t blocks, const std::string& name, const Scope& scope)
    : blocks(blocks),
      dealt(graph->groups && graph->num_groups > blocks),
      counted(dealt || (graph->groups && IsDealt(graph))),
      name(name) {
  if (!graph->groups) return;
  const Affine count = graph->groups.value();
  // the variable goes beyond the last group by up to one round
  const bool wide = scope.Wide(count) || LastUnit(graph) > INT32_MAX - blocks * graph->num_units;
  type = wide ? "int64_t" : "int32_t";
  definition = "const " + type + " " + name + " = " + scope.Text(count) + ";";
}

std::string DealtGroups::Head(const std::string& variable, const std::string& begin, const std::string& step,
                              const std::string& counter, bool declared) const {
  const std::string from = counter.empty() || declared ? "" : ", " + counter + " = 0",
                    next = counter.empty() ? "" : ", ++" + counter;
  return "for (" + type + " " + variable + " = " + begin + from + "; " + variable + " < " + name + "; " + variable +
         " += " + step + next + ")";
}

std::string ElementsText(const IPointer& pointer, const Scope& scope) {
  if (pointer->dims.empty()) return std::to_string(pointer->size);
  const bool wide = pointer->size > INT32_MAX;
  int64_t factor = 1;
  std::vector<std::string> parts;
  for (const Affine& dim : pointer->dims) {
    if (dim->terms.empty()) {
      factor *= dim->constant;
    } else {
      parts.push_back(scope.Text(dim, Precedence::kAtom));
    }
  }
  if (factor != 1) parts.push_back(std::to_string(factor));
  if (wide && scope.Type(pointer->dims[0]) != "int64_t") parts[0] = "int64_t(" + parts[0] + ")";
  return Join(parts, " * ");
}

}  // namespace uir::codegen
