// SPDX-License-Identifier: Apache-2.0
#include "device/engine/json.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace uir::engine {

const JsonValue& JsonValue::At(const std::string& name) const {
  static const JsonValue* nothing = new JsonValue();
  auto found = object.find(name);
  return found == object.end() ? *nothing : found->second;
}

namespace {

class Reader {
 public:
  explicit Reader(const std::string& text) : at_(text.c_str()) {}

  bool Whole(JsonValue* value) {
    if (!Value(value, 0)) return false;
    Skip();
    return *at_ == 0;
  }

 private:
  static constexpr int kDeepest = 64;

  void Skip() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') ++at_;
  }
  bool Take(char c) {
    Skip();
    if (*at_ != c) return false;
    ++at_;
    return true;
  }
  bool Word(const char* word) {
    size_t length = std::strlen(word);
    if (std::strncmp(at_, word, length) != 0) return false;
    at_ += length;
    return true;
  }

  /*! \brief A text; of \u escapes those of one byte, as only names and numbers are read here. */
  bool Text(std::string* out) {
    if (!Take('"')) return false;
    while (*at_ && *at_ != '"') {
      char c = *at_++;
      if (c != '\\') {
        *out += c;
        continue;
      }
      char escaped = *at_++;
      switch (escaped) {
        case 'n':
          *out += '\n';
          break;
        case 't':
          *out += '\t';
          break;
        case '"':
        case '\\':
        case '/':
          *out += escaped;
          break;
        default:
          return false;
      }
    }
    return Take('"');
  }

  bool Value(JsonValue* value, int depth) {
    Skip();
    if (depth > kDeepest) return false;
    if (*at_ == '{') return Object(value, depth);
    if (*at_ == '[') return List(value, depth);
    if (*at_ == '"') {
      value->kind = JsonValue::kText;
      return Text(&value->text);
    }
    if (Word("null")) return true;
    value->kind = JsonValue::kNumber;
    if (Word("true")) {
      value->number = 1;
      return true;
    }
    if (Word("false")) return true;
    char* end;
    value->number = std::strtod(at_, &end);
    if (end == at_) return false;
    at_ = end;
    return true;
  }

  bool Object(JsonValue* value, int depth) {
    value->kind = JsonValue::kObject;
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      std::string name;
      JsonValue member;
      Skip();
      if (!Text(&name) || !Take(':') || !Value(&member, depth + 1)) return false;
      value->object[name] = std::move(member);
    } while (Take(','));
    return Take('}');
  }

  bool List(JsonValue* value, int depth) {
    value->kind = JsonValue::kList;
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      value->list.emplace_back();
      if (!Value(&value->list.back(), depth + 1)) return false;
    } while (Take(','));
    return Take(']');
  }

  const char* at_;
};

}  // namespace

bool ParseJson(const std::string& text, JsonValue* value) { return Reader(text).Whole(value); }

}  // namespace uir::engine
