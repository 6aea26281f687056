// SPDX-License-Identifier: Apache-2.0
// The base of all source printers: indented lines, names, literals.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace uir::codegen {

/*! \brief Collects the lines of a C-like source text. */
class Printer {
 public:
  explicit Printer(int indent = 0) : indent_(indent) {}

  /*! \brief One line at the current indentation; an empty one stays empty. */
  void Line(const std::string& text);
  /*! \brief `text {` and one level deeper. */
  void Open(const std::string& text);
  /*! \brief One level up, then `}` and the tail. */
  void Close(const std::string& tail = "");
  //! \brief A `//` comment, broken into lines of at most 110 characters.
  //! \note What could end the comment, or draw the next line into it, is written as an escape (`CommentText`).
  void Comment(const std::string& text);
  /*! \brief An empty line, unless there is one already or a block has just been opened. */
  void Blank() { lines_.push_back({"", true}); }
  /*! \brief Adopts the lines of another printer, as they are but for blank ones at their start. */
  void Append(const Printer& other);

  int indent() const { return indent_; }
  /*! \brief Lines so far. */
  int64_t size() const;
  std::string Text() const;

 private:
  struct Entry {
    std::string text;
    /*! \brief Whether it is an empty line, which stands only where there is none already. */
    bool blank = false;
  };
  std::vector<Entry> lines_;
  int indent_;
};

/*! \brief Identifiers that are legal and each used once. */
class Names {
 public:
  /*! \brief `reserved`: words of the language and names that the prelude takes. */
  explicit Names(std::set<std::string> reserved = {}) : used_(std::move(reserved)) {}

  /*! \brief The hint with what no identifier may hold replaced, numbered where it is taken. */
  std::string Fresh(const std::string& hint);

 private:
  std::set<std::string> used_;
};

/*! \brief Text that may stand behind `//`: backslashes, line ends and other control characters are escaped. */
std::string CommentText(const std::string& text);

/*! \brief `a, b, c`. */
std::string Join(const std::vector<std::string>& parts, const std::string& separator = ", ");

}  // namespace uir::codegen
