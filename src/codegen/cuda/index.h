// SPDX-License-Identifier: Apache-2.0
// Sums of texts times constants: numbers of registers, coordinates of elements.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/printer.h"

namespace uir::codegen::cuda {

/*! \brief `lane * 4 + rb * 128 + 2`: constants are added up and stand last, what is nothing does not stand. */
class Index {
 public:
  void Add(const std::string& text, int64_t factor) {
    const bool number = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number && !text.empty()) {
      constant_ += std::stoll(text) * factor;
    } else if (factor == 1) {
      parts_.push_back(text);
    } else if (factor != 0) {
      parts_.push_back(text + " * " + std::to_string(factor));
    }
  }
  std::string Text() const {
    std::string text = Join(parts_, " + ");
    if (text.empty()) return std::to_string(constant_);
    return constant_ == 0 ? text : text + " + " + std::to_string(constant_);
  }

 private:
  int64_t constant_ = 0;
  std::vector<std::string> parts_;
};

}  // namespace uir::codegen::cuda
