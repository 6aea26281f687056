// SPDX-License-Identifier: Apache-2.0
/*!
 * \file quasi.h
 * \brief Quasi-affine expressions over numbered variables, with their periods.
 */
#ifndef UIR_CODEGEN_PIPES_QUASI_H_
#define UIR_CODEGEN_PIPES_QUASI_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "igraph/affine.h"

namespace uir {
namespace codegen {
namespace pipes {

/*! \brief How an expression moves with one variable: e(v + period) = e(v) + shift, whatever the others are. */
struct Period {
  int64_t period = 1;
  int64_t shift = 0;
};

/*! \brief An Affine whose variables are numbers, for fast evaluation. */
class Quasi {
 public:
  Quasi() = default;
  /*! \brief `number_of` gives the number of a variable's name. */
  Quasi(const Affine& expr, const std::function<int(const std::string&)>& number_of);

  /*! \brief Value for the variables' values, by number. */
  int64_t Evaluate(const std::vector<int64_t>& values) const;
  /*!
   * \brief The least period in variable `v`; none where it is greater than `most`.
   *
   * c*v has period 1.  floor(e/k) and e mod k, where e moves by s in its period p: after q periods with
   * q*s divisible by k the floor moves by q*s/k and the remainder by nothing.
   */
  std::optional<Period> PeriodIn(int v, int64_t most) const;
  /*! \brief Least and greatest value where variable v lies in ranges[v]; exact for one occurrence of each variable. */
  std::pair<int64_t, int64_t> RangeOver(const std::vector<std::pair<int64_t, int64_t>>& ranges) const;
  /*! \brief Adds the numbers of the variables. */
  void Variables(std::set<int>* out) const;

 private:
  enum class Kind { kVar, kDiv, kMod };
  struct Part {
    int64_t coeff = 0;
    Kind kind = Kind::kVar;
    int var = -1;
    int64_t divisor = 1;
    std::vector<Quasi> inner;  // one for kDiv and kMod
  };
  int64_t constant_ = 0;
  std::vector<Part> parts_;
};

}  // namespace pipes
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_PIPES_QUASI_H_
