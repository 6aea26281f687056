// SPDX-License-Identifier: Apache-2.0
/*!
 * \file words.h
 * \brief Words of printed text.
 */
#ifndef UIR_CODEGEN_WORDS_H_
#define UIR_CODEGEN_WORDS_H_

#include <cctype>
#include <string>

namespace uir {
namespace codegen {

/*! \brief Whether a text holds a word, not as a part of another. */
inline bool Mentions(const std::string& text, const std::string& word) {
  auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_WORDS_H_
