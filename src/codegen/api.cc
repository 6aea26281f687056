// SPDX-License-Identifier: Apache-2.0
// Printing what a table of vendor functions holds, and nothing else.
#include "codegen/api.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/attrs.h"
#include "codegen/error.h"
#include "codegen/number.h"
#include "codegen/stored.h"

namespace uir::codegen {
namespace {

std::vector<std::string> SplitText(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    if (first != std::string::npos) parts.push_back(part.substr(first, last - first + 1));
  }
  return parts;
}

/*! \brief What follows the last `::` and, of rounding modes, `CAST_`. */
std::string ModeOf(const std::string& arg) {
  size_t colons = arg.rfind("::");
  std::string mode = colons == std::string::npos ? arg : arg.substr(colons + 2);
  return mode.rfind("CAST_", 0) == 0 ? mode.substr(5) : mode;
}

std::string Joined(const std::vector<std::string>& parts, const std::string& with) {
  std::string text;
  for (size_t k = 0; k < parts.size(); ++k) text += (k ? with : "") + parts[k];
  return text;
}

void Replace(std::string* text, const std::string& what, const std::string& by) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + by.size())) {
    text->replace(at, what.size(), by);
  }
}

/*! \brief Holds an integer literal to the range behind its parameter's type. */
void CheckRange(const Api& api, const std::string& param, const std::string& arg) {
  size_t open = param.find('[');
  if (open == std::string::npos || param.find(',', open) == std::string::npos) return;
  char* end = nullptr;
  long long value = std::strtoll(arg.c_str(), &end, 10);
  if (arg.empty() || *end != '\0') return;
  long long low = std::atoll(param.c_str() + open + 1), high = std::atoll(param.c_str() + param.find(',', open) + 1);
  if (value < low || value > high) {
    TVM_FFI_THROW(InternalError) << api.name << " (" << api.form << ") takes " << param << ", not " << arg;
  }
}

std::string TemplateArguments(const Api& api, const std::vector<std::string>& types, const std::string& mode) {
  std::string text = api.templates;
  if (!types.empty()) Replace(&text, "{T}", types[0]);
  if (types.size() > 1) Replace(&text, "{U}", types[1]);
  Replace(&text, "{mode}", mode);
  return text;
}

/*! \brief Whether a list, separated by blanks, has a value; an empty list, or an empty value, leaves it open. */
bool Lists(const std::string& list, const std::string& value) {
  if (list.empty() || value.empty()) return true;
  std::vector<std::string> known = SplitText(list, ' ');
  return std::find(known.begin(), known.end(), value) != known.end();
}

/*! \brief Arguments, given in the order of a row, in that of a spelling: every parameter once. */
std::vector<std::string> InOrder(const Api& api, const std::vector<std::string>& params,
                                 const std::vector<std::string>& given, const std::vector<std::string>& order) {
  std::vector<std::string> ordered;
  for (const std::string& name : order) {
    for (size_t k = 0; k < params.size(); ++k) {
      if (params[k].substr(0, params[k].find(':')) == name) ordered.push_back(given[k]);
    }
  }
  TVM_FFI_CHECK(ordered.size() == given.size(), InternalError)
      << api.name << " (" << api.form << "): a spelling has other parameters than the row";
  return ordered;
}

}  // namespace

ApiTable::ApiTable(std::string language, std::string page, std::vector<Api> rows, Toolkit toolkit)
    : language_(std::move(language)), page_(std::move(page)), rows_(std::move(rows)), toolkit_(std::move(toolkit)) {
  for (size_t k = 0; k < rows_.size(); ++k) {
    bool added = index_.emplace(std::make_pair(rows_[k].name, rows_[k].form), k).second;
    TVM_FFI_CHECK(added, InternalError) << language_ << ": two rows of " << rows_[k].name << " (" << rows_[k].form
                                        << ")";
  }
}

Platform ApiTable::PlatformOf(const IGraph& graph) const {
  return {AttrOr(graph->hardware->figures, "arch", std::string()),
          AttrOr<std::string>(graph->attrs, toolkit_.attribute, toolkit_.otherwise)};
}

const Api* ApiTable::LookUp(const std::string& name, const std::string& form) const {
  auto found = index_.find({name, form});
  return found == index_.end() ? nullptr : &rows_[found->second];
}

const Api& ApiTable::Find(const std::string& name, const std::string& form) const {
  const Api* api = LookUp(name, form);
  if (api == nullptr) {
    TVM_FFI_THROW(InternalError) << "the table of " << language_ << " has no " << name << " of the form '" << form
                                 << "'";
  }
  return *api;
}

bool ApiTable::Has(const std::string& name, const std::string& form, const Platform& platform) const {
  const Api* api = LookUp(name, form);
  return api != nullptr && IsFor(*api, platform);
}

bool IsFor(const Api& api, const Platform& platform) {
  return Lists(api.archs, platform.arch) && Lists(api.toolkits, platform.toolkit);
}

Spelling SpelledBy(const Api& api, const std::string& toolkit) {
  for (const std::string& spelling : SplitText(api.spellings, ' ')) {
    size_t colon = spelling.find(':');
    if (colon == std::string::npos || spelling.substr(0, colon) != toolkit) continue;
    std::string name = spelling.substr(colon + 1);
    size_t open = name.find('(');
    if (open == std::string::npos) return {name};
    return {name.substr(0, open), SplitText(name.substr(open + 1, name.size() - open - 2), ',')};
  }
  return {api.name};
}

bool HasTypes(const Api& api, const std::vector<std::string>& types, const std::string& mode) {
  if (api.types.empty()) return types.empty();
  for (const std::string& row : SplitText(api.types, ';')) {
    std::vector<std::string> sides = SplitText(row, ':');
    if (SplitText(sides[0], ',') != types) continue;
    if (mode.empty() || sides.size() < 2) return true;
    for (const std::string& known : SplitText(sides[1], ' ')) {
      if (known == mode) return true;
    }
  }
  return false;
}

std::string ApiTable::Call(const std::string& where, const std::string& name, const std::string& form,
                           const std::vector<std::string>& types, const std::vector<std::string>& args,
                           const Platform& platform) const {
  const Api& api = Find(name, form);
  if (!Lists(api.archs, platform.arch)) {
    CodegenError(name + " (form " + form + ") does not exist on architecture " + platform.arch + ".", where,
                 "one of " + api.archs, "", "see " + page_);
  }
  if (!Lists(api.toolkits, platform.toolkit)) {
    CodegenError(name + " (form " + form + ") is not known of version " + platform.toolkit + " of the toolkit.", where,
                 "one of " + api.toolkits, "", "see " + page_);
  }
  std::vector<std::string> params = SplitText(api.params, ' ');
  bool member = form == "member";
  bool moded = api.templates.find("{mode}") != std::string::npos;
  size_t first = (member ? 1 : 0) + (moded ? 1 : 0);
  if (args.size() != params.size() + first) {
    TVM_FFI_THROW(InternalError) << name << " (" << form << ") takes " << params.size() << " arguments (" << api.params
                                 << "), not " << args.size() - first;
  }
  std::string mode;
  for (size_t k = 0; k < params.size(); ++k) {
    CheckRange(api, params[k], args[first + k]);
    if (params[k].rfind("mode:", 0) == 0) mode = ModeOf(args[first + k]);
  }
  if (!HasTypes(api, types, mode)) {
    CodegenError(name + " takes no " + Joined(types, ", ") + (mode.empty() ? "" : " in the mode " + mode) +
                     " on this chip (form " + form + ").",
                 where, "one of " + api.types, "", "see " + page_);
  }
  if (!api.spellings.empty() && platform.toolkit.empty()) {
    TVM_FFI_THROW(InternalError) << name << " (" << form << ") is spelled apart by versions, and none is given";
  }
  const Spelling spelled = SpelledBy(api, platform.toolkit);
  std::string head = member ? args[0] + "." + spelled.name.substr(spelled.name.find('.') + 1) : spelled.name;
  std::vector<std::string> given(args.begin() + static_cast<int64_t>(first), args.end());
  if (!spelled.params.empty()) given = InOrder(api, params, given, spelled.params);
  return head + TemplateArguments(api, types, moded ? args[0] : "") + "(" + Joined(given, ", ") + ")";
}

std::string ApiTable::Macro(const std::string& name) const { return Find(name, "macro").name; }

std::string ApiTable::EnumValue(const std::string& name, const std::string& value, bool scoped) const {
  for (const std::string& known : SplitText(Find(name, "enum").params, ' ')) {
    if (known == value) return scoped ? name + "::" + value : value;
  }
  TVM_FFI_THROW(InternalError) << "the table of " << language_ << " has no " << name << "::" << value;
  TVM_FFI_UNREACHABLE();
}

std::string ApiTable::TypeName(const std::string& name, const std::vector<std::string>& types) const {
  const Api& api = Find(name, "type");
  if (!HasTypes(api, types)) TVM_FFI_THROW(InternalError) << name << " of " << Joined(types, ", ") << " is no type";
  return name + TemplateArguments(api, types, "");
}

std::set<std::string> ApiTable::Words() const {
  std::set<std::string> words;
  for (const Api& api : rows_) {
    words.insert(api.name.substr(0, api.name.find('.')));
    for (const std::string& spelling : SplitText(api.spellings, ' ')) {
      std::string name = SpelledBy(api, spelling.substr(0, spelling.find(':'))).name;
      words.insert(name.substr(0, name.find_first_of(".<")));
    }
  }
  return words;
}

tvm::ffi::Array<tvm::ffi::Map<tvm::ffi::String, tvm::ffi::String>> ApiTable::Data() const {
  tvm::ffi::Array<tvm::ffi::Map<tvm::ffi::String, tvm::ffi::String>> out;
  for (const Api& api : rows_) {
    out.push_back({{"name", api.name},
                   {"form", api.form},
                   {"params", api.params},
                   {"types", api.types},
                   {"templates", api.templates},
                   {"pipe", api.pipe},
                   {"limits", api.limits},
                   {"source", api.source},
                   {"archs", api.archs},
                   {"evidence", api.evidence},
                   {"toolkits", api.toolkits},
                   {"spellings", api.spellings}});
  }
  return out;
}

std::string ElementTypeOf(const std::string& dtype) {
  const ScalarType* type = FindType(dtype);
  return type == nullptr ? "" : type->stored;
}

int64_t ElementBytes(const std::string& dtype) {
  const ScalarType* type = FindType(dtype);
  if (type == nullptr) TVM_FFI_THROW(InternalError) << "'" << dtype << "' has no element type";
  return type->bytes;
}

std::string ElementLiteral(double value, const std::string& type) {
  if (type != "float" && type != "half" && type != "bfloat16_t") {
    return ElementIntLiteral(static_cast<int64_t>(value), type);
  }
  std::string text;
  if (std::isnan(value)) {
    text = "__builtin_nanf(\"\")";
  } else if (std::isinf(value)) {
    text = value > 0 ? "__builtin_inff()" : "-__builtin_inff()";
  } else {
    text = Digits(value, true);
  }
  if (type == "float") return text;
  // a bfloat16_t has no conversions on devices: where it is made of a float, a function does
  TVM_FFI_CHECK(type == "half", InternalError) << "a " << type << " has no literal";
  return type + "(" + text + ")";
}

std::string ElementIntLiteral(int64_t value, const std::string& type) {
  // the least int32 and int64 have no literal of their own
  if (type == "int32_t") return value == INT32_MIN ? "(-2147483647 - 1)" : std::to_string(value);
  if (type == "uint32_t") return std::to_string(value) + "u";
  if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
  if (type == "int64_t") return std::to_string(value) + "LL";
  if (type == "uint64_t") return std::to_string(static_cast<uint64_t>(value)) + "ULL";
  return "static_cast<" + type + ">(" + std::to_string(value) + ")";
}

}  // namespace uir::codegen
