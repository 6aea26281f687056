// SPDX-License-Identifier: Apache-2.0
#include "codegen/printer.h"

#include <algorithm>
#include <cctype>

namespace uir::codegen {

namespace {

constexpr size_t kCommentWidth = 110;

}  // namespace

void Printer::Line(const std::string& text) {
  lines_.push_back({text.empty() ? "" : std::string(2 * indent_, ' ') + text});
}

void Printer::Open(const std::string& text) {
  Line(text.empty() ? "{" : text + " {");
  ++indent_;
}

void Printer::Close(const std::string& tail) {
  --indent_;
  Line("}" + tail);
}

void Printer::Comment(const std::string& words) {
  std::string text = CommentText(words);
  size_t width = kCommentWidth - 2 * indent_ - 3, start = 0;
  std::string lead = "// ";
  while (start < text.size()) {
    size_t length = text.size() - start;
    if (length > width) {
      size_t space = text.rfind(' ', start + width);
      length = space == std::string::npos || space <= start ? width : space - start;
      // an escape is not cut behind its backslash
      if (text[start + length - 1] == '\\') --length;
    }
    size_t last = text.find_last_not_of(' ', start + length - 1);
    Line(lead + text.substr(start, last + 1 - start));
    start += length;
    while (start < text.size() && text[start] == ' ') ++start;
    lead = "//   ";
  }
}

void Printer::Append(const Printer& other) {
  auto first = std::find_if(other.lines_.begin(), other.lines_.end(), [](const Entry& e) { return !e.blank; });
  lines_.insert(lines_.end(), first, other.lines_.end());
}

int64_t Printer::size() const {
  const std::string text = Text();
  return std::count(text.begin(), text.end(), '\n');
}

std::string Printer::Text() const {
  std::string text;
  // nothing stands yet, an empty line, or what opens a block
  bool blank = true;
  for (const Entry& line : lines_) {
    if (line.blank) {
      if (!blank) text += "\n";
      blank = true;
      continue;
    }
    text += line.text + "\n";
    blank = line.text.empty() || line.text.back() == '{';
  }
  return text;
}

std::string Names::Fresh(const std::string& hint) {
  std::string name;
  for (char c : hint) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
  // two underscores in a row belong to the implementation
  for (size_t at = name.find("__"); at != std::string::npos; at = name.find("__")) name.erase(at, 1);
  if (name.size() > 1 && name[0] == '_') name = "v" + name;
  std::string fresh = name;
  for (int number = 1; !used_.insert(fresh).second; ++number) fresh = name + "_" + std::to_string(number);
  return fresh;
}

std::string CommentText(const std::string& text) {
  const char* digits = "0123456789abcdef";
  std::string escaped;
  for (size_t at = 0; at < text.size(); ++at) {
    unsigned char c = static_cast<unsigned char>(text[at]);
    // `??/` is another spelling of a backslash
    bool trigraph = c == '/' && at >= 2 && text[at - 1] == '?' && text[at - 2] == '?';
    if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\\' || c < ' ' || c == 0x7f || trigraph) {
      escaped += std::string("\\x") + digits[c >> 4] + digits[c & 15];
    } else {
      escaped += text[at];
    }
  }
  return escaped;
}

std::string Join(const std::vector<std::string>& parts, const std::string& separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

}  // namespace uir::codegen
