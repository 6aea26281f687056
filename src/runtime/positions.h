// SPDX-License-Identifier: Apache-2.0
// Positions in a state that are known before a call, checked before anything is written: the rows of
// `runtime.position_checks` of Python, which explains what is refused here.
#pragma once

#include <dlpack/dlpack.h>
#include <tvm/ffi/any.h>

#include <memory>
#include <vector>

namespace uir::runtime {

/*! \brief How a number of an index is computed of the arguments of a call. */
class IndexNode;

class Positions {
 public:
  Positions();
  Positions(Positions&&) noexcept;
  ~Positions();

  /*! \brief Reads rows of a "length" and an "index": "argument" (number), "constant" (numbers) or "op" and "operands",
   *  each with "view" (extents, strides, offset, shape), "dtype" and "size".
   *  \return Whether all of it is known here. */
  bool Read(const tvm::ffi::Any& rows);

  /*! \brief Whether all positions lie within the state.
   *  \param arguments Contiguous tensors in the host's memory, as the rows number them. */
  bool Hold(const std::vector<const DLTensor*>& arguments) const;

 private:
  struct Row;
  std::vector<Row> rows_;
};

}  // namespace uir::runtime
