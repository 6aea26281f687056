// SPDX-License-Identifier: Apache-2.0
// Words of printed text.
#pragma once

#include <cctype>
#include <cstdint>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace uir::codegen {

/*! \brief Whether a text holds a word, not as a part of another. */
inline bool Mentions(const std::string& text, const std::string& word) {
  auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

/*! \brief A number as it is printed. */
inline std::string Text(int64_t value) { return std::to_string(value); }

/*! \brief Words of C++ and its types of fixed width. */
constexpr const char* kCppWords =
    "alignas alignof and asm auto bitand bitor bool break case catch char char16_t char32_t class compl const "
    "const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto half if inline int int16_t int32_t int64_t int8_t long main mutable "
    "namespace new noexcept not nullptr operator or private protected public register reinterpret_cast return "
    "short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename uint16_t uint32_t uint64_t uint8_t union unsigned using virtual void volatile "
    "wchar_t while xor";

/*! \brief The words of C++ and those of a list, which blanks part. */
inline std::set<std::string> WordsOf(const char* more) {
  std::istringstream words(std::string(kCppWords) + " " + more);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

}  // namespace uir::codegen
