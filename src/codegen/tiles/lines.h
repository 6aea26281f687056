// SPDX-License-Identifier: Apache-2.0
// C++ text that emitters put together: loops, conditions, indices of which no range is known (else bound.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uir::codegen::tiles {

/*! \brief `a + b` without what is 0 or empty. */
std::string PlusText(const std::string& a, const std::string& b);
/*! \brief `(text) * factor`, in brackets only where it has a sum or a choice of its own; "0" of 0. */
std::string TimesText(const std::string& text, int64_t factor);
/*! \brief `(a < b ? a : b)`. */
std::string MinText(const std::string& a, const std::string& b);

/*! \brief `for (int32_t i = from; i < to; ++i)`. */
std::string ForText(const std::string& var, const std::string& from, const std::string& to);
/*! \brief Lines in the braces of a `for` or an `if`; where there is none, as they are. */
std::vector<std::string> Under(const std::string& head, const std::vector<std::string>& lines);
/*! \brief Lines under `ForText`. */
std::vector<std::string> Looped(const std::string& var, const std::string& from, const std::string& to,
                                const std::vector<std::string>& lines);

}  // namespace uir::codegen::tiles
