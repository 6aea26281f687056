// SPDX-License-Identifier: Apache-2.0
#include "library/size_expression.h"

#include <tvm/ffi/error.h>

#include <algorithm>

#include "runtime/error.h"

namespace uir::library {
namespace {

//! Deepest nesting that is read: each level is a call on the stack.
constexpr int kMostLevels = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/*! Letters of other alphabets are bytes from 0x80. */
bool IsLetter(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

/*! Reads an expression from its start to its end and computes it on the way. */
class Reader {
 public:
  Reader(std::string_view text, const NamedSizes& sizes, const ExpressionPlace& place)
      : text_(text), sizes_(sizes), place_(place) {}

  int64_t Whole() {
    const int64_t value = Sum();
    if (Next() != '\0') Fail("nothing at \"" + std::string(text_.substr(at_)) + "\"");
    return value;
  }

 private:
  int64_t Sum() {
    if (++level_ > kMostLevels) Fail("at most " + std::to_string(kMostLevels) + " levels");
    int64_t value = Product();
    while (true) {
      if (Skip('+')) {
        if (__builtin_add_overflow(value, Product(), &value)) TooLarge();
      } else if (Skip('-')) {
        if (__builtin_sub_overflow(value, Product(), &value)) TooLarge();
      } else {
        --level_;
        return value;
      }
    }
  }

  int64_t Product() {
    const bool negative = Skip('-');
    int64_t value = Factor();
    while (Skip('*')) {
      if (__builtin_mul_overflow(value, Factor(), &value)) TooLarge();
    }
    if (negative && __builtin_sub_overflow(int64_t{0}, value, &value)) TooLarge();
    return value;
  }

  int64_t Factor() {
    const char next = Next();
    if (IsDigit(next)) return Number();
    if (IsLetter(next)) return Named();
    Need('(', "a number, a name or \"(\"");
    const int64_t value = Sum();
    Need(')', "\")\"");
    return value;
  }

  int64_t Number() {
    int64_t value = 0;
    for (; at_ < text_.size() && IsDigit(text_[at_]); ++at_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value)) TooLarge();
      if (__builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) TooLarge();
    }
    return value;
  }

  int64_t Named() {
    const size_t begin = at_;
    while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (Skip('(')) return Part(name);
    const auto found = std::find_if(sizes_.begin(), sizes_.end(), [&](const auto& size) { return size.first == name; });
    if (found == sizes_.end()) Fail("a size that the call names, not " + std::string(name));
    return found->second;
  }

  /*! What is no polynomial; its "(" was read. */
  int64_t Part(std::string_view name) {
    if (name != "div" && name != "mod" && name != "min") Fail("div, mod or min, not " + std::string(name));
    const int64_t left = Sum();
    Need(',', "\",\"");
    const int64_t right = Sum();
    Need(')', "\")\"");
    if (name == "min") return std::min(left, right);
    if (right <= 0) NotAtTheseSizes("is divided by " + std::to_string(right), "a divisor above 0");
    const int64_t rest = (left % right + right) % right;
    return name == "mod" ? rest : (left - rest) / right;
  }

  /*! The next character that is no space, '\0' at the end. */
  char Next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool Skip(char wanted) {
    if (Next() != wanted) return false;
    ++at_;
    return true;
  }

  void Need(char wanted, const char* what) {
    if (!Skip(wanted))
      Fail(std::string(what) + " at " + (at_ < text_.size() ? std::string(text_.substr(at_)) : "its end"));
  }

  [[noreturn]] void Fail(const std::string& need) const {
    TVM_FFI_THROW(ValueError) << "Library operator " << place_.op << ": " << place_.field << " is \""
                              << std::string(text_) << "\", which is no expression of sizes.\n  need:   " << need;
    TVM_FFI_UNREACHABLE();
  }

  [[noreturn]] void NotAtTheseSizes(const std::string& why, const std::string& need) const {
    std::string given;
    for (const auto& [name, value] : sizes_) {
      given += (given.empty() ? "" : ", ") + std::string(name) + " = " + std::to_string(value);
    }
    runtime::SizeError({"The size " + std::string(text_) + " of a library operator " + why + ".",
                        place_.op + ", " + place_.field + ", with " + given, need, "", "call it with other sizes"});
    TVM_FFI_UNREACHABLE();
  }

  [[noreturn]] void TooLarge() const { NotAtTheseSizes("is too large", "less than 2^63"); }

  std::string_view text_;
  const NamedSizes& sizes_;
  const ExpressionPlace& place_;
  size_t at_ = 0;
  int level_ = 0;
};

}  // namespace

int64_t Evaluate(std::string_view text, const NamedSizes& sizes, const ExpressionPlace& place) {
  return Reader(text, sizes, place).Whole();
}

}  // namespace uir::library
