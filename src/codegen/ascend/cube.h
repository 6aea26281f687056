// SPDX-License-Identifier: Apache-2.0
// The cube core's part of a contraction: global memory -> L1 -> L0A, L0B -> L0C -> global memory.
//
// The contracted side is cut into chunks of which two fit L0A and L0B each, so that one is loaded while the other is
// multiplied.  In L1 an operand lies as rows of fractals, each fractal (16 rows of 32 bytes) row by row: "Zz".
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/ascend/emitter.h"
#include "codegen/ascend/products.h"

namespace uir::codegen::ascend {

/*! \brief A memory of the cube core as the kernel declares it. */
struct CubeBuffer {
  /*! \brief "A1" (L1), "A2" (L0A), "B2" (L0B) or "CO1" (L0C). */
  std::string position;
  std::string name;
  int64_t bytes = 0;
};

/*! \brief A tensor over a piece of one. */
struct CubeTensor {
  std::string buffer, name, type;
  int64_t begin = 0, size = 0;
};

/*! \brief Prints the contractions of one kernel into an emitter of its own. */
class Cube {
 public:
  explicit Cube(Emitter* e);

  /*! \brief What stands at the contraction; its result too, where no loop carries it. */
  void Multiply(const Product& product);
  /*! \brief Stores what L0C holds: behind the outermost loop that carries the product. */
  void Store(const Product& product);

  std::vector<CubeBuffer> Buffers() const;
  const std::vector<CubeTensor>& tensors() const { return tensors_; }

 private:
  struct Factor;
  struct Sizes;

  Sizes SizesOf(const Product& product);
  Factor FactorOf(const ISlice& slice, bool left);
  std::string Tensor(const std::string& buffer, const std::string& hint, const std::string& type, int64_t begin,
                     int64_t size, int64_t element);
  /*! \brief The operand's tensor in L1, in L0A or L0B, from an element of a place on. */
  std::string InL1(const Factor& factor, const Sizes& sizes, const Affine& place, const std::string& more = "");
  std::string Operand(const Factor& factor, const Sizes& sizes, const Affine& place, const std::string& more = "");
  Affine L1Byte(const Factor& factor, const Sizes& sizes, const Affine& place) const;
  /*! \brief Global memory to L1: elements [at, at + length) of the contracted side. */
  void Fetch(const Factor& factor, const Sizes& sizes, int64_t at, int64_t length, const Affine& place);
  /*! \brief L1 to L0A (rows of fractals) or L0B (the same with each fractal column by column). */
  void Load(const Factor& factor, const Sizes& sizes, int64_t length, const Affine& place);

  Emitter* e_;
  /*! \brief First byte in L0C of the sums of every contraction. */
  std::vector<std::pair<const void*, int64_t>> sums_at_;
  std::map<std::string, int64_t> limits_, used_;
  std::map<std::string, std::string> buffers_;
  std::vector<CubeTensor> tensors_;
};

}  // namespace uir::codegen::ascend
