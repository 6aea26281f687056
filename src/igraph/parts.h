// SPDX-License-Identifier: Apache-2.0
// Quasi-affine expressions taken apart, and put together again of other variables.
#pragma once

#include <functional>
#include <utility>

#include "igraph/space.h"

namespace uir {

/*! \brief (the terms that are chosen, the rest with the constant). */
std::pair<Affine, Affine> Split(const Affine& expr, const std::function<bool(const Affine& term)>& chosen);

/*! \brief (the part whose coefficients k divides, the rest with its constant in [0, k)). */
std::pair<Affine, Affine> SplitMultiples(const Affine& expr, int64_t k);

/*! \brief Variables replaced by expressions; quotients and remainders are simplified by what the space knows. */
Affine Substitute(const Affine& expr, const ffi::Map<ffi::String, Affine>& env, const Space& space);

}  // namespace uir
