// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/lines.h"

namespace uir::codegen::tiles {

namespace {

/*! \brief Whether one pair of brackets is around all of a text. */
bool IsBracketed(const std::string& text) {
  int open = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    open += text[k] == '(' ? 1 : text[k] == ')' ? -1 : 0;
    if (open == 0) return k > 0 && k + 1 == text.size();
  }
  return false;
}

}  // namespace

std::string PlusText(const std::string& a, const std::string& b) {
  if (a.empty() || a == "0") return b;
  return b.empty() || b == "0" ? a : a + " + " + b;
}

std::string TimesText(const std::string& text, int64_t factor) {
  if (factor == 0 || text == "0") return "0";
  if (factor == 1) return text;
  bool atom = text.find_first_of(" ?") == std::string::npos || IsBracketed(text);
  return (atom ? text : "(" + text + ")") + " * " + std::to_string(factor);
}

std::string MinText(const std::string& a, const std::string& b) {
  return "(" + a + " < " + b + " ? " + a + " : " + b + ")";
}

std::string ForText(const std::string& var, const std::string& from, const std::string& to) {
  return "for (int32_t " + var + " = " + from + "; " + var + " < " + to + "; ++" + var + ")";
}

std::vector<std::string> Under(const std::string& head, const std::vector<std::string>& lines) {
  if (head.empty()) return lines;
  std::vector<std::string> out = {head + " {"};
  for (const std::string& line : lines) out.push_back("  " + line);
  out.emplace_back("}");
  return out;
}

std::vector<std::string> Looped(const std::string& var, const std::string& from, const std::string& to,
                                const std::vector<std::string>& lines) {
  return Under(ForText(var, from, to), lines);
}

}  // namespace uir::codegen::tiles
