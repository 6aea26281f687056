// SPDX-License-Identifier: Apache-2.0
// The operands of a product as views of its tensors, for libraries whose products broadcast batch dimensions.
#pragma once

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>

#include <array>
#include <cstdint>
#include <vector>

#include "library/attrs.h"

namespace uir::library {

/*! \brief Which tensor of the call an operand lies in. */
enum class Role { kA, kB, kBias, kResidual, kOut };

/*! \brief A view of a tensor, in elements.  What repeats has the extent 1. */
struct Operand {
  Role role;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset;
};

/*! \brief A batch dimension: its extent, and the strides of a, b and out; 0 repeats. */
struct BatchAxis {
  int64_t extent;
  std::array<int64_t, 3> strides;

  /*! \brief Whether this one and the next are one dimension for every operand. */
  bool Joins(const BatchAxis& inner) const;
};

/*! \brief The batch dimensions, joined where they lie so that they are one for all operands. */
std::vector<BatchAxis> BatchOf(const MatmulAttrs& attrs);

/*! \brief An operand over some batch dimensions.
 *  \param shift Elements to add to the offsets of a, b and out. */
Operand OperandOf(const MatmulAttrs& attrs, Role role, const std::vector<BatchAxis>& axes,
                  const std::array<int64_t, 3>& shift);

/*! \brief {"role", "shape", "strides", "offset"}. */
tvm::ffi::Map<tvm::ffi::String, tvm::ffi::Any> Describe(const Operand& operand);

}  // namespace uir::library
