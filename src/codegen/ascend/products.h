// SPDX-License-Identifier: Apache-2.0
// The contractions of a graph, which the cube core computes, and the loops over which it keeps their sums.
//
// The pass `matrix_unit` has brought them into the only form there is here: operands and result in global memory, in
// whole tiles.  A contraction that accumulates adds over the loops around it whose variables its result does not
// depend on; the pass has cleared the result before the outermost of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/uses.h"
#include "igraph/nodes.h"

namespace uir::codegen::ascend {

/*! \brief One contraction. */
struct Product {
  IOp iop;
  /*! \brief Loops over whose iterations the sums stay in L0C, outermost first. */
  std::vector<Loop> carrying;
  /*! \brief Whether the vector core of the block writes an operand. */
  bool staged = false;
  //! \brief Whether the cube core must be told that it may store the result: the vector core reads an earlier one, and
  //! gives no operands, with which it would say so.
  bool guarded = false;
};

/*! \brief All contractions of a graph. */
class Products {
 public:
  /*! \note CodegenError for a contraction in another form. */
  explicit Products(const IGraph& graph);

  bool empty() const { return by_position_.empty(); }
  /*! \brief The contraction at a position in program order, or nullptr. */
  const Product* At(int position) const;
  /*! \brief Those whose outermost carrying loop this is. */
  std::vector<const Product*> CarriedBy(const Loop& loop) const;
  //! \brief Whether the vector core does nothing for an iOp: a product that a loop carries and whose operands it does
  //! not store; a move that clears a result, which the cube core does itself.
  bool Silent(const IOp& iop) const;

 private:
  void Walk(const ffi::Array<ffi::ObjectRef>& body, const IGraph& graph, std::vector<Loop>* loops, int* position);
  /*! \brief Whether a use by the vector core of a product's result comes before the product, or comes again. */
  bool Guarded(int position, const Product& product, const std::vector<Use>& uses) const;

  std::map<int, Product> by_position_;
  /*! \brief Names of the results that loops carry; of pointers that only moves into these read. */
  std::set<std::string> carried_, zeros_;
};

}  // namespace uir::codegen::ascend
