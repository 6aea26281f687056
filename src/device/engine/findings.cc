// SPDX-License-Identifier: Apache-2.0
#include "device/engine/findings.h"

#include <cstdio>

namespace uir::engine {

namespace {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned char>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

JsonObject& JsonObject::Raw(const std::string& name, const std::string& json) {
  if (!body_.empty()) body_ += ", ";
  body_ += Quoted(name) + ": " + json;
  return *this;
}

JsonObject& JsonObject::Text(const std::string& name, const std::string& value) { return Raw(name, Quoted(value)); }

JsonObject& JsonObject::Number(const std::string& name, int64_t value) { return Raw(name, std::to_string(value)); }

JsonObject& JsonObject::Real(const std::string& name, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return Raw(name, text);
}

JsonObject& JsonObject::Bool(const std::string& name, bool value) { return Raw(name, value ? "true" : "false"); }

std::string JsonList(const std::vector<std::string>& values) {
  std::string body;
  for (const std::string& value : values) {
    if (!body.empty()) body += ", ";
    body += value;
  }
  return "[" + body + "]";
}

}  // namespace uir::engine
