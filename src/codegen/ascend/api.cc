// SPDX-License-Identifier: Apache-2.0
/*!
 * \file api.cc
 * \brief Printing what the table of vendor functions holds, and nothing else.
 */
#include "api.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "../error.h"
#include "../number.h"
#include "scalar.h"

namespace uir {
namespace codegen {
namespace ascend {
namespace {

std::vector<std::string> Split(const std::string& text, char at) {
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

const Api* LookUp(const std::string& name, const std::string& form) {
  static const std::map<std::string, const Api*> rows = [] {
    std::map<std::string, const Api*> made;
    for (const Api& api : ApiTable()) made[api.name + " " + api.form] = &api;
    return made;
  }();
  auto found = rows.find(name + " " + form);
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace

bool HasForm(const std::string& name, const std::string& form) { return LookUp(name, form) != nullptr; }

const Api& FindApi(const std::string& name, const std::string& form) {
  const Api* api = LookUp(name, form);
  if (api == nullptr) {
    TVM_FFI_THROW(InternalError) << "the table of Ascend C has no " << name << " of the form '" << form << "'";
  }
  return *api;
}

bool HasTypes(const Api& api, const std::vector<std::string>& types, const std::string& mode) {
  if (api.types.empty()) return types.empty();
  for (const std::string& row : Split(api.types, ';')) {
    std::vector<std::string> sides = Split(row, ':');
    if (Split(sides[0], ',') != types) continue;
    if (mode.empty() || sides.size() < 2) return true;
    for (const std::string& known : Split(sides[1], ' ')) {
      if (known == mode) return true;
    }
  }
  return false;
}

std::string Call(const std::string& where, const std::string& name, const std::string& form,
                 const std::vector<std::string>& types, const std::vector<std::string>& args) {
  const Api& api = FindApi(name, form);
  std::vector<std::string> params = Split(api.params, ' ');
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
                 where, "one of " + api.types, "", "see docs/targets/ascend-apis.md");
  }
  std::string head = member ? args[0] + "." + name.substr(name.find('.') + 1) : name;
  std::vector<std::string> given(args.begin() + static_cast<int64_t>(first), args.end());
  return head + TemplateArguments(api, types, moded ? args[0] : "") + "(" + Joined(given, ", ") + ")";
}

std::string Macro(const std::string& name) { return FindApi(name, "macro").name; }

std::string EnumValue(const std::string& name, const std::string& value) {
  for (const std::string& known : Split(FindApi(name, "enum").params, ' ')) {
    if (known == value) return name + "::" + value;
  }
  TVM_FFI_THROW(InternalError) << "the table of Ascend C has no " << name << "::" << value;
  TVM_FFI_UNREACHABLE();
}

std::string TypeName(const std::string& name, const std::vector<std::string>& types) {
  const Api& api = FindApi(name, "type");
  if (!HasTypes(api, types)) TVM_FFI_THROW(InternalError) << name << " of " << Joined(types, ", ") << " is no type";
  return name + TemplateArguments(api, types, "");
}

std::string ElementType(const std::string& dtype) {
  const ScalarType* type = FindType(dtype);
  return type == nullptr ? "" : type->stored;
}

std::string Literal(double value, const std::string& type) {
  if (type != "float" && type != "half" && type != "bfloat16_t") {
    return IntLiteral(static_cast<int64_t>(value), type);
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
  // a bfloat16_t is made of a float by a function: it has no conversions on the device
  return (type == "bfloat16_t" ? "ToBfloat16" : type) + "(" + text + ")";
}

std::string IntLiteral(int64_t value, const std::string& type) {
  // the least int32 and int64 have no literal of their own
  if (type == "int32_t") return value == INT32_MIN ? "(-2147483647 - 1)" : std::to_string(value);
  if (type == "uint32_t") return std::to_string(value) + "u";
  if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
  if (type == "int64_t") return std::to_string(value) + "LL";
  if (type == "uint64_t") return std::to_string(static_cast<uint64_t>(value)) + "ULL";
  return "static_cast<" + type + ">(" + std::to_string(value) + ")";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace ffi = tvm::ffi;
  ffi::reflection::GlobalDef()
      .def("uir.codegen.ascend.apis",
           [] {
             ffi::Array<ffi::Map<ffi::String, ffi::String>> rows;
             for (const Api& api : ApiTable()) {
               rows.push_back({{"name", api.name},
                               {"form", api.form},
                               {"params", api.params},
                               {"types", api.types},
                               {"templates", api.templates},
                               {"pipe", api.pipe},
                               {"limits", api.limits},
                               {"source", api.source}});
             }
             return rows;
           })
      .def("uir.codegen.ascend.call",
           [](ffi::String name, ffi::String form, ffi::Array<ffi::String> types, ffi::Array<ffi::String> args) {
             return ffi::String(Call("", name, form, {types.begin(), types.end()}, {args.begin(), args.end()}));
           });
}

}  // namespace ascend
}  // namespace codegen
}  // namespace uir
