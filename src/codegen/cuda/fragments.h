// SPDX-License-Identifier: Apache-2.0
// How the operands of a matrix instruction get into fragments, and which accesses of memory that takes.
//
// Of both operands a lane holds runs of `vec` elements along the contracted side: in blocks of 8 rows of a (columns
// of b) and 4 * vec elements, lane l has the elements of row l / 4 from vec * (l % 4) on.  An instruction of 16 rows
// takes two blocks of a above one another, and where it contracts two blocks side by side, those too.
//
// Bytes that lie across memory (neighbours are of different rows of a, columns of b) come in pairs: ldmatrix turns
// squares of 16 bits, so a lane gets the bytes of two neighbours.  Then of 16 rows (columns) one block has the even
// ones and the other the odd ones, in the sums too.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/banks.h"
#include "codegen/cuda/contract.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

/*! \brief How an operand gets into fragments. */
enum class Fetch {
  kRegisters,  // it lies there
  kMatrix,     // by ldmatrix
  kRuns,       // a lane's run by one access
  kElements,   // one by one
};

/*! \brief One operand of a product: a, whose `major` side is its rows, or b, whose it is its columns. */
struct FactorPlan {
  ISlice slice;
  bool is_a = true;
  /*! \brief Whether blocks take even and odd ones of 16 along the major side. */
  bool paired = false;
  Fetch fetch = Fetch::kElements;
  int64_t major = 1, depth = 1;
  /*! \brief kRegisters: how it comes to the instruction's layout. */
  std::optional<Operand> operand;
  /*! \brief Of one in memory: its box, and where lanes meet before it is read. */
  ReadableBounds bounds;
  MeetingPlace read = kNowhere;

  FactorPlan() = default;
  /*! \brief As it is fetched where nothing bounds it. */
  FactorPlan(const Plan& plan, const IOp& iop, int source, const MmaRow& row);

  int64_t depth_stride() const { return is_a ? slice->col_stride : slice->row_stride; }
  int64_t major_stride() const { return is_a ? slice->row_stride : slice->col_stride; }
  /*! \brief (row, column) of element `m` along the major side, `k` along the contracted one. */
  template <typename T>
  std::pair<T, T> At(const T& m, const T& k) const {
    return is_a ? std::make_pair(m, k) : std::make_pair(k, m);
  }
};

/*! \brief Both operands of a product. */
struct FragmentsPlan {
  FactorPlan a, b;
  /*! \brief Whether not all of the contracted side of an instruction exists. */
  bool limited = false;

  /*! \brief Plans what brings operands that lie in registers into their layout, and what is read. */
  static FragmentsPlan Of(StepPlanner& p, const IOp& iop, const MmaRow& row);
};

/*! \brief An operand while it is printed. */
struct Factor : FactorPlan {
  Regs regs;
  Box box;

  explicit Factor(const FactorPlan& plan) : FactorPlan(plan) {}
};

/*! \brief Prints what fills the fragments of one instruction. */
class FragmentPrinter {
 public:
  /*! \brief Prints what brings operands that lie in registers into their layout. */
  FragmentPrinter(Emitter& e, const IOp& iop, const FragmentsPlan& plan, const MmaRow& row);

  /*! \brief Type of one fragment register, and how many a tile of an operand has. */
  std::string Element() const { return wide_ ? "double" : "uint32_t"; }
  int Registers(bool is_a) const { return wide_ ? 2 : is_a ? 4 : 2; }

  //! \brief Fills the registers of tile `i` of a at step `k` (texts).
  //! \param half Whether only the upper 8 of its 16 rows exist.
  void FetchA(const std::string& array, const std::string& i, const std::string& k, bool half);
  /*! \brief Fills `array` from column block `j` of b on: one block or two. */
  void FetchB(const std::string& array, const std::string& j, const std::string& k, int count);

  const Factor& a() const { return a_; }
  const Factor& b() const { return b_; }

 private:
  int per_tile() const { return row_.m / 8; }
  void Prepare(Factor* f);
  void MatricesA(const std::string& array, const std::string& i, const std::string& k, bool half);
  void MatricesB(const std::string& array, const std::string& j, const std::string& k, int count);
  std::string Pairs(const Factor& f, const std::string& major, const std::string& k);
  void Split(const std::string& even, const std::string& odd, const std::string& pairs, int first);
  std::string Address(const Factor& f, const std::string& major, const std::string& depth);
  std::string Run(const Factor& f, const std::string& major, const std::string& k);
  std::string Register(const Factor& f, const std::string& block, const std::string& major, const std::string& k,
                       int along);
  std::string Value(const Factor& f, const std::string& block, const std::string& major, const std::string& block_k,
                    int n);
  std::string Rounded(const std::string& value);
  void AddBox(const Factor& f, const std::string& major, std::vector<std::string>* where);
  std::string Nothing() const;

  Emitter& e_;
  const IOp& iop_;
  const MmaRow& row_;
  Factor a_, b_;
  const ScalarType* type_;
  bool wide_, limited_;
  /*! \brief Blocks along the contracted side in one instruction. */
  int64_t deep_;
};

/*! \brief The accesses by which an operand in memory is read; what bounds it is left aside. */
std::vector<TileAccess> FragmentReads(const Plan& plan, const IOp& iop, int source, const MmaRow& row);

/*! \brief `4 * i + 2`, without what is nothing; constants are texts too. */
std::string Plus(std::initializer_list<std::pair<int64_t, std::string>> terms);

}  // namespace uir::codegen::cuda
