// SPDX-License-Identifier: Apache-2.0
// Quasi-affine expressions over numbered variables: their values at points, and their periods.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "igraph/affine.h"

namespace uir {

/*! \brief How an expression moves with one variable: e(v + period) = e(v) + shift, whatever the others are. */
struct Period {
  int64_t period = 1;
  int64_t shift = 0;
};

/*! \brief An Affine whose variables are numbers, for fast evaluation; beyond 64 bits it throws IGraphError. */
class NumberedAffine {
 public:
  NumberedAffine() = default;
  /*! \brief `number_of` gives the number of a variable's name. */
  NumberedAffine(const Affine& expr, const std::function<int(const std::string&)>& number_of);

  /*! \brief Value for the variables' values, by number. */
  int64_t Evaluate(const std::vector<int64_t>& values) const;
  /*! \brief s with e(v + step) = e(v) + s whatever v and the others are; none where it is not seen. */
  std::optional<int64_t> GrowthIn(int v, int64_t step) const;
  //! \brief The least period in variable `v`; none where it is greater than `most`.
  //!
  //! c*v has period 1.  floor(e/k) and e mod k, where e moves by s in its period p: after q periods with
  //! q*s divisible by k the floor moves by q*s/k and the remainder by nothing.
  std::optional<Period> PeriodIn(int v, int64_t most) const;
  /*! \brief Adds the numbers of the variables. */
  void Variables(std::set<int>* out) const;

 private:
  enum class Kind { kVar, kDiv, kMod, kTimes };
  struct Part {
    int64_t coeff = 0;
    Kind kind = Kind::kVar;
    int var = -1;
    int64_t divisor = 1;
    std::vector<NumberedAffine> inner;  // one for all but kVar

    /*! \brief Whether a product has a variable among its factors. */
    bool Has(int v) const;
  };
  int64_t constant_ = 0;
  std::vector<Part> parts_;
};

}  // namespace uir
